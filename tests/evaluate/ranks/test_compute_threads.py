"""Work shared out to threads: each item once, as many threads as are allowed, settings put back."""

import threading
import time
from collections.abc import Callable

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bridgehead.evaluate.ranks import threads
from bridgehead.evaluate.ranks.threads import each_in_threads, threads_to_use


def blas_threads() -> list[int]:
    """Return the threads of each BLAS whose setting is the process's; with OpenMP every thread has its own."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return [int(pool["num_threads"]) for pool in pools if pool.get("threading_layer") != "openmp"]


@pytest.mark.parametrize("n", [1, 2, 7])
def test_each_item_is_done_once_by_workers_of_one_thread_each(n: int) -> None:
    workers: list[list[tuple[int, int]]] = []

    def make() -> Callable[[int], None]:
        done: list[tuple[int, int]] = []
        workers.append(done)

        def do(item: int) -> None:
            time.sleep(0.0005)
            done.append((item, threading.get_ident()))

        return do

    each_in_threads(make, iter(range(60)), n)
    assert sorted(item for done in workers for item, _ in done) == list(range(60))
    assert len(workers) == n and all(len({thread for _, thread in done}) <= 1 for done in workers)


def test_matrix_products_run_in_one_thread_each_meanwhile_and_are_set_back() -> None:
    before, seen = blas_threads(), []
    each_in_threads(lambda: lambda item: seen.append(blas_threads()), range(3), 2)
    assert all(set(found) <= {1} for found in seen) and len(seen) == 3
    assert blas_threads() == before


def test_calls_at_once_leave_the_setting_as_it_was() -> None:
    before = blas_threads()
    calls = [
        threading.Thread(target=each_in_threads, args=(lambda: lambda item: time.sleep(0.002), range(10 * k), 2))
        for k in range(1, 5)
    ]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert blas_threads() == before and threads._holders == 0


def test_an_error_ends_the_work_and_is_raised() -> None:
    done = []

    def do(item: int) -> None:
        if item == 3:
            raise ValueError("the third")
        time.sleep(0.001)
        done.append(item)

    before = blas_threads()
    with pytest.raises(ValueError, match="the third"):
        each_in_threads(lambda: do, range(10_000), 2)
    assert len(done) < 100 and blas_threads() == before


def test_cores_the_environment_and_limits_say_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available_cores", lambda: 4)
    pool = [{"user_api": "blas", "num_threads": 8}, {"user_api": "openmp", "num_threads": 1}]
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: pool)
    for given, expected in (("", 4), ("3", 3), ("2,1", 2), ("64", 4), ("0", 4), ("many", 4), (" 2 ", 2)):
        monkeypatch.setenv("OMP_NUM_THREADS", given)
        assert threads_to_use() == expected, given
    monkeypatch.delenv("OMP_NUM_THREADS")
    pool[0]["num_threads"] = 2
    assert threads_to_use() == 2


def test_a_limit_on_products_is_respected() -> None:
    with threadpool_limits(1):
        assert threads_to_use() == 1
