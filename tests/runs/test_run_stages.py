"""What trains, what is measured and what is found: items without a link, weak texts, salts, unreadable structures."""

import json

import numpy as np
import pytest
from small_run import (
    ASPIRIN,
    BAD,
    MIXTURE,
    QUINIDINE,
    QUININE,
    SPECIAL,
    WEAK,
    config,
    records,
    write_table,
)

from bridgehead import runs
from bridgehead.align.twin import NumpyHeads
from bridgehead.encode import load_encoder
from bridgehead.errors import ArgumentError, DataError, LinksError
from bridgehead.evaluate import retrieval_report
from bridgehead.runs import work as under_way
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.prepare import prepare
from bridgehead.search import open_space

SALTS = {"aspirin", "aspirin-na", "aspirin-lys"}


def silent(*_args):
    return


def prepared_with(table, folder, **sections):
    return prepare(RunFolder.of(config(table, **sections), folder / "run"), silent)


def ids_of(prepared, part):
    return {prepared.table.a.ids[item] for item in prepared.part(part)[0]}


def part_of(prepared, id_):
    return int(prepared.split.part_a[prepared.table.a.ids.index(id_)])


@pytest.mark.parametrize("seed", range(5))
def test_an_entity_named_in_split_test_goes_there_with_all_its_salts(table, tmp_path, seed):
    prepared = prepared_with(table, tmp_path, split={"seed": seed})
    assert ids_of(prepared, "test") >= SALTS
    assert not (ids_of(prepared, "train") | ids_of(prepared, "valid")) & SALTS


@pytest.mark.parametrize("seed", range(5))
def test_salts_and_stereoisomers_never_cross_a_split_by_skeleton(table, tmp_path, seed):
    prepared = prepared_with(table, tmp_path, split={"seed": seed, "test": []})
    assert len({part_of(prepared, id_) for id_ in SALTS}) == 1
    assert part_of(prepared, "quinine") == part_of(prepared, "quinidine")


def keys_at(table, tmp_path, level):
    prepared = prepared_with(table, tmp_path, split={"identity": level, "test": []})
    found = dict(zip(prepared.table.a.ids, prepared.identities["a"], strict=True))
    return prepared, {id_: getattr(one, level) for id_, one in found.items()}


@pytest.mark.parametrize("level, aspirins, quinines", [("exact", 3, 2), ("parent", 1, 2), ("skeleton", 1, 1)])
def test_identity_levels_decide_what_is_one_entity(table, tmp_path, level, aspirins, quinines):
    prepared, keys = keys_at(table, tmp_path, level)
    assert len({keys[id_] for id_ in SALTS}) == aspirins
    assert len({keys["quinine"], keys["quinidine"]}) == quinines
    # A mixture is an entity of each of its parts when the level is that of skeletons.
    total = {"exact": 127, "parent": 125, "skeleton": 125}[level]
    assert sum(prepared.split.n_entities.values()) == total


def test_a_mixture_goes_with_each_of_its_parts(tmp_path):
    rows = [*records(), ["caffeine", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "wakes you up", ""],
            ["paracetamol", "CC(=O)Nc1ccc(O)cc1", "lowers fever", ""]]  # fmt: skip
    for seed in range(4):
        prepared = prepared_with(write_table(tmp_path / "p.csv", rows), tmp_path, split={"seed": seed})
        assert len({part_of(prepared, id_) for id_ in ("mixture", "caffeine", "paracetamol")}) == 1


@pytest.mark.parametrize("hold_out", ["b", "both"])
def test_a_text_can_be_put_into_test_in_other_spelling(table, tmp_path, hold_out):
    wanted = "  Slows the heart by blocking SODIUM channels"
    prepared = prepared_with(table, tmp_path, split={"hold_out": hold_out, "test": [wanted]})
    text = prepared.table.b.items.index("slows the heart by blocking sodium channels")
    assert prepared.split.part_b[text] == 2
    assert not [note for note in prepared.split.notes if "test keys" in note]


def test_with_both_sides_held_out_a_molecule_can_be_put_into_test(table, tmp_path):
    prepared = prepared_with(table, tmp_path, split={"hold_out": "both", "test": [ASPIRIN]})
    assert ids_of(prepared, "test") >= SALTS


def test_an_item_of_an_entity_column_brings_its_entity_into_test(tmp_path):
    rows = [[f"{n}", f"spectrum {n}", f"text {n} of some words", f"donor {n // 4}"] for n in range(40)]
    path = write_table(tmp_path / "p.csv", rows, ["id", "smiles", "text", "donor"])
    sections = {"pairs": {"kind_a": "text", "entity": "donor", "names": []}}
    for wanted in ("spectrum 9", "donor 2"):
        prepared = prepared_with(path, tmp_path, **sections, split={"test": [wanted]})
        assert ids_of(prepared, "test") >= {"8", "9", "10", "11"}


