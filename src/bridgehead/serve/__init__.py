"""The HTTP service of a space and the page that is searched with: what listens, what it answers, what it refuses.

Not about searching (`search`) or drawing (`depict`): requests are checked, queued, put to the space and written out.
Light to import; FastAPI and uvicorn come with `make_app` and `serve`.
"""

from typing import TYPE_CHECKING, Any

from bridgehead.serve.settings import ServeSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from bridgehead.serve.answers.holder import SpaceHolder

__all__ = ["ServeSettings", "make_app", "serve"]


def make_app(holder: "SpaceHolder", settings: ServeSettings | None = None, token: str | None = None) -> "FastAPI":
    """Return the ASGI application that answers for the space in `holder`: see `bridgehead.serve.app.make_app`."""
    from bridgehead.serve.app import make_app as make

    return make(holder, settings or ServeSettings(), token)


def serve(*arguments: Any, **options: Any) -> None:
    """Serve a run folder until a signal ends it: see `bridgehead.serve.wire.listening.serve`."""
    from bridgehead.serve.wire.listening import serve as listen

    listen(*arguments, **options)
