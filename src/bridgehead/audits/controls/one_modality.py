"""One side without content: train and evaluate with rows that say nothing of their items, and find no more than chance.

What is still found comes from the other side alone, from how often items occur, or from the evaluation. This module
trains nothing: `runs` hands it a `fit` function.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse

from bridgehead.audits.controls.levels import ENOUGH, Levels, check_seeds, levels_of
from bridgehead.audits.finding import Finding
from bridgehead.audits.given import check_called, check_kind
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate import RetrievalReport, report_from_scores
from bridgehead.evaluate.arguments import checked_names, checked_seed
from bridgehead.links import Links
from bridgehead.vectors import check_rows

Side = Literal["a", "b"]


def random_rows(train: Any, *others: Any, seed: int = 0) -> tuple[Any, ...]:
    """Return `train` with its rows in another order, and `others` with each row replaced by one of `train` at random.

    Rows keep their scale, sparsity and number, and say nothing of the item that they stand for. A side of which all
    rows are the same has one item for a training that merges identical ones, as that of this package does, and nothing
    to tell it from: so this, and not `constant_rows`, is what such a training is given. No row of `train` keeps its
    place where there are two or more. Dense or CSR as they came. Errors as `constant_rows`.
    """
    checked = _parts(train, others)
    rng = np.random.default_rng(checked_seed(seed))
    first = checked[0]
    # A random cycle through all rows has no fixed point.
    cycle = rng.permutation(first.shape[0])
    source = np.empty_like(cycle)
    source[cycle] = np.roll(cycle, 1)
    return first[source], *(first[rng.integers(0, first.shape[0], part.shape[0])] for part in checked[1:])


def constant_rows(train: Any, *others: Any) -> tuple[Any, ...]:
    """Return `train` and `others` with every row replaced by one and the same, dense or CSR as they came.

    Dense rows become the mean row of `train`. CSR rows become the row of `train` that is most like its mean (largest
    inner product with it, the first of equal ones), which stays as sparse as a real row. Raises `ShapeError` for a
    `train` without rows or parts of other widths, `NonFiniteRowsError`, `ArgumentError` for a part that is dense where
    `train` is CSR.

    >>> import numpy as np
    >>> constant_rows(np.array([[0.0, 2.0], [2.0, 4.0]]))[0].tolist()
    [[1.0, 3.0], [1.0, 3.0]]
    """
    checked = _parts(train, others)
    first = checked[0]
    if hasattr(first, "indptr"):
        mean = np.asarray(first.mean(axis=0)).ravel()
        row = sparse.csr_array(first[[int(np.argmax(np.round(first @ mean, 12)))]])
        return tuple(_repeated(row, part.shape[0]) for part in checked)
    row = first.mean(axis=0, keepdims=True, dtype=np.float64).astype(first.dtype)
    return tuple(np.repeat(row, part.shape[0], axis=0) for part in checked)


def _parts(train: Any, others: tuple[Any, ...]) -> list[Any]:
    checked = [check_rows(part, f"rows {number}") for number, part in enumerate((train, *others))]
    first = checked[0]
    if first.shape[0] == 0:
        raise ShapeError("train has no rows; expected at least one to replace others by")
    for number, part in enumerate(checked):
        if part.shape[1] != first.shape[1]:
            raise ShapeError(f"rows {number} have {part.shape[1]} columns and train {first.shape[1]}; expected as many")
        if hasattr(part, "indptr") != hasattr(first, "indptr"):
            raise ArgumentError(f"rows {number} and train are not both dense or both CSR; expected one kind")
    return checked


def _repeated(row: Any, n: int) -> Any:
    entries = len(row.data)
    shape = (n, row.shape[1])
    return sparse.csr_array((np.tile(row.data, n), np.tile(row.indices, n), np.arange(n + 1) * entries), shape=shape)


def frequency_report(links: Links, **options: Any) -> RetrievalReport:
    """Return the report of a scorer that knows only how many queries each candidate is right for, in these links.

    It is the most that one order for all queries can give, near enough: what a model without one side may reach by
    the numbers of links alone. `options` go to `report_from_scores` (ks, names, entities_a, pool, candidates, ...).
    Where every candidate is right for one query it is exactly chance.
    """
    check_kind(Links, links=links)
    matrix = links.matrix
    times_b = np.asarray(matrix.sum(axis=0, dtype=np.int64), dtype=np.float64).ravel()
    times_a = np.asarray(matrix.sum(axis=1, dtype=np.int64), dtype=np.float64).ravel()

    def scores(times: Any) -> Callable[[slice], Any]:
        return lambda rows: np.broadcast_to(times, (rows.stop - rows.start, len(times)))

    return report_from_scores(scores(times_b), scores(times_a), links=links, **options)


def one_modality_findings(
    fit: Callable[[Side, int], RetrievalReport],
    sides: Sequence[Side] = ("a", "b"),
    seeds: Sequence[int] = (0,),
    metrics: Sequence[str] | None = None,
    frequency: RetrievalReport | None = None,
    names: tuple[str, str] = ("a", "b"),
) -> list[Finding]:
    """Return whether anything is found where one side's rows say nothing of their items, in training and evaluation.

    `fit(side, seed)` trains at the full budget with the rows of `side` replaced and evaluates on the test part with its
    rows replaced too, both by one call of `random_rows`, or of `constant_rows` where the training can do with one item.
    `frequency` is `frequency_report` of the test links: what the
    numbers of links alone give. `metrics` as in `shuffled_control`.

    A finding a side and metric, of the group "controls": value is the mean over seeds. It passes at or below the upper
    end of chance's interval, or where it is at most what `frequency` gives; above both it warns while it is little and
    there are fewer than five seeds, and else fails. Raises `ArgumentError` (sides, seeds, metrics, test sets that
    differ). Costs a training for each side and seed.
    """
    check_called(fit=fit)
    names = checked_names(names)
    if frequency is not None:
        check_kind(RetrievalReport, frequency=frequency)
    check_seeds(seeds)
    if not isinstance(sides, list | tuple) or not sides or any(side not in ("a", "b") for side in sides):
        raise ArgumentError(f"sides = {sides!r}; expected some of 'a' and 'b'")
    found = []
    for side in dict.fromkeys(sides):
        levels = levels_of([fit(side, seed) for seed in seeds], metrics)
        name = names[0] if side == "a" else names[1]
        for key, level in levels.items():
            found.append(_finding(key, level, None if frequency is None else frequency.value(key), name))
    return found


def _finding(key: str, found: Levels, frequency: float | None, side: str) -> Finding:
    name = f"without {side}, {key}"
    expected = f"at most {found.bound:.4f}, the upper end of chance ({found.chance:.4f}) at this number of queries"
    if frequency is not None and frequency > found.bound:
        expected += f", or {frequency:.4f}, what numbers of links alone can give"
    if found.mean <= found.bound:
        why = f"without what {side} says nothing is found"
        return Finding(name, found.mean, expected, "pass", why, "controls")
    if frequency is not None and found.mean <= frequency:
        why = f"some items are right for many queries, and to know which is all that is found without {side}"
        return Finding(name, found.mean, expected, "pass", why, "controls")
    if found.doubtful:
        why = f"above it by little: train {ENOUGH} models or more (here {len(found.values)}) before this counts"
        return Finding(name, found.mean, expected, "warn", why, "controls")
    why = (
        f"rows of {side} say nothing and right answers are still found: look for ties broken by the order of "
        "rows, for candidates that give themselves away, and for what else the model was given"
    )
    return Finding(name, found.mean, expected, "fail", why, "controls")
