"""A finding: one claim about a run, what was measured, what was expected, and the verdict.

This module is not about how anything is measured; every audit has a file of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal, get_args

from bridgehead.errors import ArgumentError, ShapeError

Verdict = Literal["pass", "warn", "fail"]
Group = Literal["", "controls", "leakage", "shortcuts", "baseline", "false negatives", "data", "training", "geometry"]
"""What a claim is about; a table of findings is read group by group."""


@dataclass(frozen=True)
class Listing:
    """The cases behind a finding, worst first: the first of `total`, each a row of cells (text or numbers).

    Raises `ShapeError` when a row has another number of cells than there are columns.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    total: int
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ShapeError(f"row {number} of a listing has {len(row)} cells; expected {len(self.columns)}")


@dataclass(frozen=True)
class Finding:
    """What an audit found.

    `name` says what was looked at, `value` what was measured (a finite number), `expected` the claim it is held
    against, in words with the number, `verdict` whether it holds ("pass"), is doubtful ("warn") or does not ("fail"),
    and `why` what that means for the user. `group` is what it is about, `seconds` what it cost to find out (None where
    nobody took the time), `listed` the cases behind it. Raises `ArgumentError` for another verdict or group, or a value
    that is not finite.
    """

    name: str
    value: float
    expected: str
    verdict: Verdict
    why: str
    group: Group = ""
    seconds: float | None = None
    listed: Listing | None = None

    def __post_init__(self) -> None:
        if self.group not in get_args(Group):
            known = ", ".join(name for name in get_args(Group) if name)
            raise ArgumentError(f"finding {self.name!r} has the group {self.group!r}; expected one of {known}")
        if self.verdict not in get_args(Verdict):
            raise ArgumentError(f"verdict {self.verdict!r}; expected one of {', '.join(get_args(Verdict))}")
        is_number = isinstance(self.value, Real)
        if not is_number or not math.isfinite(self.value):
            raise ArgumentError(f"finding {self.name!r} has the value {self.value}; expected a finite number")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as entries that are JSON-safe where the cells of the listing are."""
        return asdict(self)

    @classmethod
    def of(cls, stored: dict[str, Any]) -> "Finding":
        """Return the finding of entries as `to_dict` gives them, such as those of a stored file."""
        listed = stored.get("listed")
        return cls(**{**stored, "listed": None if listed is None else Listing(**listed)})

    def line(self) -> str:
        """Return the finding as one line to print."""
        return f"{self.verdict.upper():4}  {self.name}: {self.value:.4g} (expected {self.expected}); {self.why}"
