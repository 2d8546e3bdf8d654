"""The tasks of the sandbox: a fixed table of functions on plain data.

What they do is in `search` and `depict`; their limits are in `child`.
"""

from collections.abc import Callable
from typing import Any

from bridgehead.depict import picture_of
from bridgehead.search.inspection import held, inspect_pattern, inspect_texts

TASKS: dict[str, Callable[..., Any]] = {
    "inspect": inspect_texts,
    "pattern": inspect_pattern,
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
