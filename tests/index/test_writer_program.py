"""Random programs of writes against a plain dict: after each, everything that can be asked is as in the dict."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bridgehead.errors import ArgumentError
from bridgehead.index import IndexSide, IndexWriter, VectorPlan, build_index, open_index
from bridgehead.index.where import parse_where

WORDS = ["alpha", "beta", "gamma", "β-blocker", "COX-2", "肝炎", "été"]
NAMES = ["Aspirin", "aspirin", "beta blocker", "Ärger", "x 1"]
FILTERS = ["x < 2", "not (x < 2)", "tags = 'red'", "x in (1, 'one')", "exists x and tags != 'red'", "deep = 1 or x = 1"]
SAID_OTHERWISE = {"COX2": {"COX-2"}, "beta": {"beta", "β-blocker", "beta blocker"}}
ids = st.sampled_from([f"id {number}" for number in range(8)])
# Small whole numbers: many rows are the same or lie in the same direction, and some are zero.
rows = st.lists(st.integers(-1, 1), min_size=3, max_size=3)
payloads = st.fixed_dictionaries(
    {"all": st.just(1)},
    optional={
        "x": st.sampled_from([0, 1, 1.0, 2.5, "one", None, True]),
        "tags": st.lists(st.sampled_from(["red", "blue"]), max_size=2),
        "deep": st.sampled_from([1, None]),
    },
)
items = st.fixed_dictionaries(
    {
        "row": rows,
        "item": st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join),
        "names": st.lists(st.sampled_from(NAMES), max_size=2),
        "payload": payloads,
        "key": st.sampled_from([None, "KEY1", "KEY2"]),
        "entity": st.sampled_from([None, "one thing"]),
        "origin": st.sampled_from(["run", "sync"]),
    }
)
batches = st.dictionaries(ids, items, max_size=5)


def side_of(batch):
    held = list(batch.values())
    return IndexSide(
        "text",
        np.array([one["row"] for one in held], dtype=np.float32).reshape(len(held), 3),
        [one["item"] for one in held],
        list(batch),
        names=[one["names"] for one in held],
        payload=[one["payload"] for one in held],
        keys=[one["key"] for one in held],
        entities=[one["entity"] for one in held],
        origin=[one["origin"] for one in held],
    )


def content(one):
    return [one["item"], one["names"], repr(one["payload"]), one["key"], one["entity"]]


def cosines(stored, query):
    unit = stored / np.maximum(np.linalg.norm(stored, axis=1, keepdims=True), 1e-30)
    unit = unit.astype(np.float16).astype(np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-30)
    return unit @ (query / np.linalg.norm(query))


class Program(RuleBasedStateMachine):
    @initialize(first=batches)
    def build(self, first):
        self.folder = Path(tempfile.mkdtemp())
        self.model = dict(first)
        build_index(self.folder / "index", {"b": side_of(first)}, "m")
        self.index = open_index(self.folder / "index")
        self.writer = IndexWriter(self.folder / "index").__enter__()
        self.numbers = {one: number for number, one in enumerate(first)}
        self.most = len(first) - 1

    def teardown(self):
        if hasattr(self, "folder"):
            self.writer.__exit__(None, None, None)
            self.index.close()
            shutil.rmtree(self.folder)

    @rule(batch=batches)
    def put(self, batch):
        known = [one for one in batch if one in self.model]
        same = [one for one in known if content(self.model[one]) == content(batch[one])]
        written = self.writer.put("b", side_of(batch))
        assert (written.added, written.replaced) == (len(batch) - len(known), len(known) - len(same))
        assert written.unchanged == len(same)
        for one in batch:
            if one not in same:
                self.most += 1
                self.model[one], self.numbers[one] = batch[one], self.most

    @rule(chosen=st.lists(ids, max_size=4))
    def delete(self, chosen):
        there = {one for one in chosen if one in self.model}
        assert self.writer.delete("b", chosen) == len(there)
        for one in there:
            del self.model[one], self.numbers[one]

    @rule()
    def compact(self):
        self.writer.compact(plan=VectorPlan(recall_floor=0))

    @rule()
    def write_anew(self):
        self.writer.__exit__(None, None, None)
        self.writer = IndexWriter(self.folder / "index").__enter__()

    @rule()
    def read_anew(self):
        self.index.close()
        self.index = open_index(self.folder / "index", "m", thorough=True)

    @precondition(lambda self: hasattr(self, "folder"))
    @invariant()
    def items_are_those_of_the_dict(self):
        with self.index.state() as state:
            numbers = state.numbers("b").tolist()
            assert numbers == sorted(self.numbers.values()) and state.size("b") == len(self.model)
            for item in state.items("b", numbers):
                one = self.model[item.id]
                assert [item.item, list(item.names), repr(dict(item.payload)), item.key, item.entity] == content(one)
                assert item.number == self.numbers[item.id] and item.origin == one["origin"]
                assert state.by_id(item.id) == [item]
            assert self.writer.hashes("b").keys() == self.model.keys()

    @precondition(lambda self: hasattr(self, "folder"))
    @invariant()
    def searches_find_what_a_look_at_all_finds(self):
        by_number = {number: self.model[one] for one, number in self.numbers.items()}
        with self.index.state() as state:
            self.nearest(state, by_number)
            self.words(state, by_number)
            for name in ("ASPIRIN", "β blocker", "arger"):
                found = [item.number for item in state.by_name(name)]
                having = {n: [x.lower() for x in one["names"]] for n, one in by_number.items()}
                form = {"ASPIRIN": "aspirin", "β blocker": "beta blocker", "arger": "arger"}[name]
                first = sorted(n for n, names in having.items() if names[:1] == [form])
                assert found == first + sorted(n for n, names in having.items() if form in names[1:] and n not in first)
            for key in ("KEY1", "KEY2"):
                assert [item.number for item in state.by_key(key)] == sorted(
                    n for n, one in by_number.items() if one["key"] == key
                )
            self.filters(state, by_number)

    def nearest(self, state, by_number):
        numbers = np.array(sorted(by_number), dtype=np.int64)
        stored = np.array([by_number[n]["row"] for n in numbers], dtype=np.float32).reshape(len(numbers), 3)
        for query, allowed in (([1, 0, 0.5], None), ([-1, 1, 0], numbers[::2])):
            scores = np.round(cosines(stored, np.array(query)), 10) + 0.0
            kept = [i for i, n in enumerate(numbers) if allowed is None or n in allowed]
            order = sorted(kept, key=lambda i: (-scores[i], numbers[i]))
            found = state.search("b", np.array([query]), 20, 0, allowed)[0]
            assert found.numbers.tolist() == [int(numbers[i]) for i in order]
            assert np.allclose(found.scores, scores[order], atol=1e-9)
            pages = [state.search("b", np.array([query]), 2, offset, allowed)[0] for offset in (0, 2)]
            assert [n for page in pages for n in page.numbers.tolist()] == found.numbers[:4].tolist()

    def words(self, state, by_number):
        for query in ("alpha", "COX2 gamma", "肝炎 beta"):
            sets = {n: {*one["item"].split(), *one["names"]} for n, one in by_number.items()}
            terms = [
                {"COX2": {"COX-2"}, "beta": {"beta", "β-blocker", "beta blocker"}}.get(w, {w}) for w in query.split()
            ]
            every = {n for n, held in sets.items() if all(term & held for term in terms)}
            some = {n for n, held in sets.items() if any(term & held for term in terms)}
            found = state.words(query, "b", 20)
            assert {hit.number for hit in found} == (every or some)
            assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)

    def filters(self, state, by_number):
        for where in map(parse_where, FILTERS):
            try:
                found = state.matching("b", where).tolist()
            except ArgumentError:
                # A field, or a kind of value, that no item has is refused.
                continue
            assert found == sorted(n for n, one in by_number.items() if where.matches(one["payload"]))


@pytest.mark.slow
def test_any_program_of_writes_leaves_what_a_dict_would_hold():
    run_state_machine_as_test(
        Program,
        settings=settings(
            max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
