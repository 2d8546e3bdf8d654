"""A pure function over chunks of a list, in worker processes, with results in order.

Workers come from a fork server that is clean of the caller's threads, so a caller that has loaded torch cannot hang
them, and they never import the caller's script, so a script needs no `if __name__ == "__main__"`. This module is not
about what the function computes.
"""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import context
from types import ModuleType
from typing import Any, TypeVar

from bridgehead.errors import ArgumentError

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]

_PRELOADED = ["numpy", "rdkit.Chem", "rdkit.Chem.rdFingerprintGenerator"]
_IN_FLIGHT_PER_WORKER = 3
_main_lock = threading.Lock()


def available_cores() -> int:
    """Return the number of cores that this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def map_chunks(
    function: Callable[[Sequence[Item]], Result],
    items: Sequence[Item],
    *,
    chunk: int,
    processes: int | None = None,
) -> Iterator[tuple[slice, Result]]:
    """Yield (slice of `items`, `function(items[slice])`) for consecutive chunks, in order.

    `function` must be importable (top level of a module, or `functools.partial` of such). `processes` is the number of
    workers (default: the cores available); with 1, or with too few items to fill two chunks, everything runs in this
    process. At most a few chunks a worker are held at once, so memory does not grow with the list. An exception in
    `function` is raised here. Raises `ArgumentError` when `chunk` or `processes` is under 1, or for a function of
    `__main__`.
    """
    if chunk < 1 or (processes is not None and processes < 1):
        raise ArgumentError(f"chunk = {chunk}, processes = {processes}; expected at least 1")
    if _module_of(function) == "__main__":
        raise ArgumentError(f"{function!r} is of the script itself, which workers do not import; put it into a module")
    slices = [slice(start, min(start + chunk, len(items))) for start in range(0, len(items), chunk)]
    workers = min(processes or available_cores(), len(slices))
    if workers <= 1 or multiprocessing.current_process().daemon:
        for part in slices:
            yield part, function(items[part])
        return
    # What the server has imported costs its workers nothing. It is told once: later lists do not change it.
    pool = ProcessPoolExecutor(workers, mp_context=clean_context([_module_of(function)]))
    try:
        waiting: list[tuple[slice, Future[Result]]] = []
        for part in slices:
            waiting.append((part, pool.submit(function, items[part])))
            if len(waiting) >= workers * _IN_FLIGHT_PER_WORKER:
                done, future = waiting.pop(0)
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def clean_context(preloaded: Sequence[str] = ()) -> context.ForkServerContext:
    """Return a context whose processes are clean of this one's threads and script; they need a function of a module.

    `preloaded`: modules that its server imports once for all of them, unless it runs already.
    """
    forkserver = _CleanContext()
    forkserver.set_forkserver_preload([*_PRELOADED, *preloaded])
    return forkserver


def _module_of(function: Any) -> str:
    return str(getattr(function, "func", function).__module__)


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Hide the caller's script while a worker is described, so that the worker does not run it again."""
    with _main_lock:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


class _CleanProcess(context.ForkServerProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        with _no_main_module():
            return context.ForkServerProcess._Popen(process_obj)


class _CleanContext(context.ForkServerContext):
    Process = _CleanProcess
