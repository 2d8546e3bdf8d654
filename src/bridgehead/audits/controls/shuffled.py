"""The shuffled-links control: train again on links that are wrong, and see whether anything is still found.

What a model finds after training on shuffled links is not learnt from the links: it comes from a leak, from the
evaluation, or from how often items occur. This module trains nothing: `runs` hands it a `fit` function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bridgehead.audits.controls.levels import ENOUGH, Levels, check_seeds, levels_of, lowest_mean, mean_and_sd
from bridgehead.audits.finding import Finding
from bridgehead.audits.given import check_called, check_entries, check_kind
from bridgehead.errors import ArgumentError, LinksError, ShapeError
from bridgehead.evaluate import RetrievalReport
from bridgehead.evaluate.arguments import checked_seed
from bridgehead.links import Links
from bridgehead.vectors import IntArray, to_numpy

_SWEEPS = 20
_TRIES = 50
_OWN_LIST = 1 << 40
MANY_SURVIVE = 0.02
"""Share of shuffled links that are true after all, above which a control on them cannot be expected at chance."""


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
    return _exchanged(links, rows, lists, _deranged(truth, np.random.default_rng(checked_seed(seed))))


def shuffle_within(links: Links, labels: Any, seed: int) -> tuple[Links, int]:
    """Return links shuffled as `shuffle_links` does, but among rows of a with the same label, and how many had no peer.

    `labels` (n_a,) are the groups: a length bin, scaffold, class, slide; None, "", -1 and NaN are no label. Rows whose
    label no other linked row has, or that have none, are exchanged among each other, so that as many links are trained
    on and none of these says anything; their number is returned. Raises `LinksError` as `shuffle_links`, `ShapeError`
    for another number of labels.
    """
    rows, lists, truth = _partner_lists(links)
    if len(rows) < 2:
        raise LinksError(
            f"{len(rows)} rows of a have links; expected at least 2 to exchange partners (rows of one group count once)"
        )
    numbers = label_numbers(labels, links.n_a)[rows]
    sizes = np.bincount(numbers[numbers >= 0], minlength=1)
    alone = (numbers < 0) | (sizes[np.maximum(numbers, 0)] < 2)
    numbers = np.where(alone, -1, numbers)
    rng = np.random.default_rng(checked_seed(seed))
    giver = np.arange(len(rows))
    for label in np.unique(numbers).tolist():
        members = np.flatnonzero(numbers == label)
        if len(members) > 1:
            giver[members] = members[_deranged([truth[unit] for unit in members.tolist()], rng)]
    return _exchanged(links, rows, lists, giver), int(alone.sum())


def label_numbers(labels: Any, n: int) -> IntArray:
    """Return a number from 0 for each label (n,), equal for equal labels, -1 for None, "", -1 and NaN.

    Raises `ShapeError` for another number of labels and `ArgumentError` for lists in place of labels.
    """
    check_entries(labels, None, "labels", f"{n}, one for each row")
    listed = to_numpy(labels).tolist() if hasattr(labels, "shape") or hasattr(labels, "detach") else list(labels)
    if len(listed) != n:
        raise ShapeError(f"there are {len(listed)} labels; expected {n}, one for each row")
    known: dict[Any, int] = {}
    try:
        numbers = [
            -1 if label is None or label == "" or label == -1 or label != label else known.setdefault(label, len(known))
            for label in listed
        ]
    except TypeError as error:
        raise ArgumentError(f"labels hold what is no label ({error}); expected texts or numbers") from error
    return np.array(numbers, dtype=np.int64)


def _exchanged(links: Links, rows: IntArray, lists: list[list[int]], giver: IntArray) -> Links:
    pairs = [(row, b) for row, source in zip(rows.tolist(), giver.tolist(), strict=True) for b in lists[source]]
    return Links(np.array(pairs, dtype=np.int64), links.n_a, links.n_b, links.groups_a, links.groups_b)


def surviving_links(links: Links, shuffled: Links) -> int:
    """Return how many matches of `shuffled` are true in `links`, those shared through groups included."""
    check_kind(Links, links=links, shuffled=shuffled)
    both = links.matrix.astype(np.int64).multiply(shuffled.matrix.astype(np.int64))
    return int(both.count_nonzero())


def _partner_lists(links: Links) -> tuple[IntArray, list[list[int]], list[set[int]]]:
    """Return, for each linked unit of a (a row, or the rows of a group): its first row, its partners in b as the links
    give them, and the same as units of b, in which equal texts are equal."""
    check_kind(Links, links=links)
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

    total = None
    for _ in range(_SWEEPS):
        conflicts = [unit for unit in range(n) if kept(unit, int(giver[unit]))]
        left = sum(kept(unit, int(giver[unit])) for unit in conflicts)
        if left == 0 or left == total:
            # Nothing left to mend, or nothing mended by a whole sweep: where all share a partner, more do not help.
            break
        total = left
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
    `n_surviving` count, for each seed, the matches trained on and those of them that are true after all. `real` maps
    the same keys to the values of training on the true links with the same seeds, and is empty where none was done.
    """

    seeds: tuple[int, ...]
    values: dict[str, list[float]]
    chance: dict[str, float]
    bound: dict[str, float]
    n_links: int
    n_surviving: list[int]
    real: dict[str, list[float]] = field(default_factory=dict)

    @property
    def mean(self) -> dict[str, float]:
        """Metric's key -> mean over the runs."""
        return {key: float(np.mean(values)) for key, values in self.values.items()}

    @property
    def differences(self) -> dict[str, list[float]]:
        """Metric's key -> true minus shuffled links, seed by seed; empty where only shuffled links were trained on."""
        return {
            key: [real - value for real, value in zip(self.real[key], values, strict=True)]
            for key, values in self.values.items()
            if key in self.real
        }

    @property
    def findings(self) -> list[Finding]:
        """One finding a metric: the mean over the runs stays at or below chance's upper bound, or it fails.

        A mean that is little above it warns while there are fewer than five runs: a single model varies too much. Where
        true links were trained on too and there are two seeds or more, a second one: what they give beyond shuffled
        ones, paired by seed, must be above 0 by Student's t at 95 %; it warns where it is above 0 only, and else fails.
        """
        paired = [self._paired(key, each) for key, each in self.differences.items() if len(each) > 1]
        return [*(self._finding(key) for key in self.values), *paired]

    def _finding(self, key: str) -> Finding:
        found = Levels(tuple(self.values[key]), self.chance[key], self.bound[key])
        surviving = max(self.n_surviving) / max(1, self.n_links)
        name = f"shuffled links, {key}"
        expected = f"at most {found.bound:.4f}, the upper end of chance ({found.chance:.4f}) at this number of queries"
        if found.mean <= found.bound:
            why = f"{_models(len(self.seeds))} trained on shuffled links found no more than random ranking would"
            return Finding(name, found.mean, expected, "pass", why, "controls")
        if surviving > MANY_SURVIVE:
            why = f"{surviving:.0%} of the shuffled links are true after all, so the control cannot reach chance"
            return Finding(name, found.mean, expected, "warn", why, "controls")
        if found.doubtful:
            why = (
                f"above the bound, but models trained on shuffled links vary more than a random ranking does: "
                f"train {ENOUGH} of them or more (here {len(self.seeds)}) before this counts against the run"
            )
            return Finding(name, found.mean, expected, "warn", why, "controls")
        why = "wrong links still give right answers: look for leaks between splits, ties, and how often items occur"
        return Finding(name, found.mean, expected, "fail", why, "controls")

    def _paired(self, key: str, differences: list[float]) -> Finding:
        mean, sd = mean_and_sd(differences)
        name, expected = f"true minus shuffled links, {key}", "above 0 by more than it varies from seed to seed"
        spread = f"{mean:.4f} with an SD of {sd or 0:.4f} over {len(differences)} seeds"
        if lowest_mean(differences) > 0:
            why = f"{spread}: the links are what is learnt from"
            return Finding(name, mean, expected, "pass", why, "controls")
        if mean > 0:
            why = f"{spread}: too few seeds, or too little, to say that the links are learnt from"
            return Finding(name, mean, expected, "warn", why, "controls")
        why = f"{spread}: true links give no more than wrong ones, so nothing is learnt from them"
        return Finding(name, mean, expected, "fail", why, "controls")

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe entries: the fields, means, paired differences with mean and SD, and findings."""
        return {
            "seeds": list(self.seeds),
            "values": self.values,
            "mean": self.mean,
            "chance": self.chance,
            "bound": self.bound,
            "n_links": self.n_links,
            "n_surviving": self.n_surviving,
            "real": self.real,
            "difference": {
                key: dict(zip(("mean", "sd"), mean_and_sd(each), strict=True)) | {"values": each}
                for key, each in self.differences.items()
            },
            "findings": [finding.to_dict() for finding in self.findings],
        }

    @classmethod
    def of(cls, stored: dict[str, Any]) -> "ShuffledControl":
        """Return the control of entries as `to_dict` gives them, such as those of a stored file."""
        return cls(
            tuple(stored["seeds"]),
            stored["values"],
            stored["chance"],
            stored["bound"],
            stored["n_links"],
            stored["n_surviving"],
            stored.get("real", {}),
        )

    def lines(self) -> list[str]:
        """Return the findings as lines to print."""
        head = f"shuffled links: {_models(len(self.seeds))}, {self.n_links:,} links each"
        if any(self.n_surviving):
            head += f", of which at most {max(self.n_surviving):,} are true after all"
        return [head, *("  " + finding.line() for finding in self.findings)]


def shuffled_control(
    fit: Callable[[Links, int], RetrievalReport],
    links: Links,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    metrics: Sequence[str] | None = None,
    paired: bool = False,
) -> ShuffledControl:
    """Train on shuffled links once a seed and hold the mean of each metric against chance.

    `fit(shuffled, seed)` trains at the full budget on `shuffled` training links and evaluates on the true test links;
    it is called with `shuffle_links(links, seed)`. `paired` also calls `fit(links, seed)` with the true links, so that
    the difference is read seed by seed, with its SD: twice the cost. `metrics` are keys such as `b_to_a.recall@10`
    (default: recall at the largest k, and mrr, in both directions) for which chance has an interval and higher is
    better. All evaluations must be of the same size. Raises `ArgumentError` for no seeds, a seed twice, an unknown
    metric or evaluations that differ. Costs as many trainings as there are seeds.
    """
    check_called(fit=fit)
    check_seeds(seeds)
    reports: list[RetrievalReport] = []
    surviving: list[int] = []
    for seed in seeds:
        shuffled = shuffle_links(links, seed)
        surviving.append(surviving_links(links, shuffled))
        reports.append(fit(shuffled, seed))
    real = [fit(links, seed) for seed in seeds] if paired else []
    levels = levels_of([*reports, *real], metrics)
    n = len(reports)
    return ShuffledControl(
        tuple(seeds),
        {key: list(found.values[:n]) for key, found in levels.items()},
        {key: found.chance for key, found in levels.items()},
        {key: found.bound for key, found in levels.items()},
        int(links.matrix.nnz),
        surviving,
        {key: list(found.values[n:]) for key, found in levels.items()} if paired else {},
    )


def _models(n: int) -> str:
    return "one model" if n == 1 else f"{n} models"
