"""Further candidates and candidate lists of a run: what is ranked, what is left out, and what the contract says."""

import csv

import numpy as np
import polars as pl
import pytest
from small_run import ASPIRIN, config, records

from bridgehead import runs
from bridgehead.errors import ColumnError, ConfigError, DataError, DuplicateIdError, InputFileNotFoundError
from bridgehead.runs.folder import RunFolder

QUICK = {"shuffled": 0, "closed_form": "none", "n_resamples": 0}


def evaluated(table, folder, **evaluate):
    run = RunFolder.of(config(table, evaluate={**QUICK, **evaluate}), folder)
    return run, runs.evaluate(run)


@pytest.fixture(scope="module")
def plain(table, tmp_path_factory):
    return evaluated(table, tmp_path_factory.mktemp("plain") / "run")


def write_pool(path, smiles, ids):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "smiles"], *zip(ids, smiles, strict=True)])
    return path


def test_a_pool_makes_the_search_harder_and_asks_nothing(table, plain, tmp_path):
    pool = write_pool(tmp_path / "pool.csv", ["CCCCCCCCCCCC", "BrCCBr", "II", "OCC1CC1Br"], ["p1", "p2", "p3", "p4"])
    _, before = plain
    run, after = evaluated(table, tmp_path / "run", pool_a=[str(pool)])
    both = [record["all"] for record in (before, after)]
    assert both[1]["b_to_a.n_candidates"] == both[0]["b_to_a.n_candidates"] + 4
    assert both[1]["a_to_b.n_queries"] == both[0]["a_to_b.n_queries"]
    assert both[1]["a_to_b.recall@1"] == both[0]["a_to_b.recall@1"]
    assert both[1]["b_to_a.mrr"] <= both[0]["b_to_a.mrr"]
    assert both[1]["b_to_a.chance_recall@1"] < both[0]["b_to_a.chance_recall@1"]
    assert after["pool"]["n_further_a"] == 4 and "4 further molecule candidates of pool.csv" in after["pool"]["how"]
    assert measurement_of_differs(run, plain[0])


def measurement_of_differs(run, other):
    first, second = (runs_measurement(one) for one in (run, other))
    return first["pool"] != second["pool"] and first["truth"] == second["truth"]


def runs_measurement(run):
    return run.record("evaluate")["measurement"]


def test_what_is_there_already_and_what_is_right_by_training_is_left_out(table, tmp_path):
    rows = {row[0]: row for row in records()}
    # X0 and the molecule with the text of X6 again: one of a pair of texts that training and test share.
    pool = write_pool(tmp_path / "pool.csv", [ASPIRIN, *(row[1] for row in rows.values() if row[1])], range(len(rows)))
    _, record = evaluated(table, tmp_path / "run", pool_a=[str(pool)])
    said = " ".join(record["pool"]["how"])
    assert "were there already" in said and "training links make them right answers" in said
    assert record["pool"]["n_further_a"] < len(rows)


def test_unpaired_items_are_candidates_when_they_are_asked_for(table, plain, tmp_path):
    _, record = evaluated(table, tmp_path / "run", pool_a="unpaired", pool_b="unpaired")
    assert record["all"]["b_to_a.n_candidates"] == plain[1]["all"]["b_to_a.n_candidates"] + 1
    assert record["all"]["a_to_b.n_candidates"] == plain[1]["all"]["a_to_b.n_candidates"] + 2


def test_queries_with_a_list_rank_their_list_and_the_others_do_not_ask(table, plain, tmp_path):
    run, record = plain
    queries = pl.read_parquet(run.path("queries.parquet")).filter(direction="a_to_b")
    texts = pl.read_parquet(run.path("queries.parquet")).filter(direction="b_to_a")["id"].to_list()
    asked = queries["id"].to_list()[:5]
    lists = tmp_path / "lists.tsv"
    lists.write_text(
        "query\tcandidate\n" + "".join(f"{a}\t{b}\n" for a in asked for b in texts[:3]) + "nobody\tnothing\n"
    )
    ranked, found = evaluated(table, tmp_path / "run", candidates_a=str(lists))
    assert found["all"]["a_to_b.n_queries"] == 5
    lengths = pl.read_parquet(ranked.path("queries.parquet")).filter(direction="a_to_b")["pool"]
    assert set(lengths) == {3}
    assert found["all"]["b_to_a.n_queries"] == record["all"]["b_to_a.n_queries"]
    assert found["all"]["a_to_b.n_true_missing"] > 0
    said = " ".join(found["pool"]["how"])
    assert "1 listed pairs name ids that are not in the test part" in said
    assert f"5 queries with a list of 3.0 candidates each; {len(queries) - 5} without one do not ask" in said
    assert "molecule to text: 5 queries, each ranks 3" in "\n".join(found["lines"])
    assert found["pool"]["lists"] is not None


def test_an_item_of_many_records_is_listed_by_the_id_of_any_of_them(table, plain, tmp_path):
    # Each molecule lists its own record: its text has the id of whichever record came first.
    lists = tmp_path / "lists.csv"
    lists.write_text("query,candidate\n" + "".join(f"{row[0]},{row[0]}\n{row[0]},quinine\n" for row in records()))
    run, found = evaluated(table, tmp_path / "run", candidates_a=str(lists))
    assert found["all"]["a_to_b.n_queries"] == plain[1]["all"]["a_to_b.n_queries"]
    assert found["all"].get("a_to_b.n_true_missing", 0) == 0
    assert max(pl.read_parquet(run.path("queries.parquet")).filter(direction="a_to_b")["pool"]) <= 2


