"""The command search: options in, a table or one JSON document out, and files of queries."""

import json
import os
import shlex
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from typer.testing import CliRunner

import bridgehead
from bridgehead.cli.commands import app
from bridgehead.cli.search import Mode, ReadAs
from bridgehead.search import MODES, READINGS, Answer, Explanation, Hit, NearestPair, Reading
from lettered_space import lettered_space

PLAIN = {"of": None, "read_as": None, "where": None, "mode": "space", "distinct": False, "substructure": None,
         "similar_to": None, "least_similarity": 0.7}  # fmt: skip
PAIR = NearestPair("4", "CCO", "t4", "dissolves\tmuch", 0.75, 1.0)
WHY = Explanation(0.42, 99.998, PAIR, ("pain", "eases"), {"space": 1, "words": 3})
EXPLAINED = (
    Hit(1, "7", 0.42, "CC(=O)O", {"name": "acid"}, "text", 99.998, ("8", "9"), WHY),
    Hit(2, "10", 0.1, "C", {}, "text", 3.0, (), Explanation()),
)


def call(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_search_away_from_a_terminal_prints_whole_cells_and_how_the_query_was_read(space, tmp_path):
    done = call("search", str(tmp_path), "pain")
    assert done.stdout.splitlines() == [
        "# read as words; searching molecule",
        "rank\tscore\tid\tname\tSMILES\tstatement",
        "1\t0.912\t7\taspirin\tCC(=O)Oc1ccccc1C(=O)O\tInhibits COX-1; Eases pain",
        "2\t0.500\t9\tsodium [red]chloride[/red]\t[Na+].[Cl-]\t",
    ]
    assert space.opened == [(tmp_path, "refit")]


def test_search_passes_every_option(space, tmp_path):
    options = shlex.split(
        "-k 3 --offset 2 --of text --as smiles --heads evaluated --where 'n < 3' --mode hybrid --distinct --explain "
        "--substructure c1ccccc1 --similar-to CCO --least-similarity 0.5"
    )
    assert call("search", str(tmp_path), "CO", *options).exit_code == 0
    assert space.asked == ("CO",) and space.opened == [(tmp_path, "evaluated")]
    assert space.options == {
        "k": 3, "offset": 2, "of": "text", "read_as": "smiles", "where": "n < 3", "mode": "hybrid", "distinct": True,
        "explain": True, "substructure": "c1ccccc1", "similar_to": "CCO", "least_similarity": 0.5,
    }  # fmt: skip
    assert call("search", str(tmp_path), "--", "-log").exit_code == 0
    assert space.asked == ("-log",) and space.options == {"k": 10, "offset": 0, "explain": False, **PLAIN}


def test_search_with_json_is_the_answer_of_the_library(space, tmp_path):
    found = json.loads(call("search", str(tmp_path), "pain", "--json", "-k", "2").stdout)
    hits = found.pop("hits")
    assert found == PLAIN | {
        "query": "pain", "heads": "refit", "k": 2, "offset": 0, "of": "molecule", "note": "", "readings": [],
        "more": False, "n_searched": 0,
        "reading": {"kind": "text", "value": "pain", "side": "b", "explanation": "read as words"},
    }  # fmt: skip
    assert [hit["id"] for hit in hits] == ["7", "9"]
    assert hits[0]["score"] == 0.91234 and hits[0]["payload"]["statement"] == ["Inhibits COX-1", "Eases pain"]


def test_with_json_an_explanation_is_whole(space, tmp_path):
    space.answer_ = Answer(EXPLAINED, Reading("text", "pain", "b", None, "read as words"), "molecule")
    hit = json.loads(call("search", str(tmp_path), "pain", "--json", "--explain").stdout)["hits"][0]
    assert hit["also"] == ["8", "9"] and hit["percentile"] == 99.998
    assert hit["explanation"]["nearest_pair"] == {
        "id_a": "4", "item_a": "CCO", "id_b": "t4", "item_b": "dissolves\tmuch", "to_query": 0.75, "to_hit": 1.0,
    }  # fmt: skip
    assert hit["explanation"]["ranks"] == {"space": 1, "words": 3}


def test_reasons_are_columns_away_from_a_terminal(space, tmp_path):
    reading = Reading("name", "pain", "b", None, "read as a name")
    space.answer_ = Answer(EXPLAINED, reading, "molecule", readings=("smiles", "text"))
    said, others, *table = call("search", str(tmp_path), "pain", "--explain").stdout.splitlines()
    assert said == "# read as a name; searching molecule" and others == "# it could also be read as: smiles (--as)"
    header, first, second = (line.split("\t") for line in table)
    assert header == ["rank", "score", "percentile", "id", "name", "SMILES", "also", "cosine", "matched words",
                      "rank in space", "rank by words", "nearest training pair"]  # fmt: skip
    assert first == ["1", "0.420", "99.99", "7", "acid", "CC(=O)O", "8; 9", "0.420", "pain; eases", "1", "3",
                     "CCO | dissolves much (cosine 0.750 with query, 1.000 with hit)"]  # fmt: skip
    assert second == ["2", "0.100", "3.00", "10", "", "C", "", "", "", "", "", ""]


def test_reasons_are_lines_on_a_terminal(space, tmp_path, monkeypatch):
    space.answer_ = Answer(EXPLAINED, Reading("text", "pain", "b", None, "read as words"), "molecule")
    monkeypatch.setattr("bridgehead.cli.search.sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    lines = call("search", str(tmp_path), "pain", "--explain").stdout.splitlines()
    assert lines[2].split() == ["rank", "score", "percentile", "name", "SMILES"]
    assert lines[-1] == (
        "   1   also 8; 9; cosine 0.420, above 99.99 % of random pairs; rank 1 in space, 3 by words; words: pain; eases"
        "; nearest training pair: CCO | dissolves much (cosine 0.750 with query, 1.000 with hit)"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("search r", "give either a QUERY, or a file of them with --queries"),
        ("search r q --queries f --out g", "give either a QUERY"),
        ("search r --queries f", "--queries FILE and --out FILE go together"),
        ("search r q --out g", "go together"),
        ("search r --queries f --out g --explain", "are for one QUERY"),
        ("search r --queries f --out g --offset 3", "are for one QUERY"),
        ("search r q --column x", "are for --queries"),
        ("search r q --mode both", "'both' is not one of"),
        ("search r q --least-similarity 2", "less than or equal to 1"),
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(line, message):
    done = call(*shlex.split(line))
    assert done.exit_code == 2 and done.stdout == "" and message in " ".join(done.stderr.split())


def test_the_modes_are_those_of_the_library():
    assert tuple(MODES) == tuple(Mode)


def test_a_file_of_queries_becomes_a_file_of_hits(monkeypatch, tmp_path):
    def opened(run, heads="refit"):
        return lettered_space(tmp_path / "index")

    monkeypatch.setattr(bridgehead, "open_space", opened, raising=False)
    (tmp_path / "q.csv").write_text("name,words\nfirst,abc\nsecond,\n")
    options = ["--queries", str(tmp_path / "q.csv"), "--out", str(tmp_path / "h.parquet"), "-k", "3"]
    wrong = call("search", str(tmp_path), *options)
    assert (
        wrong.exit_code == 1
        and "no column 'query'; add --column NAME with the one that holds the queries, of 'name'" in wrong.stderr
    )
    done = call("search", str(tmp_path), *options, "--column", "words", "--id-column", "name", "--where", "number < 9")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "2 queries, 3 hits; 0 without a hit, 1 failed", "row 1 (id second): the query is empty",
        f"wrote {tmp_path / 'h.parquet'}",
    ]  # fmt: skip
    assert pl.read_parquet(tmp_path / "h.parquet")["query_id"].to_list() == ["first"] * 3 + ["second"]
    as_json = json.loads(call("search", str(tmp_path), *options, "--column", "words", "--json").stdout)
    assert as_json["report"]["n_failed"] == 1 and as_json["k"] == 3 and as_json["column"] == "words"


def test_search_without_hits_says_so(space, tmp_path, monkeypatch):
    space.answer_ = Answer((), Reading("inchikey", "K", "a", None, "no item has it"), "text")
    assert call("search", str(tmp_path), "K").stdout == "# no item has it; searching text\nrank\tscore\tid\ttext\n"
    space.answer_ = Answer((), Reading("text", "x", "b", None, "read as words"), "molecule", "knows nothing of it")
    assert "# knows nothing of it\n" in call("search", str(tmp_path), "x").stdout


def test_search_takes_the_config_of_a_run(space, stage, tmp_path):
    config = tmp_path / "c.toml"
    config.touch()
    stage("RunFolder", SimpleNamespace(of=lambda source: SimpleNamespace(folder=Path("runs/c"))))
    assert call("search", str(config), "x").exit_code == 0
    assert space.opened == [(Path("runs/c"), "refit")]


def test_the_readings_are_those_of_the_library():
    assert tuple(READINGS) == tuple(ReadAs)


def test_search_in_a_folder_that_is_not_there_is_an_error_of_the_input(tmp_path):
    done = call("search", str(tmp_path / "nowhere"), "x")
    assert done.exit_code == 1 and "there is no run folder" in done.stderr


def test_what_is_said_of_a_query_is_one_line(space, tmp_path):
    space.answer_ = Answer((), Reading("name", "x", "a", None, "read as the name one\ntwo"), "molecule", "a\nnote")
    assert call("search", str(tmp_path), "x").stdout.splitlines()[:2] == [
        "# read as the name one two; searching molecule", "# a note",
    ]  # fmt: skip


def test_names_of_files_need_not_be_utf8(space):
    folder = os.fsdecode(b"runs/\xff")
    assert call("search", folder, "x", "--json").exit_code == 0