def test_what_no_item_is_is_said(table, tmp_path):
    prepared = prepared_with(table, tmp_path, split={"test": ["CCCCCCCCCCCCCCCCCCCCBr"]})
    assert any("no item has the test keys" in note for note in prepared.split.notes)


def test_an_unreadable_structure_shifts_no_other_row(finished, tmp_path):
    without = [row for row in records() if row[0] != "bad"]
    path = write_table(tmp_path / "p.csv", without)
    clean = runs.run(config(path, evaluate={"shuffled": 0}), tmp_path / "run")
    assert clean.path("heads.safetensors").read_bytes() == finished.path("heads.safetensors").read_bytes()
    assert clean.record("evaluate")["all"] != {} and not clean.record("encode")["a"]["failures"]
    reasons = json.dumps(finished.record("check"))
    assert f"'{BAD}' is not a valid SMILES" in reasons and "(bad)" in reasons
    with open_space(finished.folder) as space:
        items = {item.id: item.item for row in range(space.index.size("a")) for item in [space.index.item("a", row)]}
    assert items == {row[0]: row[1] for row in without if row[1]}


def test_every_row_of_the_index_is_the_projection_of_its_own_item(finished):
    for heads, parts in (("refit", ("refit",)), ("evaluated", ())):
        model = NumpyHeads.load(finished.path(*parts, "heads.safetensors"))
        for side, project in (("a", model.project_a), ("b", model.project_b)):
            encoder = load_encoder(finished.path(*parts, "encoders", side))
            with open_space(finished.folder, heads) as space:
                items = space.index.items(side, space.index.numbers(side).tolist())
                stored = space.index.rows(side, [item.number for item in items])
            fresh = project(encoder.encode([item.item for item in items]).rows)
            assert np.abs(stored - fresh).max() < 2e-3


def test_unpaired_items_are_found_but_in_no_link(finished, tmp_path):
    prepared = prepare(finished, silent)
    molecule = prepared.table.a.ids.index("no-text")
    text = prepared.table.b.items.index("a text that no molecule has")
    links = prepared.table.links.pairs
    assert molecule not in links[:, 0] and text not in links[:, 1]
    for part in ("train", "valid", "test"):
        items_a, items_b, _ = prepared.part(part)
        assert molecule not in items_a and text not in items_b
    assert molecule not in prepared.everything()[0]
    with open_space(finished.folder) as space:
        assert space.answer("OCCCCCCCCO", of="molecule", k=1).hits[0].id == "no-text"
        assert space.answer("a text that no molecule has", of="text", k=1).hits[0].item == "a text that no molecule has"
        assert space.answer("a text of something unreadable", of="text", k=1).hits[0].score > 0.99


def test_stereoisomers_of_one_skeleton_are_two_items_of_the_index(finished):
    with open_space(finished.folder) as space:
        found = {space.answer(smiles, of="molecule", k=1).hits[0].id for smiles in (QUININE, QUINIDINE)}
        assert found == {"quinine", "quinidine"}
        assert space.answer(MIXTURE, of="molecule", k=1).hits[0].id == "mixture"


@pytest.fixture(scope="module")
def weak_table(tmp_path_factory):
    """Thirty molecules share a weak text, so that each part of a split has some; one text only repeats in them."""
    rows = records()
    extra = [[f"W{n}", "C" * (n + 3) + "I", WEAK if n % 3 else "metal", f"weak {n}"] for n in range(30)]
    return write_table(tmp_path_factory.mktemp("weak") / "pairs.csv", rows + extra)


def test_weak_texts_are_left_out_of_training_only_and_counted(weak_table, tmp_path):
    dropping = {"pairs": {"quality": "drop"}, "evaluate": {"shuffled": 0}, "index": {"evaluated": False}}
    run = runs.run(config(weak_table, **dropping), tmp_path / "run")
    kept, prepared = prepared_with(weak_table, tmp_path), prepare(run, silent)
    weak = {prepared.table.b.items.index(text) for text in (WEAK, "metal")}
    assert not weak & set(prepared.train[1].tolist()) and not weak & set(prepared.everything()[1].tolist())
    assert weak & set(kept.train[1].tolist())
    for part in ("valid", "test"):
        assert np.array_equal(prepared.part(part)[2].pairs, kept.part(part)[2].pairs)
    assert weak & set(prepared.part("test")[1].tolist())
    n_dropped = len(kept.train[2]) - len(prepared.train[2])
    assert run.record("check")["n_links_dropped"] == n_dropped > 0
    assert any(f"{n_dropped:,} training links of generic" in line for line in run.record("check")["lines"])
    # Never trained, so a query with such a text is one of unseen text.
    unseen = run.record("evaluate")["unseen_text"]
    strong = set(prepared.train[1].tolist())
    assert unseen["b_to_a.n_queries"] == len(set(prepared.part("test")[1].tolist()) - strong)
    with open_space(run.folder) as space:
        assert space.answer(WEAK, of="text", k=1).hits[0].item == WEAK
        assert space.index.size("a") == len(prepared.table.a)


