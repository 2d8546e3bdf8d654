"""Items of the evaluation as the report shows them: drawn, cut to a line, with their ids; and the queries picked out.

This module is not about which queries are picked (`report.picking`) or how a page looks (`report`).
"""

from typing import Any

import numpy as np

from bridgehead.depict import has_pictures, picture_of, shown_text
from bridgehead.evaluate import DirectionReport
from bridgehead.report import Item, QueryCase, QueryCases, pick_queries
from bridgehead.runs.pools import SideName
from bridgehead.runs.work import Work
from bridgehead.vectors import FloatArray, IntArray

_CASES = 20
_MOST_TRUE = 2
_DIRECTIONS: tuple[tuple[str, SideName, SideName], ...] = (("a_to_b", "a", "b"), ("b_to_a", "b", "a"))


class ShownItems:
    """The rows of an evaluation as items to show; each is drawn once."""

    def __init__(self, work: Work) -> None:
        config = work.run.config.pairs
        self._kind = {"a": config.kind_a, "b": config.kind_b}
        self._items = {"a": work.items("a"), "b": work.items("b")}
        self._ids = {"a": work.asked.ids_a, "b": work.asked.ids_b}
        self._made: dict[tuple[str, int], Item] = {}

    def item(self, side: str, row: int) -> Item:
        """Return the item of a row of side "a" or "b"."""
        key = (side, row)
        if key not in self._made:
            value, kind = self._items[side][row], self._kind[side]
            picture = picture_of(value, kind) if has_pictures(kind) else None
            self._made[key] = Item(self._ids[side][row], shown_text(value), picture)
        return self._made[key]


def query_cases(work: Work, shown: ShownItems) -> list[QueryCases]:
    """Return the best, median and worst twenty queries of both directions, each entity once in a list."""
    measured = work.evaluation
    rows = {"a": measured.z_a, "b": measured.z_b}
    names = dict(zip("ab", work.run.config.pairs.shown, strict=True))
    found = []
    for direction, query, candidate in _DIRECTIONS:
        report = getattr(measured.all, direction)
        links = work.asked.part.links if query == "a" else work.asked.part.links.swapped()
        lists = work.asked.lists_a if query == "a" else work.asked.lists_b
        for kind, picked in pick_queries(report.ranks, report.true_scores, report.entities, _CASES).items():
            cases = _cases(report, picked, (rows[query], rows[candidate]), links, lists, shown, (query, candidate))
            found.append(QueryCases(kind, names[query], names[candidate], cases))
    return found


def _cases(
    report: DirectionReport,
    picked: IntArray,
    rows: tuple[FloatArray, FloatArray],
    links: Any,
    lists: Any,
    shown: ShownItems,
    sides: tuple[str, str],
) -> list[QueryCase]:
    edges, targets = links.targets()
    asking = report.queries[picked]
    scores = rows[0][asking] @ rows[1].T
    cases = []
    for position, row, own in zip(picked.tolist(), asking.tolist(), scores, strict=True):
        true = targets[edges[row] : edges[row + 1]]
        ranked = np.arange(len(own)) if lists is None else lists[1][lists[0][row] : lists[0][row + 1]]
        first = int(ranked[np.argmax(own[ranked])]) if len(ranked) else -1
        best = true[np.argsort(-own[true], kind="stable")][:_MOST_TRUE]
        missed = first >= 0 and first not in true
        cases.append(
            QueryCase(
                query=shown.item(sides[0], row),
                rank=float(report.ranks[position]),
                n_candidates=len(ranked),
                true=[shown.item(sides[1], int(one)) for one in best.tolist()],
                n_true=len(true),
                score=float(own[best[0]]),
                first=shown.item(sides[1], first) if missed else None,
                first_score=float(own[first]) if missed else None,
            )
        )
    return cases
