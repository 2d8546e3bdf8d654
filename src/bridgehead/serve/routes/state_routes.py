"""What the service says of itself: what it serves, whether it is alive, whether it takes requests.

Not about searching.
"""

from typing import Any

from fastapi import FastAPI, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from bridgehead.serve.answers.service import Service
from bridgehead.serve.routes import models
from bridgehead.serve.routes.content import json_bytes
from bridgehead.serve.routes.space_routes import ERRORS, json_response
from bridgehead.serve.wire.refusals import ServiceRefusal, name_of

_NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {"model": models.ErrorAnswer, "description": "the service is going down"}
}


def add_state_routes(app: FastAPI, space: Service) -> None:
    """Add the routes."""

    @app.get("/about", response_model=models.AboutAnswer, responses=ERRORS, operation_id="about")
    async def about(request: Request) -> Response:
        """Say what is being served, what was measured of it, and whose data it is."""
        return json_response(await space.about(request.receive))

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        page = await space.aside(space.measures.page)
        return Response(page, headers={"cache-control": "no-store"}, media_type=CONTENT_TYPE_LATEST)

    @app.get("/health", response_model=models.StateAnswer, operation_id="health")
    async def health() -> Response:
        """Say that the process answers."""
        return json_response(json_bytes({"status": "alive"}))

    @app.get("/ready", response_model=models.StateAnswer, responses=_NOT_READY, operation_id="ready")
    async def ready() -> Response:
        """Say whether requests are taken."""
        if space.draining:
            raise ServiceRefusal(503, name_of(503), "the service is going down", {"retry-after": "1"})
        return json_response(json_bytes({"status": "ready"}))
