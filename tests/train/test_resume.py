"""A training that was stopped anywhere ends as if it had not been, and never mixes with another one."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy import sparse

from bridgehead.errors import FormatVersionError, RunStateError
from bridgehead.train import TrainConfig, fit_heads
from bridgehead.train import fit as fit_module
from bridgehead.train import loop as loop_module

CONFIG = TrainConfig.of(
    embed_dim=8, hidden=(16,), epochs=4, batch_size=16, dropout=0.3, input_dropout=0.1, checkpoint_seconds=0
)


class Stopped(BaseException):
    """Stands for the end of the process."""


def data(few):
    csr = sparse.csr_matrix(np.maximum(few.fit[0], 0))
    return csr, few.fit[1]


def valid(few):
    return sparse.csr_matrix(np.maximum(few.valid[0], 0)), few.valid[1], None


def run(few, folder, config=CONFIG, **more):
    return fit_heads(*data(few), config=config, valid=valid(few), folder=folder, **more)


def outcome(folder):
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    history = [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
    return load_file(folder / "heads.safetensors"), history


def assert_same(left, right):
    assert left[1] == right[1]
    assert left[0].keys() == right[0].keys()
    assert all(torch.equal(left[0][name], right[0][name]) for name in left[0])


@pytest.fixture(scope="session")
def whole(few, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    run(few, folder)
    return outcome(folder)


def stop_at(monkeypatch, steps):
    """End the training when it is about to take its n-th step in this process."""
    original, taken = loop_module._Loop._step, []

    def step(self, *rows):
        taken.append(1)
        if len(taken) == steps:
            raise Stopped
        original(self, *rows)

    monkeypatch.setattr(loop_module._Loop, "_step", step)


# An epoch has 4 steps: stops before the first, within an epoch, at its end, and near the last of 16.
@pytest.mark.parametrize("steps", [[1], [2], [3, 4], [5], [6, 2, 2, 3], [16]])
def test_stopped_at_any_step_it_ends_in_the_same_bits(few, whole, tmp_path, monkeypatch, steps):
    for step in steps:
        with monkeypatch.context() as patch:
            stop_at(patch, step)
            with pytest.raises(Stopped):
                run(few, tmp_path)
    run(few, tmp_path)
    assert_same(outcome(tmp_path), whole)


def test_sparse_checkpoints_repeat_some_steps_and_end_in_the_same_bits(few, whole, tmp_path, monkeypatch):
    rare = TrainConfig.of(CONFIG, checkpoint_seconds=3600)
    with monkeypatch.context() as patch:
        stop_at(patch, 7)
        with pytest.raises(Stopped):
            run(few, tmp_path, rare)
    assert not (tmp_path / "checkpoint.safetensors").exists()
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 1
    run(few, tmp_path, rare)
    assert_same(outcome(tmp_path), whole)


def test_a_half_written_line_of_history_is_mended_on_resume(few, whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 10)
        with pytest.raises(Stopped):
            run(few, tmp_path)
    with open(tmp_path / "history.jsonl", "a") as file:
        file.write('{"epoch": 3, "lo')
    run(few, tmp_path)
    assert_same(outcome(tmp_path), whole)


def test_a_stop_between_the_last_epoch_and_the_end_repeats_only_the_end(few, whole, tmp_path, monkeypatch):
    def stop(*_args, **_kwargs):
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(fit_module, "save_heads", stop)
        with pytest.raises(Stopped):
            run(few, tmp_path)
    with monkeypatch.context() as patch:
        stop_at(patch, 1)
        run(few, tmp_path)
    assert_same(outcome(tmp_path), whole)


def interrupted(few, folder, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 6)
        with pytest.raises(Stopped):
            run(few, folder)
    return folder / "checkpoint.safetensors"


def test_the_checkpoint_of_another_config_or_other_data_is_refused(few, tmp_path, monkeypatch):
    interrupted(few, tmp_path, monkeypatch)
    with pytest.raises(RunStateError, match="another config or other data; remove it"):
        run(few, tmp_path, TrainConfig.of(CONFIG, dropout=0.2))
    with pytest.raises(RunStateError, match="another config or other data"):
        fit_heads(data(few)[0] * 2, data(few)[1], config=CONFIG, valid=valid(few), folder=tmp_path)
    with pytest.raises(RunStateError, match="another config or other data"):
        fit_heads(*data(few), config=CONFIG, folder=tmp_path)


def test_a_damaged_checkpoint_or_one_of_another_version_is_refused(few, tmp_path, monkeypatch):
    path = interrupted(few, tmp_path, monkeypatch)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(RunStateError, match="is damaged"):
        run(few, tmp_path)
    path.write_bytes(content.replace(b'"version":"2"', b'"version":"9"'))
    with pytest.raises(FormatVersionError, match="version '9'"):
        run(few, tmp_path)


FEATURES = {
    "a bank": {"negatives": {"bank_size": 24}},
    "hard negatives": {"negatives": {"sampling": "hard", "k_hard": 3, "mine_every": 2, "start_epoch": 1}},
    "distinct batches": {"negatives": {"sampling": "distinct"}},
    "a sigmoid and its bias": {"loss": {"name": "sigmoid"}},
    "augmentation": {"augment": {"token_dropout": 0.2, "feature_noise": 0.1, "latent_mixing": 1.0}},
    "half precision": {"precision": "fp16"},
    "batch statistics": {"norm": "batch"},
}


@pytest.mark.parametrize("settings", FEATURES.values(), ids=FEATURES.keys())
def test_what_a_training_carries_along_is_in_its_checkpoint(few, tmp_path, monkeypatch, settings):
    config = TrainConfig.of(CONFIG, **settings)
    run(few, tmp_path / "whole", config)
    for step in (3, 4, 6):
        with monkeypatch.context() as patch:
            stop_at(patch, step)
            with pytest.raises(Stopped):
                run(few, tmp_path / "stopped", config)
    run(few, tmp_path / "stopped", config)
    assert_same(outcome(tmp_path / "stopped"), outcome(tmp_path / "whole"))


FULL_DISK = """
import resource, signal, sys, numpy as np
from bridgehead.errors import RunStateError
from bridgehead.train import TrainConfig, fit_heads
rows = np.load(sys.argv[1], allow_pickle=False), np.load(sys.argv[2], allow_pickle=False)
config = TrainConfig.of(embed_dim=8, hidden=(16,), epochs=4, batch_size=16, checkpoint_seconds=0)
def no_more_room(epoch, epochs, line):
    if epoch == 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    fit_heads(*rows, config=config, folder=sys.argv[3], progress=no_more_room)
