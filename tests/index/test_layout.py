"""Checks of the files of a build: what a look at samples sees, what only a thorough one sees, and how long it takes."""

import time

import pytest

from bridgehead.errors import RunStateError
from bridgehead.index.layout import check_files, described_files, sampled_hash

SIZE = 3 << 20


@pytest.fixture
def build(tmp_path):
    (tmp_path / "a.rows.npy").write_bytes(bytes(range(256)) * (SIZE // 256))
    (tmp_path / "items.sqlite").write_bytes(b"changes")
    (tmp_path / "attached").mkdir()
    (tmp_path / "attached" / "note.txt").write_text("kept")
    return tmp_path


def change(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 0xFF
    path.write_bytes(content)


def test_all_but_the_item_file_is_described(build):
    assert set(described_files(build)) == {"a.rows.npy", "attached/note.txt"}
    check_files(build, described_files(build), thorough=True)


@pytest.mark.parametrize("position", [0, 30_000, -1])
def test_a_changed_head_or_end_is_seen_at_once(build, position):
    files = described_files(build)
    change(build / "a.rows.npy", position)
    with pytest.raises(RunStateError, match="damaged or of another build"):
        check_files(build, files, thorough=False)


def test_a_byte_between_samples_is_seen_by_a_thorough_check(build):
    files = described_files(build)
    change(build / "a.rows.npy", (1 << 16) + 5)
    check_files(build, files, thorough=False)
    with pytest.raises(RunStateError, match="damaged"):
        check_files(build, files, thorough=True)


def test_missing_and_cut_off_files_are_named(build):
    files = described_files(build)
    (build / "a.rows.npy").write_bytes(b"short")
    with pytest.raises(RunStateError, match=rf"a\.rows\.npy has 5 bytes; expected {SIZE}"):
        check_files(build, files, thorough=False)
    (build / "a.rows.npy").unlink()
    with pytest.raises(RunStateError, match=r"a\.rows\.npy is missing"):
        check_files(build, files, thorough=False)


def test_a_file_of_ten_gigabytes_is_looked_at_in_under_a_second(tmp_path):
    path = tmp_path / "a.faiss"
    with open(path, "wb") as file:
        file.truncate(10 << 30)
    start = time.process_time()
    sampled_hash(path)
    assert time.process_time() - start < 1
