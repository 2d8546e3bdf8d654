"""Rows out of order: one column of the table shifted against the other, wholly or from some record on.

A column sorted by itself, a deleted cell, a header read as a record: every pair after it is wrong, nothing breaks, and
the training fits what it is given. This module says what `stretches` found. It is about the order of records, not about
single wrong pairs (`mispairs`).
"""

from typing import Any

import numpy as np

from bridgehead.audits.data.stretches import Stretch, order_stretches
from bridgehead.audits.finding import Finding, Listing
from bridgehead.audits.listed import worst
from bridgehead.errors import ShapeError
from bridgehead.pairs import PairTable
from bridgehead.vectors import IntArray, to_numpy

_SHIFTED, _SILENT = "records out of order", "records in an order without signal"


def order_findings(
    rows_a: Any,
    rows_b: Any,
    pairs: Any,
    *,
    most_shift: int = 2,
    ids: Any = None,
    names: tuple[str, str] = ("a", "b"),
    seed: int = 0,
) -> list[Finding]:
    """Return whether the partners of some stretch of records are those of the records above or below it.

    `rows_a` (n_a, d) and `rows_b` (n_b, e) are raw rows, dense or CSR. `pairs` (n_records, 2) are the row of a and of b
    of each record **in the order of the file**, -1 where a record has none (the place still counts); the first two
    where a record holds several. `Links` are sorted and cannot be used here. `most_shift`: shifts of up to so many
    records either way are tried. `ids` (n_records,) name the records in what is listed (default: their numbers).

    Two findings of the group "data". *Shifted records*: the share of records in stretches where a shift fits clearly
    better than what is declared; 0 is expected, and any such stretch fails, with its first and last record and the
    shift. *Records without signal*: the share in stretches whose declared partners are no better than random ones, at
    any shift tried; more than 0 warns (a column in another order altogether looks so, and so do rows that a linear map
    cannot read). Without any signal the first finding is left out, for nothing can be said about shifts.

    `order_stretches` says how. Raises as it does. Costs about 4 s for 10,000 records of sparse rows on one core.
    """
    found = order_stretches(rows_a, rows_b, pairs, most_shift=most_shift, seed=seed)
    n = len(to_numpy(pairs))
    labels = [str(number) for number in range(n)] if ids is None else [str(label) for label in ids]
    if len(labels) != n:
        raise ShapeError(f"ids has {len(labels)} entries; expected {n}, one for each record")
    silent = [stretch for stretch in found if stretch.shift is None]
    without = _without_signal(silent, found, labels, n)
    return [without] if len(silent) == len(found) else [_shifted(found, labels, names, n), without]


def record_items(table: PairTable) -> IntArray:
    """Return the item of a and of b of each record of the file, (n_records, 2), -1 for none.

    What `order_findings` takes as `pairs` where row i is item i. Of a record with several values on a side the first
    item counts; records that were skipped keep their place.
    """
    found = np.full((table.n_records, 2), -1, dtype=np.int64)
    for column, side in enumerate((table.a, table.b)):
        item, record = side.carriers[::-1].T
        order = np.argsort(item, kind="stable")[::-1]
        found[record[order], column] = item[order]
    return found


def _shifted(found: list[Stretch], labels: list[str], names: tuple[str, str], n: int) -> Finding:
    wrong = [stretch for stretch in found if stretch.shift]
    share = sum(stretch.n_records for stretch in wrong) / n
    expected = "0: no stretch of records fits the partners of records above or below it better than its own"
    if not wrong:
        fine = [stretch for stretch in found if stretch.shift == 0]
        hit = sum(stretch.declared * stretch.n_records for stretch in fine) / sum(stretch.n_records for stretch in fine)
        why = (
            f"a linear map of half the records puts {hit:.0%} of the other half's partners among the best tenth, and "
            "no shift of one column against the other fits any stretch better"
        )
        return Finding(_SHIFTED, share, expected, "pass", why, "data")
    worst = max(wrong, key=lambda stretch: stretch.n_records)
    first, last = labels[worst.first], labels[worst.last]
    where = "below" if worst.shift is not None and worst.shift > 0 else "above"
    why = (
        f"from record {first} to {last} the {names[1]} that fits stands {_rows(worst.shift)} {where} its {names[0]}: "
        f"there {worst.declared:.0%} of the declared partners are among the best tenth, and {worst.shifted:.0%} of "
        "those; mend the file (a cell lost, a column moved or sorted by itself) before anything is trained on it"
    )
    return Finding(_SHIFTED, share, expected, "fail", why, "data", listed=_listed(wrong, labels))


def _rows(shift: int | None) -> str:
    rows = abs(shift or 0)
    return f"{rows} record{'s' if rows != 1 else ''}"


def _without_signal(silent: list[Stretch], found: list[Stretch], labels: list[str], n: int) -> Finding:
    share = sum(stretch.n_records for stretch in silent) / n
    expected = "0: everywhere the declared partners are found better than random ones"
    if not silent:
        why = "in every stretch of records a linear map finds more partners than random ones would be"
        return Finding(_SILENT, share, expected, "pass", why, "data")
    if len(silent) == len(found):
        why = (
            "a linear map of half the records finds the other half's partners no better than random ones, as declared "
            "or at any shift tried: one column may be in another order altogether, or these rows say too little for a "
            "linear map; look at some pairs by eye before trusting any training"
        )
    else:
        why = (
            f"from record {labels[silent[0].first]} to {labels[silent[0].last]} the declared partners are no better "
            "than random ones, while others are found: that stretch may be out of order, or its items unlike all others"
        )
    return Finding(_SILENT, share, expected, "warn", why, "data", listed=_listed(silent, labels))


def _listed(stretches: list[Stretch], labels: list[str]) -> Listing | None:
    longest = sorted(stretches, key=lambda stretch: (-stretch.n_records, stretch.first))
    rows = [
        (
            labels[stretch.first],
            labels[stretch.last],
            stretch.n_records,
            "none fits" if stretch.shift is None else stretch.shift,
            round(stretch.declared, 4),
            round(stretch.shifted, 4),
        )
        for stretch in longest
    ]
    columns = ("first record", "last record", "records", "shift", "declared found", "shifted found")
    note = "found: share of partners among the best tenth of a random pool; a change is placed to within a few records"
    return worst(columns, rows, note)
