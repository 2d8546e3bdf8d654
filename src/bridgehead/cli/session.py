"""One command's way out: the result on standard output, progress on standard error, an exit status for each end.

Statuses: 0 good, 1 the user's input (`BridgeheadError`, or a file that the system refuses), 2 usage (typer's own),
3 an audit that failed under --strict, 70 a fault of bridgehead, 130 interrupted, 141 the reader of the output has gone.
This module is not about what the results are.
"""

import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from bridgehead.cli.plain import printable, spoken, to_json
from bridgehead.cli.progress import StageProgress
from bridgehead.errors import BridgeheadError

USER_INPUT, FAILED_CLAIM, FAULT, INTERRUPTED, NO_READER = 1, 3, 70, 130, 141
IN_CONFIG = {"quote": 'pairs.quote = "{}"', "encoding": 'pairs.encoding = "{}"'}
INTERRUPTION = "interrupted; the same command goes on where this one stopped"


class Session:
    """What a command works with: `progress` for the stages, and `show` for the result."""

    def __init__(self, as_json: bool, options: Mapping[str, str]) -> None:
        self.as_json = as_json
        self.options = options
        self.progress = StageProgress()

    def show(self, content: Any, lines: Iterable[str]) -> None:
        """Print the result: `content` as one JSON document with --json, else `lines`. Progress ends before that."""
        self.progress.close()
        self._write([self._json(content)] if self.as_json else lines)

    def fail(self, error: BaseException) -> None:
        """Print an error: as a JSON document on standard output with --json, else as a line on standard error."""
        message = spoken(str(error), self.options) or type(error).__name__
        if self.as_json:
            self._write([self._json({"error": {"type": type(error).__name__, "message": message}})])
        else:
            print(f"error: {printable(message)}", file=sys.stderr, flush=True)

    def _json(self, content: Any) -> str:
        return to_json(content, ascii_only="utf" not in (sys.stdout.encoding or "").lower())

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            print(line if self.as_json else printable(line))
        sys.stdout.flush()


@contextmanager
def session(as_json: bool, debug: bool = False, options: Mapping[str, str] = IN_CONFIG) -> Iterator[Session]:
    """Give a command its `Session`, and turn whatever ends it into a message and an exit status.

    `debug` prints the traceback of a user's mistake too; a fault of ours always has one. `options` are how the
    command takes the arguments that messages of the library speak of (`plain.spoken`).
    """
    current = Session(as_json, options)
    try:
        yield current
        current.progress.close()
    except BrokenPipeError:
        leave_without_reader()
    except KeyboardInterrupt:
        current.progress.close(finished=False)
        print(INTERRUPTION, file=sys.stderr, flush=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        _end_with(current, error, debug)


def _end_with(current: Session, error: Exception, debug: bool) -> NoReturn:
    expected = isinstance(error, BridgeheadError | OSError)
    try:
        current.progress.close(finished=False)
        if debug or not expected:
            traceback.print_exception(error)
        current.fail(error)
    except BrokenPipeError:
        leave_without_reader()
    raise typer.Exit(USER_INPUT if expected else FAULT) from None


def leave_without_reader() -> NoReturn:
    """Exit quietly after the reader of a pipe has gone, as `head` does once it has its lines."""
    # Python flushes both streams at its end and would complain once more.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):
            continue
    raise typer.Exit(NO_READER) from None
