"""Where the service listens and who may ask there; `serve` puts its parts together.

Not about what is answered (`app`) or how it ends (`server`).
"""

import contextlib
import ipaddress
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from bridgehead.errors import ArgumentError, MissingExtraError
from bridgehead.serve.settings import ServeSettings

TOKEN_VARIABLE = "BRIDGEHEAD_TOKEN"
SHORTEST_TOKEN = 16
_BACKLOG = 1024


def serve(
    run: str | Path,
    heads: str = "refit",
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    settings: ServeSettings | None = None,
    opened: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve the space of a run folder over HTTP until SIGTERM or SIGINT, then end well.

    `host`: where to listen; any but loopback demands a `token` (by default what BRIDGEHEAD_TOKEN holds). `port` 0
    takes a free one. `opened` is called with the address once requests are taken. After SIGTERM `/ready` says 503,
    requests under way are answered, and the call returns.

    Raises `ArgumentError` (port in use, host that this machine does not have, no token where one is needed, a token
    under 16 characters), `MissingExtraError`, and what `open_space` raises.
    """
    settings = settings or ServeSettings()
    token = checked_token((os.environ.get(TOKEN_VARIABLE) or None) if token is None else token, host)
    _check_extra()
    with contextlib.closing(listening_socket(host, port)) as listener:
        # A name may stand for another address than it says.
        checked_token(token, listener.getsockname()[0])
        from bridgehead.search import open_space
        from bridgehead.serve.answers.holder import SpaceHolder
        from bridgehead.serve.app import make_app
        from bridgehead.serve.log import RequestLog, log_the_server
        from bridgehead.serve.server import run_server
        from bridgehead.serve.wire.guard import LOOPBACK

        log = RequestLog(settings.log_queries)
        log_the_server(log)
        space = open_space(run, heads=heads)
        if space.model_note:
            log.write("warning", {"event": "model", "message": space.model_note})
        holder = SpaceHolder(space, Path(run), heads)
        hosts = LOOPBACK | {host, f"[{host}]"} if is_loopback(host) else None
        app = make_app(holder, settings, token, hosts, log)
        run_server(app, listener, settings, lambda: opened(address_of(listener, host)))


def is_loopback(host: str) -> bool:
    """Say whether only this machine can ask at `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_token(token: str | None, host: str) -> str | None:
    """Return the token to demand; raises `ArgumentError` where there is none and `host` can be asked from elsewhere."""
    if token is None:
        if is_loopback(host):
            return None
        raise ArgumentError(
            f"whoever reaches {host} could ask: set a token in {TOKEN_VARIABLE} or in a file (--token-file), "
            "or listen on 127.0.0.1"
        )
    token = token.strip()
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ArgumentError(
            f"the token is of no use: expected at least {SHORTEST_TOKEN} ASCII characters without blanks, such as the "
            "output of: openssl rand -hex 32"
        )
    return token


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at `host` and `port`; raises `ArgumentError` where it cannot."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ArgumentError(f"port = {port!r:.80}; expected 0 (a free one) to 65535")
    with contextlib.ExitStack() as opened:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            # The protocol must be named: without, asyncio leaves Nagle's algorithm on, and each answer waits 40 ms.
            listener = opened.enter_context(socket.socket(found[0], found[1], socket.IPPROTO_TCP))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(found[4])
            # One that another process listens at is said now, not when the server starts.
            listener.listen(_BACKLOG)
            opened.pop_all()
            return listener
        except OSError as error:
            raise ArgumentError(
                f"cannot listen on {host} port {port}: {error.strerror or error}; choose another port (0: a free one)"
            ) from error


def address_of(listener: socket.socket, host: str) -> str:
    """Return the address under which the service is found."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"


def _check_extra() -> None:
    for package in ("fastapi", "uvicorn", "httptools", "prometheus_client"):
        if package not in sys.modules:
            try:
                __import__(package)
            except ImportError as error:
                raise MissingExtraError(package, "serve") from error
