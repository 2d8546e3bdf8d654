"""Requests that wait: answered together, refused where too many, given up where nobody waits."""

import asyncio
import threading

import pytest

from bridgehead.serve.answers.lanes import Lane
from bridgehead.serve.wire.refusals import ServiceRefusal


class Worker:
    """Work that waits until it may go on, and remembers what it was given."""

    def __init__(self):
        self.batches = []
        self.may = threading.Event()
        self.begun = threading.Event()

    def __call__(self, asked):
        self.batches.append(list(asked))
        self.begun.set()
        assert self.may.wait(20)
        return [ValueError(one) if one == "bad" else f"<{one}>" for one in asked]


def in_lane(scenario, worker, limit=100, most=8, seconds=10.0):
    async def go():
        lane = Lane("test", worker, limit, most, seconds, 7)
        lane.start()
        try:
            return await scenario(lane)
        finally:
            worker.may.set()
            await asyncio.to_thread(lane.stop)

    return asyncio.run(go())


async def begun(worker):
    assert await asyncio.to_thread(worker.begun.wait, 10)


def test_what_waits_is_answered_together_and_each_gets_its_own():
    worker = Worker()

    async def scenario(lane):
        first = asyncio.ensure_future(lane.put("1"))
        await begun(worker)
        others = [asyncio.ensure_future(lane.put(str(i))) for i in range(2, 13)]
        await asyncio.sleep(0.05)
        worker.may.set()
        return await asyncio.gather(first, *others)

    assert in_lane(scenario, worker) == [f"<{i}>" for i in range(1, 13)]
    assert [len(batch) for batch in worker.batches] == [1, 8, 3]


def test_a_single_client_waits_for_no_batch():
    worker = Worker()
    worker.may.set()

    async def scenario(lane):
        return [await lane.put(str(i)) for i in range(5)]

    assert in_lane(scenario, worker) == [f"<{i}>" for i in range(5)]
    assert [len(batch) for batch in worker.batches] == [1] * 5


def test_an_error_of_one_is_not_that_of_another():
    worker = Worker()
    worker.may.set()

    async def scenario(lane):
        return await asyncio.gather(lane.put("bad"), lane.put("good"), return_exceptions=True)

    bad, good = in_lane(scenario, worker)
    assert isinstance(bad, ValueError) and good == "<good>"


def test_work_that_breaks_is_told_to_its_batch_and_the_next_is_answered():
    calls = []

    def work(asked):
        calls.append(list(asked))
        if len(calls) == 1:
            raise SystemExit("no")
        return list(asked)

    work.may = threading.Event()

    async def scenario(lane):
        with pytest.raises(RuntimeError):
            await lane.put("1")
        return await lane.put("2")

    assert in_lane(scenario, work) == "2"


def test_over_the_limit_it_says_when_to_come_again():
    worker = Worker()

    async def scenario(lane):
        first = asyncio.ensure_future(lane.put("1"))
        await begun(worker)
        waiting = [asyncio.ensure_future(lane.put(str(i))) for i in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(ServiceRefusal) as refused:
            await lane.put("one too many")
        worker.may.set()
        await asyncio.gather(first, *waiting)
        assert await lane.put("later") == "<later>"
        return refused.value

    refusal = in_lane(scenario, worker, limit=3)
    assert (refusal.status, refusal.headers) == (503, {"retry-after": "7"})


def test_what_nobody_waits_for_is_not_begun():
    worker = Worker()

    async def scenario(lane):
        first = asyncio.ensure_future(lane.put("1"))
        await begun(worker)
        with pytest.raises(ServiceRefusal) as refused:
            await lane.put("2")
        assert refused.value.status == 504
        with pytest.raises(ServiceRefusal):
            await first
        last = asyncio.ensure_future(lane.put("3"))
        worker.may.set()
        return await last

    assert in_lane(scenario, worker, seconds=0.3) == "<3>"
    assert worker.batches == [["1"], ["3"]]


def test_work_of_a_client_that_has_gone_is_not_begun():
    worker = Worker()

    async def gone():
        return {"type": "http.disconnect"}

    async def scenario(lane):
        first = asyncio.ensure_future(lane.put("1"))
        await begun(worker)
        with pytest.raises(ServiceRefusal) as refused:
            await lane.put("2", gone)
        assert refused.value.status == 499
        worker.may.set()
        await first

    in_lane(scenario, worker)
    assert worker.batches == [["1"]]


def test_what_still_waits_at_the_end_is_told_so():
    worker = Worker()

    async def go():
        lane = Lane("test", worker, 10, 1, 10, 1)
        lane.start()
        jobs = [asyncio.ensure_future(lane.put(str(i))) for i in range(3)]
        await begun(worker)
        stopping = asyncio.ensure_future(asyncio.to_thread(lane.stop))
        await asyncio.sleep(0.05)
        worker.may.set()
        await stopping
        return await asyncio.gather(*jobs, return_exceptions=True)

    # What was asked before the end is answered; nothing hangs.
    assert asyncio.run(go()) == ["<0>", "<1>", "<2>"]
