"""What of a side may be found: conditions on payload and similarity as numbers, substructures hit by hit.

A condition and a similarity are answered for all items at once. A substructure is not: the screen by fingerprints
leaves candidates, and those are matched in the order in which they are ranked until a page is full, so that a benzene
ring among millions costs a few matches and not millions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bridgehead.index import IndexState
from bridgehead.search.query import Query
from bridgehead.vectors import IntArray

if TYPE_CHECKING:
    from bridgehead.index.structures import Verify

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Filters:
    """What a query lets pass of a side: `allowed` numbers, ascending, None for all; of these what `passes`."""

    allowed: IntArray | None = None
    passes: Callable[[IntArray], BoolArray] | None = None


def filters_of(state: IndexState, side: str, query: Query, verify: "Verify | None" = None) -> Filters:
    """Return the filters of a query over a side.

    `verify(pattern, structures)` matches a substructure; by default RDKit in this process. Raises `ArgumentError` for a
    field that no item has and for a side without structures, and `StructureError` for a structure that cannot be read.
    """
    condition = query.condition
    allowed = state.matching(side, condition) if condition is not None else None
    if query.similar_to is not None:
        from bridgehead.index.structures import similar_numbers

        allowed, _ = similar_numbers(state, side, query.similar_to, query.least_similarity, allowed)
    if query.substructure is None:
        return Filters(allowed)
    from bridgehead.index.structures import has_substructure, substructure_candidates

    candidates = substructure_candidates(state, side, query.substructure, allowed)
    return Filters(candidates, _Matching(state, side, query.substructure, verify or has_substructure))


@dataclass(frozen=True, eq=False)
class _Matching:
    """Says which items hold a substructure."""

    state: IndexState
    side: str
    pattern: str
    verify: Callable[[str, Sequence[str]], Any]

    def __call__(self, numbers: IntArray) -> BoolArray:
        if not len(numbers):
            return np.zeros(0, dtype=np.bool_)
        return np.asarray(self.verify(self.pattern, self.state.texts(self.side, numbers.tolist())), dtype=np.bool_)
