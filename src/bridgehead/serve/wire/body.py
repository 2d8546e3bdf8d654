"""Routes whose body is JSON: read once, checked against its model, and handed to the endpoint.

FastAPI writes the OpenAPI document from the endpoints' signatures; what happens on a request is here, since its own
reader takes NaN, runs out of stack on deep nesting, and costs more than the search. Not about the size of bodies
(`guard`).
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from bridgehead.serve.wire.refusals import ServiceRefusal, name_of, validation_message


class JsonRoute(APIRoute):
    """A route of an endpoint `(body: Model, request: Request) -> Response`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the reader of the body before the endpoint."""
        model: type[BaseModel] = inspect.signature(self.endpoint).parameters["body"].annotation
        endpoint = self.endpoint

        async def handler(request: Request) -> Response:
            _check_media_type(request.headers.get("content-type", ""))
            try:
                async with asyncio.timeout(request.app.state.read_seconds):
                    data = await request.body()
            except TimeoutError:
                raise ServiceRefusal(
                    408, name_of(408), "the body did not come in time", {"connection": "close"}
                ) from None
            body = read_body(data, model)
            # For the log, where that is to say what was asked.
            request.scope["asked"] = body
            found: Response = await endpoint(body, request)
            return found

        return handler


def read_body(data: bytes, model: type[BaseModel]) -> BaseModel:
    """Return `data` as `model`.

    Raises `ServiceRefusal` (422) for what is not JSON in UTF-8, holds NaN or infinity, is nested over 200 deep, or does
    not fit the model.
    """
    if not data:
        raise ServiceRefusal(422, name_of(422), "the body is empty; expected a JSON object")
    try:
        content = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise ServiceRefusal(422, name_of(422), f"the body is not JSON: {str(error)[:200]}") from None
    try:
        return model.model_validate(content)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False)
        raise ServiceRefusal(422, name_of(422), validation_message(faults)) from None


def _check_media_type(given: str) -> None:
    """Refuse what a page elsewhere could send without asking first: forms and plain text."""
    kind = given.partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise ServiceRefusal(415, name_of(415), f"a body of type {kind!r:.80}; expected application/json")
