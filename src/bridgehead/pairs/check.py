"""What a pair table holds, counted and explained: the numbers to know before anything is trained.

This module is not about mending anything, and it parses no structure: identities come in as they are.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.pairs.quality import text_quality
from bridgehead.pairs.table import PairTable, Side, SideName, Skipped
from bridgehead.texts import normalise

_LISTED = 1_000
_SHOWN = 3


class HasIdentity(Protocol):
    """What is asked of an identity, as `bridgehead.molecules.Identity` has it."""

    @property
    def exact(self) -> str:
        """The InChIKey, or what stands for it."""

    @property
    def parent(self) -> str:
        """Without salts, solvents and charge."""

    @property
    def skeleton(self) -> str:
        """The connectivity block of the parent."""

    @property
    def mixture(self) -> bool:
        """Whether several organic components are left."""

    @property
    def fallback(self) -> bool:
        """Whether there is no InChIKey."""


@dataclass(frozen=True)
class IdentityLevels:
    """Distinct identities among the items of a side, by level, and what is special among them.

    `mixture_ids`: items of several organic components; `fallback_ids`: items without an InChIKey, which are told apart
    by their canonical SMILES; `n_failed`: items without an identity.
    """

    n_items: int
    exact: int
    parent: int
    skeleton: int
    mixture_ids: list[str]
    fallback_ids: list[str]
    n_failed: int


@dataclass(frozen=True)
class Quantiles:
    """Smallest, median, 95th percentile, largest and mean of a count."""

    least: float
    median: float
    p95: float
    most: float
    mean: float

    @classmethod
    def of(cls, values: Any) -> "Quantiles":
        """Return the quantiles of `values`; all are 0 when there is none."""
        array = np.asarray(values, dtype=np.float64)
        if array.size == 0:
            return cls(0, 0, 0, 0, 0)
        median, p95 = np.percentile(array, [50, 95])
        return cls(float(array.min()), float(median), float(p95), float(array.max()), float(array.mean()))


@dataclass(frozen=True)
class SideReport:
    """One side: `n_items` distinct values in `n_records` records, `n_unlinked` of them without a link.

    `n_repeats`: records beyond the first of their item (the same raw value again). `n_same_normalised`: items that
    equal an earlier one once hyphens, primes, Greek letters, case and spaces are of one form. `characters` and
    `words`: lengths of the items. `weak`: generic or too short texts by rule, and `weak_share` their share of the
    items; empty where the side has identities.
    """

    name: str
    n_items: int
    n_records: int
    n_unlinked: int
    n_repeats: int
    n_same_normalised: int
    links_per_item: Quantiles
    characters: Quantiles
    words: Quantiles
    weak: dict[str, int] = field(default_factory=dict)
    weak_share: float = 0.0
    identity: IdentityLevels | None = None


@dataclass(frozen=True)
class CheckReport:
    """What `check_table` found; `lines()` to print, `to_dict()` for `pairs.json`."""

    n_records: int
    n_links: int
    a: SideReport
    b: SideReport
    unpaired: list[Skipped]
    skipped: list[Skipped]
    notes: list[str]
    sources: list[dict[str, str]]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON types; at most the first 1,000 unpaired and skipped records are listed."""
        content = asdict(self)
        for name in ("unpaired", "skipped"):
            content[f"n_{name}"] = len(content[name])
            content[name] = content[name][:_LISTED]
        return content

    def lines(self) -> list[str]:
        """Return the report as lines of text that say what each number means for training and evaluation."""
        text = [
            f"{self.n_records:,} records give {self.n_links:,} links between {self.a.n_items:,} distinct "
            f"{self.a.name} and {self.b.n_items:,} distinct {self.b.name} items.",
        ]
        for side, other in ((self.a, self.b), (self.b, self.a)):
            text += _side_lines(side, other)
        text += _listed("records have one valid side: kept as items without a link", self.unpaired)
        text += _listed("records or values were left out", self.skipped)
        return text + [f"Note: {note}." for note in self.notes]


def check_table(
    table: PairTable,
    identities_a: Sequence[HasIdentity | None] | None = None,
    identities_b: Sequence[HasIdentity | None] | None = None,
    texts: Sequence[SideName] = ("b",),
) -> CheckReport:
    """Return the counts of a table: items, duplicates, links per item, lengths, identity levels, weak descriptions.

    `identities_a`, `identities_b`: an identity per item (None where it has none) of the sides that hold molecules.
    `texts` names the sides that hold descriptions, whose quality is looked at unless they have identities. Raises
    `ArgumentError` when the identities are not as many as the items.
    """
    return CheckReport(
        n_records=table.n_records,
        n_links=len(table.links),
        a=_check_side(table, "a", identities_a, "a" in texts),
        b=_check_side(table, "b", identities_b, "b" in texts),
        unpaired=table.unpaired,
        skipped=table.skipped,
        notes=table.notes,
        sources=[asdict(source) for source in table.sources],
    )


