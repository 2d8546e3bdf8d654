"""The command `serve`: where to listen, and what to say when it does.

This module is not about what is answered (`bridgehead.serve`).
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from bridgehead.cli.options import Debug, Heads, Json, WhichHeads, run_folder
from bridgehead.cli.session import session
from bridgehead.errors import ArgumentError, InputFileNotFoundError


def serve(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its config.", show_default=False)],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes a free one.")] = 8000,
    host: Annotated[str, typer.Option(help="Any address but this machine's own demands a token.")] = "127.0.0.1",
    heads: WhichHeads = Heads.REFIT,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file that holds the token to demand.", show_default="what BRIDGEHEAD_TOKEN holds"),
    ] = None,
    log_queries: Annotated[bool, typer.Option("--log-queries", help="Write queries into the log too.")] = False,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A limit of the service; may be repeated.", show_default=False),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Serve a page to search with and an HTTP API.

    Listens on this machine alone unless --host says otherwise. Logs JSON lines to standard error, without what was
    asked. Ctrl-C or SIGTERM ends it after the requests under way.
    """
    with session(as_json, debug, {}) as current:
        from bridgehead.serve import ServeSettings
        from bridgehead.serve import serve as listen

        settings = ServeSettings(**_limits(limit or []), log_queries=log_queries)
        token = None if token_file is None else _token(token_file)

        def opened(url: str) -> None:
            current.show({"url": url}, [f"serving {source} at {url}", "press Ctrl-C to end"])

        listen(run_folder(source), heads.value, host, port, token, settings, opened)


def _token(path: Path) -> str:
    if not path.is_file():
        raise InputFileNotFoundError(f"there is no token file {path}; expected a file that holds the token alone")
    return path.read_text(encoding="utf-8", errors="replace").strip()


def _limits(given: list[str]) -> dict[str, Any]:
    from bridgehead.serve import ServeSettings

    known = {name: default for name, default, _ in ServeSettings.explained() if name != "log_queries"}
    found: dict[str, Any] = {}
    for one in given:
        name, _, value = one.partition("=")
        if name not in known:
            raise ArgumentError(f"--limit {one!r}: no limit is called {name!r}; there are: {', '.join(known)}")
        try:
            found[name] = int(value) if isinstance(known[name], int) else float(value)
        except ValueError as error:
            raise ArgumentError(f"--limit {one!r}: expected a number after {name}=") from error
    return found