def test_a_refit_trains_on_all_pairs_for_the_epochs_that_validation_chose(finished):
    trained, refit = finished.record("train"), finished.record("refit")
    assert refit["epochs"] == trained["best_epoch"]
    lines = finished.path("refit", "history.jsonl").read_text().splitlines()
    assert len(lines) == trained["best_epoch"] and "valid_mrr" not in json.loads(lines[0])
    everything = prepare(finished, silent).everything()
    assert len(everything[2]) == 127 and f"all {len(everything[2])} links" in refit["lines"][0]
    evaluated, again = (load_encoder(finished.path(*p, "encoders", "b")) for p in ((), ("refit",)))
    only_in_test = "cyclooxygenase"
    assert f"w:{only_in_test}" in again.vocabulary and f"w:{only_in_test}" not in evaluated.vocabulary


def test_a_refit_leaves_the_evaluated_heads_and_metrics_alone(table, tmp_path):
    run = RunFolder.of(config(table, evaluate={"shuffled": 0}), tmp_path / "run")
    runs.evaluate(run)
    files = ["heads.safetensors", "metrics.json", "history.jsonl", "encoders/a/columns.npy", "encoders/b/idf.npy"]
    before = [(run.path(name).read_bytes(), run.path(name).stat().st_mtime_ns) for name in files]
    runs.refit(run)
    runs.index(run)
    assert [(run.path(name).read_bytes(), run.path(name).stat().st_mtime_ns) for name in files] == before


def test_metrics_are_those_of_the_evaluated_heads_on_test_items_alone(finished):
    prepared = prepare(finished, silent)
    items_a, items_b, links = prepared.part("test")
    heads = NumpyHeads.load(finished.path("heads.safetensors"))
    rows = {}
    for side, items, project in (("a", items_a, heads.project_a), ("b", items_b, heads.project_b)):
        texts = prepared.table.side(side).items
        rows[side] = project(load_encoder(finished.path("encoders", side)).encode([texts[i] for i in items]).rows)
    expected = retrieval_report(rows["a"], rows["b"], links, n_resamples=0).to_dict()
    found = finished.record("evaluate")["all"]
    for name in ("a_to_b.mrr", "b_to_a.mrr", "a_to_b.recall@10", "b_to_a.recall@1", "a_to_b.n_candidates"):
        assert found[name] == pytest.approx(expected[name], abs=1e-9)


def test_no_metric_is_ever_computed_with_refit_heads(table, tmp_path, monkeypatch):
    run = RunFolder.of(config(table, evaluate={"shuffled": 0}), tmp_path / "run")
    runs.refit(run)
    stored, refit = (NumpyHeads.load(run.path(*parts, "heads.safetensors")) for parts in ((), ("refit",)))
    # The refit encoders saw more molecules, so that the heads are told apart by how many columns they read.
    assert stored.config.a.input_dim < refit.config.a.input_dim
    widths = []
    original = under_way.measure

    def spy(heads, *rest):
        widths.append(heads.config.a.input_dim)
        return original(heads, *rest)

    monkeypatch.setattr(under_way, "measure", spy)
    runs.run(run)
    assert widths == [stored.config.a.input_dim]


def test_the_shuffled_control_keeps_its_heads_only_while_they_are_measured(finished):
    control = finished.record("evaluate")["shuffled"]
    assert (
        control["seeds"] == [0] and control["n_links"] == finished.record("check")["split"]["counts"]["train"]["links"]
    )
    assert not list(finished.path("shuffled").rglob("*.safetensors"))


def test_no_control_is_trained_where_none_is_asked_for(table, tmp_path):
    run = RunFolder.of(config(table, evaluate={"shuffled": 0, "n_resamples": 0}), tmp_path / "run")
    assert runs.evaluate(run)["shuffled"] is None and not run.path("shuffled").exists()


def test_several_controls_have_a_seed_each(table, tmp_path):
    run = RunFolder.of(config(table, evaluate={"shuffled": 2, "seed": 7}, train={"epochs": 1}), tmp_path / "run")
    assert runs.evaluate(run)["shuffled"]["seeds"] == [7, 8]


