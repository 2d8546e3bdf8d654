import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import typer

from bridgehead.cli.plain import cell, printable, spoken, to_json
from bridgehead.cli.session import session
from bridgehead.errors import ArgumentError

FAKE_STAGE = """
import sys
from types import SimpleNamespace
from bridgehead import runs
runs.RunFolder = SimpleNamespace(of=lambda source: source)
def check(run, progress=None):
    {body}
runs.check = check
from bridgehead.cli import main
sys.argv = ["bridgehead", "check", "x", *{options}]
main()
"""


def start(body, *options, **streams):
    script = FAKE_STAGE.format(body=body.replace("\n", "\n    "), options=list(options))
    return subprocess.Popen([sys.executable, "-c", script], text=True, stderr=subprocess.PIPE, **streams)


def test_a_fault_of_ours_has_a_traceback_and_a_status_of_its_own(capsys):
    with pytest.raises(typer.Exit) as ended, session(as_json=True):
        raise ZeroDivisionError("by zero")
    shown = capsys.readouterr()
    assert ended.value.exit_code == 70
    assert json.loads(shown.out) == {"error": {"type": "ZeroDivisionError", "message": "by zero"}}
    assert "Traceback" in shown.err


def test_a_file_that_the_system_refuses_is_an_error_of_the_input(capsys):
    with pytest.raises(typer.Exit) as ended, session(as_json=False):
        raise PermissionError(13, "Permission denied", "pairs.csv")
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == "error: [Errno 13] Permission denied: 'pairs.csv'\n"


def test_an_error_ends_the_stage_as_stopped(capsys):
    def train():
        with session(as_json=False) as current:
            current.progress("train", "12 links", None, None)
            raise ArgumentError("too few")

    with pytest.raises(typer.Exit):
        train()
    begin, end, error = capsys.readouterr().err.splitlines()
    assert begin == "train: 12 links" and end.startswith("train: stopped after") and error == "error: too few"


def test_an_interruption_is_one_line_and_status_130():
    process = start("progress('train', 'begins', None, None)\nimport time\ntime.sleep(60)", stdout=subprocess.PIPE)
    assert process.stderr.readline() == "train: begins\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and out == ""
    stopped, line = err.splitlines()
    assert stopped.startswith("train: stopped after") and line.startswith("interrupted")


def test_a_reader_that_has_gone_ends_the_command_quietly():
    reading, writing = os.pipe()
    process = start("return {'lines': ['x' * 80] * 20_000}", stdout=writing)
    os.close(writing)
    os.read(reading, 10)
    os.close(reading)
    assert process.communicate(timeout=20)[1] == "" and process.returncode == 141


def test_a_terminal_in_another_encoding_gets_a_question_mark():
    body = "return {'lines': ['\\u03b1-pinene \\ud800']}"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for options, shown in (((), "?-pinene ?\n"), (("--json",), '"\\u03b1-pinene ?"')):
        process = start(body, *options, stdout=subprocess.PIPE, env=environment)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (0, "") and shown in out


@pytest.mark.parametrize("streams", ["sys.stdout = None", "sys.stderr = None", "sys.stdout = sys.stderr = None"])
def test_streams_that_were_closed_before_the_start_are_no_fault(streams):
    script = FAKE_STAGE.format(body="progress('check', 'begins', None, None); return {'lines': ['x']}", options=[])
    done = subprocess.run([sys.executable, "-c", f"import sys\n{streams}\n{script}"], capture_output=True, text=True)
    assert done.returncode == 0 and "Traceback" not in done.stderr


@pytest.mark.parametrize("options", [["--version"], ["--help"], ["check", "nowhere.toml", "--json"]])
def test_a_full_disk_under_standard_output_is_a_line(options):
    script = f"import sys\nfrom bridgehead.cli import main\nsys.argv = ['bridgehead', *{options}]\nmain()"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: [Errno 28] No space left on device\n"


def test_json_holds_what_the_library_returns():
    @dataclass
    class Found:
        where: Path
        scores: np.ndarray

    content = {
        "found": Found(Path("a/b"), np.array([0.5, np.nan])),
        "n": np.int64(3),
        "sides": ("a", "b"),
        "all": math.inf,
    }
    assert json.loads(to_json(content)) == {
        "found": {"where": "a/b", "scores": [0.5, None]}, "n": 3, "sides": ["a", "b"], "all": None,
    }  # fmt: skip
    assert json.loads(to_json({"ok": True, "none": None, 1: "π"})) == {"ok": True, "none": None, "1": "π"}


def test_arguments_of_the_library_are_said_as_what_a_command_takes():
    said = "leave read_as out for the usual order, or pass read_as='text'"
    assert spoken(said, {"read_as": "--as {}"}) == "leave --as out for the usual order, or add --as text"
    said = "pass the encoding it was written in, for example encoding='latin-1' or encoding='cp1252'"
    assert spoken(said, {"encoding": "--encoding {}"}).endswith("for example --encoding latin-1 or --encoding cp1252")
    assert spoken("or pass quote='off' when", {"quote": 'pairs.quote = "{}"'}) == 'or add pairs.quote = "off" when'
    assert spoken("a file 'quote=x'", {"quote": "--quote {}"}) == "a file 'quote=x'"


def test_text_of_a_data_file_cannot_steer_the_terminal():
    assert printable("a\x1b]0;title\x07b\tc\n") == "a\ufffd]0;title\ufffdb\tc\n"
    assert cell("one\ttwo\r\n three\x1b[2J") == "one two three\ufffd[2J"
    assert printable("a \u202e b \u2067 c") == "a \ufffd b \ufffd c"
    assert cell(["x", None, "y"]) == "x; ; y" and cell(None) == "" and cell(True) == "True"


def heavy_after(script):
    names = ["torch", "transformers", "sklearn", "matplotlib", "polars", "rich", "rdkit", "faiss", "pydantic"]
    script += f"\nimport sys, json; print(json.dumps([n for n in {names} if n in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_the_commands_are_there_before_anything_heavy_is():
    assert heavy_after("import bridgehead.cli") == []


def test_the_module_can_be_run():
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "bridgehead.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("bridgehead ") and time.monotonic() - began < 5
