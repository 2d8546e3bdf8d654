"""Two models on the same queries: the difference of a metric, its interval, and how often chance gives as much.

The unit of evidence is the entity, as in `intervals`: five captions of one molecule that all change together are one
change. This module is not about several trainings of one config (`folds`) or about whether two runs may be compared at
all (`runs.comparing`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate.arguments import checked_labels, checked_seed
from bridgehead.evaluate.record import DirectionReport, RetrievalReport
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray, to_numpy

_AT_ONCE = 1 << 21
# Differences that are the same sum taken in another order.
_SAME = 1e-9
# So many equal values are drawn faster as one binomial than as signs.
_MANY = 128
_SHOWN = 10


@dataclass(frozen=True)
class PairedDifference:
    """By how much a metric differs between two models on the same queries: `value` is `first` - `second`.

    `first` and `second` are the means over the queries. `interval` is the 95 % bootstrap interval of `value` by entity
    (None without resamples, or for one entity), `p_value` the share of sign patterns that give at least |`value`|,
    which is counted over all of them where `exact`, else estimated from random ones. `standard_error` is that of
    `value`, entities taken as independent draws (None for one entity). `n_differing` entities differ at all.
    """

    first: float
    second: float
    value: float
    interval: tuple[float, float] | None
    p_value: float
    exact: bool
    standard_error: float | None
    n_queries: int
    n_entities: int
    n_differing: int

    @property
    def sd(self) -> float | None:
        """Standard deviation of the difference of an entity, as `detectable_difference` takes it.

        standard_error * sqrt(n_entities): where all entities have as many queries, the plain SD over their means.
        """
        return None if self.standard_error is None else self.standard_error * float(np.sqrt(self.n_entities))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe entries; the interval as `low` and `high`, None where there is none."""
        low, high = self.interval or (None, None)
        names = ("first", "second", "value", "p_value", "exact", "standard_error", "sd")
        counts = ("n_queries", "n_entities", "n_differing")
        return {name: getattr(self, name) for name in (*names, *counts)} | {"low": low, "high": high}

    def line(self, name: str, digits: int = 3) -> str:
        """Return the difference of the metric `name` as one line to print."""
        between = ""
        if self.interval is not None:
            low, high = self.interval
            between = f" ({low:+z.{digits}f} to {high:+z.{digits}f})"
        return (
            f"{name}: {self.first:.{digits}f} and {self.second:.{digits}f}, difference "
            f"{self.value:+z.{digits}f}{between}, p {p_text(self.p_value)}; {self.n_differing:,} of "
            f"{self.n_entities:,} entities differ"
        )


def p_text(p_value: float) -> str:
    """Return a p value as it is shown: "= 0.031", or "< 0.001" below that.

    >>> p_text(0.0312), p_text(0.0004)
    ('= 0.031', '< 0.001')
    """
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"


def paired_difference(
    metric_x: Any,
    metric_y: Any,
    entities: Any = None,
    n_resamples: int = 1000,
    n_permutations: int = 10_000,
    seed: int = 0,
) -> PairedDifference:
    """Return mean(`metric_x`) - mean(`metric_y`) with a 95 % interval and the p value of a sign-flip permutation test.

    `metric_x`, `metric_y` (n,): a metric of each query under two models, query i the same in both (see
    `DirectionReport.per_query`). `entities` (n,): a label for each query (default: every query its own).

    With D_e the sum of the differences of entity e, the test asks how often random signs s_e give
    |sum s_e D_e| >= |sum D_e|: were the two models alike, each entity could as well have come out the other way round.
    Entities that do not differ play no part. All 2^m sign patterns of the m others are gone through where they are at
    most `n_permutations`; else as many random ones are drawn and p = (1 + hits) / (1 + drawn), which is never 0. For
    recall@1 of queries that are their own entities this is the exact McNemar test. The interval is the percentile
    bootstrap over entities, a mean over all queries of those drawn; `n_resamples` 0 gives none. The standard error is
    that of a ratio of sums, sqrt(E / (E - 1) * sum (D_e - n_e value)^2) / n.

    Nothing depends on the order of queries or the names of entities, and exchanging the two models changes signs only
    (but for the draws behind the interval of a difference of exactly 0).
    Models that are equal on all queries have p = 1 and the interval (0, 0); so has one entity p = 1, without interval.

    Raises `ShapeError` for arrays of other lengths, `NonFiniteRowsError` naming queries with NaN or infinity, and
    `ArgumentError` for no queries, texts, or counts out of range. Sources: Fisher, The Design of Experiments (1935),
    section 21; Smucker, Allan, Carterette, "A comparison of statistical significance tests for IR evaluation" (2007).

    >>> found = paired_difference([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 1, 0])
    >>> found.p_value, found.exact  # four changes, all one way: 2 of 16 patterns
    (0.125, True)
    """
    for name, count, least in (("n_resamples", n_resamples, 0), ("n_permutations", n_permutations, 1)):
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < least:
            raise ArgumentError(f"{name} = {count!r}; expected a whole number of {least} or more")
    seed = checked_seed(seed)
    x, y = _values(metric_x, "metric_x"), _values(metric_y, "metric_y")
    if len(x) != len(y):
        raise ShapeError(f"metric_x is of {len(x)} queries and metric_y of {len(y)}; expected the same queries in both")
    numbers = entity_numbers(entities, len(x))
    sizes, sums = _by_entity(numbers, x - y)
    value = float(sums.sum() / len(x))
    # Signs so that the first is not below the second: an exchange of the two then mirrors all that follows.
    sign = -1.0 if value < 0 else 1.0
    sizes, sums = _ordered(sizes, sign * sums)
    differing = np.abs(sums[np.abs(sums) > _SAME])
    p_value, exact = _sign_flips(differing, abs(value) * len(x), n_permutations, seed)
    interval = _bootstrap(sizes, sums, n_resamples, seed)
    if interval is not None and sign < 0:
        interval = (-interval[1], -interval[0])
    return PairedDifference(
        first=float(x.mean()),
        second=float(y.mean()),
        value=value,
        interval=interval,
        p_value=p_value,
        exact=exact,
        standard_error=_standard_error(sizes, sums),
        n_queries=len(x),
        n_entities=len(sizes),
        n_differing=len(differing),
    )


