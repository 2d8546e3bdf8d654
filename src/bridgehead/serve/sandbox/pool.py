"""The processes of a sandbox as seen from outside: calls with a time limit, and a new process for one that failed.

Not about what the tasks do (`tasks`) or how a process limits itself (`child`).
"""

import asyncio
import contextlib
import json
import queue
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bridgehead import errors
from bridgehead.errors import ArgumentError, SandboxBusyError, SandboxLimitError
from bridgehead.serve.sandbox.child import serve_tasks
from bridgehead.workers import clean_context

TASK_NAMES = ("inspect", "pattern", "depict", "substructure")
_START_SECONDS = 60.0
# The limit is on processor time, which takes longer by the clock on a busy machine, and is that of each of many texts.
_WALL = 30
_LONGEST_ANSWER = 32 * 2**20
_VERIFIED = 2000

Verify = Callable[[str, Sequence[str]], npt.NDArray[np.bool_]]


class Sandbox:
    """Processes that do tasks on structures from outside; shared by threads and by coroutines.

    A task may take `seconds` of processor time (some less; by the clock thirty times that) and `memory_mib` MiB; one
    that takes more or breaks its process is refused with `SandboxLimitError`, and another process takes its place (in
    about 20 ms). At most `waiting` calls wait for the `processes`; further ones get `SandboxBusyError`. Nothing is
    started before the first call or `start()`. Closed by `close()` or as a context manager; the processes end with the
    one that made them, however it ends.

    Raises `ArgumentError` for limits that are not above 0.
    """

    def __init__(self, processes: int = 1, seconds: float = 2.0, memory_mib: int = 1024, waiting: int = 64) -> None:
        if processes < 1 or not seconds > 0 or memory_mib < 1 or waiting < 0:
            raise ArgumentError(
                f"processes = {processes}, seconds = {seconds}, memory_mib = {memory_mib}, waiting = {waiting}; "
                "expected at least 1 process, some time and memory, and 0 or more that wait"
            )
        self.processes, self.seconds, self.memory_mib, self.waiting = processes, seconds, memory_mib, waiting
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._jobs: queue.SimpleQueue[tuple[Future[Any], bytes] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._asked = 0
        self._workers: set[_Worker] = set()
        self._started = self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the processes, without waiting for them; a second call does nothing."""
        with self._lock:
            if self._started or self._closed:
                return
            self._started = True
        for _ in range(self.processes):
            self._idle.put(self._made())
            # Daemons: a program that ends without closing does not wait for a structure that hangs.
            self._threads.append(threading.Thread(target=self._serve, name="bridgehead-sandbox", daemon=True))
            self._threads[-1].start()

    async def call(self, task: str, *arguments: Any) -> Any:
        """Return what `task` gives for plain `arguments`; the event loop is not held up. See `call_blocking`."""
        return await asyncio.wrap_future(self._submitted(task, arguments))

    def call_blocking(self, task: str, *arguments: Any) -> Any:
        """Return what `task` ("inspect", "pattern", "depict", "substructure") gives for plain `arguments`.

        Raises the library's error that the task raises, `SandboxLimitError` where it took too much or broke its
        process, `SandboxBusyError` where too many wait, `ArgumentError` for another task or data that is not plain.
        """
        return self._submitted(task, arguments).result()

    def verifier(self, seconds: float) -> Verify:
        """Return a function like `has_substructure` that matches here, and takes at most `seconds` over all its calls.

        Structures go in parts of 2,000. It raises `SandboxLimitError` when a part or all of it took too long.
        """
        deadline: float | None = None

        def verify(pattern: str, smiles: Sequence[str]) -> npt.NDArray[np.bool_]:
            nonlocal deadline
            deadline = deadline or time.monotonic() + seconds
            found = np.zeros(len(smiles), dtype=np.bool_)
            for start in range(0, len(smiles), _VERIFIED):
                if time.monotonic() > deadline:
                    raise SandboxLimitError(
                        f"looking for the substructure took longer than {seconds:g} s: too many items may hold it; "
                        "ask for a larger one, or narrow the search with a filter"
                    )
                part = list(smiles[start : start + _VERIFIED])
                found[np.array(self.call_blocking("substructure", pattern, part), dtype=np.int64) + start] = True
            return found

        return verify

    def close(self) -> None:
        """End the processes; calls under way get `SandboxLimitError`. Nothing is left running."""
        with self._lock:
            self._closed = True
            workers = list(self._workers)
        for worker in workers:
            worker.end()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(10)

    def _submitted(self, task: str, arguments: Sequence[Any]) -> "Future[Any]":
        asked = _written(task, arguments)
        self.start()
        job: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise SandboxBusyError("the sandbox is closed")
            if self._asked >= self.waiting + self.processes:
                raise SandboxBusyError(f"{self.waiting} structures wait to be read already; try again in a moment")
            self._asked += 1
            self._jobs.put((job, asked))
        job.add_done_callback(self._ended)
        return job

    def _ended(self, job: "Future[Any]") -> None:
        with self._lock:
            self._asked -= 1

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, asked = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._work(asked))
                except BaseException as error:
                    # Raised where the result is asked for; the thread goes on.
                    future.set_exception(error)

    def _work(self, asked: bytes) -> Any:
        worker = self._taken()
        try:
            answer = worker.ask(asked, self.seconds)
        except BaseException:
            self._replace(worker)
            raise
        if answer.get("error") == "memory":
            self._replace(worker)
        else:
            self._idle.put(worker)
        return _result(answer, self.memory_mib)

    def _taken(self) -> "_Worker":
        """Return an idle process, or a new one: no more threads ask than there may be processes."""
        while True:
            try:
                worker = self._idle.get_nowait()
            except queue.Empty:
                return self._made()
            if worker.is_alive():
                return worker
            self._drop(worker)

    def _replace(self, worker: "_Worker") -> None:
        self._drop(worker)
        # Where none can be made now, the next call tries again.
        with contextlib.suppress(OSError, SandboxBusyError):
            self._idle.put(self._made())

    def _drop(self, worker: "_Worker") -> None:
        worker.end()
        with self._lock:
            self._workers.discard(worker)

    def _made(self) -> "_Worker":
        with self._lock:
            if self._closed:
                raise SandboxBusyError("the sandbox is closed")
            worker = _Worker(self.seconds, self.memory_mib)
            self._workers.add(worker)
        return worker


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, seconds: float, memory_mib: int) -> None:
        context = clean_context(["bridgehead.serve.sandbox.child", "bridgehead.serve.sandbox.warmed"])
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve_tasks, args=(theirs, seconds, memory_mib), daemon=True)
        self._process.start()
        theirs.close()
        self._ready = False

    def ask(self, asked: bytes, seconds: float) -> dict[str, Any]:
        """Return the answer to a task. Raises `SandboxLimitError` when none comes in time."""
        try:
            if not self._ready:
                self._heard(_START_SECONDS)
                self._ready = True
            self._pipe.send_bytes(asked)
            answer: dict[str, Any] = json.loads(self._heard(_WALL * seconds))
        except TimeoutError:
            raise _too_long() from None
        except (EOFError, OSError):
            self._process.join(1)
            if self._process.exitcode == -signal.SIGPROF:
                raise _too_long() from None
            raise SandboxLimitError("the structure broke the process that was to read it; it is refused") from None
        return answer

    def _heard(self, seconds: float) -> bytes:
        if not self._pipe.poll(seconds):
            raise TimeoutError
        return self._pipe.recv_bytes(_LONGEST_ANSWER)

    def is_alive(self) -> bool:
        """Say whether the process still runs."""
        return bool(self._process.is_alive())

    def end(self) -> None:
        """End the process at once, whatever it does."""
        self._process.kill()
        self._process.join(10)
        self._pipe.close()


def _too_long() -> SandboxLimitError:
    return SandboxLimitError("reading the structure takes longer than it may; it is refused")


def _written(task: str, arguments: Sequence[Any]) -> bytes:
    if task not in TASK_NAMES:
        raise ArgumentError(f"there is no task {task!r}; expected one of {', '.join(TASK_NAMES)}")
    try:
        return json.dumps([task, arguments]).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"the arguments of {task} are not plain data: {error}") from error


def _result(answer: dict[str, Any], memory_mib: int) -> Any:
    kind = answer.get("error")
    if kind is None:
        return answer["result"]
    if kind == "memory":
        raise SandboxLimitError(f"reading the structure took more than {memory_mib} MiB; it is refused")
    raised = getattr(errors, kind, None)
    if raised in (errors.StructureError, errors.ArgumentError, errors.MissingExtraError):
        raise raised(answer["message"]) if raised is not errors.MissingExtraError else raised("rdkit", "molecules")
    raise SandboxLimitError("the structure cannot be worked on; it is refused")
