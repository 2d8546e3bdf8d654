"""`init` writes a config that `run` takes as it is, whatever the file and its columns are called."""

import csv
import json

import polars as pl
import pytest
from small_run import CHAINS, CORES, GROUPS

from bridgehead import runs
from bridgehead.errors import ColumnError, DataError, InputFileNotFoundError
from bridgehead.runs.config import read_config

PAIRS = [
    (f"id-{n}", end + chain + core, f"Consists of {is_a}, and carries {has}.")
    for n, (core, is_a, chain, end, has) in enumerate(
        (core, is_a, chain, end, has)
        for core, is_a in list(CORES.items())[:4]
        for chain in CHAINS[:2]
        for end, has in GROUPS.items()
    )
]
NAMES = [("id", "smiles", "description"), ('my "id"', "canonical smiles", "what it's \\ does, 描述"),
         ("compound_id", "SMILES [main]", "text = here # no comment")]  # fmt: skip


def csv_like(path, columns, separator):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator).writerows([columns, *PAIRS])


def jsonl(path, columns, _):
    path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in PAIRS))


def parquet(path, columns, _):
    pl.DataFrame(PAIRS, schema=list(columns), orient="row").write_parquet(path)


@pytest.mark.parametrize("columns", NAMES)
@pytest.mark.parametrize(
    "name, write, separator",
    [("pairs.csv", csv_like, ","), ("my pairs \"of\" 2024 'x'.tsv", csv_like, "\t"), ("a.jsonl", jsonl, ""),
     ("ß #1.parquet", parquet, "")],
)  # fmt: skip
def test_what_init_writes_is_read_and_checked_unchanged(tmp_path, name, write, separator, columns):
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / name, columns, separator)
    (tmp_path / "conf").mkdir()
    out = tmp_path / "conf" / "first.toml"
    out.write_text(runs.init_config(tmp_path / "data" / name, out=out), encoding="utf-8")
    made = read_config(out)
    assert (made.pairs.a, made.pairs.b, made.pairs.kind_a, made.pairs.kind_b) == (*columns[1:], "molecule", "text")
    assert made.pairs.id == columns[0] and made.folder == f"{tmp_path}/conf/runs/first"
    record = runs.check(out)
    assert sum(part["links"] for part in record["split"]["counts"].values()) == len(PAIRS)


def test_what_init_writes_runs_through_unchanged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv_like(tmp_path / "pairs.csv", NAMES[1], ",")
    (tmp_path / "config.toml").write_text(runs.init_config("pairs.csv"), encoding="utf-8")
    run = runs.run("config.toml")
    assert run.folder == tmp_path / "runs" / "config" and run.path("report.html").is_file()
    assert all(line.isprintable() for line in runs.init_config("pairs.csv").splitlines())


def test_options_that_were_given_stay_in_the_config(tmp_path):
    path = tmp_path / "latin.tsv"
    rows = [("id", "smiles", "description"), *((a, b, f"{c} naïve") for a, b, c in PAIRS)]
    path.write_bytes("\n".join("\t".join(row) for row in rows).encode("latin-1"))
    out = tmp_path / "c.toml"
    out.write_text(runs.init_config(path, quote="off", encoding="latin-1", out=out), encoding="utf-8")
    made = read_config(out)
    assert (made.pairs.quote, made.pairs.encoding) == ("off", "latin-1")
    assert runs.check(out)["check"]


def test_a_file_that_is_not_there_or_has_one_column_is_an_error(tmp_path):
    with pytest.raises(InputFileNotFoundError, match="does not exist"):
        runs.init_config(tmp_path / "none.csv")
    (tmp_path / "one.csv").write_text("smiles\nCCO\nCCN\n")
    with pytest.raises((DataError, ColumnError), match="column"):
        runs.init_config(tmp_path / "one.csv")


def test_a_names_column_that_is_not_there_is_an_error_that_lists_those_there_are(tmp_path):
    csv_like(tmp_path / "pairs.csv", ("id", "smiles", "text"), ",")
    settings = {"pairs": {"path": str(tmp_path / "pairs.csv"), "a": "smiles", "b": "text", "names": ["nam"]},
                "encode": {"a": "text:ngram", "b": "text:ngram"}}  # fmt: skip
    from bridgehead.runs.config import config_of

    with pytest.raises(ColumnError, match=r"pairs\.names: no further column 'nam'; those .* are id"):
        runs.run(config_of(settings), tmp_path / "run")
