"""A connection that nobody can hold or fill for nothing: bounds on the head of a request, on silence, on slow reading.

uvicorn has none of them once a first request was answered. Not about bodies (`guard` counts them, `body` waits for
them) or about what is answered.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bridgehead.serve.wire.refusals import MAX_HEAD, name_of

# Bytes that may come of a head, or of what may follow a body, before it is whole. The guard refuses a whole head in the
# form of every error; this bound is for one without end, which the parser would copy again with each part that comes.
_MOST_OPEN = 2 * MAX_HEAD
_TOO_LARGE = f"431 {name_of(431)}: the head of a request is over {MAX_HEAD:,} bytes\n".encode()


def connections(seconds: float) -> Any:
    """Return what makes the connections of a server: a request may take `seconds` to come in, and so long may a client
    take nothing of an answer."""
    return partial(Connection, seconds=seconds)


class Connection(HttpToolsProtocol):
    """One connection. `seconds`: until it is closed where no whole head of a request comes, however many bytes do, or
    where the client takes nothing of its answer."""

    def __init__(self, *arguments: Any, seconds: float, **further: Any) -> None:
        super().__init__(*arguments, **further)
        self._seconds = seconds
        self._inside = self._went_on = False
        self._open_bytes = 0
        self._coming: asyncio.TimerHandle | None = None
        self._going: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a first request."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_waiting()
        self._stop_looking()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what came, and end a head that has no end."""
        if self._coming is None and (self.cycle is None or self.cycle.response_complete):
            # The server waits no longer for what follows an answer as soon as anything comes.
            self._await_head()
        self._went_on = False
        super().data_received(data)
        # Only what brought no head and no body further is counted: one part may hold much of a body.
        self._open_bytes = 0 if self._went_on else self._open_bytes + len(data)
        if self._inside and self._open_bytes > _MOST_OPEN:
            self._refuse_head()

    def on_message_begin(self) -> None:
        """Count from here what comes of a head."""
        self._inside = self._went_on = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The request has come; its body is waited for elsewhere."""
        self._went_on = True
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """What comes after is counted anew."""
        self._went_on = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._inside = False
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Begin to look whether the client takes its answer."""
        super().pause_writing()
        if self._going is None:
            self._await_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Look no more."""
        self._stop_looking()
        super().resume_writing()

    def _await_head(self) -> None:
        self._coming = self._later(self.transport.close)

    def _await_reader(self, waiting: int) -> None:
        self._going = self._later(partial(self._look_at_reader, waiting))

    def _look_at_reader(self, before: int) -> None:
        waiting = self.transport.get_write_buffer_size()
        if waiting >= before:
            self.transport.abort()
        else:
            self._await_reader(waiting)

    def _stop_waiting(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
            self._coming = None

    def _stop_looking(self) -> None:
        if self._going is not None:
            self._going.cancel()
            self._going = None

    def _later(self, what: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(self._seconds, what)

    def _refuse_head(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
            length = b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(_TOO_LARGE)
            self.transport.write(head + length + _TOO_LARGE)
        self.transport.close()
