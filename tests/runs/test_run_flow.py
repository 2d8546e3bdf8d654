"""Stages alone and together give the same, do nothing twice, and run again just where something changed."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from small_run import config, contents, records, settings_of, stamps, write_table

from bridgehead import runs
from bridgehead.errors import ConfigError, InputFileNotFoundError, RunBusyError, RunStateError
from bridgehead.runs.config import config_of
from bridgehead.runs.folder import RECORDS, RunFolder

STAGES = ["check", "encode", "train", "evaluate", "refit", "index"]
# Times, process numbers and random names differ between runs of the same; everything else must not.
VARIES = (
    "costs.json",
    "audit.json",
    "index/",
    "index-evaluated/",
    "history.jsonl",
    "trained.json",
    "config.toml",
    "report",
    "indexed.json",
)


def settled(folder):
    return {name: body for name, body in contents(folder).items() if not any(part in name for part in VARIES)}


def history(folder):
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def redone(run, before):
    """Return the stages whose record was written again."""
    after = stamps(run.folder)
    return [stage for stage in STAGES if after[RECORDS[stage]] != before[RECORDS[stage]]]


def test_stages_one_by_one_give_what_they_give_together(finished, table, tmp_path):
    one_by_one = config(table, encode={"cache": str(tmp_path / "cache")})
    run = RunFolder.of(one_by_one, tmp_path / "run")
    for stage in (*STAGES, "audit"):
        record = getattr(runs, stage)(run)
        assert record == run.record(stage), stage
    assert settled(run.folder) == settled(finished.folder)
    assert history(run.folder) == history(finished.folder)
    assert history(run.folder / "refit") == history(finished.folder / "refit")
    assert run.record("index")["n_items"] == finished.record("index")["n_items"]


def test_the_last_stage_alone_runs_what_it_stands_on(finished, table, tmp_path):
    run = RunFolder.of(config(table), tmp_path / "run")
    runs.index(run)
    assert (run.folder / "heads.safetensors").read_bytes() == (finished.folder / "heads.safetensors").read_bytes()
    assert not (run.folder / "metrics.json").exists() and not (run.folder / "report.html").exists()
    runs.evaluate(run)
    assert (run.folder / "metrics.json").read_bytes() == (finished.folder / "metrics.json").read_bytes()
    assert (run.folder / "report.html").is_file()


@pytest.mark.parametrize("stage", [*STAGES, "run"])
def test_a_second_time_no_file_is_touched(copied, stage):
    runs.run(copied)
    before = stamps(copied.folder.parent)
    getattr(runs, stage)(copied)
    assert stamps(copied.folder.parent) == before


def test_a_run_folder_can_be_given_in_the_place_of_its_config(copied):
    runs.run(copied)
    before = stamps(copied.folder)
    assert runs.run(copied.folder).folder == copied.folder
    assert runs.evaluate(copied.folder) == copied.record("evaluate")
    assert stamps(copied.folder) == before


def test_progress_tells_each_stage_and_the_report(copied):
    said = []
    runs.run(copied, progress=lambda stage, message, done, total: said.append((stage, message)))
    assert [stage for stage, message in said if message == "begins"] == [*STAGES[:4], "audit", *STAGES[4:], "report"]
    assert [stage for stage, message in said if message == "done"] == [*STAGES[:4], "audit", *STAGES[4:], "report"]


@pytest.mark.parametrize(
    "sections, again",
    [
        ({"name": "another title", "train": {"checkpoint_seconds": 1.0}}, []),
        ({"evaluate": {"ks": [1, 3]}}, ["evaluate"]),
        ({"index": {"evaluated": False}}, ["index"]),
        ({"train": {"epochs": 3}}, ["train", "evaluate", "refit", "index"]),
        ({"encode": {"settings_b": {"word_range": [1, 1]}}}, ["encode", "train", "evaluate", "refit", "index"]),
        ({"encode": {"settings_a": {"processes": 2}}}, ["encode"]),
        ({"split": {"seed": 1}}, STAGES),
        ({"pairs": {"name_a": "drug"}}, ["check", "evaluate", "index"]),
    ],
)
def test_a_changed_setting_runs_again_only_what_it_shapes(copied, table, sections, again):
    runs.run(copied)
    before = stamps(copied.folder)
    changed = runs.run(config(table, **sections), copied.folder)
    assert redone(changed, before) == again
    if "name" in sections:
        assert "another title" in (changed.folder / "report.html").read_text()


def test_a_changed_name_in_the_file_reaches_the_index_without_training(copied, tmp_path):
    path = write_table(tmp_path / "pairs.csv", records())
    run = runs.run(config(path), copied.folder)
    before = stamps(run.folder)
    write_table(path, [[*row[:3], f"new {row[3]}"] for row in records()])
    runs.run(run)
    assert redone(run, before) == ["check", "index"]
    found = first_hit(run, "new Aspirin")
    assert found.id == "aspirin"


def first_hit(run, query):
    from bridgehead.search import open_space

    with open_space(run.folder) as space:
        answer = space.answer(query, of="molecule", k=1)
    return answer.hits[0]


def test_an_index_of_heads_that_were_not_evaluated_leaves_the_old_report(copied, table):
    runs.run(copied)
    report = (copied.folder / "report.html").read_bytes()
    runs.index(RunFolder.of(config(table, train={"seed": 5}), copied.folder))
    assert (copied.folder / "report.html").read_bytes() == report


def test_the_cache_may_be_removed(copied):
    runs.run(copied)
    shutil.rmtree(copied.cache)
    before = stamps(copied.folder)
    runs.run(copied)
    assert stamps(copied.folder) == before


@pytest.mark.parametrize("stage", STAGES)
def test_a_record_that_is_cut_in_half_is_made_again(copied, stage):
    runs.run(copied)
    before = settled(copied.folder)
    path = copied.path(RECORDS[stage])
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    runs.run(copied)
    assert copied.record(stage)["key"] and settled(copied.folder) == before
    path.unlink()
    runs.run(copied)
    assert copied.record(stage)["key"] and settled(copied.folder) == before


@pytest.mark.parametrize(
    "name, cut",
    [("heads.safetensors", True), ("refit/heads.safetensors", False), ("encoders/a/columns.npy", True),
     ("encoders/b/vocabulary.json", True), ("encoders/b/encoder.json", False), ("refit/encoders/a/encoder.json", True),
     ("refit/encoders/b/idf.npy", False), ("index/index.json", True), ("index/index.json", False),
     ("report.html", True), ("config.toml", True), ("config.toml", False)],
)  # fmt: skip
def test_a_file_that_is_gone_or_cut_in_half_is_made_again(copied, name, cut):
    runs.run(copied)
    before = contents(copied.folder)
    path = copied.path(name)
    if cut:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        path.unlink()
    runs.run(copied)
    after = contents(copied.folder)
    if name not in ("index/index.json", "report.html"):
        assert after[name] == before[name]
    assert settled(copied.folder) == {key: body for key, body in before.items() if key in settled(copied.folder)}
    assert first_hit(copied, "Aspirin").id == "aspirin"


@pytest.mark.parametrize("kind", ["a.faiss", "a.rows.npy", "items.sqlite", "canary.npz"])
def test_an_index_that_lacks_a_part_is_built_again(copied, kind):
    runs.run(copied)
    for path in list(copied.path("index").rglob(kind)):
        path.write_bytes(path.read_bytes()[:10])
    runs.run(copied)
    assert first_hit(copied, "Aspirin").id == "aspirin"


def test_heads_of_another_training_are_not_taken_for_its_own(copied, table, tmp_path):
    runs.run(copied)
    right = copied.path("heads.safetensors").read_bytes()
    other = runs.run(config(table, train={"seed": 9}, evaluate={"shuffled": 0}), tmp_path / "other")
    shutil.copy(other.path("heads.safetensors"), copied.path("heads.safetensors"))
    runs.run(copied)
    assert copied.path("heads.safetensors").read_bytes() == right != other.path("heads.safetensors").read_bytes()


@pytest.mark.parametrize("folder, message", [("", "is damaged"), ("refit", "is damaged")])
def test_a_damaged_checkpoint_is_refused_with_the_way_out(copied, folder, message):
    runs.run(copied)
    checkpoint = copied.path(folder, "checkpoint.safetensors")
    copied.path(folder, "heads.safetensors").unlink()
    checkpoint.write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    with pytest.raises((RunStateError, ValueError), match="remove it to train from the start"):
        runs.run(copied)
    checkpoint.unlink()
    runs.run(copied)


def test_a_record_of_a_newer_release_is_not_written_over(copied):
    runs.run(copied)
    path = copied.path("metrics.json")
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    newer = path.read_bytes()
    with pytest.raises(ValueError, match=r"version 2; this release reads .*remove .*metrics\.json first"):
        runs.run(copied)
    assert path.read_bytes() == newer


def test_what_a_killed_writer_left_beside_its_file_is_removed(copied):
    leftovers = [copied.path(".heads.safetensors.x1.part"), copied.path("refit", ".heads.safetensors.x2.part")]
    for path in leftovers:
        path.write_bytes(b"half")
    runs.check(copied)
    assert not any(path.exists() for path in leftovers)


def test_a_commented_config_in_the_run_folder_keeps_its_comments(table, tmp_path):
    from bridgehead.runs.toml import to_toml

    text = "# my comment\n" + to_toml(settings_of(table, folder="."))
    (tmp_path / "config.toml").write_text(text)
    runs.check(tmp_path / "config.toml")
    assert (tmp_path / "config.toml").read_text() == text and (tmp_path / "pairs.json").is_file()


def test_no_folder_at_all_is_an_error(table):
    with pytest.raises(RunStateError, match="no run folder is named"):
        runs.run(config(table))


def test_a_stage_that_has_not_run_is_named(tmp_path, table):
    with pytest.raises(RunStateError, match="no results of the stage train yet; run: bridgehead train"):
        RunFolder.of(config(table), tmp_path).record("train")


HOLDER = """
import sys, time
from pathlib import Path
from bridgehead import runs
def progress(stage, message, done, total):
    if stage == "train" and message == "begins":
        print("in train", flush=True)
        sys.stdin.readline()
