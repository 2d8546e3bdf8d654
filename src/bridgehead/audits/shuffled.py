"""The shuffled-links control: train again on links that are wrong, and see whether anything is still found.

What a model finds after training on shuffled links is not learnt from the links: it comes from a leak, from the
evaluation, or from how often items occur. This module trains nothing: `runs` hands it a `fit` function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.audits.finding import Finding
from bridgehead.errors import ArgumentError, LinksError
from bridgehead.evaluate import RetrievalReport
from bridgehead.links import Links
from bridgehead.vectors import IntArray

_SWEEPS = 20
_TRIES = 50
_OWN_LIST = 1 << 40
_MANY_SURVIVE = 0.02
# Runs that a mean needs before a small excess counts, and how many times the chance interval is no small excess.
_ENOUGH, _CLEARLY = 5, 3.0


def shuffle_links(links: Links, seed: int) -> Links:
    """Return links in which every linked row of a has the partners of another one, drawn with `seed`.

    Lists of partners move whole, so which items of b belong together, how many links each row of b has, and the
    numbers of partners in a all stay; only who has them changes. It is a derangement: no row keeps its own list, and
    lists that share a true partner with their new row are swapped on until no true link survives, or no swap helps
    (`surviving_links` counts the rest: where one text is linked to most rows, some must survive). Truth includes what
    groups share: rows of one group of a move as one, and a partner of an equal group in b (the same text again) is a
    true one. Raises `LinksError` when fewer than two rows (or groups) of a have links: there is nothing to exchange.
    """
    rows, lists, truth = _partner_lists(links)
    if len(rows) < 2:
        raise LinksError(
            f"{len(rows)} rows of a have links; expected at least 2 to exchange partners (rows of one group count once)"
        )
    giver = _deranged(truth, np.random.default_rng(seed))
    pairs = [(row, b) for row, source in zip(rows.tolist(), giver.tolist(), strict=True) for b in lists[source]]
    return Links(np.array(pairs, dtype=np.int64), links.n_a, links.n_b, links.groups_a, links.groups_b)


def surviving_links(links: Links, shuffled: Links) -> int:
    """Return how many matches of `shuffled` are true in `links`, those shared through groups included."""
    both = links.matrix.astype(np.int64).multiply(shuffled.matrix.astype(np.int64))
    return int(both.count_nonzero())


def _partner_lists(links: Links) -> tuple[IntArray, list[list[int]], list[set[int]]]:
    """Return, for each linked unit of a (a row, or the rows of a group): its first row, its partners in b as the links
    give them, and the same as units of b, in which equal texts are equal."""
    unit_a = _unit_numbers(links.groups_a, links.n_a)[links.pairs[:, 0]]
    unit_b = _unit_numbers(links.groups_b, links.n_b)
    found, first = np.unique(unit_a, return_index=True)
    lists: dict[int, list[int]] = {unit: [] for unit in found.tolist()}
    for unit, b in zip(unit_a.tolist(), links.pairs[:, 1].tolist(), strict=True):
        lists[unit].append(b)
    return links.pairs[first, 0], list(lists.values()), [{int(unit_b[b]) for b in own} for own in lists.values()]


def _unit_numbers(groups: IntArray | None, n: int) -> IntArray:
    """Return a number for each of n rows that rows of one non-negative group share and others do not."""
    own = np.arange(n, dtype=np.int64)
    return own if groups is None else np.where(groups >= 0, n + groups, own)


def _deranged(truth: list[set[int]], rng: np.random.Generator) -> IntArray:
    """Return whose list each unit gets: a permutation without fixed points that keeps few true partners.

    `truth[u]` are the partners of unit u. Starts from a random cycle through all units, which has no fixed point, and
    swaps the lists of units that keep a true partner with those of random others while that lowers what is kept.
    """
    n = len(truth)
    cycle = rng.permutation(n)
    giver = np.empty(n, dtype=np.int64)
    giver[cycle] = np.roll(cycle, 1)

    def kept(unit: int, source: int) -> int:
        # Keeping one's own list is worse than any number of true partners by chance.
        return len(truth[unit] & truth[source]) if unit != source else _OWN_LIST

    for _ in range(_SWEEPS):
        conflicts = [unit for unit in range(n) if kept(unit, int(giver[unit]))]
        if not conflicts:
            break
        for unit in conflicts:
            for other in rng.integers(0, n, size=_TRIES).tolist():
                before = kept(unit, int(giver[unit])) + kept(other, int(giver[other]))
                after = kept(unit, int(giver[other])) + kept(other, int(giver[unit]))
                if after < before:
                    giver[[unit, other]] = giver[[other, unit]]
                if not kept(unit, int(giver[unit])):
                    break
    return giver


@dataclass(frozen=True, eq=False)
class ShuffledControl:
    """What training on shuffled links found, over several seeds.

    `values` maps a metric's key (`a_to_b.recall@10`) to its value in each run, `chance` to the level of random
    ranking, `bound` to the upper end of chance's 95 % interval for one evaluation of that size; `n_links` and
    `n_surviving` count, for each seed, the matches trained on and those of them that are true after all.
    """

    seeds: tuple[int, ...]
    values: dict[str, list[float]]
    chance: dict[str, float]
    bound: dict[str, float]
    n_links: int
    n_surviving: list[int]

    @property
    def mean(self) -> dict[str, float]:
        """Metric's key -> mean over the runs."""
        return {key: float(np.mean(values)) for key, values in self.values.items()}

    @property
    def findings(self) -> list[Finding]:
        """One finding a metric: the mean over the runs stays at or below chance's upper bound, or it fails.

        A mean that is little above it warns while there are fewer than five runs: a single model varies too much.
        """
        return [self._finding(key) for key in self.values]

    def _finding(self, key: str) -> Finding:
        mean, bound, chance = self.mean[key], self.bound[key], self.chance[key]
        surviving = max(self.n_surviving) / max(1, self.n_links)
        expected = f"at most {bound:.4f}, the upper end of chance ({chance:.4f}) at this number of queries"
        if mean <= bound:
            why = f"{len(self.seeds)} models trained on shuffled links find no more than random ranking would"
            return Finding(f"shuffled links, {key}", mean, expected, "pass", why)
        if surviving > _MANY_SURVIVE:
            why = f"{surviving:.0%} of the shuffled links are true after all, so the control cannot reach chance"
            return Finding(f"shuffled links, {key}", mean, expected, "warn", why)
        if len(self.seeds) < _ENOUGH and mean - chance <= _CLEARLY * (bound - chance):
            why = (
                f"above the bound, but models trained on shuffled links vary more than a random ranking does: "
                f"train {_ENOUGH} of them or more (here {len(self.seeds)}) before this counts against the run"
            )
            return Finding(f"shuffled links, {key}", mean, expected, "warn", why)
        why = "wrong links still give right answers: look for leaks between splits, ties, and how often items occur"
        return Finding(f"shuffled links, {key}", mean, expected, "fail", why)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe entries: seeds, values, means, chance, bounds, counts and findings."""
        return {
            "seeds": list(self.seeds),
            "values": self.values,
            "mean": self.mean,
            "chance": self.chance,
            "bound": self.bound,
            "n_links": self.n_links,
            "n_surviving": self.n_surviving,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def lines(self) -> list[str]:
        """Return the findings as lines to print."""
        head = f"shuffled links: {len(self.seeds)} runs, {self.n_links:,} links each"
        if any(self.n_surviving):
            head += f", of which at most {max(self.n_surviving):,} are true after all"
        return [head, *("  " + finding.line() for finding in self.findings)]


def shuffled_control(
    fit: Callable[[Links, int], RetrievalReport],
    links: Links,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    metrics: Sequence[str] | None = None,
) -> ShuffledControl:
    """Train on shuffled links once a seed and hold the mean of each metric against chance.

    `fit(shuffled, seed)` trains at the full budget on `shuffled` training links and evaluates on the true test links;
    it is called with `shuffle_links(links, seed)`. `metrics` are keys such as `b_to_a.recall@10` (default: recall at
    the largest k, and mrr, in both directions) for which chance has an interval and higher is better. All evaluations
    must be of the same size. Raises `ArgumentError` for no seeds, an unknown metric or evaluations that differ.
    """
    if len(seeds) == 0:
        raise ArgumentError("seeds is empty; expected at least one seed to shuffle and train with")
    reports: list[RetrievalReport] = []
    surviving: list[int] = []
    for seed in seeds:
        shuffled = shuffle_links(links, seed)
        surviving.append(surviving_links(links, shuffled))
        reports.append(fit(shuffled, seed))
    keys = metrics or [f"{side}.{name}" for side in ("a_to_b", "b_to_a") for name in _usual(reports[0])]
    chance, bound = {}, {}
    for key in keys:
        if key.endswith("_rank"):
            raise ArgumentError(f"metric {key!r} is a rank, where lower is better; expected recall, ndcg or mrr")
        direction, name = reports[0].direction(key)
        chance[key], bound[key] = direction.chance[name], direction.chance_interval(name)[1]
        if any(report.direction(key)[0].chance[name] != chance[key] for report in reports):
            raise ArgumentError(f"the runs evaluate {key} at different levels of chance; expected one test set for all")
    values = {key: [report.value(key) for report in reports] for key in keys}
    return ShuffledControl(tuple(seeds), values, chance, bound, int(links.matrix.nnz), surviving)


def _usual(report: RetrievalReport) -> list[str]:
    return [f"recall@{max(report.a_to_b.ks)}", "mrr"]