def compare_reports(
    first: DirectionReport | RetrievalReport,
    second: DirectionReport | RetrievalReport,
    metrics: Sequence[str] | None = None,
    n_resamples: int = 1000,
    n_permutations: int = 10_000,
    seed: int = 0,
) -> dict[str, PairedDifference]:
    """Return the paired difference of every metric that two reports on the same queries have.

    Two `DirectionReport` give a difference for each key of `per_query` (`recall@10`, `mrr`, ..., and `mean_rank` for
    `rank`, where less is better), two `RetrievalReport` one for each of both directions (`a_to_b.recall@10`). `metrics`
    names those that are wanted. Entities are those of the first report. All else as `paired_difference`.

    Raises `ArgumentError` when the queries, their numbers of true candidates, the candidates that they ranked or
    their entities differ: such figures are not paired, whatever their names. Also for a metric that one of them lacks,
    or a report of one direction beside one of two.
    """
    if isinstance(first, RetrievalReport) and isinstance(second, RetrievalReport):
        pairs = {"a_to_b.": (first.a_to_b, second.a_to_b), "b_to_a.": (first.b_to_a, second.b_to_a)}
    elif isinstance(first, DirectionReport) and isinstance(second, DirectionReport):
        pairs = {"": (first, second)}
    else:
        raise ArgumentError(
            f"first is a {type(first).__name__} and second a {type(second).__name__}; expected two of one kind: of one "
            "direction, or of both"
        )
    found: dict[str, tuple[Float64Array, Float64Array, IntArray]] = {}
    for prefix, (x, y) in pairs.items():
        _check_same_queries(x, y, prefix.rstrip("."))
        for name in x.per_query:
            if name in y.per_query:
                shown = "mean_rank" if name == "rank" else name
                found[prefix + shown] = x.per_query[name], y.per_query[name], x.entities
    if metrics is not None and not isinstance(metrics, list | tuple):
        raise ArgumentError(f"metrics = {metrics!r:.80}; expected a list of names, such as ['{next(iter(found))}']")
    wanted = list(found) if metrics is None else metrics
    if unknown := [str(name) for name in wanted if not isinstance(name, str) or name not in found]:
        raise ArgumentError(f"the reports do not both have {', '.join(unknown)}; both have {', '.join(found)}")
    return {
        name: paired_difference(*found[name], n_resamples=n_resamples, n_permutations=n_permutations, seed=seed)
        for name in wanted
    }


def _check_same_queries(first: DirectionReport, second: DirectionReport, direction: str) -> None:
    said = f"{direction}: " if direction else ""
    for name, what in (
        ("queries", "query rows"),
        ("n_true", "numbers of true candidates"),
        ("pool", "numbers of candidates that each query ranked"),
        ("entities", "entities of the queries"),
    ):
        x, y = getattr(first, name), getattr(second, name)
        if len(x) != len(y):
            raise ArgumentError(
                f"{said}the first report has {len(x):,} queries and the second {len(y):,}; expected the same queries"
            )
        if (x != y).any():
            raise ArgumentError(
                f"{said}the {what} differ ({int((x != y).sum()):,} of {len(x):,}); expected two reports on the same "
                "queries over the same candidates"
            )


