"""The client against a service, and against whatever else may answer at an address."""

import json
import re
import socket
import threading
from contextlib import contextmanager

import pytest

from bridgehead.client import Client
from bridgehead.errors import ArgumentError, ServiceError


def answer(status, body, *headers, length=None):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body) if length is None else length}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


OK = answer(200, b'{"status": "alive"}', "Content-Type: application/json")
BUSY = answer(503, b'{"error": {"type": "Busy", "message": "256 wait"}}', "Retry-After: 0")
ITEM = {"id": "m/0", "side": "a", "of": "molecule", "kind": "molecule", "item": "CCO", "name": None,
        "names": ["x", "y"], "key": None, "payload": {"mass": 46.1}, "has_picture": True}  # fmt: skip


def found(hits):
    return {"query": "q", "reading": {"kind": "text", "value": "q", "side": "b", "explanation": "read as words"},
            "readings": ["smiles"], "of": "molecule", "kind": "molecule", "note": "", "k": 1, "offset": 0,
            "n_searched": 1, "more": False, "took_ms": 1.0, "hits": hits}  # fmt: skip


HIT = {"rank": 1, "id": "m", "side": "a", "score": 0.5, "percentile": 99.0, "item": "C", "name": "methane",
       "payload": {}, "read_as": "text", "has_picture": True, "also": ["n"], "explanation": {
           "similarity": 0.5, "percentile": 99.0, "matched_words": ["a"], "ranks": {"space": 1},
           "nearest_pair": {"id_a": "1", "item_a": "C", "id_b": "2", "item_b": "x", "to_query": 0.1, "to_hit": 0.2}},
       "something new": 1}  # fmt: skip


def _request(connection):
    """Return a request with its body, which may come in parts; empty where the client has closed."""
    found = b""
    while True:
        head, end, body = found.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, flags=re.IGNORECASE)
        if end and len(body) >= (int(length[1]) if length else 0):
            return found
        if not (part := connection.recv(65536)):
            return b""
        found += part


@contextmanager
def speaking(*answers):
    """Give (port, what was asked) of a server that gives these answers, one a request; it closes the connection for
    None, and after one in a list."""
    listener = socket.create_server(("127.0.0.1", 0))
    asked, left = [], list(answers)

    def talk():
        while left:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                while left:
                    head = _request(connection)
                    if not head:
                        break
                    asked.append(head)
                    given = left.pop(0)
                    if given is None:
                        break
                    connection.sendall(given[0] if isinstance(given, list) else given)
                    if isinstance(given, list):
                        break

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


@contextmanager
def client_of(*answers, **options):
    with speaking(*answers) as (port, asked), Client(f"http://127.0.0.1:{port}", **options) as client:
        yield client, asked


def js(content, status=200):
    return answer(status, json.dumps(content).encode(), "Content-Type: application/json")


def test_a_connection_is_kept_and_the_token_goes_with_every_request():
    with client_of(js(ITEM), js(ITEM), OK, token="secret") as (client, asked):
        item = client.item("m/0 ?#é", of="molecule")
        assert (item.names, item.payload) == (("x", "y"), {"mass": 46.1})
        client.item("m/0")
        assert client.health()
    assert [head.split(b" HTTP")[0] for head in asked] == [
        b"GET /items/m%2F0%20%3F%23%C3%A9?of=molecule", b"GET /items/m%2F0", b"GET /health",
    ]  # fmt: skip
    assert all(b"authorization: Bearer secret" in head for head in asked)


def test_an_answer_becomes_records_and_what_is_new_in_it_is_left_out():
    with client_of(js(found([HIT, {**HIT, "explanation": None}]))) as (client, asked):
        answer = client.search("q", k=2, filter="mass < 5", explain=True)
    assert answer.hits[0].also == ("n",) and answer.hits[0].explanation.ranks == {"space": 1}
    assert answer.hits[0].explanation.nearest_pair["to_hit"] == 0.2
    assert answer.hits[1].explanation is None and answer.reading.side == "b"
    sent = json.loads(asked[0].partition(b"\r\n\r\n")[2])
    assert (sent["q"], sent["k"], sent["filter"], sent["explain"]) == ("q", 2, "mass < 5", True)


@pytest.mark.parametrize("first", [BUSY, None, answer(502, b"<html>Bad Gateway</html>"), answer(429, b"")])
def test_what_may_pass_is_asked_again(first):
    with client_of(first, js(ITEM)) as (client, asked):
        assert client.item("m/0").item == "CCO"
    assert len(asked) == 2


def test_retries_end():
    with (
        client_of(BUSY, BUSY, BUSY, retries=2) as (client, asked),
        pytest.raises(ServiceError, match="256 wait") as error,
    ):
        client.item("m")
    assert (error.value.status, error.value.kind, error.value.retry_after, len(asked)) == (503, "Busy", 0.0, 3)


