"""Every error in one form: which status an error has, and what of it may be told.

What a user did is told in the library's own words; what is our fault or about files is told by its request id alone,
so that neither a path nor a traceback reaches an answer. Not about where errors are caught (`guard`, `app`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from bridgehead import errors
from bridgehead.serve.routes.content import json_bytes
from bridgehead.serve.wire.page_headers import DATA_POLICY

_MOST = 1000
MAX_HEAD = 64 * 1024
"""Most bytes of the line and the headers of a request."""


class ServiceRefusal(Exception):
    """A request is not answered: `status`, the class of error, a sentence, and further headers."""

    def __init__(self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.headers = status, kind, dict(headers or {})


# Errors about what was asked; the first class that fits counts. All others are ours.
_STATUS: tuple[tuple[type[BaseException], int], ...] = (
    (errors.UnknownIdError, 404),
    (errors.SandboxBusyError, 503),
    (errors.SandboxLimitError, 422),
    (errors.StructureError, 422),
    (errors.ArgumentError, 422),
    (errors.NonFiniteRowsError, 422),
    (errors.ShapeError, 422),
    (errors.ColumnError, 422),
)
_NAMES = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed",
    408: "RequestTimeout", 413: "BodyTooLarge", 415: "UnsupportedMediaType", 421: "MisdirectedRequest",
    422: "ValidationError", 431: "HeadTooLarge", 499: "ClientGone", 500: "InternalError", 503: "Busy", 504: "TimeLimit",
}  # fmt: skip


def name_of(status: int) -> str:
    """Return what an error of this status is called where no class of the library is behind it."""
    return _NAMES.get(status, "Error")


def refusal_of(error: BaseException, request_id: str) -> ServiceRefusal:
    """Return how `error` is told to a client."""
    if isinstance(error, ServiceRefusal):
        return error
    for kind, status in _STATUS:
        if isinstance(error, kind):
            headers = {"retry-after": "1"} if status == 503 else None
            return ServiceRefusal(status, type(error).__name__, str(error)[:_MOST], headers)
    return ServiceRefusal(500, name_of(500), f"the service failed; its log says why under the request id {request_id}")


def error_response(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the one form of every error."""
    body = json_bytes({"error": {"type": kind, "message": message}})
    further = {"content-security-policy": DATA_POLICY, "cache-control": "no-store", **(headers or {})}
    return Response(body, status, further, "application/json")


def validation_message(faults: Sequence[Mapping[str, Any]]) -> str:
    """Return the faults of a request in one sentence: where, what is wrong, and what came."""
    said = []
    for fault in list(faults)[:5]:
        place = ".".join(str(part) for part in fault["loc"] if part not in ("body", "query", "path")) or "the body"
        came = fault.get("input")
        shown = f" (got {came!r:.80})" if isinstance(came, str | int | float | bool) else ""
        said.append(f"{place[:80]}: {fault['msg']}{shown}")
    more = len(faults) - len(said)
    return ("; ".join(said) + (f"; and {more} more" if more > 0 else ""))[:_MOST]
