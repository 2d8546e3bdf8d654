"""`bridgehead classify`: labels and items from the command line and from files, the library's result out."""

import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import bridgehead
from bridgehead.cli.commands import app
from bridgehead.errors import ArgumentError
from bridgehead.evaluate.zero_shot import Sensitivity
from bridgehead.search.classify import Classified, ClassifiedItem, LabelScore, UnreadItem

FOUND = Classified(
    items=(
        ClassifiedItem(0, "CCO", "alcohol", (LabelScore("alcohol", 0.81, 0.7), LabelScore("amine", 0.5, 0.3)), 1),
        ClassifiedItem(2, "C\tC", None, (LabelScore("amine", 0.1, 0.6),), 1),
    ),
    unread=(UnreadItem(1, "C1CC", "a ring is open"),),
    items_are="molecule",
    labels_are="text",
    candidates={"alcohol": ("alcohol",), "amine": ("amine",)},
    templates=("{}",),
    logit_scale=14.0,
    abstain_below=0.3,
    sensitivity=(Sensitivity("without the class 'amine'", 1, 2, 0.5, 0.0, 0.65, 1.0),),
    notes=("a note",),
)


@pytest.fixture
def asked(monkeypatch):
    """What `Space.classify` was asked for; every call is answered with FOUND."""
    calls = []

    class Space:
        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def classify(self, *arguments):
            calls.append(arguments)
            return FOUND

    opened = lambda run, heads="refit": calls.append((run, heads)) or Space()  # noqa: E731
    monkeypatch.setattr(bridgehead, "open_space", opened, raising=False)
    return calls


def call(*arguments):
    return CliRunner().invoke(app, ["classify", *map(str, arguments)])


def test_every_option_is_passed_on(asked, tmp_path):
    options = ["--template", "{}", "--template", "a {}", "-k", 2, "--abstain-below", 0.25, "--of", "text"]
    done = call(
        tmp_path, "--labels", "alcohol, amine", "--item", "CCO", "--item", "N", *options, "--heads", "evaluated"
    )
    assert done.exit_code == 0, done.output
    assert asked == [
        (tmp_path, "evaluated"), (["CCO", "N"], ["alcohol", "amine"], ["{}", "a {}"], 2, 0.25, {}, "text"),
    ]  # fmt: skip


def test_labels_and_items_come_from_files_with_synonyms_after_tabs(asked, tmp_path):
    (tmp_path / "labels.txt").write_bytes("\ufeffalcohol\tcarbinol\tol\r\n\nan amine, primary\n".encode())
    (tmp_path / "items.txt").write_text("CCO\n\nNC N\u2028x\n", encoding="utf-8")
    done = call(tmp_path, "--labels", tmp_path / "labels.txt", "--item", "O", "--items", tmp_path / "items.txt")
    assert done.exit_code == 0, done.output
    assert asked[1] == (
        ["O", "CCO", "NC N\u2028x"], ["alcohol", "an amine, primary"], ["{}"], 5, None,
        {"alcohol": ["carbinol", "ol"]}, None,
    )  # fmt: skip


def test_away_from_a_terminal_answers_are_whole_tab_separated_lines(asked, tmp_path):
    done = call(tmp_path, "--labels", "alcohol,amine", "--item", "x")
    assert done.stdout.splitlines() == [
        "# 2 items of molecule among 2 labels read as text; shares are among these labels alone",
        "# a note",
        "# without the class 'amine': 50.0% of answers change, mean top share 0.650 -> 1.000 (1 candidates)",
        "position\titem\tanswer\tcosine\tshare_among_candidates\tnearest\tnot read because",
        "0\tCCO\talcohol\t0.810\t0.700\talcohol (0.700); amine (0.300)\t",
        "1\tC1CC\t\t\t\t\ta ring is open",
        "2\tC C\tnone of these\t0.100\t0.600\tamine (0.600)\t",
    ]


def test_json_is_the_result_of_the_library(asked, tmp_path):
    done = call(tmp_path, "--labels", "a,b", "--item", "x", "--json")
    assert json.loads(done.stdout) == json.loads(json.dumps(FOUND.to_dict() | {"heads": "refit"}))


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--labels", "a,b"], 1, "there are no items"),
        (["--labels", "a,b", "--items", "nowhere.txt"], 1, "there is no file nowhere.txt"),
        (["--labels", "nowhere.txt", "--item", "x"], 1, "there is no file of labels nowhere.txt"),
        (["--labels", "no/where", "--item", "x"], 1, "there is no file of labels no/where"),
        (["--item", "x"], 2, "Missing option '--labels'"),
        (["--labels", "a,b", "--item", "x", "-k", "0"], 2, "Invalid value"),
        (["--labels", "a,b", "--item", "x", "--abstain-below", "2"], 2, "Invalid value"),
    ],
)
def test_what_is_missing_is_said(asked, tmp_path, options, status, message):
    done = call(tmp_path, *options)
    assert done.exit_code == status and message in done.stderr


def test_a_file_in_another_encoding_and_an_error_of_the_library_are_errors_of_the_input(asked, tmp_path, monkeypatch):
    (tmp_path / "l.txt").write_bytes("caf\xe9".encode("latin-1"))
    done = call(tmp_path, "--labels", tmp_path / "l.txt", "--item", "x")
    assert done.exit_code == 1 and "is not UTF-8 (byte 3)" in done.stderr

    def refuse(run, heads):
        raise ArgumentError("no such labels")

    monkeypatch.setattr(bridgehead, "open_space", refuse)
    done = call(tmp_path, "--labels", "a", "--item", "x", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"] == {"type": "ArgumentError", "message": "no such labels"}


def test_the_config_of_a_run_names_its_folder(asked, tmp_path, monkeypatch):
    from bridgehead import runs

    config = tmp_path / "c.toml"
    config.touch()
    named = SimpleNamespace(of=lambda source: SimpleNamespace(folder=tmp_path / "runs"))
    monkeypatch.setattr(runs, "RunFolder", named, raising=False)
    assert call(config, "--labels", "a", "--item", "x").exit_code == 0 and asked[0][0] == tmp_path / "runs"