def entity_numbers(entities: Any, n: int) -> IntArray:
    """Return the numbers 0 .. E - 1 of the entities of `n` queries from a label for each, or None for each its own.

    Raises `ShapeError` for another number of labels and `ArgumentError` for labels that cannot be ordered, or NaN.
    """
    if entities is None:
        return np.arange(n, dtype=np.int64)
    labels = to_numpy(entities)
    if labels.shape != (n,):
        raise ShapeError(f"entities has shape {labels.shape}; expected ({n},): a label for each query")
    return checked_labels(labels, "entities")


def _values(metric: Any, name: str) -> Float64Array:
    values = to_numpy(metric)
    if values.dtype.kind not in "fiub":
        raise ArgumentError(f"{name} has dtype {values.dtype}; expected numbers, one for each query")
    if values.ndim != 1:
        raise ShapeError(f"{name} has shape {values.shape}; expected one dimension (n,), a value for each query")
    if len(values) == 0:
        raise ArgumentError(f"{name} is of no queries; expected at least one")
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        wrong = np.flatnonzero(~np.isfinite(values))
        shown = ", ".join(map(str, wrong[:_SHOWN].tolist())) + (" ..." if len(wrong) > _SHOWN else "")
        raise NonFiniteRowsError(f"{name} is NaN or infinite for {len(wrong)} queries (rows {shown})")
    return np.asarray(values)


def _by_entity(numbers: IntArray, differences: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the number of queries of each entity and the sum of their differences."""
    return np.bincount(numbers).astype(np.float64), np.bincount(numbers, differences).astype(np.float64)


def _ordered(sizes: Float64Array, sums: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return entities ordered by what they hold, so that draws depend neither on labels nor on the order of rows."""
    order = np.lexsort((np.round(sums, 9), sizes))
    return sizes[order], sums[order]


def _sign_flips(differing: Float64Array, observed: float, n_permutations: int, seed: int) -> tuple[float, bool]:
    """Return the two-sided p value of |sum of signed `differing`| >= `observed`, and whether it is exact."""
    m = len(differing)
    least = observed - _SAME * max(1.0, float(differing.sum()))
    if m < 63 and 2**m <= n_permutations:
        hits = sum(int((np.abs(sums) >= least).sum()) for sums in _all_sums(np.sort(differing)))
        return hits / 2**m, True
    hits = sum(int((np.abs(sums) >= least).sum()) for sums in _random_sums(differing, n_permutations, seed))
    return (1 + hits) / (1 + n_permutations), False


def _all_sums(values: Float64Array) -> Iterator[Float64Array]:
    """Yield the sums of the values (m,) under all 2^m patterns of signs, in blocks."""
    m = len(values)
    step = max(1, _AT_ONCE // max(1, m))
    for start in range(0, 2**m, step):
        codes = np.arange(start, min(start + step, 2**m), dtype=np.int64)
        yield _signed(codes[:, None] >> np.arange(m) & 1, values)


def _random_sums(values: Float64Array, n: int, seed: int) -> Iterator[Float64Array]:
    """Yield n sums of the values (m,) under random signs, in blocks.

    Of a value that many entities have (1, for a hit at one k) only the number of plus signs is drawn, a binomial.
    """
    rng = np.random.default_rng(seed)
    distinct, counts = np.unique(np.round(values, 12), return_counts=True)
    many = counts >= _MANY
    single = np.repeat(distinct[~many], counts[~many])
    common, times = distinct[many], counts[many]
    step = max(1, _AT_ONCE // max(1, len(single) + len(common)))
    for start in range(0, n, step):
        size = min(step, n - start)
        bits = rng.integers(0, 256, size=(size, -(-len(single) // 8)), dtype=np.uint8)
        plus = rng.binomial(times, 0.5, size=(size, len(times)))
        yield _signed(np.unpackbits(bits, axis=1, count=len(single)), single) + (2.0 * plus - times) @ common


def _signed(bits: Any, values: Float64Array) -> Float64Array:
    """Return the sums of `values` (m,) with the sign 2 bit - 1, for each row of bits (r, m)."""
    return np.asarray(2 * (bits.astype(np.float64) @ values) - values.sum())


def _bootstrap(sizes: Float64Array, sums: Float64Array, n_resamples: int, seed: int) -> tuple[float, float] | None:
    n = len(sizes)
    if n_resamples == 0 or n < 2:
        return None
    rng = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // n)
    means = []
    for start in range(0, n_resamples, step):
        drawn = rng.integers(0, n, size=(min(step, n_resamples - start), n))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5]).tolist()
    return low, high


def _standard_error(sizes: Float64Array, sums: Float64Array) -> float | None:
    n = len(sizes)
    if n < 2:
        return None
    rest = sums - sizes * (sums.sum() / sizes.sum())
    return float(np.sqrt(n / (n - 1) * (rest**2).sum()) / sizes.sum())
