"""The log: one JSON object a line on standard error, without what was asked unless that is wanted.

A line has the request's id, which the client has too. Errors of ours are told by class and place, since a message may
hold a payload. Not about metrics (`measures`).
"""

import json
import logging
import queue
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from typing import IO, Any

from bridgehead.serve.wire.guard import Exchange

_MOST_WAITING = 10_000
_MOST_TOGETHER = 1000
# Seconds for which a line waits for others: one write is cheaper than many.
_TOGETHER = 0.02
# Seconds between lines of one message of the server underneath, and how many messages are known: without files left to
# open it tells the same thousands of times a second.
_AGAIN, _MOST_TOLD = 10.0, 100


class RequestLog:
    """Writes lines to `stream` (standard error by default); `with_queries` adds what was asked and messages.

    A thread of its own writes, so that a reader that stalls holds up no request: over 10,000 lines that wait are left
    out and counted.
    """

    def __init__(self, with_queries: bool = False, stream: IO[str] | None = None) -> None:
        self._with_queries = with_queries
        self._stream = stream
        self._lines: queue.SimpleQueue[str | threading.Event] = queue.SimpleQueue()
        self._left_out = 0
        self._thread: threading.Thread | None = None

    def request(self, exchange: Exchange) -> None:
        """Write the line of a request."""
        content: dict[str, Any] = {
            "event": "request",
            "id": exchange.request_id,
            "method": exchange.method,
            "route": exchange.route,
            "status": exchange.status,
            "ms": round(1e3 * exchange.seconds, 2),
            "bytes_in": exchange.bytes_in,
            "bytes_out": exchange.bytes_out,
        }
        error = exchange.error
        if error is not None:
            content["error"] = type(error).__name__
            if exchange.status >= 500 and exchange.status not in (503, 504):
                content["at"] = places(error)
        if self._with_queries:
            asked = exchange.scope.get("asked")
            content["path"] = str(exchange.scope.get("path", ""))[:1000]
            content["asked"] = None if asked is None else asked.model_dump(exclude_unset=True)
            if error is not None:
                content["message"] = str(error)[:1000]
        self.write("error" if "at" in content else "info", content)

    def write(self, level: str, content: dict[str, Any]) -> None:
        """Write a line; a log that cannot be written ends nothing."""
        if self._lines.qsize() >= _MOST_WAITING:
            self._left_out += 1
            return
        now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
        if self._left_out:
            content, self._left_out = {**content, "lines_left_out": self._left_out}, 0
        self._lines.put(json.dumps({"time": now, "level": level, **content}, default=str) + "\n")
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_writing, name="bridgehead-log", daemon=True)
            self._thread.start()

    def flush(self, seconds: float = 1.0) -> None:
        """Wait until what was written so far is out, `seconds` at most."""
        if self._thread is not None:
            done = threading.Event()
            self._lines.put(done)
            done.wait(seconds)

    def _keep_writing(self) -> None:
        while True:
            waiting = [self._lines.get()]
            while len(waiting) < _MOST_TOGETHER and not isinstance(waiting[-1], threading.Event):
                try:
                    waiting.append(self._lines.get(timeout=_TOGETHER if len(waiting) == 1 else 0))
                except queue.Empty:
                    break
            self._put_out("".join(line for line in waiting if isinstance(line, str)))
            for one in waiting:
                if isinstance(one, threading.Event):
                    one.set()

    def _put_out(self, text: str) -> None:
        stream = self._stream or sys.stderr
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError):
            return


class ServerLines(logging.Handler):
    """What the server underneath logs, as lines of the same kind; exceptions by class and place."""

    def __init__(self, log: RequestLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        # When each message was written last, and how often it came since.
        self._told: dict[str, tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; one that comes again and again is written every ten seconds, with how often it came."""
        message = record.getMessage()[:1000]
        last, repeated = self._told.get(message, (-_AGAIN, 0))
        if record.created - last < _AGAIN:
            self._told[message] = (last, repeated + 1)
            return
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told[message] = (record.created, 0)
        content: dict[str, Any] = {"event": "server", "message": message}
        if repeated:
            content["repeated"] = repeated
        if record.exc_info and record.exc_info[1] is not None:
            content |= {"error": type(record.exc_info[1]).__name__, "at": places(record.exc_info[1])}
        self._log.write(record.levelname.lower(), content)


def log_the_server(log: RequestLog) -> None:
    """Send what uvicorn and asyncio log to `log` alone."""
    for name in ("uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [ServerLines(log)]
        logger.propagate = False


def places(error: BaseException) -> list[str]:
    """Return the last calls that led to an error, as module files and lines without their folders."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
