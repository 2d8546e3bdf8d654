"""Where the lines of a training's history go: a file of JSON lines, and TensorBoard where it is asked for.

The checkpoint holds the history that counts; this is for reading along. This module is not about what a line says.
"""

import json
import math
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from bridgehead.errors import MissingExtraError
from bridgehead.files import write_text
from bridgehead.train.checkpoint import writing

HISTORY_NAME = "history.jsonl"


class History:
    """The lines of a training, a dict of plain values each, written as they come.

    `folder` receives `history.jsonl`, each line flushed as it is written, so that a kill costs at most the line under
    way; None writes nothing. `tensorboard` is a folder for its event files or None: every number of a line but `step`
    becomes a scalar at the line's `step`, or else its `epoch`. Raises `MissingExtraError` at once where that package
    is missing, and `RunStateError` when something cannot be written.
    """

    def __init__(self, folder: str | Path | None, tensorboard: str | Path | None = None) -> None:
        self.path = None if folder is None else Path(folder) / HISTORY_NAME
        self._folder = tensorboard
        self._board = None if tensorboard is None else _board(Path(tensorboard))

    def restart(self, lines: Sequence[dict[str, Any]]) -> None:
        """Make the file hold exactly `lines`, atomically: at the start, and when a checkpoint is taken up.

        TensorBoard's files are only added to; a step that comes again is shown with its newer value.
        """
        if self.path is not None:
            with writing("the history", self.path.parent):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                write_text(self.path, "".join(json.dumps(line) + "\n" for line in lines))

    def add(self, line: dict[str, Any]) -> None:
        """Append one line."""
        if self.path is not None:
            with writing("the history", self.path.parent), open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        if self._board is not None:
            step = int(line.get("step", line.get("epoch", 0)))
            with writing("the history for TensorBoard", self._folder or ""):
                for name, value in line.items():
                    if name != "step" and _is_number(value):
                        self._board.add_scalar(name, value, step)
                self._board.flush()

    def close(self) -> None:
        """Close TensorBoard's file; the JSON lines are complete at any time."""
        if self._board is not None:
            self._board.close()

    def __enter__(self) -> "History":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What TensorBoard could not write it says again on closing; the first error is the one to hear.
        with nullcontext() if kind is None else suppress(OSError):
            self.close()


def read_history(folder: str | Path) -> list[dict[str, Any]]:
    """Return the lines of a folder's history; a last line that a kill cut short is left out, no file is no lines."""
    path = Path(folder) / HISTORY_NAME
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


def _board(folder: Path) -> Any:
    if find_spec("tensorboard") is None:
        raise MissingExtraError("tensorboard", "tensorboard")
    return import_module("torch.utils.tensorboard").SummaryWriter(log_dir=str(folder))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
