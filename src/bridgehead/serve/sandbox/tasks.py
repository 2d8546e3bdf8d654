"""The tasks of the sandbox: a fixed table of functions on plain data.

What they do is in `search` and `depict`; their limits are in `child`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bridgehead.depict import picture_of
from bridgehead.errors import SandboxLimitError
from bridgehead.search.inspection import held, inspect_pattern, inspect_texts

MOST_ELSEWHERE = 0.5
"""Seconds of processor time that a text may have taken here to be read in the process that asks, where the same work
holds up everybody. Structures of a thousand characters take 0.1 s."""


def inspect(texts: Sequence[str]) -> list[str | None]:
    """See `inspect_texts`; raises `SandboxLimitError` for a text that takes over `MOST_ELSEWHERE`."""
    reasons = []
    for text in texts:
        with _quick():
            reasons += inspect_texts([text])
    return reasons


def pattern(text: str) -> dict[str, Any]:
    """See `inspect_pattern`; raises `SandboxLimitError` for a text that takes over `MOST_ELSEWHERE`."""
    with _quick():
        return inspect_pattern(text)


@contextmanager
def _quick() -> Iterator[None]:
    start = time.process_time()
    yield
    if time.process_time() - start > MOST_ELSEWHERE:
        raise SandboxLimitError(f"reading the structure takes longer than {MOST_ELSEWHERE:g} s; it is refused")


TASKS: dict[str, Callable[..., Any]] = {
    "inspect": inspect,
    "pattern": pattern,
    "depict": picture_of,
    "substructure": held,
}
"""Name -> function. `inspect(texts)`: why each is no structure, or None. `pattern(text)`: how it is read as a
substructure. `depict(item, kind)`: its picture as SVG, or None. `substructure(pattern, smiles)`: positions of those
that hold it."""


def warm_up() -> None:
    """Do each task once, so that no first call pays for loading libraries."""
    inspect_texts(["CCO"])
    picture_of("CCO", "molecule")
    held("CO", ["CCO"])