except RunStateError as error:
    print(error)
"""


def test_a_disk_that_fills_while_a_checkpoint_is_written_costs_nothing(few, tmp_path):
    for name, rows in zip("ab", few.fit, strict=True):
        np.save(tmp_path / f"{name}.npy", rows)
    paths = [str(tmp_path / name) for name in ("a.npy", "b.npy", "run")]
    done = subprocess.run([sys.executable, "-c", FULL_DISK, *paths], capture_output=True, text=True, check=True)
    assert "the checkpoint could not be written" in done.stdout
    assert "make room on the disk and start again" in done.stdout
    # The one before is whole, and the training goes on from it to what it would have been.
    settings = {"embed_dim": 8, "hidden": (16,), "epochs": 4, "batch_size": 16, "checkpoint_seconds": 0}
    config = TrainConfig.of(settings)
    assert (tmp_path / "run" / "checkpoint.safetensors").is_file()
    steps = []
    fit_heads(*few.fit, config=config, folder=tmp_path / "run", progress=lambda *line: steps.append(line[0]))
    assert steps == [3, 4]
    fit_heads(*few.fit, config=config, folder=tmp_path / "whole")
    assert_same(outcome(tmp_path / "run"), outcome(tmp_path / "whole"))


PROGRAM = """
import sys, numpy as np
from bridgehead.train import TrainConfig, fit_heads
rows = np.load(sys.argv[1], allow_pickle=False), np.load(sys.argv[2], allow_pickle=False)
negatives = {"sampling": "hard", "k_hard": 2, "mine_every": 3, "start_epoch": 1, "bank_size": 20}
config = TrainConfig.of(
    embed_dim=8, hidden=(16,), epochs=40, batch_size=16, dropout=0.3, negatives=negatives, checkpoint_seconds=0
)
print("begins", flush=True)
fit_heads(*rows, config=config, valid=(*rows, None), folder=sys.argv[3])
print("ends", flush=True)
"""


@pytest.mark.slow
def test_killed_at_random_times_it_ends_in_the_same_bits(few, tmp_path):
    for name, rows in zip("ab", few.fit, strict=True):
        np.save(tmp_path / f"{name}.npy", rows)

    def start(folder):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), str(folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "begins\n"
        return process

    started = time.monotonic()
    with start(tmp_path / "whole") as process:
        assert process.stdout.read() == "ends\n"
    length, rng, kills = time.monotonic() - started, np.random.default_rng(0), 0
    (tmp_path / "killed").mkdir()
    for _ in range(4):
        with start(tmp_path / "killed") as process:
            time.sleep(float(rng.uniform(0, 0.2 * length)))
            process.send_signal(signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
    with start(tmp_path / "killed") as process:
        assert process.stdout.read() == "ends\n"
    assert kills >= 2
    assert_same(outcome(tmp_path / "killed"), outcome(tmp_path / "whole"))
    # A file that a kill left half-written stays beside, under a name that nothing reads.
    assert not (tmp_path / "killed" / "checkpoint.safetensors").exists()
