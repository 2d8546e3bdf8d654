import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from bridgehead import __version__
from bridgehead.cli.commands import app
from bridgehead.errors import ColumnError

COMMANDS = [
    "demo",
    "init",
    "check",
    "run",
    "encode",
    "train",
    "refit",
    "evaluate",
    "audit",
    "report",
    "compare",
    "index",
    "sync",
    "search",
    "classify",
    "serve",
    "study",
]
RECORD = {"key": "k", "n": 3, "share": 0.5, "lines": ["3 pairs [0.5]", "all well"]}


def call(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_help_lists_the_commands_that_there_are_and_no_other():
    shown = call("--help").output
    assert re.findall(r"^  ([a-z]+)  +\S", shown.partition("Commands:")[2], flags=re.MULTILINE) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_json_and_has_help(command):
    done = call(command, "--help")
    assert done.exit_code == 0 and "--json" in done.output and "--debug" in done.output


def test_version_is_printed():
    assert call("--version").output == f"bridgehead {__version__}\n"


def test_without_a_command_help_is_shown_and_the_status_is_that_of_usage():
    done = call()
    assert done.exit_code == 2 and "Commands:" in done.output


@pytest.mark.parametrize(
    "line",
    ["nothing", "check", "search runs/x", "search r q -k 0", "search r q --as guess", "check c --quick", "bench"],
)
def test_a_wrong_command_is_a_usage_error(line):
    done = call(*shlex.split(line))
    assert done.exit_code == 2 and done.stdout == "" and "Error" in done.stderr


@pytest.mark.parametrize("name", ["check", "encode", "train", "evaluate", "refit", "index"])
def test_a_stage_prints_its_lines_or_its_whole_record(name, stage):
    asked = []
    stage(name, lambda run, progress=None: asked.append(run.folder) or RECORD)
    assert call(name, "some.toml").stdout == "3 pairs [0.5]\nall well\n"
    assert json.loads(call(name, "some.toml", "--json").stdout) == RECORD
    assert asked == [Path("some.toml")] * 2


def test_evaluate_hands_on_how_often_it_is_to_train_for_folds(stage):
    given = []
    stage("with_folds", lambda run, folds, repeats, seeds: given.append((folds, repeats, seeds)) or run)
    stage("evaluate", lambda run, progress=None: RECORD)
    assert call("evaluate", "x").exit_code == 0
    assert call("evaluate", "x", "--folds", "5", "--repeats", "2", "--seeds", "3").exit_code == 0
    assert given == [(None, None, None), (5, 2, 3)]
    assert call("evaluate", "x", "--seeds", "0").exit_code == 2


def test_progress_goes_to_standard_error(stage):
    def check(run, progress=None):
        progress("check", "reading", None, None)
        progress("check", "molecules", 1, 2)
        return RECORD

    stage("check", check)
    done = call("check", "x", "--json")
    assert json.loads(done.stdout) == RECORD
    assert re.fullmatch(r"check: reading\ncheck: done in \d+\.\d s\n", done.stderr)


def test_demo_passes_folder_and_seed(stage):
    stage("demo", lambda folder, seed, progress: {"folder": str(folder), "seed": seed, "lines": []})
    assert json.loads(call("demo", "--json").stdout) == {"folder": "runs/demo", "seed": 0, "lines": []}
    assert json.loads(call("demo", "--folder", "x", "--seed", "3", "--json").stdout)["seed"] == 3
    assert call("demo", "--seed", "-1").exit_code == 2


def test_run_says_where_the_report_is_and_how_to_search(stage):
    def run(config, folder=None, progress=None):
        home = folder or Path("runs/c")
        return SimpleNamespace(folder=home, record=lambda _: RECORD, path=lambda *p: home.joinpath(*p))

    stage("run", run)
    shown = call("run", "c.toml", "--folder", "here").stdout
    assert "3 pairs" in shown and f"report: {Path('here/report.html')}" in shown and "bridgehead search here" in shown
    assert json.loads(call("run", "c.toml", "--json").stdout) == {
        "folder": "runs/c", "report": "runs/c/report.html", "evaluate": RECORD, "folds": None,
    }  # fmt: skip
    folds = {"lines": ["cross-validation: 5 folds"]}
    stage("read_folds", lambda run: folds)
    assert "all well\n\ncross-validation: 5 folds\n\nreport: " in call("run", "c.toml").stdout
    assert json.loads(call("run", "c.toml", "--json").stdout)["folds"] == folds


def test_run_says_what_was_trained_where_encoders_were(stage):
    records = {"train": {"trained": [{}], "lines": ["5 of 9 weights trained"]}, "evaluate": RECORD}
    done = SimpleNamespace(folder=Path("x"), record=records.__getitem__, path=Path("x").joinpath)
    stage("run", lambda config, folder=None, progress=None: done)
    assert call("run", "c.toml").stdout.startswith("5 of 9 weights trained\n\n")
    records["train"]["trained"] = []
    assert "5 of 9" not in call("run", "c.toml").stdout


def test_init_writes_the_config_and_does_not_replace_one(stage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = []
    stage("init_config", lambda path, **settings: seen.append((path, settings)) or "schema = 1\n")
    done = call("init", "pairs.csv")
    assert done.exit_code == 0 and done.stdout == "wrote config.toml; read it, then: bridgehead run config.toml\n"
    assert Path("config.toml").read_text() == "schema = 1\n"
    again = call("init", "pairs.csv")
    assert again.exit_code == 1 and "--force" in again.stderr and len(seen) == 1
    assert call("init", "pairs.csv", "--force", "--quote", "off", "--encoding", "latin-1").exit_code == 0
    assert [settings["quote"] for _, settings in seen] == ["auto", "off"]
    assert [settings["encoding"] for _, settings in seen] == ["utf-8", "latin-1"]


def test_init_writes_where_it_is_told_and_shows_the_text_with_json(stage, tmp_path):
    out = tmp_path / "configs" / "a.toml"
    stage("init_config", lambda path, **settings: f"# {path} {settings['out']}\n")
    shown = json.loads(call("init", "pairs.csv", "--out", str(out), "--json").stdout)
    assert shown == {"config": str(out), "text": f"# pairs.csv {out}\n"} and out.read_text() == shown["text"]


def test_an_error_of_the_input_is_a_line_and_with_json_a_document(stage):
    def check(run, progress=None):
        raise ColumnError("no column 'smile'; the file has: smiles, text")

    stage("check", check)
    plain = call("check", "x")
    assert (plain.exit_code, plain.stdout) == (1, "")
    assert plain.stderr == "error: no column 'smile'; the file has: smiles, text\n"
    as_json = call("check", "x", "--json")
    assert as_json.exit_code == 1 and as_json.stderr == ""
    assert json.loads(as_json.stdout) == {
        "error": {"type": "ColumnError", "message": "no column 'smile'; the file has: smiles, text"}
    }
    assert "Traceback" in call("check", "x", "--debug").stderr


def test_errors_speak_of_the_options_of_the_command(stage, tmp_path, monkeypatch):
    (tmp_path / "pairs.csv").write_bytes("a,b\ncaf\xe9,x\n".encode("latin-1"))
    monkeypatch.chdir(tmp_path)
    assert "--encoding latin-1" in call("init", "pairs.csv").stderr

    def check(run, progress=None):
        raise ColumnError("mend the quotes, or pass quote='off'")

    stage("check", check)
    assert call("check", "x").stderr == 'error: mend the quotes, or add pairs.quote = "off"\n'
    shown = json.loads(call("check", "x", "--json").stdout)["error"]["message"]
    assert shown == 'mend the quotes, or add pairs.quote = "off"'
