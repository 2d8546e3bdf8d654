"""uvicorn's server with a good end: ready turns 503, what is under way is answered, the exit status is 0.

Not about where it listens (`listening`) or what is answered (`app`).
"""

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn

from bridgehead.serve.settings import ServeSettings
from bridgehead.serve.wire.connection import connections


def run_server(app: Any, listener: socket.socket, settings: ServeSettings, opened: Callable[[], None]) -> None:
    """Run the application of `make_app` on a listening socket until a signal; `opened` is called once it answers.

    Returns when requests under way are answered, or `settings.shutdown_seconds` have passed. Raises what the
    application could not start for.
    """
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, ws="none", lifespan="on", loop="asyncio",
        http=connections(settings.read_seconds), limit_concurrency=settings.max_connections,
        timeout_keep_alive=settings.keep_alive, proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(settings.shutdown_seconds)),
    )  # fmt: skip
    try:
        Server(config, app.state.service, settings, opened).run(sockets=[listener])
    except SystemExit:
        if app.state.failure is None:
            raise
        raise app.state.failure from None


class Server(uvicorn.Server):
    """A server that tells `service` when it is to end, and calls `opened` once it answers."""

    def __init__(
        self, config: uvicorn.Config, service: Any, settings: ServeSettings, opened: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.service, self.settings, self.opened = service, settings, opened
        self._ends_at: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started:
            self.opened()

    async def on_tick(self, counter: int) -> bool:
        """Do what has come due; return whether it is time to end."""
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            self.should_exit = True
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end: after SIGTERM requests are still taken for a moment, so that whoever watches can turn away."""
        if self._ends_at is not None:
            # Asked twice: no longer well, but at once.
            self.should_exit = self.force_exit = True
            return
        self.service.draining = True
        self._ends_at = time.monotonic() + (self.settings.drain_seconds if sig == signal.SIGTERM else 0.0)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM while it runs; they are not raised again at the end, which was a good one."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)
