"""The tasks of the sandbox: a fixed table of functions on plain data.

What they do is in `search` and `depict`; their limits are kept in `child`.
"""

from collections.abc import Callable
from typing import Any

from bridgehead.depict import picture_of
from bridgehead.search.inspection import held, inspect_pattern, inspect_texts


def inspect(text: str) -> str | None:
    """Return why a text is no structure, or None; see `inspect_texts`."""
    return inspect_texts([text])[0]


TASKS: dict[str, Callable[..., Any]] = {
    "inspect": inspect,
    "pattern": inspect_pattern,
    "depict": picture_of,
    "substructure": held,
}
"""Name -> function. `inspect(texts)`: why each is no structure, or None. `pattern(text)`: how it is read as a
substructure. `depict(item, kind)`: its picture as SVG, or None. `substructure(pattern, smiles)`: positions of those
that hold it."""

ONE_BY_ONE = frozenset(["inspect"])
"""Tasks that take a list and are done for each of it by itself, with the time of one."""

MOST_SECONDS = {"inspect": 0.5, "pattern": 0.5}
"""Seconds of processor time, where a task may not take all that there is: what passes is done once more in the process
that asked, where it holds up everybody. Structures of a thousand characters take 0.1 s."""


def warm_up() -> None:
    """Do each task once, so that no first call pays for loading libraries."""
    inspect("CCO")
    picture_of("CCO", "molecule")
    held("CO", ["CCO"])
