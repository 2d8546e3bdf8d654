"""Rows ready for cosines: unit rows, distinct rows, the bounds of their products."""

import numpy as np
import pytest

from bridgehead.errors import NonFiniteRowsError, ShapeError
from bridgehead.evaluate.ranks import cosine_rows
from bridgehead.evaluate.ranks.cosine_rows import CosineRows, pair_cosines, product64_error, slices


def test_rows_are_read_as_unit_rows_and_a_zero_row_stays_zero() -> None:
    rows = CosineRows(np.array([[3, 4], [0, 0], [-5, 0]], dtype=np.float32), "z")
    assert len(rows) == 3 and rows.n_columns == 2 and rows.length.tolist() == [5, 1, 5]
    assert rows.unit64(slice(0, 2)).tolist() == [[0.6, 0.8], [0, 0]]
    assert rows.unit32.dtype == np.float32 and rows.unit32[2].tolist() == [-1, 0]
    assert rows.unit32_at(np.array([2, 0])).tolist() == rows.unit32[[2, 0]].tolist()
    read = rows.reader(2)
    assert read(np.array([2])).tolist() == [[-5, 0]] and read(np.array([0, 1])).tolist() == [[3, 4], [0, 0]]


def test_what_is_given_is_not_changed() -> None:
    given = np.array([[1e200, 2.0], [3.0, 4.0]])
    rows = CosineRows(given, "z")
    pair_cosines(rows, rows, np.array([0, 1]), np.array([1, 1]))
    rows.unit64(slice(0, 2))[:] = 7
    assert given.tolist() == [[1e200, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_lengths_neither_overflow_nor_vanish(scale: float) -> None:
    z = np.array([[3.0, 4.0], [4.0, 3.0]]) * scale
    rows, plain = CosineRows(z, "z"), CosineRows(z / scale, "z")
    np.testing.assert_allclose(
        rows.unit64(slice(0, 2)), plain.unit64(slice(0, 2)), rtol=1e-3 if scale < 1e-310 else 1e-15
    )
    first, second = np.array([0]), np.array([1])
    # 24 / 25; numbers of 1e-320 have only three digits.
    assert pair_cosines(rows, plain, first, second)[0] == pytest.approx(0.96, abs=1e-3 if scale < 1e-310 else 1e-15)


def test_distinct_rows_are_those_of_equal_direction() -> None:
    z = np.array([[1, 2], [2, 1], [2, 4], [0, 0], [1, 2], [-1, -2], [-0.0, 0.0], [4, 2]])
    first, code = CosineRows(z, "z").distinct()
    assert first[code].tolist() == [0, 1, 0, 3, 0, 5, 3, 1] and len(first) == 4


def test_rows_that_share_a_mark_by_chance_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosine_rows, "_marks", lambda units: np.zeros(len(units), dtype=np.uint64))
    first, code = CosineRows(np.array([[1.0, 0], [0, 1], [2, 0], [1, 1]]), "z").distinct()
    assert first[code].tolist() == [0, 1, 0, 3] and sorted(first.tolist()) == [0, 1, 3]


def test_round_rows_do_not_share_marks() -> None:
    # Numbers such as 0, 1 and 0.5 differ in few of their bits.
    marks = cosine_rows._marks(np.concatenate([np.eye(500), 0.5 * np.eye(500), -np.eye(500)]))
    assert len(np.unique(marks)) == 1500


@pytest.mark.parametrize("d", [1, 3, 64, 1000])
def test_float64_products_stay_within_their_bound(d: int) -> None:
    rng = np.random.default_rng(d)
    left, right = CosineRows(rng.normal(size=(100, d)), "a"), CosineRows(rng.lognormal(size=(100, d)), "b")
    i, j = np.repeat(np.arange(100), 100), np.tile(np.arange(100), 100)
    product = left.unit64(slice(0, 100)) @ right.unit64(slice(0, 100)).T
    error = np.abs(product - pair_cosines(left, right, i, j).reshape(100, 100)).max()
    assert error < product64_error(d)


def test_no_rows_no_columns_and_no_pairs_are_fine() -> None:
    none = np.zeros(0, dtype=np.int64)
    empty = CosineRows(np.zeros((0, 3)), "z")
    assert [part.tolist() for part in empty.distinct()] == [[], []] and empty.unit32.shape == (0, 3)
    assert pair_cosines(empty, empty, none, none).tolist() == []
    flat = CosineRows(np.zeros((2, 0)), "z")
    assert flat.distinct()[1].tolist() == [0, 0] and pair_cosines(flat, flat, none + 0, none).tolist() == []


def test_slices_cover_a_range_once() -> None:
    assert slices(7, 3) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert slices(7, 3, 5) == [slice(5, 7)] and slices(0, 3) == []


def test_rows_that_cannot_be_compared_are_refused() -> None:
    from scipy import sparse

    with pytest.raises(NonFiniteRowsError, match=r"z: 1 of 2 rows hold NaN or infinity \(rows 1\)"):
        CosineRows([[1.0, 2.0], [np.nan, 1.0]], "z")
    with pytest.raises(ShapeError, match="z is a sparse matrix"):
        CosineRows(sparse.eye_array(3), "z")
    with pytest.raises(ShapeError, match=r"shape \(3,\)"):
        CosineRows(np.ones(3), "z")
