"""Requests that wait for the space: a bounded queue, one thread, and whatever waits answered together.

Nothing is waited for: a request that finds the thread idle goes alone, and what comes while it works is the next batch.
So a single client loses no time, and many share the cost of encoding. Not about what is asked or answered.
"""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridgehead.serve.wire.refusals import ServiceRefusal, name_of

Work = Callable[[Sequence[Any]], Sequence[Any]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_MOMENT = 0.25


@dataclass(eq=False, slots=True)
class _Job:
    asked: Any
    future: "asyncio.Future[Any]"


class Lane:
    """A queue of at most `limit` jobs before one thread, which calls `work` with up to `most` of them at a time.

    `work` returns for each what it gives or the exception that it raises. `seconds`: until a job that waits or is being
    worked on is given up with 504; one that waits is then never begun. `retry_after`: seconds, for those refused.
    """

    def __init__(
        self, name: str, work: Work, limit: int, most: int, seconds: float, retry_after: int,
        batched: Callable[[int], None] = lambda size: None,
    ) -> None:  # fmt: skip
        self.name = name
        self._work, self._limit, self._most, self._seconds = work, limit, most, seconds
        self._retry_after = retry_after
        self._batched = batched
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; the running event loop is the one that answers come back to."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve, name=f"bridgehead-{self.name}", daemon=True)
        self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """Let the thread end after what it is working on; what still waits is answered with 503."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(seconds)

    @property
    def waiting(self) -> int:
        """How many jobs wait to be begun."""
        return self._jobs.qsize()

    async def put(self, asked: Any, receive: Receive | None = None) -> Any:
        """Return what `work` gives for `asked`, or raise what it raises.

        `receive`: the client's end of a request that was read; a job whose client has gone is not begun. Raises
        `ServiceRefusal`: 503 where `limit` jobs wait already, 504 after `seconds`, 499 when the client has gone.
        """
        if self._jobs.qsize() >= self._limit:
            raise ServiceRefusal(
                503, name_of(503), f"{self._limit} requests wait already; try again in {self._retry_after} s",
                {"retry-after": str(self._retry_after)},
            )  # fmt: skip
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        timer = loop.call_later(self._seconds, _give_up, future, self._seconds)
        watch = None if receive is None else _Watch(loop, receive, future)
        self._jobs.put(_Job(asked, future))
        try:
            return await future
        finally:
            timer.cancel()
            if watch is not None:
                watch.end()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            ended = False
            batch = [job]
            while len(batch) < self._most:
                try:
                    more = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    ended = True
                    break
                batch.append(more)
            self._answer([one for one in batch if not one.future.done()])
            if ended:
                break
        self._refuse_the_rest()

    def _answer(self, batch: list[_Job]) -> None:
        if not batch:
            return
        self._batched(len(batch))
        try:
            results = self._work([job.asked for job in batch])
        except BaseException as error:
            # Told to each of them; the thread must go on whatever happens.
            results = [error] * len(batch)
        self._hand_back(batch, results)

    def _refuse_the_rest(self) -> None:
        left = []
        while not self._jobs.empty():
            if (job := self._jobs.get()) is not None:
                left.append(job)
        gone = ServiceRefusal(503, name_of(503), "the service is going down", {"retry-after": str(self._retry_after)})
        self._hand_back(left, [gone] * len(left))

    def _hand_back(self, batch: Sequence[_Job], results: Sequence[Any]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(_settle, batch, results)
        except RuntimeError:
            # The loop has closed: nobody waits any more.
            return


class _Watch:
    """Looks whether the client of a job that takes longer than a moment is still there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Receive, future: "asyncio.Future[Any]") -> None:
        self._receive, self._future = receive, future
        self._task: asyncio.Task[None] | None = None
        # Most answers are there before: a timer costs less than a task.
        self._timer = loop.call_later(_MOMENT, self._begin)

    def end(self) -> None:
        """Look no more."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            continue
        if not self._future.done():
            self._future.set_exception(ServiceRefusal(499, name_of(499), "the client has gone"))


def _settle(batch: Sequence[_Job], results: Sequence[Any]) -> None:
    for job, result in zip(batch, results, strict=True):
        if job.future.done():
            continue
        if isinstance(result, BaseException):
            job.future.set_exception(result if isinstance(result, Exception) else RuntimeError(repr(result)))
        else:
            job.future.set_result(result)


def _give_up(future: "asyncio.Future[Any]", seconds: float) -> None:
    if not future.done():
        future.set_exception(over_time(seconds))


def over_time(seconds: float) -> ServiceRefusal:
    """Return what somebody is told who has waited for `seconds`."""
    return ServiceRefusal(504, name_of(504), f"no answer within {seconds:g} s; ask for less, or try again later")
