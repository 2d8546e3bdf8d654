"""One question to a space, checked when it is made.

What can be wrong with a query whatever the space is refused here, before anything is encoded; what needs the space (the
name of a side, a field of the payload) is refused where it is asked. How a text is read is in `reading`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from bridgehead.errors import ArgumentError
from bridgehead.index import check_page
from bridgehead.index.where import Where, parse_where, where_from_json
from bridgehead.search.reading import READINGS, checked_text

Mode = Literal["space", "words", "hybrid"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True)
class Query:
    """What is asked: a `text`, and how.

    `k` hits after the first `offset`. `of`: the side to find, by its shown name or "a"/"b"; by default the one that the
    text is not on. `read_as`: one of `READINGS`, or None for the first that fits. `where`: a condition on the payload,
    as text (`ic50_nM < 100 and approved = true`), as the object that is its JSON form, or as a `Where`. `mode`: "space"
    (nearest rows), "words" (BM25) or "hybrid" (both lists, fused by rank). `distinct`: of items that are one thing,
    only the first is a hit. `substructure`: SMILES or SMARTS that hits must contain. `similar_to`: a SMILES to which
    hits must have a Tanimoto similarity of at least `least_similarity`. `explain`: say of each hit why it is there.

    Raises `ArgumentError`; `where` that cannot be read is refused here too.
    """

    text: str
    k: int = 10
    offset: int = 0
    of: str | None = None
    read_as: str | None = None
    where: Where | Mapping[str, Any] | str | None = None
    mode: Mode = "space"
    distinct: bool = False
    substructure: str | None = None
    similar_to: str | None = None
    least_similarity: float = 0.7
    explain: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", checked_text(self.text))
        check_page(self.k, self.offset)
        object.__setattr__(self, "where", _read_where(self.where))
        if self.mode not in MODES:
            raise ArgumentError(f"mode = {self.mode!r}; expected one of {', '.join(MODES)}")
        if self.read_as is not None and self.read_as not in READINGS:
            raise ArgumentError(
                f"read_as = {self.read_as!r}; expected one of {', '.join(READINGS)}, or None for the usual order"
            )
        for name in ("of", "substructure", "similar_to"):
            _check_text(name, getattr(self, name))
        for name in ("distinct", "explain"):
            if not isinstance(getattr(self, name), bool):
                raise ArgumentError(f"{name} = {getattr(self, name)!r}; expected True or False")
        _check_share(self.least_similarity)

    def asking(self, text: str) -> "Query":
        """Return the same question about another text; raises `ArgumentError` for an empty or overlong one."""
        return replace(self, text=text)

    @property
    def condition(self) -> Where | None:
        """What `where` came to, None where there is none."""
        return self.where if isinstance(self.where, Where) else None


def _read_where(where: Any) -> Where | None:
    if isinstance(where, str):
        return parse_where(where)
    if isinstance(where, Mapping):
        return where_from_json(where)
    if where is not None and not isinstance(where, Where):
        raise ArgumentError(
            f"where is a {type(where).__name__} ({where!r:.80}); expected text, a JSON object, a Where, or None"
        )
    return where


_MEANT = {"of": "the name of a side", "substructure": "a SMILES or SMARTS", "similar_to": "a SMILES"}


def _check_text(name: str, value: Any) -> None:
    if isinstance(value, str) and not value.strip():
        raise ArgumentError(f"{name} is empty; expected {_MEANT[name]}, or None")
    if value is not None and not isinstance(value, str):
        raise ArgumentError(f"{name} = {value!r:.80}; expected {_MEANT[name]}, or None")


def _check_share(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise ArgumentError(f"least_similarity = {value!r}; expected a Tanimoto similarity in [0, 1]")
