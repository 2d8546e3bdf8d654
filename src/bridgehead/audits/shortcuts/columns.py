"""Columns of rows that are made to tell nothing, so that what a model took from them can be measured (`drop`).

This module is not about columns of the user's table (`shortcuts.column_shortcut`).
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.arguments import checked_seed
from bridgehead.vectors import IntArray, check_rows, to_numpy


def change_columns(
    rows: Any, columns: Sequence[int] | IntArray, how: Literal["blank", "shuffle"] = "blank", seed: int = 0
) -> Any:
    """Return rows (n, d), dense or CSR, of which some columns tell nothing any more: to measure what hung on them.

    "blank" gives every row the mean of the column, "shuffle" the values of another row, drawn with `seed` (the same row
    for all of `columns`, so that they stay consistent among themselves). Compare the model's report before and after
    with `drop_findings`. Raises `ArgumentError` for another way or columns that there are not, and as `check_rows`.
    """
    checked = check_rows(rows)
    try:
        chosen = np.unique(to_numpy(columns))
    except TypeError as error:
        raise ArgumentError(f"columns = {columns!r:.80}; expected numbers of columns") from error
    if not isinstance(how, str) or how not in ("blank", "shuffle"):
        raise ArgumentError(f"how = {how!r}; expected 'blank' or 'shuffle'")
    if not chosen.size or chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= checked.shape[1]:
        raise ArgumentError(f"columns = {columns!r}; expected numbers of columns, 0 to {checked.shape[1] - 1}")
    is_sparse = hasattr(checked, "indptr")
    values = checked[:, chosen].toarray() if is_sparse else checked[:, chosen]
    if how == "blank":
        changed = np.broadcast_to(values.mean(axis=0, dtype=np.float64), values.shape)
    else:
        changed = values[np.random.default_rng(checked_seed(seed)).permutation(len(values))]
    if not is_sparse:
        result = checked.copy()
        result[:, chosen] = changed
        return result
    kept = np.ones(checked.shape[1], dtype=checked.dtype)
    kept[chosen] = 0
    row, column = np.nonzero(changed)
    added = sparse.coo_array((changed[row, column].astype(checked.dtype), (row, chosen[column])), shape=checked.shape)
    result = sparse.csr_array(checked @ sparse.diags_array(kept) + added)
    result.eliminate_zeros()
    return result
