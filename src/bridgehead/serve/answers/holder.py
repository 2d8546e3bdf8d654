"""The space that is being served, and the exchange for its successor without an error to anybody.

Who answers a request borrows the space; a space that was replaced is closed when the last borrower has given it back.
Not about requests.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridgehead.search import Space


@dataclass
class SpaceHolder:
    """A space with what is said about it. `folder`: of its run, None without one; `heads`: which ones it has."""

    space: Space
    folder: Path | None = None
    heads: str = "refit"
    _prepare: Callable[[Any], None] = field(default=lambda space: None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _borrowers: Counter[int] = field(default_factory=Counter, repr=False)
    _replaced: dict[int, Space] = field(default_factory=dict, repr=False)

    def prepare(self, work: Callable[[Any], None]) -> None:
        """Call `work` with the present space now, and with each successor before it serves."""
        self._prepare = work
        work(self.space)

    @contextmanager
    def borrowed(self) -> Iterator[Any]:
        """Give the present space for as long as the block runs; it is not closed before that."""
        with self._lock:
            space = self.space
            self._borrowers[id(space)] += 1
        try:
            yield space
        finally:
            self._give_back(space)

    def exchange(self, successor: Space) -> None:
        """Serve `successor` from now on; the space before is closed when nobody uses it any more."""
        self._prepare(successor)
        with self._lock:
            before, self.space = self.space, successor
            idle = not self._borrowers[id(before)]
            if not idle:
                self._replaced[id(before)] = before
        if idle:
            before.close()

    def follow(self) -> bool:
        """Open the index with new heads where there is one, and exchange; say whether it happened."""
        reopened = getattr(self.space, "reopened", None)
        successor = reopened() if reopened is not None else None
        if successor is None:
            return False
        self.exchange(successor)
        return True

    def close(self) -> None:
        """Close the space."""
        self.space.close()

    def _give_back(self, space: Space) -> None:
        with self._lock:
            self._borrowers[id(space)] -= 1
            done = self._borrowers[id(space)] == 0
            if done:
                del self._borrowers[id(space)]
            left = self._replaced.pop(id(space), None) if done else None
        if left is not None:
            left.close()
