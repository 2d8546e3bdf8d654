import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.vectors import block_rows, check_rows, float32_rows, non_finite_rows, score_blocks, to_numpy, unit_rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_tensors_with_gradients_become_arrays(dtype):
    array = to_numpy(torch.ones(2, 3, dtype=dtype, requires_grad=True))
    assert isinstance(array, np.ndarray)
    assert array.dtype == np.float32
    assert array.shape == (2, 3)


def test_any_sparse_form_becomes_csr():
    assert to_numpy(sparse.coo_array(np.eye(2))).format == "csr"


def test_entries_of_a_sparse_matrix_that_name_a_column_twice_are_added_and_the_input_is_left_as_it_was():
    twice = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 2, 1]), np.array([0, 3])), shape=(1, 4))
    rows = to_numpy(twice)
    assert rows.indices.tolist() == [1, 2] and rows.data.tolist() == [3.0, 3.0]
    assert twice.indices.tolist() == [2, 2, 1]


def test_numbers_beyond_float32_are_refused_by_row_instead_of_becoming_infinite():
    rows = np.array([[1.0, 2.0], [1e300, 0.0], [-1e39, 1.0]])
    with pytest.raises(NonFiniteRowsError, match=r"queries: 2 of 3 rows .* float32, 3.4e38 \(rows 1, 2\)"):
        float32_rows(rows, "queries")
    with pytest.raises(NonFiniteRowsError, match=r"\(rows 1, 2\)"):
        float32_rows(sparse.csr_array(rows))
    assert float32_rows(rows[:1]).dtype == np.float32


def test_integers_become_float32_and_float64_stays():
    assert check_rows([[1, 2]]).dtype == np.float32
    assert check_rows(np.ones((1, 2), np.float16)).dtype == np.float32
    assert check_rows(np.ones((1, 2))).dtype == np.float64


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_no_rows_and_no_columns_are_fine(shape):
    assert check_rows(np.zeros(shape)).shape == shape
    assert unit_rows(np.zeros(shape)).shape == shape


@pytest.mark.parametrize("shape", [(3,), (), (2, 2, 2)])
def test_rows_have_two_dimensions(shape):
    with pytest.raises(ShapeError, match=r"z has shape .*; expected two dimensions \(n, d\)"):
        check_rows(np.zeros(shape), "z")


def test_rows_of_unequal_length_are_refused():
    with pytest.raises(ShapeError, match="same number of columns"):
        check_rows([[1.0], [1.0, 2.0]])


@pytest.mark.parametrize("rows", [[["a"]], [[None]], np.ones((1, 1), complex)])
def test_rows_are_numbers(rows):
    with pytest.raises(ArgumentError, match="expected numbers"):
        check_rows(rows)


def test_rows_with_nan_or_infinity_are_named_by_number_or_id():
    rows = np.zeros((5, 3), np.float32)
    rows[1, 0], rows[3, 1], rows[4, :2] = np.nan, np.inf, (np.inf, -np.inf)
    with pytest.raises(NonFiniteRowsError, match=r"3 of 5 rows hold NaN or infinity \(rows 1, 3, 4\)"):
        check_rows(rows)
    with pytest.raises(NonFiniteRowsError, match=r"\(rows q, s, t\)"):
        check_rows(rows, ids=list("pqrst"))
    with pytest.raises(NonFiniteRowsError, match="and 20 more"):
        check_rows(np.full((30, 1), np.nan))


def test_finite_rows_whose_sum_overflows_are_not_blamed():
    assert non_finite_rows(np.full((2, 4), 3e38, np.float32)).size == 0


def test_non_finite_entries_of_a_sparse_matrix_are_found_after_empty_rows():
    dense = np.zeros((6, 4), np.float32)
    dense[2, 1], dense[2, 3], dense[5, 0], dense[4, 2] = np.nan, np.inf, np.nan, 1
    assert non_finite_rows(sparse.csr_array(dense)).tolist() == [2, 5]


@given(
    arrays.arrays(
        np.float64, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.floats(-1e300, 1e300, width=64)
    )
)
def test_unit_rows_have_length_one_or_zero(rows):
    units = unit_rows(rows)
    norms = np.linalg.norm(units, axis=1)
    np.testing.assert_allclose(norms, (np.abs(rows).max(axis=1) > 0).astype(float), atol=1e-12)


def test_extreme_magnitudes_neither_overflow_nor_vanish():
    rows = np.array([[3e38, 3e38], [3e-38, 4e-38], [0, 0]], np.float32)
    expected = [[0.5**0.5, 0.5**0.5], [0.6, 0.8], [0, 0]]
    np.testing.assert_allclose(unit_rows(rows), expected, rtol=1e-6)


def test_wide_rows_are_scaled_before_they_are_narrowed():
    units = unit_rows(np.array([[3e300, 4e300]]), dtype=np.float32)
    assert units.dtype == np.float32
    np.testing.assert_allclose(units, [[0.6, 0.8]], rtol=1e-6)


def test_unit_rows_leave_their_input_as_it_was():
    rows = np.array([[3.0, 4.0]])
    unit_rows(rows)
    assert rows.tolist() == [[3.0, 4.0]]


def test_unit_rows_of_a_sparse_matrix_are_refused():
    with pytest.raises(ArgumentError, match="expected a dense array"):
        unit_rows(sparse.csr_array(np.eye(2)))


@pytest.mark.parametrize("block", [None, 1, 2, 5, 99])
def test_blocks_cover_all_queries_in_order(block):
    rng = np.random.default_rng(0)
    queries, candidates = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    parts = list(score_blocks(queries, candidates, block))
    np.testing.assert_allclose(np.concatenate([scores for _, scores in parts]), queries @ candidates.T, atol=1e-12)
    assert [i for rows, _ in parts for i in range(rows.start, rows.stop)] == [0, 1, 2, 3, 4]


def test_blocks_of_nothing():
    assert list(score_blocks(np.zeros((0, 3)), np.zeros((4, 3)))) == []
    assert next(score_blocks(np.zeros((2, 3)), np.zeros((0, 3))))[1].shape == (2, 0)


def test_blocks_refuse_two_spaces_and_a_size_of_zero():
    with pytest.raises(ShapeError, match="queries have 3 columns and candidates 4"):
        list(score_blocks(np.zeros((1, 3)), np.zeros((1, 4))))
    with pytest.raises(ArgumentError, match="block = 0"):
        list(score_blocks(np.zeros((1, 3)), np.zeros((1, 3)), 0))


def test_a_block_keeps_to_its_budget():
    assert block_rows(1000, bytes_per_score=4, budget_bytes=40_000) == 10
    assert block_rows(10**12) == 1
    assert block_rows(0) >= 1


def test_tensors_that_are_no_plain_array_are_refused_by_name():
    for tensor in (torch.eye(3).to_sparse(), torch.eye(3, device="meta"), torch.eye(3).to(torch.float8_e4m3fn)):
        with pytest.raises(ArgumentError, match="expected a dense tensor of floats"):
            to_numpy(tensor)


def test_a_masked_array_is_refused_since_its_mask_would_be_lost():
    with pytest.raises(ArgumentError, match="masked array"):
        to_numpy(np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]]))
