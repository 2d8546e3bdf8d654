"""What stands between requests and the space: queues, worker threads, and how each question is put.

Searches go through one lane, where those that wait are answered together; what takes long (classification, encoding of
many items, substructures) through another, so that it holds up nobody. Not about HTTP.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from bridgehead.depict import has_pictures
from bridgehead.errors import SandboxLimitError
from bridgehead.search.query import Query
from bridgehead.serve.answers.asking import Question, bodies, stored_item, warm_up
from bridgehead.serve.answers.holder import SpaceHolder
from bridgehead.serve.answers.lanes import Lane, Receive, over_time
from bridgehead.serve.answers.vetting import Vetting, may_be_structure
from bridgehead.serve.log import RequestLog, places
from bridgehead.serve.measures import Measures, TimedEncoder
from bridgehead.serve.routes.about import about_content, records_stamp
from bridgehead.serve.routes.content import json_bytes
from bridgehead.serve.routes.pictures import Pictures
from bridgehead.serve.sandbox import Sandbox
from bridgehead.serve.settings import ServeSettings

Call = Callable[[Any], Any]


class Service:
    """The space in `holder` behind its queues; `start` and `stop` are called in the event loop."""

    def __init__(self, holder: SpaceHolder, settings: ServeSettings, log: RequestLog) -> None:
        self.holder, self.settings, self.log = holder, settings, log
        self.measures = Measures()
        self.draining = False
        limits = (settings.time_limit, settings.retry_after)
        self.searches = Lane(
            "search", self._answer, settings.queue, settings.max_batch, *limits, self.measures.batch.observe
        )
        self.slow = Lane("slow", self._answer, settings.slow_queue, 1, *limits)
        self.pictures = Pictures(self._draw, settings.pictures)
        self.sandbox = Sandbox(
            settings.sandbox_processes, settings.sandbox_seconds, settings.sandbox_mib, settings.sandbox_queue
        )
        self._vetting = Vetting(self.sandbox, settings.vetted)
        holder.prepare(self._prepared)
        lanes = {lane.name: partial(_length, lane) for lane in (self.searches, self.slow)}
        self.measures.watch(lanes, self._facts)
        self._said: tuple[tuple[Any, ...], bytes] | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the worker threads and the look-out for new heads."""
        if self._has_molecules():
            self.sandbox.start()
        self.searches.start()
        self.slow.start()
        self._watch = asyncio.create_task(self._look_out())

    async def stop(self) -> None:
        """Stop what `start` started and close the space."""
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        await asyncio.to_thread(self.searches.stop)
        await asyncio.to_thread(self.slow.stop)
        await asyncio.to_thread(self.sandbox.close)
        self.holder.close()

    async def search(self, query: Query, receive: Receive) -> bytes:
        """Return the body of the answer to `query`; raises what the query is refused with."""
        await self._vet_query(query)
        lane = self.slow if query.substructure is not None else self.searches
        found: bytes = await lane.put(Question(query, time.perf_counter()), receive)
        return found

    async def vet(self, texts: Sequence[str]) -> None:
        """Let RDKit read elsewhere first what it may come to read here; raises `SandboxLimitError`."""
        if self._has_molecules():
            async with self._looking():
                await self._vetting.structures([text for text in texts if may_be_structure(text, asked_for=True)])

    async def _vet_query(self, query: Query) -> None:
        if not self._has_molecules():
            return
        texts = [query.text] if may_be_structure(query.text, query.read_as == "smiles") else []
        async with self._looking():
            await self._vetting.structures([*texts, *([query.similar_to] if query.similar_to else [])])
            if query.substructure is not None:
                await self._vetting.pattern(query.substructure)

    @contextlib.asynccontextmanager
    async def _looking(self) -> AsyncIterator[None]:
        """Count what the sandbox refuses, and wait for it no longer than for anything else."""
        try:
            async with asyncio.timeout(self.settings.time_limit):
                yield
        except SandboxLimitError:
            self.measures.sandbox.inc()
            raise
        except TimeoutError:
            raise over_time(self.settings.time_limit) from None

    def _has_molecules(self) -> bool:
        return "molecule" in self.holder.space.kinds.values()

    async def picture(self, identifier: str, of: str | None, receive: Receive) -> tuple[bytes, str] | None:
        """Return the picture of an item and its ETag, or None where it has none."""
        found, kind = await self.call(partial(stored_item, identifier, of), receive)
        if not has_pictures(kind):
            return None
        return await self.pictures.picture(found.item, kind)

    async def about(self, receive: Receive) -> bytes:
        """Return the body of `/about`; what fields hold is counted anew when the index has changed."""
        found: bytes = await self.call(self._about, receive, slow=True)
        return found

    def _about(self, space: Any) -> bytes:
        with space.index.state() as state:
            key = (space.index.fingerprint, state.change, *records_stamp(self.holder.folder))
        if self._said is None or self._said[0] != key:
            self._said = (key, json_bytes(about_content(space, self.holder.folder, self.holder.heads)))
        return self._said[1]

    async def aside(self, work: Callable[[], Any]) -> Any:
        """Return what `work` gives, in a thread that is not the space's."""
        return await asyncio.to_thread(work)

    async def _draw(self, item: str, kind: str) -> str | None:
        async with self._looking():
            found: str | None = await self.sandbox.call("depict", item, kind)
        return found

    async def call(self, work: Call, receive: Receive, slow: bool = False) -> Any:
        """Return what `work` gives for the space, in a worker thread."""
        return await (self.slow if slow else self.searches).put(work, receive)

    def _prepared(self, space: Any) -> None:
        warm_up(space)
        for side, encoder in space.encoders.items():
            space.encoders[side] = TimedEncoder(encoder, self.measures.encode.observe)

    def _facts(self) -> dict[str, dict[str, float]]:
        with self.holder.borrowed() as space, space.index.state() as state:
            return {
                "index_items": {space.names[side]: state.size(side) for side in state.sides},
                "index_change": {"": state.change},
            }

    def _answer(self, asked: Sequence[Any]) -> list[Any]:
        results: list[Any] = [None] * len(asked)
        start = time.perf_counter()
        with self.holder.borrowed() as space:
            if any(isinstance(one, Question) and one.query.substructure is not None for one in asked):
                # Substructures are matched elsewhere, for as long as somebody may wait; such queries come one by one.
                space.verify_substructure = self.sandbox.verifier(self.settings.time_limit)
            places = [i for i, one in enumerate(asked) if isinstance(one, Question)]
            for i, body in zip(places, bodies([asked[i] for i in places], space), strict=True):
                results[i] = body
            for i, one in enumerate(asked):
                if not isinstance(one, Question):
                    results[i] = _caught(one, space)
        self.measures.answer.observe(time.perf_counter() - start)
        return results

    async def _look_out(self) -> None:
        while True:
            await asyncio.sleep(self.settings.look_seconds)
            try:
                if await asyncio.to_thread(self.holder.follow):
                    self.measures.exchanges.inc()
                    self.log.write("info", {"event": "exchange"})
            except Exception as error:
                # The space that serves goes on; the next look may find that the other one can be opened.
                self.log.write("error", {"event": "exchange", "error": type(error).__name__, "at": places(error)})


def _caught(work: Call, space: Any) -> Any:
    try:
        return work(space)
    except Exception as error:
        return error


def _length(lane: Lane) -> float:
    return lane.waiting
