"""Runs that train their encoders, stopped, killed, moved, or run again with other settings."""

import json
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from live_run import LIVE
from small_run import stamps

from bridgehead import runs
from bridgehead.encode import load_encoder
from bridgehead.errors import RunStateError
from bridgehead.runs import live as live_module
from bridgehead.runs import stages
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.toml import to_toml
from bridgehead.search import open_space
from tiny_models import write_bert


def silent(*_args):
    return


def test_what_is_done_is_not_done_again(tuned, live_settings, tmp_path):
    shutil.copytree(tuned.folder.parent, tmp_path / "copy")
    folder = tmp_path / "copy" / "run"
    before = stamps(folder)
    runs.run(live_settings(evaluate={"shuffled": 1}), folder)
    runs.run(folder)
    assert stamps(folder) == before


def test_a_run_can_be_moved_and_its_first_model_removed_and_still_be_searched(live_settings, bert, tmp_path):
    own = shutil.copytree(bert, tmp_path / "own")
    run = runs.run(live_settings(encode={"b": f"text:hf={own}"}), tmp_path / "run")
    with open_space(run.folder) as space:
        expected = space.search("carries a heavy chlorine", k=5)
    shutil.rmtree(own)
    shutil.rmtree(run.cache)
    run.folder.rename(tmp_path / "elsewhere")
    for heads in ("refit", "evaluated"):
        with open_space(tmp_path / "elsewhere", heads) as space:
            found = space.search("carries a heavy chlorine", k=5)
            assert heads == "evaluated" or found == expected


def test_a_run_with_other_tuned_weights_than_its_index_searches_with_those_of_the_index_until_it_runs(tuned, tmp_path):
    shutil.copytree(tuned.folder.parent, tmp_path / "copy")
    folder = tmp_path / "copy" / "run"
    model, other = (folder / place / "b" / "model" / "model.safetensors" for place in ("encoders", "refit/encoders"))
    with open_space(folder, "evaluated") as space:
        expected = space.search("carries a heavy chlorine", k=5)
    shutil.copyfile(other, model)
    with open_space(folder, "evaluated") as space:
        assert space.search("carries a heavy chlorine", k=5) == expected and "another model now" in space.model_note
    runs.run(folder)
    with open_space(folder, "evaluated") as space:
        assert space.search("carries a heavy chlorine", k=5) == expected and space.model_note == ""
    before, after = ((place / "encoders/b/encoder.json").read_text() for place in (tuned.folder, folder))
    assert before == after


class Stopped(BaseException):
    """Stands for the end of the process."""


def outcome(run):
    history = [json.loads(line) for line in run.path("history.jsonl").read_text().splitlines()]
    for line in history:
        del line["seconds"]
    files = ("heads.safetensors", "encoders/b/encoder.json", "encoders/b/model/model.safetensors")
    return [history, *(run.path(name).read_bytes() for name in files)]


@pytest.fixture(scope="module")
def whole(live_settings, tmp_path_factory):
    run = RunFolder.of(live_settings(), tmp_path_factory.mktemp("whole") / "run")
    runs.train(run)
    return outcome(run)


@pytest.mark.parametrize("place", ["after an epoch", "before the encoder", "before the heads", "before the record"])
def test_stopped_while_it_trains_or_writes_it_ends_in_the_same_bits(live_settings, whole, tmp_path, monkeypatch, place):
    run = RunFolder.of(live_settings(), tmp_path / "run")

    def stop(*_args, **_options):
        raise Stopped

    def progress(stage, message, done, _total):
        if place == "after an epoch" and stage == "train" and done == 1:
            raise Stopped

    with monkeypatch.context() as patch:
        if place == "before the encoder":
            patch.setattr("bridgehead.encode.huggingface.sync_folder", stop)
        elif place == "before the heads":
            patch.setattr(live_module, "save_heads", stop)
        elif place == "before the record":
            patch.setattr("bridgehead.runs.stages.train_lines", stop)
        with pytest.raises(Stopped):
            runs.train(run, progress)
    runs.train(RunFolder.of(live_settings(), tmp_path / "run"))
    assert outcome(run) == whole
    assert not list(run.folder.rglob("*.part")) and not list(run.folder.rglob("checkpoint*"))


