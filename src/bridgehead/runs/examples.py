"""The example queries of a config, answered by the spaces of a run: what a person would try first.

This module is not about search (`search`) or about how answers are shown (`report`).
"""

from collections.abc import Mapping
from typing import Any

from bridgehead.runs.config import ExampleQuery
from bridgehead.runs.work import Work
from bridgehead.search.answer import Hit
from bridgehead.search.space import Space

_HITS = 10
_SHOWN = 140


def answer_examples(work: Work, spaces: Mapping[str, Space]) -> list[dict[str, Any]]:
    """Answer the config's example queries with each space; returns JSON values, one mapping an example."""
    found = []
    for example in work.run.config.examples:
        stored: dict[str, Any] = {"query": example.query, "expected": example.expect or "", "answers": []}
        for heads, space in spaces.items():
            answer = space.answer(example.query, k=_HITS, of=example.of)
            stored["read_as"] = answer.explanation
            if example.expect:
                stored["expected"] = _called(space, example.expect)
            stored["answers"].append(
                {
                    "heads": heads,
                    "of": answer.of,
                    "hits": [_hit(hit, example.expect, work.run.config.pairs.b) for hit in answer.hits],
                    "expected_rank": _rank(space, example, answer.of),
                    "n_candidates": space.index.size(answer.of),
                }
            )
        found.append(stored)
    return found


def example_lines(examples: list[dict[str, Any]]) -> list[str]:
    """Return the examples' answers as lines to print."""
    lines = []
    for example in examples:
        lines.append(f'"{example["query"]}" ({example["read_as"]})')
        for answer in example["answers"]:
            seen = "evaluated heads" if answer["heads"] == "evaluated" else "after refit"
            lines.append(f"  {seen}, the first of {answer['n_candidates']:,} {answer['of']} items:")
            for hit in answer["hits"][:5]:
                mark = "*" if hit["expected"] else " "
                text = hit["text"] or hit["id"]
                lines.append(f"  {mark} {hit['rank']:>3}  {hit['score']:.3f}  {hit['name'][:70]:<30}  {text[:90]}")
            if example["expected"] and answer["expected_rank"] is None:
                lines.append(
                    f"    the expected {example['expected']} is no {answer['of']} of this index, or has no rank"
                )
            elif example["expected"]:
                lines.append(
                    f"    the expected {example['expected']} came at {answer['expected_rank']:,} of "
                    f"{answer['n_candidates']:,}"
                )
    return lines


def _rank(space: Space, example: ExampleQuery, of: str) -> int | None:
    """Return the rank of the expected item; None where there is none or the query has no row."""
    side = space.index.side_named(of)
    if not example.expect or not any(item.side == side for item in space.index.by_id(example.expect)):
        return None
    found = space.rank_of(example.query, example.expect, of=example.of)
    return None if found is None else found[0]


def _called(space: Space, id: str) -> str:
    """Return the name of an item with its id, the id alone where it has no name."""
    names = [item.names[0] for item in space.index.by_id(id) if item.names]
    return f"{names[0]} ({id})" if names else id


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1].rstrip()}…"


def _hit(hit: Hit, expected: str | None, text_column: str) -> dict[str, Any]:
    texts = hit.payload.get(text_column) or []
    return {
        "rank": hit.rank,
        "id": hit.id,
        "name": _cut(str(hit.payload.get("name") or hit.item)),
        "score": hit.score,
        "text": _cut(str(texts[0])) if isinstance(texts, list) and texts else "",
        "expected": hit.id == expected,
    }
