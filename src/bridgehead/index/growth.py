"""What was added to and removed from a side since its vectors were built, held in memory and brought up to date.

Not about where it is stored (`items`) or how it is searched (`vectors`).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bridgehead.index.items.lookup import ItemLookup
from bridgehead.index.items.records import SIDES
from bridgehead.vectors import IntArray

Rows = npt.NDArray[np.float16]


@dataclass(frozen=True, eq=False)
class Growth:
    """Rows added to a side, and what it lost, at one change of the item file.

    `numbers` (m,) ascending and `rows` float16 (m, d) of the items that were added and are still there; `removed`:
    ascending numbers that are no more. `next_number`: numbers from it on are not in here yet. One growth follows from
    another one after the other, so what is written behind the arrays of an older one disturbs nobody.
    """

    numbers: IntArray
    rows: Rows
    removed: IntArray
    next_number: int
    room: tuple[IntArray, Rows] | None = None
    """Larger arrays that `numbers` and `rows` are the beginning of; what is added next is written behind them."""

    @classmethod
    def none(cls, dim: int) -> "Growth":
        """Return the growth of a side to which nothing has happened."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing, np.zeros((0, dim), dtype=np.float16), nothing, 0)

    def brought_up(self, items: ItemLookup, side: str, since: int, next_number: int) -> "Growth":
        """Return the growth that `items` sees, given that this one is of change `since`.

        Raises `ValueError` or `TypeError` for rows that are not what was written.
        """
        letter = SIDES.index(side)
        gone = np.array(
            items.rows("SELECT number FROM removed WHERE change > ? AND side = ? ORDER BY number", (since, letter)),
            dtype=np.int64,
        ).reshape(-1)
        fresh = items.rows(
            "SELECT number, row FROM added WHERE number >= ? AND side = ? ORDER BY number", (self.next_number, letter)
        )
        numbers, rows, room = self.numbers, self.rows, self.room
        kept = ~np.isin(numbers, gone)
        if not kept.all():
            numbers, rows, room = numbers[kept], rows[kept], None
        if fresh:
            joined = np.frombuffer(b"".join(row for _, row in fresh), dtype=np.float16).reshape(
                len(fresh), rows.shape[1]
            )
            if not np.isfinite(joined).all():
                raise ValueError("a row that was added is not finite")
            added = np.array([number for number, _ in fresh], dtype=np.int64)
            room = _with_room(numbers, rows, room, len(fresh))
            before, after = len(numbers), len(numbers) + len(fresh)
            room[0][before:after], room[1][before:after] = added, joined
            numbers, rows = room[0][:after], room[1][:after]
        return Growth(numbers, rows, np.union1d(self.removed, gone), next_number, room)


def _with_room(numbers: IntArray, rows: Rows, room: tuple[IntArray, Rows] | None, more: int) -> tuple[IntArray, Rows]:
    """Return arrays that begin with `numbers` and `rows` and have room for `more`; new ones are twice as long."""
    wanted = len(numbers) + more
    if room is not None and len(room[0]) >= wanted:
        return room
    length = max(wanted, 2 * len(numbers))
    larger = np.empty(length, dtype=np.int64), np.empty((length, rows.shape[1]), dtype=np.float16)
    larger[0][: len(numbers)], larger[1][: len(numbers)] = numbers, rows
    return larger
