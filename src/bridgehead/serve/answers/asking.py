"""How each question is put to a space, and its answer written out: plain functions, in a worker thread.

Each takes the space last. Not about queues or threads (`service`).
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bridgehead.errors import ArgumentError
from bridgehead.search.query import Query
from bridgehead.serve.routes import models
from bridgehead.serve.routes.content import encode_content, item_content, json_bytes, search_content
from bridgehead.serve.settings import MAX_PROMPTS


@dataclass(frozen=True, slots=True)
class Question:
    """A query, with the text that the answer repeats and when it came (`time.perf_counter`)."""

    query: Query
    came: float


def bodies(questions: Sequence[Question], space: Any) -> list[Any]:
    """Return the body of `/search` for each question, or the error that it gets."""
    if not questions:
        return []
    answers = _answers(space, [one.query for one in questions])
    return [
        answer if isinstance(answer, BaseException) else _body_of(space, one, answer)
        for one, answer in zip(questions, answers, strict=True)
    ]


def warm_up(space: Any) -> None:
    """Ask a question of each kind, so that no client waits for libraries; what goes wrong is theirs to see."""
    readings = [("water binds", "text"), *([("CCO", "smiles")] if "molecule" in space.kinds.values() else [])]
    for text, read_as in readings:
        with contextlib.suppress(Exception):
            space.answer_all([Query(text, of=side, read_as=read_as) for side in space.names])


def similar(identifier: str, k: int, offset: int, of: str | None, where: str | None, space: Any) -> bytes:
    """Return the body of `/similar/{id}`."""
    came = time.perf_counter()
    answer = space.similar(identifier, k, offset, of=of, where=where)
    return _body(space, identifier, k, offset, answer, came)


def stored_item(identifier: str, of: str | None, space: Any) -> tuple[Any, str]:
    """Return an item and the kind of its side; raises `UnknownIdError`."""
    found = space.item(identifier, of)
    return found, space.kinds[found.side]


def item(identifier: str, of: str | None, space: Any) -> bytes:
    """Return the body of `/items/{id}`."""
    found, kind = stored_item(identifier, of, space)
    return json_bytes(item_content(found, space.names[found.side], kind))


def encoded(body: models.EncodeRequest, space: Any) -> bytes:
    """Return the body of `/encode`."""
    side = space.side(body.of)
    rows, failures = space.encode(body.items, side)
    return json_bytes(encode_content(space.names[side], rows, failures))


def prompts_of(body: models.ClassifyRequest) -> list[str]:
    """Return every text that the labels of a request will be read as.

    Raises `ArgumentError` where they are more than `MAX_PROMPTS`.
    """
    names = [*body.labels, *(name for names in (body.synonyms or {}).values() for name in names)]
    if len(names) * len(body.templates) > MAX_PROMPTS:
        raise ArgumentError(
            f"{len(names):,} labels and synonyms in {len(body.templates):,} templates; at most {MAX_PROMPTS:,} together"
        )
    return [template.replace("{}", name) for template in body.templates for name in names]


def classified(body: models.ClassifyRequest, space: Any) -> bytes:
    """Return the body of `/classify`."""
    found = space.classify(body.items, body.labels, body.templates, body.k, body.abstain_below, body.synonyms, body.of)
    return json_bytes(found.to_dict())


def _answers(space: Any, queries: Sequence[Query]) -> list[Any]:
    """Return an answer or an error for each query; a fault of ours with one of them costs the others nothing."""
    try:
        return list(space.answer_all(queries))
    except Exception as error:
        if len(queries) == 1:
            return [error]
        return [_answers(space, [query])[0] for query in queries]


def _body_of(space: Any, asked: Question, answer: Any) -> bytes:
    query = asked.query
    return _body(space, query.text, query.k, query.offset, answer, asked.came)


def _body(space: Any, text: str, k: int, offset: int, answer: Any, came: float) -> bytes:
    took = round(1e3 * (time.perf_counter() - came), 3)
    return json_bytes(search_content(space, text, k, offset, answer, took))
