"""What an open index does in a forked child: connections and locks are the parent's, the child gets its own.

Locks that another thread held at the fork would be held for ever, and SQLite connections must not be shared. This is
not about processes that bridgehead starts itself; those are never forked from the caller.

What nobody can mend afterwards: a fork while another thread is within SQLite may leave SQLite's own locks held in the
child. Fork first, then search in threads; or start processes anew.
"""

import ctypes
import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """Something that must be told when this process is a forked child."""

    def after_fork(self) -> None:
        """Drop what belongs to the parent; called in the child before anything else."""


_OPEN: "weakref.WeakSet[Forked]" = weakref.WeakSet()


def tell_of_forks(thing: Forked) -> None:
    """Call `thing.after_fork()` in every child that is forked from now on, for as long as the thing is in use."""
    _OPEN.add(thing)


def never_close(connection: object) -> None:
    """Keep a connection of the parent from ever being closed in this process.

    Closing it here would touch locks and files that the parent goes on with.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _tell_all() -> None:
    for thing in list(_OPEN):
        thing.after_fork()


os.register_at_fork(after_in_child=_tell_all)
