"""Requests that wait at a service: encoded together, refused over the limit, and not drawn into another's fault."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bridgehead.serve.settings import ServeSettings
from served_space import Letters, error_of, served, small_space

QUERIES = [" ".join("cno"[(number >> place) % 3] for place in range(4)) + f" word{number}" for number in range(12)]


@pytest.fixture
def busy(small_index):
    """Give (client, encoder of texts, pool) of a service that lets two requests wait."""
    encoder = Letters()
    with (
        served(small_space(small_index, encoder), ServeSettings(queue=12, max_batch=8)) as client,
        ThreadPoolExecutor(20) as pool,
    ):
        encoder.batches.clear()
        yield client, encoder, pool


def ask(client, query):
    return client.post("/search", json={"q": query, "k": 6})


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_what_waits_is_encoded_together_and_answered_as_if_alone(busy):
    client, encoder, pool = busy
    alone = [ask(client, query).json()["hits"] for query in QUERIES]
    encoder.batches.clear()
    lane = client.app.state.service.searches
    with encoder.held():
        first = pool.submit(ask, client, "o o")
        until(lambda: encoder.batches)
        waiting = [pool.submit(ask, client, query) for query in QUERIES]
        until(lambda: lane.waiting == len(QUERIES))
    assert [one.result().json()["hits"] for one in waiting] == alone
    assert first.result().status_code == 200
    assert encoder.batches == [1, 8, 4]


def test_a_fault_with_one_query_costs_those_beside_it_nothing(busy):
    client, encoder, pool = busy
    encoder.fault = RuntimeError("broken")
    lane = client.app.state.service.searches
    with encoder.held():
        first = pool.submit(ask, client, "o o")
        until(lambda: encoder.batches)
        good, bad = (pool.submit(ask, client, query) for query in ("n n c", "boom n"))
        until(lambda: lane.waiting == 2)
    assert first.result().status_code == good.result().status_code == 200
    assert bad.result().status_code == 500


def test_over_the_limit_it_says_when_to_come_again_and_the_others_are_answered(busy):
    client, encoder, pool = busy
    lane = client.app.state.service.searches
    with encoder.held():
        first = pool.submit(ask, client, "o o")
        until(lambda: encoder.batches)
        waiting = [pool.submit(ask, client, query) for query in QUERIES]
        until(lambda: lane.waiting == len(QUERIES))
        refused = ask(client, "one more")
        # What is no question to the space is answered all the same.
        assert client.get("/ready").status_code == client.get("/about").status_code == 200
    assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
    assert error_of(refused)["type"] == "Busy"
    assert {one.result().status_code for one in [first, *waiting]} == {200}


def test_long_work_holds_up_no_search(small_index):
    slow = Letters()
    with served(small_space(small_index, slow)) as client, ThreadPoolExecutor(2) as pool:
        with slow.held():
            long = pool.submit(client.post, "/encode", json={"items": ["o"], "of": "text"})
            until(lambda: client.app.state.service.slow.waiting == 0 and 1 in slow.batches[-1:])
            # A search by an id needs no encoder.
            assert ask(client, "m0").status_code == 200
            assert not long.done()
        assert long.result().status_code == 200