PROGRAM = """
import sys
from bridgehead import runs
print("begins", flush=True)
runs.run(sys.argv[1])
print("ends", flush=True)
"""


def started(path):
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begins\n"
    return process


@pytest.mark.slow
def test_killed_at_random_instants_it_ends_in_the_same_bits(live_settings, tmp_path):
    places = []
    for name in ("whole", "killed"):
        cache = {"cache": str(tmp_path / name / "cache")}
        made = live_settings(evaluate={"shuffled": 1}, train={"epochs": 4}, encode=cache)
        (tmp_path / name).mkdir()
        places.append(tmp_path / name / "config.toml")
        places[-1].write_text(to_toml({**made.plain(), "folder": "run"}))
    # The second call finds all done: what it takes is spent before any work.
    lengths = []
    for _ in range(2):
        begun = time.monotonic()
        with started(places[0]) as process:
            assert process.stdout.read() == "ends\n"
        lengths.append(time.monotonic() - begun)
    work, rng, kills = lengths[0] - lengths[1], np.random.default_rng(0), 0
    # Six times at most an eighth of the work: none of the calls comes to its end before its instant.
    for share in rng.uniform(0.01, 0.125, 6).tolist():
        with started(places[1]) as process:
            time.sleep(lengths[1] + share * work)
            process.send_signal(signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
    with started(places[1]) as process:
        assert process.stdout.read() == "ends\n"
    assert kills >= 2, (kills, lengths)
    whole, killed = (RunFolder.of(path.parent / "run") for path in places)
    assert outcome(killed) == outcome(whole)
    files = ["metrics.json", "refit/heads.safetensors", "refit/encoders/b/model/model.safetensors", "refit/refit.json"]
    assert [killed.path(name).read_bytes() for name in files] == [whole.path(name).read_bytes() for name in files]
    assert not list(killed.folder.rglob("*.part")) and not list(killed.folder.rglob("checkpoint*"))


def test_a_leftover_checkpoint_over_other_rows_is_not_taken_up(live_settings, tmp_path):
    work = stages.Work(RunFolder.of(live_settings(), tmp_path / "run"), silent)
    stages.encode(work)
    start, part, run = work.start, work.first_part("train"), work.run

    def stop(*_):
        raise Stopped

    options = (start.table, part, run.config.train, run.config.live, tmp_path / "fit")
    with pytest.raises(Stopped):
        live_module.tune(start.encoders, start.rows, *options, progress=stop)
    start.rows.a.encoded.rows.data *= 2
    with pytest.raises(RunStateError, match="another config or other data"):
        live_module.tune(start.encoders, start.rows, *options)


def test_without_live_the_encoders_of_a_folder_are_the_first_ones_again(live_settings, frozen, tmp_path):
    folder = tmp_path / "run"
    runs.train(RunFolder.of(live_settings(), folder))
    again = RunFolder.of(live_settings(live=None), folder)
    runs.evaluate(again)
    assert again.path("heads.safetensors").read_bytes() == frozen.path("heads.safetensors").read_bytes()
    assert again.record("evaluate")["all"] == frozen.record("evaluate")["all"]
    spec = load_encoder(again.path("encoders", "b")).spec
    assert "(tuned)" not in spec and not again.path("encoders", "b", "model").exists()


@pytest.mark.parametrize("changes", [{"live": {**LIVE, "layer_decay": 0.5}}, {"live": {"mini_batch": 8}}])
def test_other_settings_of_live_training_are_another_training(live_settings, tmp_path, changes):
    folder = tmp_path / "run"
    first = runs.train(RunFolder.of(live_settings(), folder))
    assert runs.train(RunFolder.of(live_settings(), folder))["key"] == first["key"]
    assert runs.train(RunFolder.of(live_settings(**changes), folder))["key"] != first["key"]


def test_other_weights_of_the_first_model_are_another_training(live_settings, bert, tmp_path):
    own = shutil.copytree(bert, tmp_path / "own")
    run = RunFolder.of(live_settings(encode={"b": f"text:hf={own}"}), tmp_path / "run")
    first = runs.train(run)
    shutil.rmtree(own)
    write_bert(own, seed=1)
    assert runs.train(run)["key"] != first["key"]
