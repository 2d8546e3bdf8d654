"""Nobody holds a connection for nothing, or fills memory with a request that does not end: bytes on the wire."""

import contextlib
import socket
import threading
import time

import pytest

from served_process import running

HOST = b"Host: 127.0.0.1\r\n"
WHOLE = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.fixture(scope="module")
def service(small_index):
    with running(small_index, read_seconds=0.6, keep_alive=60) as (_, port):
        yield port


def seconds_held(port, first, piece, most=5.0):
    """Return for how long the service keeps a connection on which a piece comes every tenth of a second."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=0.1) as connection, contextlib.suppress(OSError):
        connection.sendall(first)
        while time.perf_counter() - began < most:
            connection.sendall(piece)
            with contextlib.suppress(TimeoutError):
                if connection.recv(65536) == b"":
                    break
    return time.perf_counter() - began


DRIPS = {
    "a first head": (b"GET /health HTTP/1.1\r\n", b"X: a\r\n"),
    "a further head": (WHOLE + b"GET /health HTTP/1.1\r\n", b"X: a\r\n"),
    "empty lines": (WHOLE, b"\r\n"),
    "a body that nobody reads": (b"GET /health HTTP/1.1\r\nContent-Length: 1000\r\n" + HOST + b"\r\n", b"a"),
    "chunks that nobody reads": (
        b"GET /health HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n", b"1\r\na\r\n",
    ),
    "a body of a refused request": (b"POST /search HTTP/1.1\r\nContent-Length: 1000\r\n" + HOST + b"\r\n", b"a"),
}  # fmt: skip


@pytest.mark.parametrize("what", DRIPS)
def test_a_request_that_drips_is_ended_in_time(service, what):
    assert seconds_held(service, *DRIPS[what]) < 3.5


def test_a_connection_that_has_asked_once_may_ask_again_later(service):
    with socket.create_connection(("127.0.0.1", service), timeout=5) as connection:
        for _ in range(3):
            connection.sendall(WHOLE)
            found = b""
            while not found.endswith(b'{"status":"alive"}'):
                found += (part := connection.recv(65536))
                assert part and found.startswith(b"HTTP/1.1 200")
            # Longer than a request may take to come in: between two the connection is idle, and kept.
            time.sleep(0.9)


@pytest.mark.parametrize(
    "first",
    [b"GET /health HTTP/1.1\r\n" + HOST + b"X: ", WHOLE + b"GET /", WHOLE + b"GET /health HTTP/1.1\r\nX",
     b"POST /search HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n" + HOST
     + b"\r\n1\r\n{\r\n0\r\nX: "],
    ids=["header", "address", "name", "trailer"],
)  # fmt: skip
def test_a_head_without_end_is_cut_off_early(service, first):
    sent = 0
    with socket.create_connection(("127.0.0.1", service), timeout=5) as connection:
        connection.sendall(first)
        with contextlib.suppress(OSError):
            while sent < 64 * 2**20:
                connection.sendall(b"a" * 65536)
                sent += 65536
    # What the system's buffers take besides is not read.
    assert sent < 16 * 2**20


@pytest.mark.parametrize("framing", [b"Content-Length: 3000000\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_a_client_that_sends_too_much_hears_why(service, framing):
    head = b"POST /search HTTP/1.1\r\nContent-Type: application/json\r\n" + HOST + framing + b"\r\n"
    body = b"a" * 3_000_000
    if b"chunked" in framing:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", service), timeout=5) as connection:
            connection.sendall(head + body)
            found = b""
            while part := connection.recv(65536):
                found += part
        assert found.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("framing", [b"Content-Length: 900000\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_a_large_body_that_comes_at_once_is_read(service, framing):
    head = b"POST /search HTTP/1.1\r\nContent-Type: application/json\r\nConnection: close\r\n" + HOST + framing
    body = b'{"q": "o"' + b" " * 899_990 + b"}"
    if b"chunked" in framing:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", service), timeout=5) as connection:
            connection.sendall(head + b"\r\n" + body)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_client_that_waits_to_be_told_to_send_is_refused_at_once(service):
    head = b"POST /search HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3000000\r\n" + HOST + b"\r\n"
    with socket.create_connection(("127.0.0.1", service), timeout=5) as connection:
        connection.sendall(head)
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")


def test_a_client_that_takes_nothing_of_its_answer_is_let_go(service):
    asked = (b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n") * 400
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", service))
        connection.settimeout(10)
        threading.Thread(target=_sent, args=(connection, asked), daemon=True).start()
        time.sleep(4.0)
        taken = 0
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                taken += len(part)
    # All would be 10 MB; the system's buffers hold less.
    assert taken < 9_000_000


def test_a_client_that_takes_its_answer_slowly_gets_all_of_it(service):
    asked = (b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n") * 9
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", service))
        connection.settimeout(5)
        connection.sendall(asked + b"GET /health HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
        found = b""
        while part := connection.recv(8192):
            found += part
            time.sleep(0.02)
    assert found.count(b"HTTP/1.1 200") == 10 and found.endswith(b'{"status":"alive"}')


def _sent(connection, data):
    with contextlib.suppress(OSError):
        connection.sendall(data)
