"""Rows out of order: planted shifts of every kind are named with their place, and clean files pass."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from bridgehead.audits import Finding, order_findings, record_items
from bridgehead.audits.data.stretches import order_stretches
from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.pairs import read_pairs

N = 600


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Two noisy linear views of the same latent rows."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(N, 8))
    return (
        latent @ rng.normal(size=(8, 20)) + 0.7 * rng.normal(size=(N, 20)),
        latent @ rng.normal(size=(8, 30)) + 0.7 * rng.normal(size=(N, 30)),
    )


def declared(b: np.ndarray) -> np.ndarray:
    return np.stack([np.arange(len(b)), b], axis=1)


def found(rows, b, **options) -> list[tuple[int, int, int | None]]:
    return [(s.first, s.last, s.shift) for s in order_stretches(*rows, declared(b), **options)]


def named(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_a_clean_file_passes_with_what_was_found(rows):
    findings = named(order_findings(*rows, declared(np.arange(N))))
    assert [finding.verdict for finding in findings.values()] == ["pass", "pass"]
    assert findings["records out of order"].value == 0
    assert findings["records out of order"].group == "data"
    assert "among the best tenth" in findings["records out of order"].why


@pytest.mark.parametrize("shift", [-2, -1, 1, 2])
def test_a_whole_column_moved_by_some_records_is_named(rows, shift):
    # The item of b that belongs to record r stands at record r + shift.
    assert found(rows, np.roll(np.arange(N), shift)) == [(0, N - 1, shift)]


def test_a_moved_column_fails_and_says_where_the_partners_are(rows):
    ids = [f"r{number}" for number in range(N)]
    findings = named(
        order_findings(*rows, declared(np.roll(np.arange(N), 1)), ids=ids, names=("molecule", "description"))
    )
    shifted = findings["records out of order"]
    assert (shifted.verdict, shifted.value) == ("fail", 1.0)
    assert "from record r0 to r599 the description that fits stands 1 record below its molecule" in shifted.why
    assert shifted.listed is not None
    assert shifted.listed.rows[0][:4] == ("r0", "r599", N, 1)
    assert findings["records in an order without signal"].verdict == "pass"


def test_a_cell_lost_in_the_middle_is_placed_to_a_few_records(rows):
    b = np.arange(N)
    b[350:-1] = b[351:].copy()
    (first, end, whole), (start, last, shift) = found(rows, b)
    assert (first, whole, last, shift) == (0, 0, N - 1, -1)
    assert end + 1 == start
    assert abs(start - 350) <= 3


def test_two_moved_blocks_of_one_file_are_both_listed(rows):
    b = np.arange(N)
    b[100:200], b[400:500] = np.roll(b[100:200], 1), np.roll(b[400:500], -2)
    finding = named(order_findings(*rows, declared(b)))["records out of order"]
    assert finding.verdict == "fail"
    assert finding.value == pytest.approx(200 / N, abs=0.02)
    assert finding.listed is not None
    assert sorted(row[3] for row in finding.listed.rows) == [-2, 1]


def test_a_scrambled_stretch_warns_and_the_rest_is_still_judged(rows):
    b = np.arange(N)
    b[200:400] = np.random.default_rng(1).permutation(b[200:400])
    findings = named(order_findings(*rows, declared(b)))
    assert findings["records out of order"].verdict == "pass"
    silent = findings["records in an order without signal"]
    assert silent.verdict == "warn"
    assert silent.value == pytest.approx(1 / 3, abs=0.02)


def test_a_column_in_another_order_altogether_gives_no_pass(rows):
    findings = order_findings(*rows, declared(np.random.default_rng(1).permutation(N)))
    assert [(finding.name, finding.verdict, finding.value) for finding in findings] == [
        ("records in an order without signal", "warn", 1.0)
    ]
    assert "another order altogether" in findings[0].why


def test_sorted_files_with_repeats_are_clean_and_still_show_a_shift():
    # Ten spectra in a row of each molecule: a shift by one leaves nine of ten pairs right.
    rng = np.random.default_rng(0)
    molecules, own = rng.normal(size=(80, 8)), np.repeat(np.arange(80), 10)
    spectra = molecules[own] @ rng.normal(size=(8, 20)) + 0.5 * rng.normal(size=(800, 20))
    assert found((spectra, molecules), own) == [(0, 799, 0)]
    assert found((spectra, molecules), np.roll(own, 1)) == [(0, 799, 1)]


@pytest.mark.parametrize("seed", range(5))
def test_files_whose_neighbours_resemble_each_other_raise_no_alarm(seed):
    rng = np.random.default_rng(seed)
    steps, latent = rng.normal(size=(N, 6)), np.zeros((N, 6))
    for record in range(1, N):
        latent[record] = 0.95 * latent[record - 1] + 0.3 * steps[record]
    views = [latent @ rng.normal(size=(6, 15)) + 0.5 * rng.normal(size=(N, 15)) for _ in "ab"]
    assert found(views, np.arange(N)) == [(0, N - 1, 0)]


def test_records_without_a_side_keep_their_place(rows):
    pairs = declared(np.roll(np.arange(N), 1))
    pairs[::7, 1] = -1
    pairs[5::11, 0] = -1
    assert [(s.first, s.last, s.shift) for s in order_stretches(*rows, pairs)] == [(0, N - 1, 1)]


def test_sparse_rows_and_extreme_scales_give_the_same_answer(rows):
    a, b = rows
    wide = sparse.csr_array(np.maximum(np.concatenate([a, -a], axis=1), 0))
    assert found((wide, b * 1e200), np.roll(np.arange(N), 1)) == [(0, N - 1, 1)]
    assert found((wide, b), np.roll(np.arange(N), 1)) == [(0, N - 1, 1)]


def test_many_records_are_walked_in_steps_and_the_change_is_still_placed():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(9000, 6))
    views = [latent @ rng.normal(size=(6, 8)) + 0.3 * rng.normal(size=(9000, 8)) for _ in "ab"]
    b = np.arange(9000)
    b[4321:-1] = b[4322:].copy()
    (_, end, first), (start, _, second) = found(views, b)
    assert (first, second) == (0, -1)
    assert abs(start - 4321) <= 3
    assert end == start - 1


def test_rows_that_say_nothing_warn():
    rng = np.random.default_rng(0)
    constant = np.ones((200, 3))
    assert [f.verdict for f in order_findings(constant, constant, declared(np.arange(200)))] == ["warn"]
    noise = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    assert [f.verdict for f in order_findings(*noise, declared(np.arange(200)))] == ["warn"]


def test_the_same_file_gives_the_same_answer_and_larger_shifts_can_be_asked_for(rows):
    moved = np.roll(np.arange(N), -5)
    assert found(rows, moved, most_shift=6, seed=4) == [(0, N - 1, -5)]
    assert order_findings(*rows, declared(moved)) == order_findings(*rows, declared(moved))
    assert [f.verdict for f in order_findings(*rows, declared(moved))] == ["warn"]


def test_sparse_rows_without_an_entry_say_nothing_and_break_nothing():
    empty = sparse.csr_array((200, 500))
    assert [f.verdict for f in order_findings(empty, empty, declared(np.arange(200)))] == ["warn"]


def test_what_cannot_be_judged_is_refused(rows):
    pairs = declared(np.arange(N))
    with pytest.raises(ArgumentError, match="63 records have both sides; expected at least 64"):
        order_findings(*rows, pairs[:63])
    with pytest.raises(ArgumentError, match="items of a, and cannot be cut into two halves"):
        order_findings(*rows, np.stack([np.zeros(N, dtype=int), np.arange(N)], axis=1))
    with pytest.raises(ArgumentError, match="most_shift = 17; expected a whole number from 1 to 16"):
        order_findings(*rows, pairs, most_shift=17)
    with pytest.raises(ArgumentError, match="most_shift = True"):
        order_findings(*rows, pairs, most_shift=True)
    with pytest.raises(ShapeError, match="record 3 has row 600 of b"):
        order_findings(*rows, np.where((np.arange(N) == 3)[:, None], [3, 600], pairs))
    with pytest.raises(ShapeError, match=r"float64 of shape .* expected whole numbers \(n_records, 2\)"):
        order_findings(*rows, pairs.astype(float))
    with pytest.raises(ShapeError, match="ids has 2 entries; expected 600"):
        order_findings(*rows, pairs, ids=["x", "y"])
    with pytest.raises(NonFiniteRowsError, match="rows of b"):
        order_findings(rows[0], rows[1] * np.nan, pairs)


def test_the_items_of_records_come_in_the_order_of_the_file(tmp_path: Path):
    table = tmp_path / "pairs.csv"
    table.write_text("mol,text\nC,gas\nCC,gas\n,nothing\nC,methane\n", encoding="utf-8")
    items = record_items(read_pairs(str(table), a="mol", b="text"))
    # Items are numbered by first appearance: C, CC and gas, nothing, methane.
    assert items[[0, 1, 3]].tolist() == [[0, 0], [1, 0], [0, 2]]
    assert items[2, 0] == -1
    assert len(items) == 4


@pytest.mark.slow
def test_real_molecules_and_texts_shifted_by_a_row_are_found_out(shared_data: Path):
    from bridgehead.encode import make_encoder

    with gzip.open(shared_data / "molecule_text" / "pairs.tsv.gz", "rt", encoding="utf-8") as file:
        records = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[:1000]
    molecules, texts = [r["smiles"] for r in records], [r["description"] for r in records]
    encoders = make_encoder("molecule:fingerprints", kinds=("morgan",)), make_encoder("text:ngram")
    rows = [encoder.fit(items).encode(items).rows for encoder, items in zip(encoders, (molecules, texts), strict=True)]
    n = np.arange(len(records))
    assert found(rows, n) == [(0, 999, 0)]
    assert found(rows, np.roll(n, -1)) == [(0, 999, -1)]
    late = n.copy()
    late[600:] = np.roll(late[600:], 1)
    (_, end, first), (start, last, second) = found(rows, late)
    assert (first, second, last, end) == (0, 1, 999, start - 1)
    assert abs(start - 600) <= 5
