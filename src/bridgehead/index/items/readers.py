"""Connections that read one item file: as many as there are readers at once, each within a transaction.

A reader sees one committed state and is not held up by a writer. Connections are not carried into a forked process: it
opens its own. Nothing is ever written here, and no write permission is needed: a file with write-ahead logging whose
log is not there, in a folder where none can be made, is read as one that nobody writes until a log appears.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bridgehead.errors import BridgeheadError, RunBusyError, RunStateError
from bridgehead.index.forks import never_close, tell_of_forks
from bridgehead.index.items.schema import connect, is_whole

_KEPT = 16
_CHANGE = "SELECT value FROM meta WHERE name = 'change'"
_NEEDS_WRITING = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


class Readers:
    """A pool of read-only connections to the item file `path`; threads may share it."""

    def __init__(self, path: Path) -> None:
        """Open the first connection. Raises `RunStateError` when there is no such file or it is damaged."""
        self._path = path
        if path.is_file() and not is_whole(path):
            raise RunStateError(f"{path} is damaged (it was cut off); build the index again")
        self._renew()
        tell_of_forks(self)
        with self.transaction():
            pass

    def _renew(self) -> None:
        self._free: list[sqlite3.Connection] = []
        self._in_use: set[sqlite3.Connection] = set()
        self._outdated: set[sqlite3.Connection] = set()
        self._frozen: object = None
        self._closed = False
        self._changed = threading.Condition()

    def close(self) -> None:
        """Close the connections that are free now, and the others when they are given back."""
        with self._changed:
            self._closed = True
            self._drop_all()
            self._changed.notify_all()

    def _drop_all(self) -> None:
        for connection in self._free:
            connection.close()
        self._free = []
        self._outdated |= self._in_use

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give a connection whose reads are all of one committed state."""
        connection, _ = self.begin()
        try:
            yield connection
        finally:
            self.end(connection)

    def begin(self) -> tuple[sqlite3.Connection, int]:
        """Return a connection that sees one committed state until it goes to `end`, and the number of its change."""
        connection = self._taken()
        try:
            return connection, self._began(connection)
        except sqlite3.Error as error:
            self.end(connection)
            raise self._reason(error) from error

    def _began(self, connection: sqlite3.Connection) -> int:
        """Begin to read; the first read is what the transaction's state is as of."""
        connection.execute("BEGIN")
        try:
            return _change_of(connection)
        except sqlite3.OperationalError as error:
            if not self._rolled_back(error):
                raise
        return _change_of(connection)

    def _rolled_back(self, error: sqlite3.Error) -> bool:
        """Undo what a writer without write-ahead logging left half done, where this user may; say whether it was so."""
        journal = Path(f"{self._path}-journal")
        if _code(error) != sqlite3.SQLITE_READONLY or not journal.exists() or not os.access(self._path, os.W_OK):
            return False
        writing = connect(self._path, "rw")
        try:
            writing.execute(_CHANGE).fetchone()
        finally:
            writing.close()
        return True

    def end(self, connection: sqlite3.Connection) -> None:
        """Take a connection back from who has read with it."""
        if connection not in self._in_use:
            # Taken before this process was forked: it is the parent's.
            return
        if connection.in_transaction:
            connection.rollback()
        with self._changed:
            self._in_use.discard(connection)
            if self._closed or connection in self._outdated or len(self._free) >= _KEPT:
                self._outdated.discard(connection)
                connection.close()
            else:
                self._free.append(connection)
            self._changed.notify()

    def _reason(self, error: Exception) -> BridgeheadError:
        code = _code(error)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return RunBusyError(f"{self._path} is locked by a writer ({error}); try again")
        if not self._path.is_file():
            return RunStateError(f"{self._path} is missing; build the index again")
        if not os.access(self._path, os.R_OK):
            return RunStateError(f"{self._path} may not be read by this user; ask its owner for permission to read it")
        if code in _NEEDS_WRITING:
            return RunStateError(
                f"{self._path} has changes beside it that a writer left, and reading them needs permission to write in "
                f"{self._path.parent} ({error}): open the index once as a user who may, or copy it elsewhere"
            )
        return RunStateError(f"{self._path} is not the item file of an index ({error}); build the index again")

    def _taken(self) -> sqlite3.Connection:
        with self._changed:
            while True:
                if self._closed:
                    raise RunStateError("this index was closed; open it again")
                if self._frozen is not None and self._stamp() not in (self._frozen, ()):
                    self._frozen = None
                    self._drop_all()
                if self._free:
                    connection = self._free.pop()
                    break
                try:
                    connection = self._opened()
                    break
                except sqlite3.Error as error:
                    # The folder of a build that was replaced is gone: the connections that there are must do.
                    if not self._in_use or self._path.is_file():
                        raise self._reason(error) from error
                    self._changed.wait()
            self._in_use.add(connection)
            return connection

    def _opened(self) -> sqlite3.Connection:
        connection = connect(self._path, "ro")
        try:
            self._began(connection)
            connection.rollback()
        except sqlite3.OperationalError as error:
            connection.close()
            stamp = self._stamp()
            if _code(error) not in _NEEDS_WRITING or not stamp or stamp[-1] is not None:
                raise
            connection = connect(self._path, "ro&immutable=1")
            self._frozen = stamp
        return connection

    def _stamp(self) -> tuple[object, ...]:
        """Return what differs when the file is written, and last the size of its log, None for none or an empty one.

        Nothing at all when the file is gone.
        """
        try:
            found = os.stat(self._path)
            log = os.stat(f"{self._path}-wal").st_size if os.path.exists(f"{self._path}-wal") else 0
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino, log or None

    def after_fork(self) -> None:
        """Drop all connections without closing them: in a forked child they are those of its parent."""
        for connection in (*self._free, *self._in_use):
            never_close(connection)
        self._renew()


def _change_of(connection: sqlite3.Connection) -> int:
    found = connection.execute(_CHANGE).fetchone()
    if found is None or not isinstance(found[0], int):
        raise sqlite3.DatabaseError("it does not say how often it was changed")
    return found[0]


def _code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
