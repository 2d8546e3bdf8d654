"""A run that is killed at any instant and started again ends as if it had never been."""

import contextlib
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from small_run import config, settings_of

from bridgehead import runs
from bridgehead.errors import BridgeheadError
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.toml import to_toml
from bridgehead.search import open_space

# A checkpoint after each step, so that kills fall between and into many writes.
SETTINGS = {"train": {"epochs": 4, "checkpoint_seconds": 0}, "evaluate": {"shuffled": 2, "n_resamples": 5}}
PROGRAM = """
import sys
from bridgehead import runs
print("begins", flush=True)
runs.run(sys.argv[1])
print("ends", flush=True)
"""


class Stopped(BaseException):
    """Stands for the end of the process."""


def outcome(folder):
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    for line in history:
        del line["seconds"]
    files = ["heads.safetensors", "metrics.json", "refit/heads.safetensors", "refit/refit.json"]
    return [history, *((folder / name).read_bytes() for name in files)]


def write_config(table, folder):
    folder.mkdir()
    cache = str(folder / "cache")
    (folder / "config.toml").write_text(to_toml(settings_of(table, **SETTINGS, folder="run", encode={"cache": cache})))
    return folder / "config.toml"


def start(path):
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begins\n"
    return process


@pytest.mark.slow
def test_killed_at_random_instants_it_ends_in_the_same_bits(table, tmp_path):
    whole, killed = write_config(table, tmp_path / "whole"), write_config(table, tmp_path / "killed")
    started = time.monotonic()
    with start(whole) as process:
        assert process.stdout.read() == "ends\n"
    length, rng, kills = time.monotonic() - started, np.random.default_rng(0), 0
    for _ in range(6):
        with start(killed) as process:
            time.sleep(float(rng.uniform(0.1, 0.5) * length))
            process.send_signal(signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
        half_is_refused_or_whole(killed.parent / "run")
    with start(killed) as process:
        assert process.stdout.read() == "ends\n"
    assert kills >= 2
    assert outcome(killed.parent / "run") == outcome(whole.parent / "run")
    assert not list((killed.parent / "run").rglob("*.part"))


def half_is_refused_or_whole(folder):
    """Whatever a killed process left opens whole or is refused by an error of ours."""
    for heads in ("refit", "evaluated"):
        with contextlib.suppress(BridgeheadError), open_space(folder, heads) as space:
            assert space.answer("an amine that takes a proton", k=3).hits


@pytest.fixture(scope="module")
def whole(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    runs.run(config(table, **SETTINGS), folder)
    return outcome(folder)


def test_stopped_before_a_file_takes_its_place_it_ends_in_the_same_bits(table, whole, tmp_path, monkeypatch):
    """Stop at the n-th renaming, each time a few later, until a run comes through."""
    from bridgehead import files

    run = RunFolder.of(config(table, **SETTINGS), tmp_path / "run")
    rename, stops = files.os.replace, 0
    for round_ in range(1, 100):
        left = [4 * round_]

        def count(source, target, left=left):
            left[0] -= 1
            if left[0] == 0:
                raise Stopped
            rename(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(files.os, "replace", count)
            try:
                runs.run(run)
                break
            except Stopped:
                stops += 1
    assert stops >= 5
    assert outcome(run.folder) == whole
    runs.run(run)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["train", "evaluate", "refit"])
def test_stopped_before_its_record_a_stage_does_its_work_again(table, whole, tmp_path, monkeypatch, stage):
    run = RunFolder.of(config(table, **SETTINGS), tmp_path / "run")
    finish = RunFolder.finish

    def stop(self, name, key, content):
        if name == stage:
            raise Stopped
        return finish(self, name, key, content)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "finish", stop)
        with pytest.raises(Stopped):
            runs.run(run)
    assert not run.path("report.html").exists()
    runs.run(run)
    assert outcome(run.folder) == whole
