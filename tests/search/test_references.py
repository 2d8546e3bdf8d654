"""Quantiles of random pairs and training pairs that an index carries."""

import json

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, FormatVersionError, InputFileNotFoundError, RunStateError
from bridgehead.search import References, reference_attachment
from bridgehead.vectors import unit_rows


def rows_of(n, seed, d=8):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


@pytest.fixture
def stored(tmp_path):
    reference_attachment(rows_of(40, 0), rows_of(30, 1), [[3, 4], [0, 29], [3, 4]])(tmp_path / "r")
    return tmp_path / "r"


def test_a_percentile_is_the_share_of_pairs_that_are_less_alike(stored):
    references = References.load(stored)
    a, b = unit_rows(rows_of(40, 0)), unit_rows(rows_of(30, 1))
    own = (a @ a.T)[np.triu_indices(40, 1)]
    for side, other, cosines in (("a", "b", (a @ b.T).ravel()), ("b", "a", (a @ b.T).ravel()), ("a", "a", own)):
        asked = np.linspace(-1, 1, 81)
        expected = [100 * np.mean(cosines < cosine) for cosine in asked]
        # Exact at the quantiles, a straight line between them.
        assert references.percentile(side, other, asked) == pytest.approx(expected, abs=0.3)
    assert references.percentile("a", "b", [-1.0, 1.0]).tolist() == [0.0, 100.0]
    shares = references.percentile("a", "b", np.linspace(-1, 1, 500))
    assert (np.diff(shares) >= 0).all()


def test_the_upper_end_is_finer_than_a_thousandth(tmp_path):
    a, b = rows_of(1500, 2), rows_of(1500, 3)
    reference_attachment(a, b, [])(tmp_path)
    cosines = np.sort((unit_rows(a) @ unit_rows(b).T).ravel())
    found = References.load(tmp_path).percentile("a", "b", cosines[[-2000, -200, -30]])
    assert found == pytest.approx([100 * (1 - n / cosines.size) for n in (2000, 200, 30)], abs=2e-4)


def test_many_equal_cosines_count_as_not_below(tmp_path):
    rows = np.tile(np.eye(4, dtype=np.float32)[:2], (10, 1))
    reference_attachment(rows, rows, [])(tmp_path)
    shares = References.load(tmp_path).percentile("a", "b", [0.0, 0.5, 1.0])
    assert shares == pytest.approx([0, 50, 50], abs=0.3)


def test_pairs_are_stored_as_numbers_of_a_fresh_build_each_once(stored):
    assert References.load(stored).training_pairs.tolist() == [[0, 69], [3, 44]]


def test_items_without_a_direction_and_sides_without_pairs_have_no_percentile(tmp_path):
    reference_attachment(np.zeros((5, 3)), rows_of(1, 0, 3), np.zeros((0, 2)))(tmp_path)
    references = References.load(tmp_path)
    assert references.percentile("a", "b", [0.5]) is None and references.percentile("b", "b", [0.5]) is None
    assert len(references.training_pairs) == 0


def test_rows_that_come_in_blocks_give_the_same(tmp_path):
    class Blocks:
        shape = (3000, 8)

        def blocks(self, size):
            yield from np.split(rows_of(3000, 5), [10, 2500])

    for name, rows in (("whole", rows_of(3000, 5)), ("blocks", Blocks())):
        reference_attachment(rows, rows_of(10, 6), [[2999, 9]])(tmp_path / name)
    whole, blocks = (References.load(tmp_path / name) for name in ("whole", "blocks"))
    assert np.array_equal(whole.quantiles, blocks.quantiles, equal_nan=True)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 30]], "outside the rows: 40 of a and 30 of b"),
        ([[-1, 0]], "outside the rows"),
        ([0, 1], r"shape \(2,\)"),
        ([[0.5, 1]], "expected"),
    ],
)
def test_pairs_that_are_none_are_refused(pairs, message):
    with pytest.raises(ArgumentError, match=message):
        reference_attachment(rows_of(40, 0), rows_of(30, 1), pairs)


def test_damage_and_other_versions_are_told(stored, tmp_path):
    with pytest.raises(InputFileNotFoundError):
        References.load(tmp_path)
    np.save(stored / "quantiles.npy", np.zeros((2, 5)))
    with pytest.raises(RunStateError, match="other arrays"):
        References.load(stored)
    (stored / "quantiles.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(RunStateError, match="cannot be read"):
        References.load(stored)
    content = json.loads((stored / "references.json").read_text())
    (stored / "references.json").write_text(json.dumps(content | {"version": 99}))
    with pytest.raises(FormatVersionError):
        References.load(stored)


@pytest.mark.parametrize("name", ["quantiles.npy", "training_pairs.npy"])
def test_whatever_byte_of_a_header_is_another_it_is_told_or_still_the_same(stored, name):
    whole, before = (stored / name).read_bytes(), References.load(stored)
    kinds = [(array.shape, array.dtype) for array in (before.quantiles, before.training_pairs)]
    for place in range(128):
        damaged = bytearray(whole)
        damaged[place] ^= 0x15
        (stored / name).write_bytes(damaged)
        try:
            read = References.load(stored)
        except RunStateError:
            continue
        assert [(array.shape, array.dtype) for array in (read.quantiles, read.training_pairs)] == kinds
