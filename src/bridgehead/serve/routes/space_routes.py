"""The routes that ask the space: search, items, their neighbours and pictures, classification, encoding.

Not about how the space is asked (`service`).
"""

from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response

from bridgehead.search.query import Query as SpaceQuery
from bridgehead.serve.answers import asking
from bridgehead.serve.answers.service import Service
from bridgehead.serve.routes import models
from bridgehead.serve.settings import MAX_ID, MAX_K, MAX_OFFSET, MAX_TEXT
from bridgehead.serve.wire.body import JsonRoute
from bridgehead.serve.wire.page_headers import DATA_POLICY

ERRORS: dict[int | str, dict[str, Any]] = {
    422: {"model": models.ErrorAnswer, "description": "what is wrong in the request"},
    401: {"model": models.ErrorAnswer, "description": "the token is missing or wrong"},
    503: {"model": models.ErrorAnswer, "description": "too many requests wait; see Retry-After"},
    504: {"model": models.ErrorAnswer, "description": "the time limit passed"},
}
WITH_BODY: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    408: {"model": models.ErrorAnswer, "description": "the body did not come in time"},
    413: {"model": models.ErrorAnswer, "description": "the body is too large"},
    415: {"model": models.ErrorAnswer, "description": "the body is not application/json"},
}
WITH_ID: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    404: {"model": models.ErrorAnswer, "description": "no item has this id"},
}
Id = Annotated[str, Path(min_length=1, max_length=MAX_ID, description="the user's own id; slashes may stand in it")]


class _AnyText(Convertor[str]):
    """A part of an address that may hold every sign: starlette's own `path` ends at a line break."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", _AnyText())
Of = Annotated[str | None, Query(max_length=200, description="shown name of a side, or `a` or `b`")]
_HEADERS = {"cache-control": "no-store", "content-security-policy": DATA_POLICY}


def json_response(body: bytes) -> Response:
    """Return an answer of JSON that nobody keeps."""
    return Response(body, headers=_HEADERS, media_type="application/json")


def add_space_routes(app: FastAPI, space: Service) -> None:
    """Add the routes."""

    async def search(body: models.SearchRequest, request: Request) -> Response:
        """Find what belongs to a query on the other side, or on the one named in `of`."""
        return json_response(await space.search(_query(body), request.receive))

    async def classify(body: models.ClassifyRequest, request: Request) -> Response:
        """Put items to the nearest of described classes; shares are among these labels and no probabilities."""
        await space.vet([*body.items, *asking.prompts_of(body)])
        return json_response(await space.call(partial(asking.classified, body), request.receive, slow=True))

    async def encode(body: models.EncodeRequest, request: Request) -> Response:
        """Turn items into rows of the space, of unit length."""
        await space.vet(body.items)
        work = partial(asking.encoded, body)
        return json_response(await space.call(work, request.receive, slow=True))

    for endpoint, answer in (
        (search, models.SearchAnswer),
        (classify, models.ClassifyAnswer),
        (encode, models.EncodeAnswer),
    ):
        app.router.add_api_route(
            f"/{endpoint.__name__}", endpoint, methods=["POST"], response_model=answer, responses=WITH_BODY,
            route_class_override=JsonRoute, operation_id=endpoint.__name__,
        )  # fmt: skip

    @app.get("/items/{id:id}", response_model=models.ItemAnswer, responses=WITH_ID, operation_id="item")
    async def item(id: Id, request: Request, of: Of = None) -> Response:
        """Give an item as it is stored."""
        return json_response(await space.call(partial(asking.item, id, of), request.receive))

    @app.get("/similar/{id:id}", response_model=models.SearchAnswer, responses=WITH_ID, operation_id="similar")
    async def similar(
        id: Id,
        request: Request,
        of: Of = None,
        k: Annotated[int, Query(ge=1, le=MAX_K)] = 10,
        offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
        filter: Annotated[str | None, Query(min_length=1, max_length=MAX_TEXT)] = None,
    ) -> Response:
        """Find items of the side `of` (by default the item's own) that are like an item."""
        work = partial(asking.similar, id, k, offset, of, filter)
        return json_response(await space.call(work, request.receive))


def _query(body: models.SearchRequest) -> SpaceQuery:
    return SpaceQuery(
        body.q, k=body.k, offset=body.offset, of=body.of, read_as=body.read_as, where=body.filter, mode=body.mode,
        distinct=body.distinct, substructure=body.substructure, similar_to=body.similar_to,
        least_similarity=body.least_similarity, explain=body.explain,
    )  # fmt: skip
