import errno
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bridgehead import files
from bridgehead.errors import ArgumentError, FormatVersionError, InputFileNotFoundError, RunBusyError, RunStateError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_with_its_folders_and_nothing_beside(tmp_path):
    files.write_text(tmp_path / "a" / "b.txt", "Grüße 分子")
    assert (tmp_path / "a" / "b.txt").read_text(encoding="utf-8") == "Grüße 分子"
    assert names(tmp_path / "a") == ["b.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside(tmp_path):
    target = tmp_path / "x"
    files.write_text(target, "old")

    def interrupted() -> None:
        with files.atomic_file(target) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["x"]


def test_a_reader_sees_the_old_content_until_the_end(tmp_path):
    target = tmp_path / "x"
    files.write_text(target, "old")
    with files.atomic_file(target, "w") as file:
        file.write("new")
        file.flush()
        assert target.read_text() == "old"
    assert target.read_text() == "new"


def test_a_writer_killed_in_the_middle_leaves_the_old_file(tmp_path):
    target = tmp_path / "x"
    files.write_text(target, "old")
    script = (
        "import os, signal, sys; from bridgehead.files import atomic_file\n"
        "with atomic_file(sys.argv[1]) as f:\n"
        "    f.write(b'half'); f.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert target.read_text() == "old"


def test_a_new_file_has_the_rights_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    files.write_text(tmp_path / "ours", "")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "folder"])
def test_what_is_no_plain_file_is_never_replaced_by_one(tmp_path, make):
    make(tmp_path / "x")
    kind = stat.S_IFMT((tmp_path / "x").stat().st_mode)
    with pytest.raises(ArgumentError, match="x is there and no plain file; name another"):
        files.write_text(tmp_path / "x", "new")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    with pytest.raises(ArgumentError, match="no plain file"):
        files.write_text(tmp_path / "link", "new")
    assert stat.S_IFMT((tmp_path / "x").stat().st_mode) == kind and names(tmp_path) == ["link", "x"]


def test_a_library_that_writes_by_name_is_atomic_too(tmp_path):
    target = tmp_path / "x.npy"

    def fails(name: str) -> None:
        Path(name).write_bytes(b"half")
        raise OSError("disk full")

    files.atomic_path(target, lambda name: Path(name).write_bytes(b"whole"))
    with pytest.raises(OSError, match="disk full"):
        files.atomic_path(target, fails)
    assert target.read_bytes() == b"whole"
    assert names(tmp_path) == ["x.npy"]


def test_a_library_may_replace_the_file_that_it_is_given(tmp_path):
    def replaces(name: str) -> None:
        (tmp_path / "other").write_bytes(b"whole")
        os.replace(tmp_path / "other", name)

    files.atomic_path(tmp_path / "x", replaces)
    assert (tmp_path / "x").read_bytes() == b"whole"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Error: 'ret == (size * 4)' failed: write error in x: 1 != 4 (No space left on device)"),
        sqlite3.OperationalError("database or disk is full"),
        ValueError("parquet: underlying IO error: No space left on device (os error 28)"),
        OSError("100000 requested and 2544 written"),
    ],
)
def test_a_full_disk_is_an_error_of_the_system_whatever_a_library_calls_it(tmp_path, error):
    def write(name: str) -> None:
        raise error

    with pytest.raises(OSError, match="No space left on device") as raised:
        files.atomic_path(tmp_path / "x", write)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(tmp_path / "x"))
    assert names(tmp_path) == []


def test_other_errors_of_a_library_stay_as_they_are(tmp_path):
    def write(name: str) -> None:
        raise RuntimeError("another fault")

    with pytest.raises(RuntimeError, match="another fault"):
        files.atomic_path(tmp_path / "x", write)


def test_json_comes_back_without_its_two_first_fields(tmp_path):
    files.write_json(tmp_path / "x.json", {"β": [1, None]}, "kind", 3)
    assert list(json.loads((tmp_path / "x.json").read_text(encoding="utf-8")))[:2] == ["format", "version"]
    assert files.read_json(tmp_path / "x.json", "kind", 3) == {"β": [1, None]}


