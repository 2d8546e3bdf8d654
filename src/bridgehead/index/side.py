"""What goes into an index for one side, checked before anything is written.

Owns the input record of a side. It is not about how they are stored (`store`, `vectors`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridgehead.errors import DuplicateIdError, ShapeError
from bridgehead.vectors import FloatArray, unit_rows


@dataclass(frozen=True, eq=False)
class IndexSide:
    """Items of one side with their rows in the shared space.

    `name`: the side's name as shown. `rows`: (n, d) finite floats, any norm; what is stored is their direction, and a
    zero row stays zero (its score is 0). `items`: n raw values; `ids`: n unique user's ids. `kind`: of what the items
    are ("molecule", "text", "rows"): the words of a text item are searchable, those of a structure are not. `names`:
    for each item its names and synonyms, the main one first. `keys`: for each item an exact key (InChIKey) or None.
    `payload`: for each item further fields that JSON can hold; `word_columns`: those whose words are searchable.
    """

    name: str
    rows: FloatArray
    items: Sequence[str]
    ids: Sequence[str]
    kind: str = "text"
    names: Sequence[Sequence[str]] | None = None
    payload: Sequence[Mapping[str, Any]] | None = None
    keys: Sequence[str | None] | None = None
    word_columns: Sequence[str] = field(default=())

    def checked_rows(self, side: str) -> FloatArray:
        """Return unit float32 rows after checking that everything fits together.

        Raises `ShapeError` (lengths), `DuplicateIdError` and `NonFiniteRowsError`; `side` is for the message.
        """
        rows = unit_rows(self.rows, f"rows of side {side}")
        for name in ("items", "ids", "names", "payload", "keys"):
            values = getattr(self, name)
            if values is not None and len(values) != len(rows):
                raise ShapeError(
                    f"side {side} ({self.name}) has {len(rows)} rows and {len(values)} {name}; expected one per row: "
                    "leave an item that could not be encoded out of both"
                )
        repeated = [value for value, count in Counter(self.ids).items() if count > 1]
        if repeated:
            raise DuplicateIdError(
                f"side {side} ({self.name}) has {len(repeated)} ids more than once ({', '.join(repeated[:10])}); "
                "expected a unique id for each item"
            )
        return rows.astype("float32", copy=False)

    def searchable_text(self, row: int) -> str:
        """Return the text of item `row` whose words are searchable: names, the item if a text, chosen payload."""
        texts = list(self.names[row]) if self.names is not None else []
        if self.kind == "text":
            texts.append(self.items[row])
        for column in self.word_columns if self.payload is not None else ():
            value = self.payload[row].get(column)  # type: ignore[index]
            texts.extend(map(str, value) if isinstance(value, list | tuple) else [] if value is None else [str(value)])
        return " ".join(texts)
