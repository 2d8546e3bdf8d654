"""What cannot be written is said in a sentence of ours, whatever was to be written."""

import re
import subprocess
import sys

import numpy as np
import pytest

from bridgehead.errors import RunStateError
from bridgehead.train import TrainConfig, fit_heads
from bridgehead.train.aligner import Aligner
from bridgehead.train.checkpoint import writing

SMALL = {"embed_dim": 8, "hidden": (16,), "epochs": 2, "checkpoint_seconds": 1000}
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX")


PROGRAM = """
import resource, signal, sys
import numpy as np
from bridgehead.errors import RunStateError
from bridgehead.train import TrainConfig, fit_heads
from bridgehead.train.aligner import Aligner
rows = np.load(sys.argv[1], allow_pickle=False), np.load(sys.argv[2], allow_pickle=False)
config = TrainConfig.of(embed_dim=8, hidden=(16,), epochs=2, checkpoint_seconds=1000)
aligner = Aligner(8, 1).fit(*rows)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
try:
    {call}
except RunStateError as error:
    print(error)
"""


def with_files_of_at_most(few, folder, size, call):
    """Return what a process says in which no file may grow beyond `size` bytes: limits are those of the process."""
    for name, rows in zip("ab", few.fit, strict=True):
        np.save(folder / f"{name}.npy", rows)
    paths = [str(folder / name) for name in ("a.npy", "b.npy", "run")]
    command = [sys.executable, "-c", PROGRAM.replace("{call}", call), *paths, str(size)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("size", "what"), [(100, "the history"), (1500, "heads.safetensors")])
def test_a_full_disk_under_the_history_or_the_heads_is_said(few, tmp_path, size, what):
    said = with_files_of_at_most(few, tmp_path, size, "fit_heads(*rows, config=config, folder=sys.argv[3])")
    assert re.match(f"{what} could not be written into .*make room on the disk", said)
    assert not (tmp_path / "run" / "heads.safetensors").exists()


def test_a_folder_that_is_a_file_is_said_before_an_epoch_is_trained(few, tmp_path):
    (tmp_path / "file").write_text("")
    seen = []
    with pytest.raises(RunStateError, match="the history could not be written into"):
        fit_heads(
            *few.fit, config=TrainConfig.of(SMALL), folder=tmp_path / "file", progress=lambda *at: seen.append(at)
        )
    assert not seen


def test_a_full_disk_under_a_saved_aligner_is_said(few, tmp_path):
    said = with_files_of_at_most(few, tmp_path, 1000, "aligner.save(sys.argv[3])")
    assert said.startswith("the aligner could not be written into")


def test_what_a_kill_left_of_a_checkpoint_is_removed_at_the_end(few, tmp_path):
    (tmp_path / ".checkpoint.safetensors.x1y2z3.part").write_bytes(b"half")
    fit_heads(*few.fit, config=TrainConfig.of(SMALL), folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heads.safetensors", "history.jsonl"]


def test_errors_of_ours_pass_as_they_are():
    with pytest.raises(RunStateError, match=r"^ours$"), writing("it", "somewhere"):
        raise RunStateError("ours")


def test_numbers_of_numpy_are_saved_as_numbers(few, tmp_path):
    Aligner(np.int64(8), 1, np.int64(3), {"batch_size": np.int64(16)}).fit(*few.fit).save(tmp_path)  # type: ignore[arg-type]
    params = Aligner.load(tmp_path).get_params()
    assert params == {"embed_dim": 8, "epochs": 1, "seed": 3, "settings": {"batch_size": 16}}