def test_further_candidates_without_a_row_are_counted_apart(table, tmp_path, monkeypatch):
    from bridgehead.runs import pools

    without_the_first = pools._encoded

    def encoded(work, encoder, further):
        rows, index = without_the_first(work, encoder, further)
        return (rows, index) if rows is None else (rows[1:], index[1:])

    monkeypatch.setattr(pools, "_encoded", encoded)
    pool = write_pool(tmp_path / "pool.csv", ["CCCCCCCCCCCC", "BrCCBr"], ["p1", "p2"])
    _, record = evaluated(table, tmp_path / "run", pool_a=[str(pool)])
    assert record["pool"]["n_further_a"] == 1
    assert "1 further molecule candidates have no row and are left out" in record["pool"]["how"]


def test_a_list_that_names_no_query_is_refused(table, tmp_path):
    lists = tmp_path / "lists.tsv"
    lists.write_text("query\tcandidate\nnobody\tnothing\n")
    with pytest.raises(DataError, match="lists no candidate of any query"):
        evaluated(table, tmp_path / "run", candidates_a=str(lists))


def test_a_pool_that_is_not_there_is_said_before_anything_is_trained(table, tmp_path):
    run = RunFolder.of(config(table, evaluate={"pool_a": ["nowhere.csv"]}), tmp_path / "run")
    with pytest.raises(InputFileNotFoundError, match=r"nowhere\.csv"):
        runs.check(run)


@pytest.mark.parametrize(
    "audit, said",
    [
        ({"skip": ["nosuch"]}, "audit.skip names 'nosuch'"),
        ({"columns": ["nosuch"]}, "audit.columns: no further column 'nosuch'"),
    ],
)
def test_an_audit_that_there_is_not_is_said_before_anything_is_trained(table, tmp_path, audit, said):
    run = RunFolder.of(config(table, evaluate=QUICK, audit=audit), tmp_path / "run")
    with pytest.raises((ColumnError, ConfigError), match=said):
        runs.audit(run)
    assert not run.path("trained.json").exists()


@pytest.mark.parametrize(
    "evaluate, said",
    [({"slices": ["nosuch"]}, "evaluate.slices: no further column 'nosuch'"),
     ({"pool_b": ["other.csv"]}, "has no column 'text'"), ({"candidates_b": "other.csv"}, "has no column 'query'")],
)  # fmt: skip
def test_a_column_that_is_not_there_is_said_before_anything_is_trained(table, tmp_path, evaluate, said):
    (tmp_path / "other.csv").write_text("q,c\nX1,X2\n")
    places = {
        name: [str(tmp_path / value[0])] if name == "pool_b" else str(tmp_path / value)
        for name, value in evaluate.items()
        if name != "slices"
    }
    run = RunFolder.of(config(table, evaluate={**evaluate, **places}), tmp_path / "run")
    with pytest.raises(ColumnError, match=said):
        runs.evaluate(run)
    assert not run.path("trained.json").exists()


def test_an_id_that_a_pool_has_twice_is_said_with_the_file(table, tmp_path):
    pool = write_pool(tmp_path / "pool.csv", ["CCCCCCCCCCCC", "BrCCBr"], ["p1", "p1"])
    with pytest.raises(DuplicateIdError, match=r"pool\.csv: 1 ids occur more than once"):
        evaluated(table, tmp_path / "run", pool_a=[str(pool)])


def test_compounds_are_a_pool_of_molecules_only(table):
    with pytest.raises(ConfigError, match=r"evaluate\.pool_b names 'chemicals'"):
        config(table, evaluate={"pool_b": "chemicals"})


def test_a_pool_of_another_content_is_measured_again(table, tmp_path):
    pool = write_pool(tmp_path / "pool.csv", ["CCCCCCCCCCCC"], ["p1"])
    run, first = evaluated(table, tmp_path / "run", pool_a=[str(pool)])
    write_pool(pool, ["CCCCCCCCCCCC", "BrCCBr"], ["p1", "p2"])
    again = runs.evaluate(run)
    assert again["pool"]["n_further_a"] == first["pool"]["n_further_a"] + 1


def test_each_query_stands_in_the_table_with_its_own_figures(plain):
    run, record = plain
    table = pl.read_parquet(run.path("queries.parquet"))
    for side in ("a_to_b", "b_to_a"):
        own = table.filter(direction=side)
        assert len(own) == record["all"][f"{side}.n_queries"]
        assert own["mrr"].mean() == pytest.approx(record["all"][f"{side}.mrr"])
        assert own["recall@10"].mean() == pytest.approx(record["all"][f"{side}.recall@10"])
        assert np.median(own["rank"]) == pytest.approx(record["all"][f"{side}.median_rank"])


def test_choosing_among_few_is_measured_beside_the_pool(table, tmp_path):
    _, record = evaluated(table, tmp_path / "run", choose_among=[2, 4])
    assert set(record["among"]) == {"2", "4"}
    assert record["among"]["4"]["a_to_b.chance_recall@1"] >= 0.25
    assert record["among"]["2"]["a_to_b.recall@1"] >= record["among"]["4"]["a_to_b.recall@1"]
