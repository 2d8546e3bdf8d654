"""Progress of stages on standard error: a bar on a terminal, plain lines elsewhere.

What a stage says comes through `StageProgress.__call__`, the callback of `bridgehead.runs`. This module is not about
results, which go to standard output (`session`).
"""

import sys
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

from bridgehead.cli.plain import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SECONDS_BETWEEN_SIGNS = 30.0
"""How often a stage that only counts is heard of where there is no bar."""


class StageProgress:
    """The progress callback of `runs`: `progress(stage, message, done, total)`; close it when the work has ended.

    A stage begins with the message "begins", or with the first that it sends, and ends with "done", when another
    begins, or on `close`; both are a line, the end with the seconds taken. What another stage says inside one that sent
    "begins" is part of that. A message without numbers is a line. One with numbers moves the bar of a terminal;
    elsewhere it is a line at most every `SECONDS_BETWEEN_SIGNS`, so a log holds no line per batch.
    """

    def __init__(self, stream: IO[str] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._stage: str | None = None
        self._said = False
        self._began = self._heard = 0.0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, stage: str, message: str, done: int | None = None, total: int | None = None) -> None:
        """Show where `stage` is; `done` and `total` are counts, or None for a line to read."""
        if done is None and message == "done":
            self._end("done in")
            return
        now = self._clock()
        said = done is None and message == "begins"
        begins = said or (stage != self._stage and not self._said)
        if begins:
            self._end("done in")
            self._stage, self._said, self._began, self._heard = stage, said, now, now
        if done is None or begins:
            self._line(f"{stage}: {message}")
        if done is not None:
            if self._on_terminal():
                self._move(stage, message, done, total)
            elif now - self._heard >= SECONDS_BETWEEN_SIGNS:
                self._heard = now
                self._line(f"{stage}: {message}, {done:,}" + (f" of {total:,}" if total is not None else ""))

    def close(self, finished: bool = True) -> None:
        """End the stage that is going on, as done or as stopped, and take the bar away. A second call does nothing."""
        self._end("done in" if finished else "stopped after")
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None

    def _end(self, how: str) -> None:
        if self._stage is not None:
            if self._bar is not None and self._task is not None:
                self._bar.remove_task(self._task)
                self._task = None
            self._line(f"{self._stage}: {how} {self._clock() - self._began:.1f} s")
            self._stage, self._said = None, False

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(printable(text), markup=False, highlight=False, soft_wrap=True)
        else:
            print(printable(text), file=self._stream, flush=True)

    def _on_terminal(self) -> bool:
        return self._stream.isatty()

    def _move(self, stage: str, message: str, done: int, total: int | None) -> None:
        from rich.markup import escape

        text = escape(printable(f"{stage}: {message}"))
        if self._bar is None:
            self._bar = _bar(self._stream)
            self._bar.start()
        if self._task is None:
            self._task = self._bar.add_task(text, total=total, completed=done)
        else:
            self._bar.update(self._task, description=text, total=total, completed=done)


def _bar(stream: IO[str]) -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(file=stream), transient=True, redirect_stdout=False)
