"""Records of the library as the JSON that the interface promises (`models`).

Answers are written straight to bytes: the models say what is promised and tests hold these functions to them, so no
answer is checked again while somebody waits. Not about status codes or headers.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic_core import to_json

from bridgehead.depict import has_pictures


def json_bytes(content: Any) -> bytes:
    """Return `content` as JSON in UTF-8; NaN and infinity become null, half a character a question mark."""
    try:
        return to_json(content, inf_nan_mode="null")
    except (UnicodeEncodeError, ValueError):
        # A payload may hold what no UTF-8 can write.
        return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")


def search_content(space: Any, query: str, k: int, offset: int, answer: Any, took_ms: float) -> dict[str, Any]:
    """Return the body of `/search` and `/similar` for an `Answer` of `space`."""
    side = space.side(answer.of)
    kind = space.kinds[side]
    drawn = has_pictures(kind)
    reading = answer.reading
    return {
        "query": query,
        "reading": {
            "kind": reading.kind, "value": reading.value, "side": reading.side, "explanation": reading.explanation,
        },
        "readings": list(answer.readings),
        "of": answer.of,
        "kind": kind,
        "note": answer.note,
        "k": k,
        "offset": offset,
        "n_searched": answer.n_searched,
        "more": answer.more,
        "took_ms": took_ms,
        "hits": [_hit(hit, side, drawn) for hit in answer.hits],
    }  # fmt: skip


def item_content(item: Any, of: str, kind: str) -> dict[str, Any]:
    """Return the body of `/items/{id}` for an `Item` of the side that is shown as `of`."""
    return {
        "id": item.id,
        "side": item.side,
        "of": of,
        "kind": kind,
        "item": item.item,
        "name": item.names[0] if item.names else None,
        "names": list(item.names),
        "key": item.key or None,
        "payload": dict(item.payload),
        "has_picture": has_pictures(kind),
    }


def encode_content(of: str, rows: Any, failures: Mapping[int, str]) -> dict[str, Any]:
    """Return the body of `/encode`: rows (n, d) of the items that have one, and why the others have none."""
    return {
        "of": of,
        "dim": int(rows.shape[1]),
        "rows": rows.tolist(),
        "failures": [{"position": position, "reason": reason} for position, reason in sorted(failures.items())],
    }


def _hit(hit: Any, side: str, drawn: bool) -> dict[str, Any]:
    payload = dict(hit.payload)
    name = payload.get("name")
    if isinstance(names := payload.get("names"), list) and names[:1] == [name]:
        # The item's own names, which may be hundreds: `/items/{id}` gives them.
        del payload["names"]
    return {
        "rank": hit.rank,
        "id": hit.id,
        "side": side,
        "score": hit.score,
        "percentile": hit.percentile,
        "item": hit.item,
        "name": name if isinstance(name, str) else None,
        "payload": payload,
        "read_as": hit.read_as,
        "has_picture": drawn,
        "also": list(hit.also),
        "explanation": None if hit.explanation is None else _explanation(hit.explanation),
    }


def _explanation(found: Any) -> dict[str, Any]:
    return {
        "similarity": found.similarity,
        "percentile": found.percentile,
        "nearest_pair": None if found.nearest_pair is None else asdict(found.nearest_pair),
        "matched_words": list(found.matched_words),
        "ranks": dict(found.ranks),
    }
