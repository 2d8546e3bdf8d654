"""The ASGI application: every route, the form of errors, start and stop.

Endpoints are thin: what is asked goes to `Service`, and bytes come back. Not about who may ask (`guard`) or where it
listens (`listening`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from bridgehead import __version__
from bridgehead.serve.answers.holder import SpaceHolder
from bridgehead.serve.answers.service import Service
from bridgehead.serve.log import RequestLog
from bridgehead.serve.routes.page_routes import add_page_routes
from bridgehead.serve.routes.space_routes import add_space_routes
from bridgehead.serve.routes.state_routes import add_state_routes
from bridgehead.serve.settings import ServeSettings
from bridgehead.serve.wire.guard import LOOPBACK, Exchange, Guard
from bridgehead.serve.wire.refusals import error_response, name_of, validation_message

_DESCRIPTION = """Search across two aligned modalities. Every error has one form,
`{"error": {"type": ..., "message": ...}}`: 422 for what is wrong in a request, 404 for an unknown id, 413 for a body
that is too large, 503 with `Retry-After` where too many wait, 504 where the time limit passed."""


def make_app(
    holder: SpaceHolder,
    settings: ServeSettings | None = None,
    token: str | None = None,
    hosts: frozenset[str] | None = LOOPBACK,
    log: RequestLog | None = None,
) -> FastAPI:
    """Return the application that answers for the space in `holder`.

    `token`: demanded from everybody where given. `hosts`: names that the Host header may have (a page elsewhere that
    calls itself this machine is refused), None for any. `log`: where requests are told, by default to standard error.
    """
    settings = settings or ServeSettings()
    log = log or RequestLog(settings.log_queries)
    service = Service(holder, settings, log)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            await service.start()
        except Exception as error:
            # The server underneath ends at this with a status of its own and without the reason.
            app.state.failure = error
            raise
        try:
            yield
        finally:
            await service.stop()
            log.flush()

    app = FastAPI(
        title="bridgehead", version=__version__, description=_DESCRIPTION, docs_url=None, redoc_url=None,
        lifespan=lifespan, redirect_slashes=False,
    )  # fmt: skip
    app.state.service = service
    app.state.failure = None
    app.state.read_seconds = settings.read_seconds
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)

    def told(exchange: Exchange) -> None:
        service.measures.told(exchange.route, exchange.status, exchange.seconds)
        log.request(exchange)

    app.add_middleware(Guard, token=token, hosts=hosts, most=settings.max_body_bytes, told=told)
    add_space_routes(app, service)
    add_page_routes(app, service)
    add_state_routes(app, service)
    return app


async def _http_error(request: Request, error: Any) -> Response:
    headers = dict(error.headers or {})
    if error.status_code == 405:
        allowed = headers.get("Allow", "GET")
        headers["Allow"] = ", ".join([allowed, *(["HEAD"] if "GET" in allowed else []), "OPTIONS"])
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=headers)
    said = {404: "there is nothing at this address; see /openapi.json", 405: "this address has no such method"}
    status = error.status_code
    return error_response(status, name_of(status), said.get(status, "the request is refused"), headers)


async def _validation_error(request: Request, error: Any) -> Response:
    return error_response(422, name_of(422), validation_message(error.errors()))
