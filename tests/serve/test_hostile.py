"""Ten thousand hostile requests to the service of a real run: each is refused or answered, and costs nobody else."""

import contextlib
import http.client
import json
import os
import queue
import re
import socket
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import hostile_inputs
import served_run
from bridgehead.index import IndexWriter, open_index

pytestmark = pytest.mark.slow

N = 10_000
CLIENTS = 4
LONGEST = 30.0
SECRET = "canary-5b1c7e"
DELETED = "X17"
# 400 and 431 are the server's own, for what is no HTTP; 408 for a body that did not come.
FINE = {200, 204, 304, 400, 404, 405, 408, 413, 414, 415, 421, 422, 431}
TOO_MANY_MIB = 250


@dataclass
class Served:
    """A service, where it lies, and the ids that it may show."""

    process: object
    port: int
    run: Path
    log: Path
    ids: frozenset[str]
    never: tuple[bytes, ...]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    run = served_run.small_run(folder)
    (run / "secret.txt").write_text(SECRET)
    with open_index(run / "index") as index:
        gone = next(item for item in index.by_id(DELETED) if item.side == "a")
    with IndexWriter(run / "index") as writer:
        assert writer.delete("a", [DELETED]) == 1
    with open_index(run / "index") as index:
        ids = {item.id for side in index.sides for item in index.items(side, index.numbers(side))}
    never = (*served_run.NEVER_TOLD, SECRET.encode(), str(folder).encode(), gone.names[0].encode())
    limits = {"sandbox_seconds": 0.5, "time_limit": LONGEST}
    with served_run.running(run, folder / "log", **limits) as (process, port):
        yield Served(process, port, run, folder / "log", frozenset(ids), never)


@dataclass
class Told:
    """What came back for a request."""

    status: int
    seconds: float
    fault: str = ""


class Client:
    """A connection that is kept as long as the service keeps it."""

    def __init__(self, served):
        self.served = served
        self.connection = None

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def ask(self, request):
        began = time.monotonic()
        if request.raw is not None:
            return Told(_raw(self.served.port, request.raw), time.monotonic() - began)
        for again in (False, True):
            try:
                status, fault = self._sent(request)
                break
            except (http.client.HTTPException, OSError) as error:
                self.close()
                # A connection that was kept may have ended, and a body that is too large is not read to its end.
                if again:
                    return Told(
                        413 if len(request.body or b"") > 500_000 else -1, time.monotonic() - began, repr(error)
                    )
        return Told(status, time.monotonic() - began, fault)

    def _sent(self, request):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=2 * LONGEST)
        self.connection.request(request.method, request.path, request.body, request.headers)
        response = self.connection.getresponse()
        body = response.read()
        return response.status, _fault(self.served, request, response, body)


def _raw(port, data):
    """Send bytes; return the status that comes back, 400 where the service just closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        found = b""
        with contextlib.suppress(OSError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                found += part
        head = re.match(rb"HTTP/1\.1 (\d+)", found)
        return int(head[1]) if head else 400


def _fault(served, request, response, body):
    """Return what is wrong with an answer, "" where nothing is."""
    if told := [word for word in served.never if word in body]:
        return f"tells {told}"
    if response.status == 400:
        return ""
    if response.getheader("x-content-type-options") != "nosniff":
        return "may be taken for something else"
    kind = response.getheader("content-type", "")
    if not kind.startswith("application/json"):
        known = kind.startswith(("image/svg+xml", "text/html", "text/css", "text/javascript")) or response.status in (
            204,
            304,
        )
        return "" if known and b"alert(1)" not in body else f"is {kind}"
    if request.method == "HEAD" or not body:
        return ""
    content = json.loads(body)
    if response.status != 200:
        return "" if set(content) == {"error"} and content["error"]["message"] else "has another form of error"
    shown = {hit["id"] for hit in content.get("hits", ())} | {
        one for hit in content.get("hits", ()) for one in hit["also"]
    }
    if "names" in content:
        shown.add(content["id"])
    return "" if shown <= served.ids else f"shows {shown - served.ids}"


def mib(pid):
    """Resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def search_seconds(served, n=40):
    content = json.dumps({"q": "a ring of carbons", "k": 5, "of": "molecule"}).encode()
    plain = hostile_inputs.Request("POST", "/search", content, {"content-type": "application/json"})
    with contextlib.closing(Client(served)) as client:
        found = [client.ask(plain) for _ in range(n)]
    assert {one.status for one in found} == {200} and not any(one.fault for one in found)
    return statistics.median(one.seconds for one in found)


def test_ten_thousand_hostile_requests_cost_nobody_anything(served):
    before = search_seconds(served)
    requests = hostile_inputs.requests(N)
    tenth = len(requests) // 10
    clients = queue.SimpleQueue()

    def ask(request):
        client = clients.get()
        try:
            return client.ask(request)
        finally:
            clients.put(client)

    with contextlib.ExitStack() as opened, ThreadPoolExecutor(CLIENTS) as threads:
        for _ in range(CLIENTS):
            clients.put(opened.enter_context(contextlib.closing(Client(served))))
        told = list(threads.map(ask, requests[:tenth]))
        warm = mib(served.process.pid)
        told += threads.map(ask, requests[tenth:])
    wrong = [
        (one, request.method, request.path[:80], (request.body or request.raw or b"")[:200])
        for one, request in zip(told, requests, strict=True)
        if one.status not in FINE or one.fault or one.seconds > LONGEST
    ]
    assert not wrong, (len(wrong), wrong[:5], Counter(one.status for one in told))
    statuses = Counter(one.status for one in told)
    assert len(told) == N and statuses[200] > N / 20 and statuses[422] > N / 20
    assert served.process.poll() is None
    assert mib(served.process.pid) - warm < TOO_MANY_MIB
    # Quick again, on a machine that may be busy with something else by now.
    assert search_seconds(served) < 3 * before + 0.05


def test_the_log_of_hostile_requests_is_json_lines_without_what_was_asked(served):
    lines = served.log.read_text().splitlines()
    assert len(lines) > 100
    for line in lines:
        json.loads(line)
    assert not any(hostile_inputs.MARK in line or SECRET in line for line in lines)


def test_nothing_was_written_into_the_run(served):
    assert (served.run / "secret.txt").read_text() == SECRET
    with open_index(served.run / "index", thorough=True) as index:
        assert (
            frozenset(item.id for side in index.sides for item in index.items(side, index.numbers(side))) == served.ids
        )
