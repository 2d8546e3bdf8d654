"""Canaries: equal for fitted encoders, nearly equal for the others."""

import numpy as np
import pytest
from scipy import sparse

from bridgehead.errors import MismatchError
from bridgehead.index.canaries import check_canaries
from bridgehead.index.side import Canaries

ROWS = np.array([[3, 4], [1, 0], [0, 0]], dtype=np.float32)


def kept(exact):
    return Canaries(("x", "y", "z"), sparse.csr_array(ROWS), exact)


@pytest.mark.parametrize("exact", [True, False])
def test_the_same_rows_pass_dense_or_sparse(exact):
    check_canaries(kept(exact), ROWS, "encoder")
    check_canaries(kept(exact), sparse.csr_array(ROWS), "encoder")


def test_a_last_bit_is_too_much_for_a_fitted_encoder_and_fine_for_a_pretrained_one():
    changed = ROWS.copy()
    changed[1, 0] = np.nextafter(np.float32(1), np.float32(2))
    check_canaries(kept(False), changed, "encoder")
    with pytest.raises(MismatchError, match=r"text:ngram encodes 1 of 3 canary items differently .*'y'"):
        check_canaries(kept(True), changed, "text:ngram")


def test_a_cosine_below_the_limit_is_refused():
    turned = ROWS.copy()
    turned[1] = [np.cos(0.02), np.sin(0.02)]  # cosine 0.9998
    with pytest.raises(MismatchError, match="1 of 3"):
        check_canaries(kept(False), turned, "encoder")
    turned[1] = [np.cos(0.01), np.sin(0.01)]  # cosine 0.99995
    check_canaries(kept(False), turned, "encoder")


def test_a_zero_row_that_is_no_longer_zero_or_another_width_is_refused():
    changed = ROWS.copy()
    changed[2] = 1
    with pytest.raises(MismatchError, match="'z'"):
        check_canaries(kept(False), changed, "encoder")
    with pytest.raises(MismatchError, match=r"shape \(3, 1\)"):
        check_canaries(kept(True), ROWS[:, :1], "encoder")
