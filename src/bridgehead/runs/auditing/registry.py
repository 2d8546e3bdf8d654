"""The audits that a run can have, in the order of the table; each is a function of `Work`.

This module is not about when they run (`stage`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from bridgehead.audits import Finding
from bridgehead.runs.work import Work


class NotApplicable(Exception):
    """An audit has nothing to look at in this run; the message says what it would need."""


@dataclass(frozen=True)
class Audit:
    """One audit: its name in the table and in `audit.skip`, and the function that makes its findings.

    `look` raises `NotApplicable` where it has nothing to look at. `trains` says that it costs trainings, so that it
    runs where it is asked for and not else.
    """

    name: str
    look: Callable[[Work], list[Finding]]
    trains: bool = False


def all_audits() -> tuple[Audit, ...]:
    """Return the audits in the order in which they run and are shown."""
    # Imported when they are asked for: they bring RDKit or scikit-learn with them.
    from bridgehead.runs.auditing import controls

    return (Audit("shuffled links", controls.shuffled_links),)
