"""The page, its files, the report of the run, and pictures: what a browser shows rather than reads.

Each has a policy of its own that says what it may load. Not about the page itself (`page`).
"""

import hashlib
from functools import lru_cache
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request
from starlette.responses import Response

from bridgehead.errors import InputFileNotFoundError
from bridgehead.serve.answers.service import Service
from bridgehead.serve.page import page_file
from bridgehead.serve.routes.about import report_file
from bridgehead.serve.routes.space_routes import WITH_ID, Id, Of
from bridgehead.serve.wire.page_headers import PAGE_POLICY, PICTURE_POLICY, REPORT_POLICY
from bridgehead.serve.wire.refusals import ServiceRefusal, name_of

_PICTURE: dict[int | str, dict[str, Any]] = {
    **WITH_ID,
    200: {"content": {"image/svg+xml": {"schema": {"type": "string"}}}, "description": "the picture"},
    304: {"description": "the picture is the one that the client has"},
}


def is_known(request: Request, tag: str) -> bool:
    """Say whether the client has what is called `tag`."""
    return tag in [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]


def kept_response(request: Request, body: bytes, kind: str, tag: str, policy: str, cache: str) -> Response:
    """Return `body` with its ETag, or 304 where the client has just this."""
    headers = {"etag": tag, "cache-control": cache, "content-security-policy": policy}
    if is_known(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=kind)


def add_page_routes(app: FastAPI, space: Service) -> None:
    """Add the routes."""

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return _file(request, "index.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: Annotated[str, Path(max_length=100)], request: Request) -> Response:
        return _file(request, name)

    @app.get("/report", include_in_schema=False)
    async def report(request: Request) -> Response:
        path = report_file(space.holder.folder)
        if path is None:
            raise ServiceRefusal(404, name_of(404), "this run has no report yet")
        stat = path.stat()
        tag = f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"'
        body = b"" if is_known(request, tag) else await space.aside(path.read_bytes)
        return kept_response(request, body, "text/html; charset=utf-8", tag, REPORT_POLICY, "no-cache")

    @app.get("/depict/{id:id}", response_class=Response, responses=_PICTURE, operation_id="depict")
    async def depict(id: Id, request: Request, of: Of = None) -> Response:
        """Draw an item, where its kind can be drawn."""
        found = await space.picture(id, of, request.receive)
        if found is None:
            raise ServiceRefusal(404, name_of(404), "this item has no picture")
        return kept_response(request, found[0], "image/svg+xml", found[1], PICTURE_POLICY, "private, max-age=300")


def _file(request: Request, name: str) -> Response:
    try:
        body, kind = page_file(name)
    except InputFileNotFoundError:
        raise ServiceRefusal(404, name_of(404), "the page has no such file") from None
    return kept_response(request, body, kind, _tag(body), PAGE_POLICY, "no-cache")


@lru_cache(maxsize=64)
def _tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:24]}"'
