"""What a table of hits holds: one row a hit, and one for a query that has none or could not be answered.

Owns the columns and how parts become one file. Finding hits is in `searching`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridgehead.files import atomic_path
from bridgehead.search.answer import Answer
from bridgehead.search.batch.query_files import QueryRow

if TYPE_CHECKING:
    import polars as pl

COLUMNS = (
    "query_row", "query_id", "query", "read_as", "rank", "id", "name", "item", "score", "percentile", "also", "note",
    "failure",
)  # fmt: skip


class HitsTable:
    """Rows of hits, collected column by column and written as a part."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}

    def add(self, query: QueryRow, answer: Answer) -> None:
        """Add the hits of a query; one row without a rank where it has none."""
        if not answer.hits:
            # What a query was read as says what is not here, where nothing else does.
            note = answer.note or answer.reading.explanation
            self._append((query.row, query.id, query.text, answer.reading.kind, *(None,) * 7, note, None))
        for hit in answer.hits:
            name = hit.payload.get("name")
            self._append((
                query.row, query.id, query.text, hit.read_as, hit.rank, hit.id, name if name is None else str(name),
                hit.item, hit.score, hit.percentile, list(hit.also) or None, answer.note or None, None,
            ))  # fmt: skip

    def add_failure(self, query: QueryRow, reason: str) -> None:
        """Add a query that could not be answered, with the reason."""
        self._append((query.row, query.id, query.text or None, *(None,) * 9, reason))

    def _append(self, values: Sequence[Any]) -> None:
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def write(self, path: Path) -> None:
        """Write the rows as a parquet file, atomically."""
        import polars as pl

        frame = pl.DataFrame(self._columns, schema=_schema())
        atomic_path(path, frame.write_parquet)


def joined(parts: Sequence[Path], out: Path) -> None:
    """Write the parts, in their order, as one parquet file, atomically and without holding them in memory."""
    import polars as pl

    atomic_path(out, pl.scan_parquet(list(parts), glob=False).sink_parquet)


def _schema() -> "dict[str, pl.DataType | type[pl.DataType]]":
    import polars as pl

    texts: dict[str, Any] = dict.fromkeys(COLUMNS, pl.String)
    numbers = {"query_row": pl.Int64, "rank": pl.Int64, "score": pl.Float64, "percentile": pl.Float64}
    return {**texts, **numbers, "also": pl.List(pl.String)}