def test_fewer_links_than_a_batch_train(tmp_path):
    path = write_table(tmp_path / "p.csv", records()[:12])
    run = runs.run(config(path, train={"batch_size": 512}, split={"test": []}), tmp_path / "run")
    assert run.record("train")["epochs"] == 4 and np.isfinite(run.record("train")["history"][0]["loss"])


@pytest.mark.parametrize("rows", [records()[:1], records()[:1] * 5, records()[:2]])
def test_one_pair_and_pairs_that_are_all_the_same_say_that_they_cannot_be_split(tmp_path, rows):
    path = write_table(tmp_path / "p.csv", [[f"{n}", *row[1:]] for n, row in enumerate(rows)])
    with pytest.raises(ArgumentError, match="expected at least one for each: add pairs"):
        runs.run(config(path, split={"test": []}), tmp_path / "run")


def test_without_a_valid_and_a_test_part_it_trains_but_does_not_measure(tmp_path):
    path = write_table(tmp_path / "p.csv", records()[:3])
    encode = {"settings_a": {"min_count": 1, "processes": 1}}
    run = RunFolder.of(config(path, split={"fractions": [1, 0, 0], "test": []}, encode=encode), tmp_path / "run")
    trained = runs.train(run)
    assert trained["best_epoch"] == trained["epochs"] == 4
    with pytest.raises(LinksError, match=r"the test part has no links; give it a share in split\.fractions"):
        runs.evaluate(run)
    runs.index(run)
    with open_space(run.folder) as space:
        assert len(space.answer("anything with a hydroxyl", k=50).hits) == 3


def test_a_run_without_a_test_part_is_refused_before_it_trains(tmp_path):
    path = write_table(tmp_path / "p.csv", records()[:30])
    run = RunFolder.of(config(path, split={"fractions": [0.8, 0.2, 0], "test": []}), tmp_path / "run")
    with pytest.raises(LinksError, match="the test part has no links"):
        runs.run(run)
    assert run.path("pairs.json").is_file() and not run.path("encoders").exists()


def test_without_a_valid_part_the_last_epoch_is_kept(tmp_path):
    path = write_table(tmp_path / "p.csv", records()[:30])
    run = RunFolder.of(config(path, split={"fractions": [0.8, 0, 0.2], "test": []}), tmp_path / "run")
    assert runs.run(run).record("train")["best_epoch"] == 4 and "valid_mrr" not in run.record("train")["history"][0]
    assert run.path("report.html").is_file()


def test_where_all_training_texts_are_weak_it_is_said_before_any_encoding(tmp_path):
    rows = [[str(n), "C" * (n + 1) + "O", f"metal {n}", ""] for n in range(20)]
    path = write_table(tmp_path / "p.csv", rows)
    with pytest.raises(LinksError, match=r"the train part has no links; .* that are not left out"):
        runs.run(config(path, pairs={"quality": "drop"}, split={"test": []}), tmp_path / "run")


def test_one_pair_cannot_train_and_says_why(tmp_path):
    path = write_table(tmp_path / "p.csv", records()[:1])
    encode = {"settings_a": {"min_count": 1, "processes": 1}}
    run = RunFolder.of(config(path, split={"fractions": [1, 0, 0], "test": []}, encode=encode), tmp_path / "run")
    with pytest.raises(LinksError, match="expected at least 2 different items on each side"):
        runs.train(run)


def test_a_header_alone_is_an_error_of_the_data(tmp_path):
    path = write_table(tmp_path / "p.csv", [])
    with pytest.raises(DataError, match="has a header but no records"):
        runs.run(config(path), tmp_path / "run")


def test_without_any_link_it_says_what_the_records_lack(tmp_path):
    path = write_table(tmp_path / "p.csv", [[str(n), BAD + "C" * n, f"text number {n} here", ""] for n in range(9)])
    message = (
        r"none of the 9 records joins a molecule to a text \(the first: record 0: .*C1CC\(C.* is not a valid SMILES"
    )
    with pytest.raises(LinksError, match=message):
        runs.run(config(path, split={"test": []}), tmp_path / "run")
    path = write_table(tmp_path / "p.csv", [["1", "CCO", "", ""], ["2", "", "a text alone", ""]])
    with pytest.raises(LinksError, match=r"the first: record 0: text is empty"):
        runs.run(config(path, split={"test": []}), tmp_path / "run")


def test_the_special_rows_are_all_accounted_for(finished):
    checked = finished.record("check")
    assert checked["split"]["counts"]["test"]["a"] >= 3
    assert sum(part["links"] for part in checked["split"]["counts"].values()) == 120 + len(SPECIAL) - 3
