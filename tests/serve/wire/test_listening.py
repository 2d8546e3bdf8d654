"""A service in a process of its own: bytes on the wire, signals, and a good end."""

import contextlib
import http.client
import json
import signal
import socket
import threading
import time
from urllib.parse import quote

import pytest

from bridgehead.errors import ArgumentError
from bridgehead.serve.wire.listening import address_of, checked_token, is_loopback, listening_socket
from served_process import running
from served_space import IDS


@pytest.fixture(scope="module")
def service(small_index):
    with running(small_index, time_limit=0.6, read_seconds=1.5) as found:
        yield found


def raw(port, data, seconds=10.0):
    """Send bytes and return all that comes back until the service closes or nothing more comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(data)
        found = b""
        with contextlib.suppress(TimeoutError):
            while part := connection.recv(65536):
                found += part
        return found


def asked(port, method, path, content=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        body = None if content is None else json.dumps(content)
        connection.request(method, path, body, {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        return response.status, response.read(), dict(response.getheaders())
    finally:
        connection.close()


@pytest.mark.parametrize("identifier", IDS)
def test_an_id_reaches_the_index_as_it_was_written(service, identifier):
    status, body, _ = asked(service[1], "GET", f"/items/{quote(identifier, safe='')}")
    assert (status, json.loads(body)["id"]) == (200, identifier)


def test_the_page_of_heads_has_a_length_and_no_body(service):
    found = raw(service[1], b"HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and body == b"" and b"content-length: 0" not in head.lower()


def test_a_chunked_body_over_the_limit_is_refused_while_it_streams(service):
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    head = (
        b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    )
    with socket.create_connection(("127.0.0.1", service[1]), timeout=10) as connection:
        connection.sendall(head + b"\r\n")
        sent = 0
        with contextlib.suppress(OSError):
            for _ in range(400):
                connection.sendall(chunk)
                sent += len(chunk)
        answer = b""
        with contextlib.suppress(OSError):
            answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413") or (answer == b"" and sent < 400 * len(chunk))
    assert asked(service[1], "GET", "/health")[0] == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{}",
        b"GET /items/%FF%FE%00 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        b"GET /..%2f..%2fetc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"GET /about HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    ],
)
def test_what_is_no_proper_request_harms_nobody(service, data):
    found = raw(service[1], data, seconds=1.0)
    assert b"HTTP/1.1 5" not in found and b"Traceback" not in found and b"root:" not in found
    assert asked(service[1], "GET", "/health")[0] == 200


def test_a_client_that_goes_away_costs_nobody_else(service):
    head = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n"
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", service[1])) as connection:
            connection.sendall(head + b'{"q": "slow o"}')
    # One that was begun has to end, a second long; those that waited are not begun, or are answered with it.
    began = time.perf_counter()
    while asked(service[1], "POST", "/search", {"q": "o o"})[0] != 200:
        assert time.perf_counter() - began < 4.0


def test_a_request_that_does_not_come_in_time_is_ended(service):
    head = b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    assert raw(service[1], head).startswith(b"HTTP/1.1 408")
    # Nothing, and half a head: closed without an answer.
    began = time.perf_counter()
    assert raw(service[1], b"") == b"" and raw(service[1], b"GET / HTTP/1.1\r\nHo") == b""
    assert time.perf_counter() - began < 9


def test_a_search_over_its_time_is_504_and_the_service_goes_on(service):
    status, body, _ = asked(service[1], "POST", "/search", {"q": "slow o"})
    assert (status, json.loads(body)["error"]["type"]) == (504, "TimeLimit")
    time.sleep(0.6)
    assert asked(service[1], "POST", "/search", {"q": "o o"})[0] == 200


def test_after_sigterm_it_is_not_ready_answers_what_is_under_way_and_ends_well(small_index):
    with running(small_index, drain_seconds=0.5) as (process, port):
        answers = []
        search = threading.Thread(target=lambda: answers.append(asked(port, "POST", "/search", {"q": "slow secret o"})))
        search.start()
        raw(port, b"NONSENSE secret\r\n\r\n", seconds=0.3)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        status, _, headers = asked(port, "GET", "/ready")
        assert (status, headers["retry-after"]) == (503, "1")
        search.join()
        assert answers[0][0] == 200 and json.loads(answers[0][1])["hits"]
        assert process.wait(10) == 0
        assert "ended well" in process.stdout.read()
        text = process.stderr.read()
    # Every line of the process is one of JSON, those of the server underneath too, and none says what was asked.
    lines = [json.loads(line) for line in text.splitlines()]
    assert [one["event"] for one in lines] == ["server", "request", "request"]
    assert "secret" not in text


def test_neither_idle_nor_hanging_connections_hold_the_end_up(small_index):
    with running(small_index, shutdown_seconds=1.0) as (process, port):
        keeping = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        keeping.request("GET", "/health")
        assert keeping.getresponse().read() == b'{"status":"alive"}'
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
        keeping.close()


def test_an_answer_does_not_wait_for_the_client_to_confirm_its_head(service):
    connection = http.client.HTTPConnection("127.0.0.1", service[1], timeout=20)
    taken = []
    for _ in range(30):
        began = time.perf_counter()
        connection.request("GET", "/items/m0")
        connection.getresponse().read()
        taken.append(time.perf_counter() - began)
    connection.close()
    # With Nagle's algorithm every answer of two packets waits for the client's delayed confirmation, 40 ms.
    assert min(taken) < 0.03


def test_a_port_in_use_is_said():
    with contextlib.closing(listening_socket("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert address_of(taken, "127.0.0.1") == f"http://127.0.0.1:{port}/"
        with pytest.raises(ArgumentError, match=rf"cannot listen on 127.0.0.1 port {port}: Address already in use"):
            listening_socket("127.0.0.1", port)
    with pytest.raises(ArgumentError, match=r"cannot listen on 203\.0\.113\.7"):
        listening_socket("203.0.113.7", 0)
    for port in (-1, 65536, True, "80"):
        with pytest.raises(ArgumentError, match="port"):
            listening_socket("127.0.0.1", port)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "localhost", "::1"])
def test_loopback_needs_no_token(host):
    assert is_loopback(host)
    assert checked_token(None, host) is None
    assert checked_token(" a-token-of-enough-length\n", host) == "a-token-of-enough-length"


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "localhost.example.org", "127.example.org"]
)
def test_any_other_address_demands_a_token_of_some_length(host):
    with pytest.raises(ArgumentError, match="BRIDGEHEAD_TOKEN"):
        checked_token(None, host)
    for token in ("short", "with a blank in it, long", "ümlaut-ümlaut-ümlaut", ""):
        with pytest.raises(ArgumentError, match="at least 16"):
            checked_token(token, host)
