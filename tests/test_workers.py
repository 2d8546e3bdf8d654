"""A function over chunks in worker processes: order, errors, and what workers are kept away from."""

import math
import operator
import os
import time
from collections.abc import Sequence
from functools import partial

import pytest

from bridgehead.errors import ArgumentError
from bridgehead.workers import available_cores, map_chunks


def process_numbers(items: Sequence[float]) -> list[int]:
    time.sleep(0.05)
    return [os.getpid()] * len(items)


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order_with_their_slices(processes: int) -> None:
    found = list(map_chunks(sum, list(range(10)), chunk=4, processes=processes))
    assert found == [(slice(0, 4), 6), (slice(4, 8), 22), (slice(8, 10), 17)]


def test_partial_functions_reach_the_workers() -> None:
    found = list(map_chunks(partial(operator.add, [0]), [1, 2, 3], chunk=2, processes=2))
    assert [result for _, result in found] == [[0, 1, 2], [0, 3]]


def test_several_chunks_run_in_other_processes_and_one_runs_here() -> None:
    apart = {pid for _, pids in map_chunks(process_numbers, [0.0] * 8, chunk=1, processes=2) for pid in pids}
    assert len(apart) == 2 and os.getpid() not in apart
    here = {pid for _, pids in map_chunks(process_numbers, [0.0] * 8, chunk=8, processes=2) for pid in pids}
    assert here == {os.getpid()}


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_in_a_worker_is_raised_here(processes: int) -> None:
    with pytest.raises(TypeError, match="must be real number"):
        list(map_chunks(math.sqrt, [[1], [2]], chunk=1, processes=processes))  # type: ignore[arg-type]


def test_no_items_give_nothing() -> None:
    assert list(map_chunks(sum, [], chunk=4)) == []


def test_stopping_early_stops_the_workers() -> None:
    start = time.monotonic()
    for _ in map_chunks(process_numbers, [0.0] * 10_000, chunk=1, processes=2):
        break
    assert time.monotonic() - start < 30


def test_sizes_under_one_and_functions_of_the_script_are_refused() -> None:
    with pytest.raises(ArgumentError, match="chunk = 0"):
        list(map_chunks(sum, [1], chunk=0))
    with pytest.raises(ArgumentError, match="processes = 0"):
        list(map_chunks(sum, [1], chunk=1, processes=0))
    own = type("Own", (), {"__call__": lambda self, items: 0, "__module__": "__main__"})()
    with pytest.raises(ArgumentError, match="put it into a module"):
        list(map_chunks(own, [1], chunk=1))


def test_there_is_at_least_one_core() -> None:
    assert available_cores() >= 1
