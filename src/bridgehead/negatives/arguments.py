"""What samplers, mining and the bank are given, checked in one place: whole numbers, and links that are `Links`.

This module is not about settings from a config, which pydantic checks (`config`).
"""

import operator
from typing import Any

from bridgehead.errors import ArgumentError
from bridgehead.links import Links


def whole(name: str, value: Any, low: int, why: str = "") -> int:
    """Return `value`, an integer of Python or numpy, as an int of at least `low`. Raises `ArgumentError`."""
    try:
        number = low - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = low - 1
    if number < low:
        raise ArgumentError(f"{name} = {value!r:.80}; expected at least {low}{why} (a whole number)")
    return number


def only_links(links: Any) -> Links:
    """Return `links`. Raises `ArgumentError` where they are pairs, which do not say how many rows each side has."""
    if not isinstance(links, Links):
        raise ArgumentError(f"links is a {type(links).__name__}; expected Links: bh.Links(pairs, n_a, n_b)")
    return links