def test_as_long_is_waited_as_the_service_asks(monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    later = answer(503, b"", "Retry-After: 7")
    much_later = answer(503, b"", "Retry-After: 86400")
    with client_of(later, much_later, answer(503, b"", "Retry-After: Fri"), js(ITEM)) as (client, _):
        client.item("m")
    assert waits[:2] == [7.0, 30.0] and 0 < waits[2] < 1


@pytest.mark.parametrize(
    ("given", "least", "most"),
    [("Wed, 21 Oct 2065 07:28:00 GMT", 30, 30), ("Wed, 21 Oct 2015 07:28:00 -0000", 0, 1), ("9" * 5000, 30, 30),
     ("Wed, 99 Oct 2065 07:28:00 GMT", 0, 1), ("-5", 0, 1), ("nan", 0, 1), ("0.5", 0, 1), ("\u00b2", 0, 1)],
)  # fmt: skip
def test_a_wait_is_a_number_or_a_date_and_anything_else_is_ignored(monkeypatch, given, least, most):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    later = answer(503, b"", "Retry-After: here").replace(b"here", given.encode("latin-1"))
    with client_of(later, js(ITEM)) as (client, _):
        client.item("m")
    assert least <= waits[0] <= most


@pytest.mark.parametrize(
    ("given", "status", "says"),
    [
        (
            js({"error": {"type": "UnknownIdError", "message": "no item has the id 'x'"}}, 404),
            404,
            "no item has the id",
        ),
        (answer(404, b"<html>\n nginx </html>"), 404, "<html> nginx </html>"),
        (answer(500, b""), 500, "an empty body"),
        (answer(500, b'{"error": "a text"}'), 500, "a text"),
        (answer(302, b"", "Location: http://evil.example/"), 302, "an empty body"),
        (answer(200, b"<html>login</html>"), 200, "no JSON"),
        (answer(200, b""), 200, "no JSON"),
        (answer(200, b'{"id": "m'), 200, "no JSON"),
        (answer(200, b"[" * 100_000), 200, "no JSON"),
        (answer(200, b"\xff\xfe\x00"), 200, "no JSON"),
        (js([]), None, "expected an object"),
        (js({"id": "m"}), None, "lacks 'side'"),
        (js(None), None, "expected an object"),
        (js({**ITEM, "names": None}), None, "expected a list for 'names'"),
        (js({**ITEM, "names": "x"}), None, "expected a list for 'names'"),
    ],
)
def test_what_is_not_from_the_service_is_one_clear_error(given, status, says):
    with client_of(given) as (client, asked), pytest.raises(ServiceError) as error:
        client.item("m")
    assert error.value.status == status and says in str(error.value) and len(asked) == 1


@pytest.mark.parametrize("fault", [{"hits": None}, {"hits": {}}, {"hits": [1]}, {"reading": None}, {"reading": []}])
def test_hits_that_are_none_are_an_error_and_no_record(fault):
    with client_of(js({**found([HIT]), **fault})) as (client, _), pytest.raises(ServiceError, match="expected"):
        client.search("q")


def test_an_answer_that_is_cut_off_is_asked_for_again_and_then_an_error():
    cut = answer(200, b'{"id": "m', length=500)
    with client_of([cut], [cut], retries=1) as (client, _), pytest.raises(ServiceError, match="no answer"):
        client.item("m")


def test_nobody_there_is_an_error_and_no_health():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = Client(f"http://127.0.0.1:{port}", retries=1)
    with pytest.raises(ServiceError, match="refused") as error:
        client.about()
    assert error.value.status is None
    assert not client.health() and not client.ready()


def test_a_service_that_says_nothing_is_given_up_after_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2)
        with pytest.raises(ServiceError, match="timed out"):
            client.about()
        client.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8000",
        "ftp://x",
        "http://",
        "http://x:99999",
        None,
        "file:///etc",
        "http://x/\u00e9",
        "http://x/a b",
        "http://x/\x00",
        "http://a..b",
        "http://" + "a" * 300,
    ],
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ArgumentError, match="url"):
        Client(url)


def test_what_cannot_be_sent_is_refused():
    options_of_no_use = [
        *({"token": token} for token in ("a\r\nb", "é", "", 5, b"x")),
        *({"timeout": timeout} for timeout in (0, float("nan"), float("inf"), "3", None)),
        *({"retries": retries} for retries in (-1, 1.5, "1", None)),
    ]
    for options in options_of_no_use:
        with pytest.raises(ArgumentError):
            Client("http://127.0.0.1:1", **options)
    client = Client("http://127.0.0.1:1")
    for asked in ({"least_similarity": float("nan")}, {"filter": {"x": object()}}):
        with pytest.raises(ArgumentError, match="JSON"):
            client.search("q", **asked)
    with pytest.raises(ArgumentError, match="id"):
        client.item("")
    for asked in (lambda: client.item("\ud800"), lambda: client.similar("m", of="\ud800")):
        with pytest.raises(ArgumentError, match="surrogate"):
            asked()


def test_one_text_is_not_taken_for_a_list_of_its_signs():
    refused = answer(422, b'{"error": {"type": "ValidationError", "message": "items: no list"}}')
    with client_of(refused) as (client, asked), pytest.raises(ServiceError, match="no list"):
        client.encode("CCO", of="molecule")
    assert b'"items": "CCO"' in asked[0]


def test_threads_share_a_client():
    answers = [js(ITEM)] * 8
    with speaking(*answers[:4]) as (port, asked):
        client = Client(f"http://127.0.0.1:{port}")
        results = []

        def ask():
            results.append(client.item("m").item)
            client.close()

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert results == ["CCO"] * 4 and len(asked) == 4
