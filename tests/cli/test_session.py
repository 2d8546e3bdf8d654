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

from bridgehead.cli.plain import cell, printable, to_json
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


def test_text_of_a_data_file_cannot_steer_the_terminal():
    assert printable("a\x1b]0;title\x07b\tc\n") == "a\ufffd]0;title\ufffdb\tc\n"
    assert cell("one\ttwo\r\n three\x1b[2J") == "one two three\ufffd[2J"
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
