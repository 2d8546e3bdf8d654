"""Opening an item file for writing: with write-ahead logging, or a rollback journal where that cannot work.

With write-ahead logging readers and the writer never wait for each other. It needs memory that processes share, which
a network file system does not have: there a rollback journal is used, and a reader waits while a change is written. The
files of the log (`-wal`, `-shm`) are left in place when the writer ends, so that who may not write can still read.
"""

import os
import sqlite3
from pathlib import Path

from bridgehead.errors import RunBusyError, RunStateError
from bridgehead.index.items.schema import connect

_COUNT_WRITERS = "INSERT INTO meta VALUES ('writers', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"
_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "afs", "vboxsf",
    "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.vmhgfs-fuse",
}  # fmt: skip


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Return a connection to the item file `path` whose commits are durable when they return.

    Raises `RunStateError` (damaged, or no permission to write) and `RunBusyError` (something reads the file for long
    while its journal would have to be changed).
    """
    if not os.access(path, os.W_OK):
        raise RunStateError(f"{path} cannot be written by this user; an index is searched without that, not changed")
    connection = connect(path, "rw")
    try:
        wanted = "DELETE" if is_on_network(path) else "WAL"
        connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA cache_size = -65536")
        # A change that nobody was told of may lie at the end of the log of a killed writer, where it would show as soon
        # as no reader is left. Writing over it settles that it is not there.
        connection.execute(_COUNT_WRITERS)
    except sqlite3.Error as error:
        connection.close()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise RunBusyError(f"{path} is read by a process that does not let go of it; try again later") from error
        raise RunStateError(f"{path} cannot be opened for writing ({error}); build the index again") from error
    return connection


def close_written(connection: sqlite3.Connection, path: Path) -> None:
    """Close the writer's connection; what was written goes from the log into the file as far as readers let it."""
    try:
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            return
        # While a reader is there, the last writer does not remove the files that those without permission need.
        reader = connect(path, "ro")
        try:
            reader.execute("SELECT count(*) FROM meta").fetchone()
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            connection.close()
        finally:
            reader.close()
    except sqlite3.Error:
        # What was acknowledged is in the log; a checkpoint that fails (a full disk, say) takes nothing away.
        return
    finally:
        connection.close()


def is_on_network(path: Path) -> bool:
    """Return whether `path` lies on a file system that other machines may have mounted, as far as Linux tells."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()]
        place = str(path.resolve())
    except OSError:
        return False
    kinds = [
        (len(fields[4]), fields[fields.index("-") + 1])
        for fields in mounts
        if "-" in fields and _is_under(place, fields[4].encode().decode("unicode_escape", "replace"))
    ]
    return bool(kinds) and max(kinds)[1] in _NETWORK


def _is_under(place: str, mount: str) -> bool:
    return place == mount or place.startswith(mount.rstrip("/") + "/")
