"""The commands over the real stages, on a table made here: init, check, run, search, each equal to the library."""

import csv
import itertools
import json
import shutil
import subprocess
import sys
from dataclasses import asdict

import pytest
from typer.testing import CliRunner

import bridgehead
from bridgehead import runs
from bridgehead.cli.commands import app

SCAFFOLDS = {"c1ccccc1": "a ring of carbons", "C1CCCCC1": "a saturated ring", "c1cccnc1": "a ring with nitrogen",
             "CCCC": "an open chain", "C1CCOC1": "a small ring with oxygen"}  # fmt: skip
GROUPS = {"O": "a hydroxyl that binds water", "N": "an amine that takes a proton", "Cl": "a chlorine that is heavy",
          "S": "a thiol that smells", "F": "a fluorine that lasts", "Br": "a bromine that leaves",
          "N#C": "a nitrile with a triple bond", "CO": "a methyl ether"}  # fmt: skip
HEAVY = ["torch", "transformers", "sklearn", "matplotlib", "polars"]


def call(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def result(*arguments):
    done = call(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with pairs.csv, the config of `init` as it is, and the run of `run`."""
    folder = tmp_path_factory.mktemp("flow")
    with (folder / "pairs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["compound_id", "smiles", "description"])
        for number, ((core, is_a), (end, has)) in enumerate(itertools.product(SCAFFOLDS.items(), GROUPS.items())):
            writer.writerow([f"X{number}", end + core, f"Consists of {is_a}, and carries {has}."])
    config = folder / "config.toml"
    assert call("init", folder / "pairs.csv", "--out", config).exit_code == 0
    done = call("run", config)
    assert done.exit_code == 0, done.output
    assert "test part" in done.stdout and "train: done in" in done.stderr and "Error" not in done.stderr
    return config, folder / "runs" / "config"


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["check", "encode", "train", "evaluate", "refit", "index"])
def test_a_stage_gives_what_the_library_gives(finished, stage):
    config, run = finished
    before = (run / "heads.safetensors").stat().st_mtime_ns
    assert result(stage, config) == result(stage, run) == json.loads(json.dumps(getattr(runs, stage)(config)))
    assert (run / "heads.safetensors").stat().st_mtime_ns == before


@pytest.mark.slow
def test_run_again_gives_the_record_of_the_evaluation(finished):
    config, run = finished
    again = result("run", config)
    assert again["folder"] == str(run.resolve()) and again["evaluate"] == runs.RunFolder.of(config).record("evaluate")


@pytest.mark.slow
@pytest.mark.parametrize("heads", ["refit", "evaluated"])
@pytest.mark.parametrize("query", ["carries an amine", "Nc1ccccc1", "X3", "5-HT1A NOT * \"'", "CO"])
def test_a_search_gives_what_the_library_gives(finished, query, heads):
    _, run = finished
    with bridgehead.open_space(run, heads=heads) as space:
        answer = space.answer(query, k=3, offset=1)
    found = result("search", run, query, "-k", 3, "--offset", 1, "--heads", heads)
    assert found["hits"] == [json.loads(json.dumps(asdict(hit))) for hit in answer.hits]
    assert found["reading"]["explanation"] == answer.reading.explanation and found["of"] == answer.of


@pytest.mark.slow
def test_words_find_molecules_and_a_structure_finds_texts(finished):
    config, _ = finished
    header, *rows = [line.split("\t") for line in call("search", config, "carries an amine").stdout.splitlines()[1:]]
    assert header == ["rank", "score", "percentile", "id", "SMILES", "description"] and len(rows) == 10
    found = call("search", config, "Nc1ccccc1", "-k", "1").stdout.splitlines()
    assert found[0] == "# read as the structure Nc1ccccc1; add --as text to search for the words; searching text"
    assert found[1] == "rank\tscore\tpercentile\tid\ttext"
    assert call("search", config, "zzz", "--of", "spectrum").exit_code == 1
    assert call("search", config, " ").exit_code == 1
    assert len(result("search", config, "amine", "-k", "1000")["hits"]) == 40


@pytest.mark.slow
def test_a_run_folder_that_is_cut_off_is_an_error_of_the_input(finished, tmp_path):
    _, run = finished
    broken = tmp_path / "run"
    shutil.copytree(run, broken)
    (broken / "index" / "index.json").write_text("{")
    done = call("search", broken, "amine")
    assert done.exit_code == 1 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("query", ["carries an amine", "Nc1ccccc1"])
def test_a_search_from_a_cold_shell_loads_nothing_that_trains_or_draws(finished, query):
    _, run = finished
    script = (
        "import sys\nfrom bridgehead.cli.commands import app\n"
        f"app(['search', {str(run)!r}, {query!r}, '--json'], standalone_mode=False)\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]" and json.loads(done.stdout)["hits"]
