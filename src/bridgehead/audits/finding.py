"""A finding: one claim about a run, what was measured, what was expected, and the verdict.

This module is not about how anything is measured; every audit has a file of its own.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from bridgehead.errors import ArgumentError

Verdict = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """What an audit found.

    `name` says what was looked at, `value` what was measured (a finite number), `expected` the claim it is held
    against, in words with the number, `verdict` whether it holds ("pass"), is doubtful ("warn") or does not ("fail"),
    and `why` what that means for the user. Raises `ArgumentError` for another verdict or a value that is not finite.
    """

    name: str
    value: float
    expected: str
    verdict: Verdict
    why: str

    def __post_init__(self) -> None:
        if self.verdict not in get_args(Verdict):
            raise ArgumentError(f"verdict {self.verdict!r}; expected one of {', '.join(get_args(Verdict))}")
        if not math.isfinite(self.value):
            raise ArgumentError(f"finding {self.name!r} has the value {self.value}; expected a finite number")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-safe entries."""
        return asdict(self)

    def line(self) -> str:
        """Return the finding as one line to print."""
        return f"{self.verdict.upper():4}  {self.name}: {self.value:.4g} (expected {self.expected}); {self.why}"