def _check_side(
    table: PairTable, name: SideName, identities: Sequence[HasIdentity | None] | None, is_text: bool
) -> SideReport:
    side = table.side(name)
    if identities is not None and len(identities) != len(side):
        raise ArgumentError(f"{len(identities)} identities for the {len(side)} items of {name}; expected one for each")
    column = table.links.pairs[:, 0 if name == "a" else 1]
    n_links = np.bincount(column, minlength=len(side))
    described = is_text and identities is None
    quality = text_quality(side.items if described else [])
    return SideReport(
        name=side.name,
        n_items=len(side),
        n_records=len(np.unique(side.carriers[:, 1])),
        n_unlinked=int((n_links == 0).sum()),
        n_repeats=len(side.carriers) - len(side),
        n_same_normalised=len(side) - len({normalise(item) for item in side.items}) if described else 0,
        links_per_item=Quantiles.of(n_links[n_links > 0]),
        characters=Quantiles.of([len(item) for item in side.items]),
        words=Quantiles.of([len(item.split()) for item in side.items]),
        weak=quality.counts,
        weak_share=float(quality.weak.mean()) if described and len(side) else 0.0,
        identity=None if identities is None else _levels(side, identities),
    )


def _levels(side: Side, identities: Sequence[HasIdentity | None]) -> IdentityLevels:
    found = [identity for identity in identities if identity is not None]
    pairs = [(id_, identity) for id_, identity in zip(side.ids, identities, strict=True) if identity is not None]
    return IdentityLevels(
        n_items=len(side),
        exact=len({identity.exact for identity in found}),
        parent=len({identity.parent for identity in found}),
        skeleton=len({identity.skeleton for identity in found}),
        mixture_ids=[id_ for id_, identity in pairs if identity.mixture],
        fallback_ids=[id_ for id_, identity in pairs if identity.fallback],
        n_failed=len(identities) - len(found),
    )


def _side_lines(side: SideReport, other: SideReport) -> list[str]:
    links = side.links_per_item
    text = [
        f"{side.name}: {side.n_items:,} items, {_range(side.characters, 'characters')}, {_range(side.words, 'words')}.",
        f"  Each is linked to {links.mean:.2f} {other.name} items on average, at most {links.most:,.0f}; a search "
        "counts as right when it finds any of them.",
    ]
    if side.n_repeats:
        text.append(f"  {side.n_repeats:,} records repeat a value: it is one item, never its own negative.")
    if side.n_same_normalised:
        text.append(
            f"  {side.n_same_normalised:,} items equal another once hyphens, primes, Greek letters and case are of one "
            "form; they count as seen in training when the other was."
        )
    if side.n_unlinked:
        text.append(f"  {side.n_unlinked:,} have no link: outside training and metrics, but encoded and searchable.")
    if side.weak:
        rules = ", ".join(f"{count:,} {rule}" for rule, count in side.weak.items())
        text.append(
            f"  {100 * side.weak_share:.1f} % say too little to tell one item from another ({rules}); "
            'quality = "drop" leaves them out of training only.'
        )
    return text + (_identity_lines(side.identity) if side.identity is not None else [])


def _identity_lines(levels: IdentityLevels) -> list[str]:
    text = [
        f"  {levels.exact:,} structures are different, {levels.parent:,} without salts and charges, "
        f"{levels.skeleton:,} by skeleton; the split never cuts through a skeleton.",
    ]
    if levels.mixture_ids:
        text.append(
            f"  Mixtures: {len(levels.mixture_ids):,} ({_some(levels.mixture_ids)}); each goes with all its parts."
        )
    if levels.fallback_ids:
        text.append(
            f"  Without an InChIKey: {len(levels.fallback_ids):,} ({_some(levels.fallback_ids)}); the canonical SMILES "
            "tells them apart."
        )
    if levels.n_failed:
        text.append(f"  Without an identity: {levels.n_failed:,}.")
    return text


def _listed(what: str, entries: Sequence[Skipped]) -> list[str]:
    if not entries:
        return []
    text = [f"{len(entries):,} {what}:"]
    for reason, count in Counter(entry.reason for entry in entries).most_common(5):
        ids = [entry.id or f"record {entry.row}" for entry in entries if entry.reason == reason]
        text.append(f"  {count:,} because {reason[:200]} ({_some(ids)})")
    return text


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_SHOWN]) + (", .." if len(ids) > _SHOWN else "")


def _range(values: Quantiles, unit: str) -> str:
    return f"{values.least:,.0f} to {values.most:,.0f} {unit} (median {values.median:,.0f})"