runs.run(sys.argv[1], progress=progress)
print("ended", flush=True)
"""


@pytest.mark.slow
def test_of_two_processes_the_second_is_refused_and_the_first_ends_well(finished, table, tmp_path):
    from bridgehead.runs.toml import to_toml

    path = tmp_path / "config.toml"
    path.write_text(to_toml(settings_of(table, folder="run")))
    first = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout.readline() == "in train\n"
    for call in (runs.run, runs.check):
        with pytest.raises(RunBusyError, match=rf"another process \(pid {first.pid}\)"):
            call(path)
    assert first.communicate("go\n")[0] == "ended\n" and first.returncode == 0
    assert (tmp_path / "run/metrics.json").read_bytes() == finished.path("metrics.json").read_bytes()
    runs.run(path)


def test_the_whole_flow_needs_no_network(no_network, table, tmp_path):
    run = runs.run(config(table, examples=[{"query": "an amine", "expect": "X1"}]), tmp_path / "run")
    assert first_hit(run, "N-CC.. an amine").rank == 1


def test_a_pool_that_is_not_there_is_said_before_the_training(table, tmp_path):
    with pytest.raises(InputFileNotFoundError, match=r"none\.csv does not exist"):
        runs.run(config(table, index={"extra_a": str(tmp_path / "none.csv")}), tmp_path / "run")
    assert not (tmp_path / "run/pairs.json").exists()


def test_a_structure_to_test_that_is_none_is_an_error_of_the_config(table, tmp_path):
    with pytest.raises(ConfigError, match=r"split\.test holds 'C1CC\(', which is no structure"):
        runs.check(RunFolder.of(config(table, split={"test": ["C1CC("]}), tmp_path))


def test_wall_clock_and_processes_leave_no_trace_in_the_metrics(finished):
    # What a finding cost is known where audits are timed, and nowhere in the figures.
    text = finished.path("metrics.json").read_text()
    assert "seconds" not in text.replace('"seconds": null', "") and str(os.getpid()) not in json.loads(text)
    assert np.isfinite(finished.record("evaluate")["all"]["a_to_b.mrr"])


def test_a_config_of_settings_is_what_read_config_gives(table, tmp_path):
    from bridgehead.runs.toml import to_toml

    (tmp_path / "c.toml").write_text(to_toml(settings_of(table, folder="x")))
    assert runs.read_config(tmp_path / "c.toml") == config_of(settings_of(table, folder=str(tmp_path / "x")))
