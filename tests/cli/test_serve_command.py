"""The command `serve`: what it takes, what it says, and what it refuses before anything listens."""

import json

import pytest
from typer.testing import CliRunner

from bridgehead.cli.commands import app
from bridgehead.errors import ArgumentError
from bridgehead.serve.settings import ServeSettings


@pytest.fixture
def served(monkeypatch):
    """Run the command with a service that only remembers what it was asked for; give a function of arguments."""
    asked = []

    def listen(run, heads, host, port, token, settings, opened):
        asked.append({"run": str(run), "heads": heads, "host": host, "port": port, "token": token, "limits": settings})
        if port == 81:
            raise ArgumentError("cannot listen on 127.0.0.1 port 81: Address already in use")
        opened("http://127.0.0.1:8000/")

    monkeypatch.setattr("bridgehead.serve.serve", listen)

    def call(*arguments):
        result = CliRunner().invoke(app, ["serve", *arguments])
        return result, asked[-1] if asked else None

    return call


def test_it_says_where_to_open_the_page(served):
    result, asked = served("runs/demo")
    assert result.exit_code == 0
    assert result.stdout == "serving runs/demo at http://127.0.0.1:8000/\npress Ctrl-C to end\n"
    assert asked == {"run": "runs/demo", "heads": "refit", "host": "127.0.0.1", "port": 8000, "token": None,
                     "limits": ServeSettings()}  # fmt: skip


def test_a_program_gets_the_address_as_json(served):
    assert json.loads(served("runs/demo", "--json", "--port", "0")[0].stdout) == {"url": "http://127.0.0.1:8000/"}


def test_limits_are_given_by_name(served):
    _, asked = served("r", "--limit", "queue=5", "--limit", "time_limit=2.5", "--log-queries", "--heads", "evaluated")
    assert asked["limits"] == ServeSettings(queue=5, time_limit=2.5, log_queries=True)
    assert asked["heads"] == "evaluated"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("speed=5", "no limit is called 'speed'; there are: max_body_bytes"),
        ("queue=many", "expected a number after queue="),
        ("queue=2.5", "expected a number after queue="),
        ("queue=0", "queue of the service is 0; expected a whole number of at least 1"),
        ("time_limit=inf", "time_limit"),
        ("log_queries=1", "no limit is called 'log_queries'"),
        ("queue", "expected a number"),
    ],
)
def test_a_limit_that_is_none_is_refused(served, given, says):
    result, asked = served("runs/demo", "--limit", given)
    assert result.exit_code == 1 and asked is None
    assert says in result.stderr


def test_the_token_comes_from_a_file_and_never_from_the_command_line(served, tmp_path):
    (tmp_path / "token").write_text("  a-token-of-enough-length\n")
    _, asked = served("runs/demo", "--host", "0.0.0.0", "--token-file", str(tmp_path / "token"))
    assert asked["token"] == "a-token-of-enough-length"
    result, _ = served("runs/demo", "--token-file", str(tmp_path / "none"))
    assert result.exit_code == 1 and "there is no token file" in result.stderr
    assert "--token " not in served("--help")[0].stdout


def test_a_port_in_use_is_a_clear_error(served):
    result, _ = served("runs/demo", "--port", "81")
    assert result.exit_code == 1
    assert result.stderr == "error: cannot listen on 127.0.0.1 port 81: Address already in use\n"


def test_nothing_is_opened_where_a_token_is_missing(tmp_path, monkeypatch):
    monkeypatch.delenv("BRIDGEHEAD_TOKEN", raising=False)
    result = CliRunner().invoke(app, ["serve", str(tmp_path), "--host", "0.0.0.0", "--port", "0"])
    assert result.exit_code == 1 and "BRIDGEHEAD_TOKEN" in result.stderr
    (tmp_path / "empty").write_text("\n")
    result = CliRunner().invoke(app, ["serve", str(tmp_path), "--port", "0", "--token-file", str(tmp_path / "empty")])
    assert result.exit_code == 1 and "at least 16" in result.stderr
    result = CliRunner().invoke(app, ["serve", str(tmp_path / "nowhere"), "--port", "0"])
    assert result.exit_code == 1 and "there is no run folder" in result.stderr
