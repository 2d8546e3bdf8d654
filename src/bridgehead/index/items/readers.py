"""Connections that read one item file: as many as there are readers at once, each within a transaction.

A reader sees one committed state and is not held up by a writer. Connections are not carried into a forked process: it
opens its own. Nothing is ever written here, and no write permission is needed.
"""

import ctypes
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bridgehead.errors import RunBusyError, RunStateError
from bridgehead.index.items.schema import connect

_KEPT = 8


class Readers:
    """A pool of read-only connections to the item file `path`; threads may share it."""

    def __init__(self, path: Path) -> None:
        """Open the first connection. Raises `RunStateError` when there is no such file or it is damaged."""
        self._path = path
        self._renew()
        _POOLS.add(self)
        with self.transaction():
            pass

    def _renew(self) -> None:
        self._free: list[sqlite3.Connection] = []
        self._n_open = 0
        self._closed = False
        self._changed = threading.Condition()

    def close(self) -> None:
        """Close the connections that are free now, and the others when they are given back."""
        with self._changed:
            self._closed = True
            free, self._free = self._free, []
            self._n_open -= len(free)
            self._changed.notify_all()
        for connection in free:
            connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give a connection whose reads are all of one committed state."""
        process = os.getpid()
        connection = self._taken()
        try:
            self._begin(connection)
            yield connection
        finally:
            if os.getpid() == process:
                self._give_back(connection)

    def _begin(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM meta").fetchone()
        except sqlite3.Error as error:
            raise self._reason(error) from error

    def _reason(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return RunBusyError(f"{self._path} is locked by a writer ({error}); try again")
        return RunStateError(f"{self._path} is not the item file of an index ({error}); build the index again")

    def _taken(self) -> sqlite3.Connection:
        with self._changed:
            while True:
                if self._closed:
                    raise RunStateError("this index was closed; open it again")
                if self._free:
                    return self._free.pop()
                try:
                    connection = connect(self._path, "ro")
                except sqlite3.Error as error:
                    # The folder of a build that was replaced is gone: the connections that there are must do.
                    if not self._n_open:
                        raise self._reason(error) from error
                    self._changed.wait()
                    continue
                self._n_open += 1
                return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with self._changed:
            kept = not self._closed and len(self._free) < _KEPT
            if kept:
                self._free.append(connection)
            else:
                self._n_open -= 1
            self._changed.notify()
        if not kept:
            connection.close()

    def forget(self) -> None:
        """Drop all connections without closing them: in a forked child they are those of its parent."""
        for connection in self._free:
            # Never freed, since closing in the child would touch locks and files that the parent goes on with.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._renew()


_POOLS: "weakref.WeakSet[Readers]" = weakref.WeakSet()


def _forget_all() -> None:
    for readers in list(_POOLS):
        readers.forget()


os.register_at_fork(after_in_child=_forget_all)
