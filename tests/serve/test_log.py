"""The log: lines of JSON, without what was asked unless that is wanted."""

import io
import json
import logging
import threading

from bridgehead.serve.log import RequestLog, ServerLines
from bridgehead.serve.settings import ServeSettings
from served_space import served, small_space


def lines_of(small_index, with_queries):
    stream = io.StringIO()
    log = RequestLog(with_queries, stream)
    with served(small_space(small_index), ServeSettings(log_queries=with_queries), log=log) as client:
        answer = client.post("/search", json={"q": "a secret of o\n{}"})
        client.get("/items/another-secret?of=molecule")
        client.post("/search", json={"q": "the secret", "of": "secret"})
        client.get("/secret/place")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert lines[0]["id"] == answer.headers["x-request-id"]
    assert lines[0]["bytes_out"] == len(answer.content)
    return stream.getvalue(), lines


def test_a_line_says_what_happened_and_not_what_was_asked(small_index):
    text, lines = lines_of(small_index, False)
    assert [(one["method"], one["route"], one["status"]) for one in lines] == [
        ("POST", "/search", 200), ("GET", "/items/{id:id}", 404), ("POST", "/search", 422), ("GET", "unknown", 404),
    ]  # fmt: skip
    for one in lines:
        assert {"time", "level", "event", "id", "ms", "bytes_in", "bytes_out"} <= set(one)
    assert "secret" not in text


def test_what_was_asked_stands_there_where_that_is_wanted(small_index):
    _, lines = lines_of(small_index, True)
    assert lines[0]["asked"] == {"q": "a secret of o\n{}"}
    assert lines[1]["path"] == "/items/another-secret" and lines[1]["asked"] is None
    assert "no side 'secret'" in lines[2]["message"]


def test_a_reader_that_stalls_holds_up_nobody():
    class Stalled(io.StringIO):
        def write(self, text):
            assert may.wait(20)
            return super().write(text)

    may, stream = threading.Event(), Stalled()
    log = RequestLog(False, stream)
    for number in range(12_000):
        log.write("info", {"number": number})
    may.set()
    log.flush(20)
    log.write("info", {"number": "last"})
    log.flush(20)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["number"] for line in lines[:-1]] == list(range(len(lines) - 1))
    assert lines[-1]["lines_left_out"] == 12_000 - (len(lines) - 1) > 0


def test_a_log_that_cannot_be_written_ends_nothing(small_index):
    stream = io.StringIO()
    stream.close()
    with served(small_space(small_index), log=RequestLog(False, stream)) as client:
        assert client.get("/health").status_code == 200


def test_what_the_server_says_over_and_over_is_written_once_a_while():
    stream = io.StringIO()
    log = RequestLog(False, stream)
    lines = ServerLines(log)
    for seconds in (0.0, 0.001, 9.0, 11.0, 12.0):
        record = logging.LogRecord("asyncio", logging.ERROR, "here.py", 1, "out of files", (), None)
        record.created = 1000.0 + seconds
        lines.emit(record)
    lines.emit(logging.LogRecord("uvicorn", logging.WARNING, "here.py", 1, "no HTTP", (), None))
    log.flush()
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(one["message"], one.get("repeated")) for one in told] == [
        ("out of files", None), ("out of files", 2), ("no HTTP", None),
    ]  # fmt: skip
