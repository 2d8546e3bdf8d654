import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bridgehead.cli.commands import app

RECORD = {"measured": {"held_out.paired.a_to_b.recall@1": {"mean": 0.97, "sd": 0.004}}, "lines": ["a table", "a page"]}


def call(*arguments):
    return CliRunner().invoke(app, ["study", *arguments])


@pytest.fixture
def asked(stage):
    found = []
    stage("two_view_study", lambda folder, everything, progress: found.append((folder, everything)) or RECORD)
    return found


def test_the_study_prints_its_lines_or_its_whole_record(asked):
    assert call("two-views").stdout == "a table\na page\n"
    assert json.loads(call("two-views", "--json").stdout) == RECORD
    assert asked == [(Path("runs/two-views"), False)] * 2


def test_all_and_the_folder_are_passed_on(asked):
    assert call("two-views", "--all", "--out", "elsewhere").exit_code == 0
    assert asked == [(Path("elsewhere"), True)]


@pytest.mark.parametrize("arguments", [[], ["three-views"]])
def test_a_study_that_there_is_not_is_a_usage_error(arguments):
    done = call(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""


def test_a_folder_that_is_a_file_is_the_users_mistake(tmp_path):
    (tmp_path / "file").write_text("")
    done = call("two-views", "--out", str(tmp_path / "file"), "--json")
    assert done.exit_code == 1
    assert "is a file; expected a folder" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.slow
def test_the_command_prints_what_the_library_returns(tmp_path):
    done = call("two-views", "--json", "--out", str(tmp_path))
    record = json.loads(done.stdout)
    assert record["all_within"] is True
    assert record["measured"].keys() == record["published"].keys()
    assert record["page"] == str(tmp_path / "two_views.html")
    assert (tmp_path / "two_views.html").exists()
    assert "one_sided" not in record
