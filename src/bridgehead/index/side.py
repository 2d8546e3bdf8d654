"""What goes into an index for one side, checked before anything is written.

Owns the input record of a side. It is not about how items and rows are stored (`items`, `vectors`).
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bridgehead.errors import DuplicateIdError, NonFiniteRowsError, ShapeError
from bridgehead.index.vectors.sources import RowShards, RowSource, as_source
from bridgehead.vectors import FloatArray, check_rows, non_finite_rows, unit_rows

__all__ = ["IndexSide", "RowShards"]

_BLOCK = 8192
_SHOWN = 10


@dataclass(frozen=True, eq=False)
class IndexSide:
    """Items of one side with their rows in the shared space.

    `name`: the side's name as shown. `rows`: (n, d) finite floats, any norm, as an array, a memory-mapped one or
    `RowShards`; what is stored is their direction, and a zero row stays zero (its score is 0). `items`: n raw values;
    `ids`: n unique user's ids; these and all that follows may be lazy sequences. `kind`: of what the items are
    ("molecule", "text", "rows"): the words of a text item are searchable, those of a structure are not. `names`: for
    each item its names and synonyms, the main one first. `keys`: for each item an exact key (InChIKey) or None.
    `payload`: for each item further fields that JSON can hold; `word_columns`: those whose words are searchable.
    `entities`: for each item what it is a view of, or None; items of an equal entity are one thing. `origin`: who put
    the items there, "run" or "sync", one for all or one for each. `structures`: whether the structures of a side of
    kind "molecule" can be searched (which takes 512 bytes an item).
    """

    name: str
    rows: Any
    items: Sequence[str]
    ids: Sequence[str]
    kind: str = "text"
    names: Sequence[Sequence[str]] | None = None
    payload: Sequence[Mapping[str, Any]] | None = None
    keys: Sequence[str | None] | None = None
    word_columns: Sequence[str] = field(default=())
    entities: Sequence[str | None] | None = None
    origin: str | Sequence[str] = "run"
    structures: bool = True

    def source(self) -> RowSource:
        """Return the rows as something to go through in blocks."""
        return as_source(self.rows)

    def origin_of(self, row: int) -> str:
        """Return who put item `row` there."""
        return self.origin if isinstance(self.origin, str) else self.origin[row]

    def check(self, side: str) -> str:
        """Check that everything fits together and return the hash (hex) of the rows; reads them once, in blocks.

        Raises `ShapeError` (lengths), `DuplicateIdError` and `NonFiniteRowsError`; `side` is for the message.
        """
        rows = self.source()
        self._check_lengths(side, rows.shape[0])
        digest = hashlib.sha256(f"{rows.shape}".encode())
        bad: list[int] = []
        start = 0
        for block in rows.blocks(_BLOCK):
            bad += (start + non_finite_rows(block)).tolist()
            digest.update(f"{block.dtype.str}".encode())
            digest.update(np.ascontiguousarray(block).data)
            start += len(block)
        if bad:
            shown = ", ".join(str(self.ids[row]) for row in bad[:_SHOWN])
            raise NonFiniteRowsError(
                f"rows of side {side} ({self.name}): {len(bad)} of {start} hold NaN or infinity (ids {shown}); "
                "expected finite numbers: leave these items out"
            )
        return digest.hexdigest()

    def _check_lengths(self, side: str, n: int) -> None:
        for name in ("items", "ids", "names", "payload", "keys", "entities", "origin"):
            values = getattr(self, name)
            if values is not None and not isinstance(values, str) and len(values) != n:
                raise ShapeError(
                    f"side {side} ({self.name}) has {n} rows and {len(values)} {name}; expected one per row: "
                    "leave an item that could not be encoded out of both"
                )
        if len(set(self.ids)) < n:
            repeated = [value for value, count in Counter(self.ids).items() if count > 1]
            raise DuplicateIdError(
                f"side {side} ({self.name}) has {len(repeated)} ids more than once ({', '.join(repeated[:_SHOWN])}); "
                "expected a unique id for each item"
            )

    def checked_rows(self, side: str) -> FloatArray:
        """Return all rows as unit float32 rows (n, d) after `check`; for a side that fits in memory."""
        self.check(side)
        blocks = [check_rows(block) for block in self.source().blocks(_BLOCK)]
        rows = np.concatenate(blocks) if blocks else np.zeros(self.source().shape, np.float32)
        return unit_rows(rows, f"rows of side {side}").astype(np.float32, copy=False)

    def searchable_text(self, row: int) -> str:
        """Return the text of item `row` whose words are searchable: names, the item if a text, chosen payload."""
        texts = list(self.names[row]) if self.names is not None else []
        if self.kind == "text":
            texts.append(self.items[row])
        for column in self.word_columns if self.payload is not None else ():
            value = self.payload[row].get(column)  # type: ignore[index]
            texts.extend(map(str, value) if isinstance(value, list | tuple) else [] if value is None else [str(value)])
        return " ".join(texts)
