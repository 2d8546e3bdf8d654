"""Faults planted in the table or the split of a run, and the audit that must say so; what is clean stays clean."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from small_run import config, records, write_table

from bridgehead import runs
from bridgehead.audits import Finding
from bridgehead.errors import ColumnError
from bridgehead.runs.auditing import data, items, leakage, negatives, shortcuts, space, training
from bridgehead.runs.auditing.applicable import NotApplicable
from bridgehead.runs.config import config_of
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.prepare import numbered
from bridgehead.runs.work import Work


def quiet(*_):
    return


@pytest.fixture
def work(finished):
    """A run under way over the finished one: what is changed in it stays here, and nothing is written."""
    return Work(finished, quiet)


def with_settings(work, **sections):
    """Return another run under way with other settings, over the same folder."""
    settings = work.run.config.plain()
    for name, changes in sections.items():
        settings[name] = {**settings[name], **changes}
    return Work(RunFolder(work.run.folder, config_of(settings)), quiet)


def of(rows, folder, header=("id", "smiles", "text", "name"), **sections):
    """Return a run under way of a table of its own, checked and encoded."""
    folder.mkdir(exist_ok=True)
    run = RunFolder.of(config(write_table(folder / "pairs.csv", rows, list(header)), **sections), folder / "run")
    runs.encode(run)
    return Work(run, quiet)


def by_name(found):
    return {finding.name: finding for finding in found}


def verdicts(found):
    return [finding.verdict for finding in found]


def test_a_test_molecule_that_trains_is_a_leak_at_every_level(work):
    clean = by_name(leakage.identities(work))
    levels = [
        f"molecule in test and training, by {level}" for level in ("exact identity", "parent identity", "skeleton")
    ]
    assert [clean[level].verdict for level in levels] == ["pass"] * 3
    prepared = work.prepared
    test = prepared.split.truth.pairs[prepared.split.part_link == 2]
    train = prepared.split.truth.pairs[prepared.split.part_link == 0]
    work.prepared = replace(prepared, train=numbered(np.concatenate([train, test[:1]])))
    leaking = by_name(leakage.identities(work))
    assert [leaking[level].verdict for level in levels] == ["fail"] * 3
    assert leaking[levels[0]].listed.rows[0][0] == prepared.table.a.ids[test[0, 0]]


def test_levels_that_the_split_does_not_keep_apart_warn_and_do_not_fail(work):
    # By exact identity a salt may train while its parent is asked for.
    levels, apart = leakage._levels(with_settings(work, split={"identity": "exact"}), "a")
    assert list(levels) == ["exact identity", "parent identity", "skeleton"]
    assert apart == ["exact identity"]
    assert leakage._levels(with_settings(work, split={"hold_out": "b", "test": []}), "a")[1] == []
    assert leakage._levels(with_settings(work, split={"hold_out": "both", "test": []}), "b")[1] == ["text"]


def test_rows_and_scaffolds_of_test_are_looked_for_in_training(work):
    found = by_name(leakage.shared_scaffolds(work))
    # Five cores carry all molecules of the table.
    assert found["molecule in test and training, by scaffold"].value == 1.0
    assert set(verdicts(leakage.nearly_same_rows(work))) == {"pass"}
    train = work.first_part("train")
    n = work.first_part("test").rows_a.shape[0]
    same = replace(work.first_part("test"), rows_a=train.rows_a[:n])
    planted = SimpleNamespace(
        run=work.run, prepared=work.prepared, first_part=lambda name: train if name == "train" else same
    )
    leaking = by_name(leakage.nearly_same_rows(planted))
    assert leaking["test rows of molecule with a training row at cosine 0.99"].verdict == "fail"


def test_one_raw_item_of_two_entities_is_named_by_its_records(tmp_path):
    rows = [[f"r{n}", f"peaks {n}", f"C{'C' * (n // 2)}O", f"E{n // 2}"] for n in range(60)]
    settings = {"pairs": {"a": "peaks", "b": "smiles", "kind_a": "text", "kind_b": "molecule", "entity": "e",
                          "names": [], "name_a": "spectrum"},
                "split": {"test": []}, "encode": {"a": "text:ngram", "b": "molecule:fingerprints", "settings_a": {},
                                                  "settings_b": {"processes": 1}}}  # fmt: skip
    header = ("id", "peaks", "smiles", "e")
    clean = of(rows, tmp_path / "clean", header, **settings)
    assert verdicts(leakage.several_entities(clean)) == ["pass"]
    twice = of([*rows, ["again", "peaks 7", "CCCCCCCCCO", "E9"]], tmp_path / "twice", header, **settings)
    found = leakage.several_entities(twice)[0]
    assert found.verdict in ("warn", "fail")
    assert "r7" in str(found.listed.rows) and "again" in str(found.listed.rows)


def test_without_an_entity_column_nothing_contradicts(work):
    with pytest.raises(NotApplicable, match=r"needs pairs\.entity"):
        leakage.several_entities(work)


def test_a_column_that_was_shifted_by_one_record_is_said(tmp_path):
    rows = [row for row in records() if row[0].startswith("X")]
    assert verdicts(data.order(of(rows, tmp_path / "clean", split={"test": []}))) == ["pass", "pass"]
    texts = [row[2] for row in rows]
    shifted = [[*row[:2], texts[number - 1], row[3]] for number, row in enumerate(rows)]
    found = by_name(data.order(of(shifted, tmp_path / "shifted", split={"test": []})))
    assert found["records out of order"].verdict == "fail"
    assert found["records out of order"].value > 0.8


def test_texts_that_say_nothing_are_counted_and_short_labels_are_not(tmp_path):
    rows = [row for row in records() if row[0].startswith("X")]
    generic = [[*row[:2], "a chemical compound" if n % 2 else row[2], row[3]] for n, row in enumerate(rows)]
    found = data.weak_texts(of(generic, tmp_path / "generic", split={"test": []}))
    assert (found[0].verdict, round(found[0].value, 2)) == ("fail", 0.5)
    broad = data.broad_texts(of(generic, tmp_path / "generic", split={"test": []}))
    assert (broad[0].verdict, round(broad[0].value, 2)) == ("warn", 0.5)
    labels = [[*row[:2], f"{row[3].replace(' ', '-')} ring", row[3]] for row in rows]
    assert verdicts(data.weak_texts(of(labels, tmp_path / "labels", split={"test": []}))) == ["pass"]
    numbers = [[*row[:2], f"{n}.0:{n} {n}.5:7", row[3]] for n, row in enumerate(rows)]
    with pytest.raises(NotApplicable, match="needs texts of words"):
        data.weak_texts(of(numbers, tmp_path / "numbers", split={"test": []}))


def test_wrong_pairs_are_estimated_by_whoever_reads_pairs_better(work):
    found = data.mispairs(work)[0]
    assert found.verdict == "pass"
    # The linear maps alone have too many that they cannot read: 15 held-out pairs are too few for the heads.
    assert "trained heads" not in found.why


def test_a_column_that_gives_pairs_away_fails(work):
    named = with_settings(work, audit={"columns": ["name"]})
    found = shortcuts.columns(named)
    assert [f.value for f in found] == [1.0, 1.0]
    assert "fail" in verdicts(found)
    with pytest.raises(NotApplicable, match=r"audit\.columns"):
        shortcuts.columns(work)


def test_lengths_are_heavy_atoms_characters_or_entries(work):
    table = work.prepared.table
    aspirin = np.array([table.a.ids.index("aspirin"), table.a.ids.index("quinine")])
    # C9H8O4 and C20H24N2O2.
    assert items.lengths_of(work, "a", aspirin, None).tolist() == [13, 24]
    assert items.lengths_of(work, "b", np.array([0]), None).tolist() == [len(table.b.items[0])]
    assert len(shortcuts.length(work)) == 2
    rows = with_settings(work, pairs={"kind_b": "rows"})
    assert items.lengths_of(rows, "b", np.array([0]), np.ones((1, 3))) is None


def test_values_of_a_column_are_those_of_all_records_of_an_item(work):
    table = work.prepared.table
    values = items.column_values(table, "a", "name")
    assert values[table.a.ids.index("aspirin")] == ("Aspirin",)
    with pytest.raises(ColumnError, match="no further column 'moon'"):
        items.column_values(table, "a", "moon")


def test_formulas_are_looked_for_on_either_side(tmp_path, work):
    assert verdicts(shortcuts.formulas(work)) == ["pass", "pass"]
    rows = [row for row in records() if row[0].startswith("X")]
    turned = {"pairs": {"a": "text", "b": "smiles", "kind_a": "text", "kind_b": "molecule", "names": []},
              "split": {"test": []}, "encode": {"a": "text:ngram", "b": "molecule:fingerprints", "settings_a": {},
                                                "settings_b": {"processes": 1}}}  # fmt: skip
    made = [[id_, smiles, f"{text} Number {id_}.", name] for id_, smiles, text, name in rows]
    other = of(made, tmp_path / "turned", **turned)
    runs.evaluate(other.run)
    found = by_name(shortcuts.formulas(other))
    assert set(found) == {
        "retrieval by the formula in the text alone, molecule -> text, recall@10",
        "retrieval by the formula in the text alone, text -> molecule, recall@10",
    }
    assert verdicts(found.values()) == ["pass", "pass"]


def test_the_test_part_alone_is_what_shortcuts_rank(work):
    pooled = with_settings(work, evaluate={"pool_b": ["unpaired"]})
    n_b = pooled.part("test").links.n_b
    assert pooled.evaluation.all.a_to_b.n_candidates == n_b + 2
    assert pooled.alone.a_to_b.n_candidates == n_b
    assert pooled.alone.value("b_to_a.mrr") == pytest.approx(work.alone.value("b_to_a.mrr"))
    assert [f.value for f in shortcuts.length(pooled)] == [f.value for f in shortcuts.length(work)]


def test_negatives_that_are_kept_apart_are_not_counted(work):
    assert set(verdicts(negatives.shared_labels(work) + negatives.guided(work))) == {"pass"}
    apart = with_settings(work, train={"negatives": {"sampling": "distinct"}})
    for look in (negatives.shared_labels, negatives.guided):
        with pytest.raises(NotApplicable, match="keeps such links out of one batch"):
            look(apart)


def test_a_closed_form_that_was_not_fitted_is_not_judged(work, monkeypatch):
    assert len(space.closed_form(work)) == 4
    record = work.run.record("evaluate")
    monkeypatch.setattr(RunFolder, "record", lambda self, stage: {**record, "against": {}, "closed_form": None})
    with pytest.raises(NotApplicable, match=r"evaluate\.closed_form = 'none'"):
        space.closed_form(work)


def test_a_training_that_never_left_chance_fails(work, monkeypatch):
    assert "fail" not in verdicts(training.history(work))
    flat = [
        {"epoch": n, "loss": 3.4, "chance_loss": 3.4, "logit_scale": 100.0, "valid_recall@10": 0.1} for n in range(6)
    ]
    monkeypatch.setattr(training, "_history", lambda work: flat)
    found: list[Finding] = training.history(work) + training.convergence(work)
    assert by_name(found)["loss against chance"].verdict == "fail"
    assert by_name(found)["logit scale at its bound"].verdict == "warn"
    assert by_name(found)["recall climbs"].verdict == "fail"


def test_texts_that_repeat_each_other_are_caught_by_their_words(work, tmp_path):
    with pytest.raises(NotApplicable, match="needs texts on both sides"):
        shortcuts.words(work)
    rows = [[id_, f"Question {name} about {text}", text, name] for id_, _, text, name in records() if id_[0] == "X"]
    both = {"pairs": {"a": "question", "kind_a": "text", "kind_b": "text", "names": []}, "split": {"test": []},
            "encode": {"a": "text:ngram", "b": "text:ngram", "settings_a": {}}}  # fmt: skip
    run = of(rows, tmp_path / "texts", ("id", "question", "text", "name"), **both)
    runs.evaluate(run.run)
    found = shortcuts.words(run)
    assert verdicts(found) == ["fail", "fail"]
    # The two sides are looked at each, where both are texts.
    assert len(data.weak_texts(run)) == len(data.broad_texts(run)) == 2


def test_of_many_rows_some_are_looked_at_and_always_the_same(monkeypatch, work):
    monkeypatch.setattr(leakage, "MOST_ROWS", 10)
    drawn = leakage._drawn(30, 0)
    assert len(drawn) == 10 and drawn.tolist() == sorted(set(leakage._drawn(30, 0).tolist()))
    assert leakage._drawn(7, 0).tolist() == list(range(7))
    assert "10 test rows of molecule" in leakage.nearly_same_rows(work)[0].why


def test_masked_texts_alone_are_encoded_anew_and_rows_that_were_brought_are_not(work):
    test = work.part("test")
    texts = items.values_of(work, "b", test.items_b)
    changed = np.zeros(len(texts), dtype=bool)
    changed[[1, 4]] = True
    masked = [texts[0] if mark else text for text, mark in zip(texts, changed, strict=True)]
    rows = shortcuts._masked_rows(work, masked, changed).toarray()
    expected = test.rows_b.toarray()
    expected[[1, 4]] = expected[0]
    assert np.array_equal(rows, expected)
    brought = with_settings(work, encode={"b": "rows:rows.npz", "settings_b": {}})
    brought.__dict__["prepared"], brought.__dict__["rows"] = work.prepared, work.rows
    with pytest.raises(NotApplicable, match="rows that were brought do not change with the text"):
        shortcuts.masked_names(brought)


@pytest.mark.slow
def test_the_peak_lists_of_several_molecules_in_massbank_are_counted(shared_data, tmp_path):
    pairs = {"path": str(shared_data / "massbank" / "spectra.tsv.gz"), "a": "peaks", "b": "smiles", "id": "accession",
             "entity": "ik14", "kind_b": "molecule", "name_a": "spectrum"}  # fmt: skip
    settings = config_of({"pairs": pairs, "encode": {"a": "text:ngram", "b": "molecule:fingerprints"}})
    found = leakage.several_entities(Work(RunFolder.of(settings, tmp_path / "run"), quiet))[0]
    assert (found.value, found.verdict) == (95, "warn")
