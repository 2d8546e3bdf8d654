"""Work shared out to threads: numpy's products and comparisons let go of the interpreter, so threads do them at once.

This module is not about what is computed, and nothing computed may depend on how many threads there are.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from bridgehead.workers import available_cores

Item = TypeVar("Item")

_lock = threading.Lock()
_holders = 0
_limits: Any = None


def threads_to_use() -> int:
    """Return how many threads may compute at once, at least 1.

    That is the number of cores this process may use, or what OMP_NUM_THREADS says where it is less, or what the
    library for matrix products was limited to (`threadpoolctl.threadpool_limits`) where that is less still.
    """
    from threadpoolctl import threadpool_info

    most = available_cores()
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) > 0:
        most = min(most, int(asked))
    # While another call holds products to one thread each, the limit that is seen is that call's own.
    with _lock:
        if _holders == 0:
            pools = [int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"]
            most = min([most, *pools])
    return max(1, most)


def each_in_threads(
    make: Callable[[], Callable[[Item], None]], items: Iterable[Item], n_threads: int | None = None
) -> None:
    """Do each of `items` once, in no particular order, in `n_threads` threads (default: `threads_to_use`).

    `make()` is called once for each thread and returns the function that does an item, so that what it keeps (buffers)
    is the thread's own. While there are several threads each matrix product runs in one. An exception in one item ends
    the work after the items in progress and is raised here.
    """
    n = n_threads or threads_to_use()
    if n == 1:
        do = make()
        for item in items:
            do(item)
        return
    left = _Shared(items)
    with _one_thread_a_product(), ThreadPoolExecutor(n) as pool:
        try:
            for future in [pool.submit(_work, make, left) for _ in range(n)]:
                future.result()
        finally:
            left.stop()


def _work(make: Callable[[], Callable[[Item], None]], left: "_Shared[Item]") -> None:
    do = make()
    try:
        for item in left:
            do(item)
    except BaseException:
        left.stop()
        raise


class _Shared(Iterable[Item]):
    """An iterator that several threads read: each item goes to one of them."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._lock = threading.Lock()

    def stop(self) -> None:
        with self._lock:
            self._items = iter(())

    def __iter__(self) -> Iterator[Item]:
        while True:
            with self._lock:
                try:
                    item = next(self._items)
                except StopIteration:
                    return
            yield item


@contextmanager
def _one_thread_a_product() -> Iterator[None]:
    """Hold matrix products to one thread each; the setting is the whole process's, so holders are counted."""
    from threadpoolctl import threadpool_limits

    global _holders, _limits
    with _lock:
        if _holders == 0:
            _limits = threadpool_limits(limits=1, user_api="blas")
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                _limits.restore_original_limits()
                _limits = None