@pytest.mark.parametrize(("kind", "version"), [("other", 1), ("kind", 2), ("kind", 0)])
def test_another_kind_or_version_is_refused(tmp_path, kind, version):
    files.write_json(tmp_path / "x.json", {}, "kind", 1)
    with pytest.raises(FormatVersionError, match=rf"reads '{kind}' version {version}"):
        files.read_json(tmp_path / "x.json", kind, version)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"nul\0"])
def test_a_damaged_file_is_said_to_be_damaged(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(RunStateError, match="it is damaged"):
        files.read_json(tmp_path / "x.json", "kind")


def test_json_that_is_not_an_object_or_not_there_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(RunStateError, match="holds a list"):
        files.read_json(tmp_path / "x.json", "kind")
    with pytest.raises(InputFileNotFoundError, match="does not exist"):
        files.read_json(tmp_path / "none.json", "kind")


def test_what_json_cannot_say_is_refused_and_the_old_file_stays(tmp_path):
    files.write_json(tmp_path / "x.json", {"a": 1}, "kind")
    with pytest.raises(ValueError, match="JSON compliant"):
        files.write_json(tmp_path / "x.json", {"a": float("nan")}, "kind")
    with pytest.raises(ArgumentError, match="version: the names of the two first fields"):
        files.write_json(tmp_path / "x.json", {"version": 2}, "kind")
    assert files.read_json(tmp_path / "x.json", "kind") == {"a": 1}


def test_an_array_comes_back_and_objects_are_refused(tmp_path):
    files.write_npy(tmp_path / "x.npy", np.arange(3))
    assert np.load(tmp_path / "x.npy", allow_pickle=False).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="allow_pickle=False"):
        files.write_npy(tmp_path / "x.npy", np.array([object()]))
    assert names(tmp_path) == ["x.npy"]


def test_hashes_depend_on_content_and_on_boundaries():
    assert files.hash_texts(["ab"]) != files.hash_texts(["a", "b"]) != files.hash_texts(["b", "a"])
    assert files.hash_texts([]) != files.hash_texts([""])
    assert files.hash_json({"a": 1, "b": 2}) == files.hash_json({"b": 2, "a": 1}) != files.hash_json({"a": 1})
    assert files.hash_texts(["\ud800"]) and files.hash_json("\ud800")


def test_an_array_hash_depends_on_dtype_and_shape_but_not_on_layout():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = files.hash_array(array)
    assert found == files.hash_array(np.asfortranarray(array)) == files.hash_array(np.repeat(array, 2, axis=0)[::2])
    assert found != files.hash_array(array.reshape(3, 2))
    assert found != files.hash_array(array.astype(np.float64))
    with pytest.raises(ArgumentError, match="holds addresses"):
        files.hash_array(np.array(["a", None], dtype=object))


def test_a_file_hash_is_its_sha256(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert files.hash_file(tmp_path / "x").startswith("ba7816bf8f01cfea")


def test_a_second_writer_is_refused_at_once_and_told_who_holds_the_lock(tmp_path):
    script = "import sys; from bridgehead.files import folder_lock\nwith folder_lock(sys.argv[1]): pass"
    with files.folder_lock(tmp_path / "run"):
        done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], capture_output=True, check=False)
        assert b"RunBusyError" in done.stderr and f"pid {os.getpid()}".encode() in done.stderr
        with (
            pytest.raises(RunBusyError, match="is being written by another process"),
            files.folder_lock(tmp_path / "run"),
        ):
            pass
    with files.folder_lock(tmp_path / "run"):
        pass


def test_a_killed_writer_leaves_no_lock(tmp_path):
    script = (
        "import os, signal, sys; from bridgehead.files import folder_lock\n"
        "with folder_lock(sys.argv[1]): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == -signal.SIGKILL
    with files.folder_lock(tmp_path):
        pass


def test_a_lock_is_freed_although_a_forked_child_lives_on(tmp_path):
    script = (
        "import os, sys, time; from bridgehead.files import folder_lock\n"
        "with folder_lock(sys.argv[1]):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        sys.stdin.read(); os._exit(0)\n"
        "with folder_lock(sys.argv[1]): print('free')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.communicate()[0].strip() == "free"


def test_an_error_in_the_block_frees_the_lock(tmp_path):
    with pytest.raises(KeyError), files.folder_lock(tmp_path):
        raise KeyError
    with files.folder_lock(tmp_path):
        pass
