"""The exchange of a space for its successor: nobody sees one that is closed."""

import threading

from bridgehead.serve.answers.holder import SpaceHolder
from served_space import served, small_space


class Fake:
    def __init__(self, successor=None):
        self.closed = False
        self.successor = successor
        self.encoders = {}

    def close(self):
        self.closed = True

    def reopened(self):
        return self.successor


def test_a_space_is_closed_when_its_last_user_has_gone():
    old, new = Fake(), Fake()
    holder = SpaceHolder(old)
    with holder.borrowed() as first, holder.borrowed() as second:
        holder.exchange(new)
        assert first is second is old and not old.closed
        with holder.borrowed() as third:
            assert third is new
        assert not new.closed
    assert old.closed and not new.closed
    holder.close()
    assert new.closed


def test_a_space_that_nobody_uses_is_closed_at_once():
    old = Fake(successor=Fake())
    holder = SpaceHolder(old)
    prepared = []
    holder.prepare(prepared.append)
    assert holder.follow()
    assert old.closed and holder.space is old.successor
    assert not holder.follow()
    assert prepared == [old, old.successor]


def test_nobody_gets_a_closed_space_while_spaces_change():
    holder = SpaceHolder(Fake())
    seen, ended = [], threading.Event()

    def use():
        while not ended.is_set():
            with holder.borrowed() as space:
                seen.append(space.closed)
                seen.append(space.closed)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        holder.exchange(Fake())
    ended.set()
    for thread in threads:
        thread.join()
    assert seen and not any(seen)


def test_requests_go_on_without_an_error_while_new_heads_take_over(small_index):
    space = small_space(small_index)
    with served(space) as client:
        holder = client.app.state.service.holder
        for _ in range(3):
            before = client.post("/search", json={"q": "o o", "k": 3})
            holder.exchange(small_space(small_index))
            after = client.post("/search", json={"q": "o o", "k": 3})
            assert before.status_code == after.status_code == 200
            assert before.json()["hits"] == after.json()["hits"]
        assert holder.space is not space
