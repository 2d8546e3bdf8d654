"""Who may ask, how much may come in, and which headers go out."""

import asyncio
import base64

import pytest

from bridgehead.serve.settings import ServeSettings
from bridgehead.serve.wire.guard import Guard
from served_space import error_of, served, small_space

TOKEN = "a-token-of-sufficient-length"


@pytest.fixture(scope="module")
def locked(small_index):
    with served(small_space(small_index), token=TOKEN, hosts=None) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/about", "/metrics", "/openapi.json", "/items/m0", "/static/page.js", "/no"])
def test_nothing_is_told_without_the_token(locked, path):
    response = locked.get(path)
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Basic ")
    error_of(response)


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer wrong", f"Bearer {TOKEN}x", f"bearer {TOKEN[:-1]}", TOKEN, f"Digest {TOKEN}",
     "Basic !!!", "Basic " + base64.b64encode(b"no colon").decode(), "Bearer \xe9"],
)  # fmt: skip
def test_a_wrong_token_is_no_token(locked, header):
    response = locked.post("/search", json={"q": "o"}, headers={"Authorization": header.encode("latin-1")})
    assert response.status_code == 401


def test_the_token_is_taken_from_programs_and_from_what_browsers_ask_people_for(locked):
    basic = base64.b64encode(f"anybody:{TOKEN}".encode()).decode()
    for header in (f"Bearer {TOKEN}", f"bearer  {TOKEN}", f"Basic {basic}"):
        assert locked.get("/about", headers={"Authorization": header}).status_code == 200


def test_whether_it_lives_may_be_asked_by_anybody(locked):
    assert locked.get("/health").status_code == 200
    assert locked.get("/ready").status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::2]", "127.0.0.1:80@evil.example",
     "[::1].evil.example", "localhost:8000:evil.example", "localhost, evil.example"],
)  # fmt: skip
def test_a_page_elsewhere_cannot_call_itself_this_machine(api, host):
    response = api.get("/about", headers={"Host": host})
    assert response.status_code == 421
    error_of(response)


@pytest.mark.parametrize("hosts", [("evil.example", "localhost"), ("localhost", "evil.example"), ("localhost",) * 2])
def test_a_request_that_names_two_machines_is_refused(api, hosts):
    response = api.get("/about", headers=[("Host", host) for host in hosts])
    assert response.status_code == 421


@pytest.mark.parametrize("headers", [{"x-long": "a" * 70_000}, {f"x-{i}": "a" for i in range(2000)}])
def test_a_head_over_the_limit_is_refused(api, headers):
    response = api.get("/health", headers=headers)
    assert (response.status_code, error_of(response)["type"]) == (431, "HeadTooLarge")
    assert response.headers["connection"] == "close"
    assert api.get("/health", headers={"x-long": "a" * 60_000}).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8123", "127.0.0.1:1", "[::1]:8000", "[::1]"])
def test_this_machine_goes_by_its_names(api, host):
    assert api.get("/health", headers={"Host": host}).status_code == 200


def test_every_answer_forbids_guessing_and_telling_on(api):
    for response in (api.get("/"), api.get("/about"), api.get("/depict/m0"), api.get("/nowhere"), api.get("/metrics")):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in response.headers
        assert "server" not in response.headers
        assert len(response.headers["x-request-id"]) == 16


def test_the_page_may_load_what_is_here_and_run_nothing_inline(api):
    policy = api.get("/").headers["content-security-policy"]
    assert policy == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert "unsafe" not in policy
    page = api.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert api.get("/", headers={"If-None-Match": f"W/{page.headers['etag']}"}).status_code == 304


def test_the_report_shows_and_does_nothing_else(small_index, tmp_path):
    (tmp_path / "report.html").write_text("<p>measured")
    with served(small_space(small_index), run=tmp_path) as client:
        response = client.get("/report")
        policy = response.headers["content-security-policy"]
        assert response.text == "<p>measured" and "script-src" not in policy and "default-src 'none'" in policy
        assert client.get("/about").json()["report"] == "/report"
        again = client.get("/report", headers={"If-None-Match": response.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        (tmp_path / "report.html").unlink()
        assert client.get("/report").status_code == 404 and client.get("/about").json()["report"] is None


def test_a_body_over_the_limit_is_refused_by_its_length(api):
    response = api.post("/search", content=b"x" * 1_000_001, headers={"content-type": "application/json"})
    assert response.status_code == 413
    assert response.headers["connection"] == "close"
    error_of(response)


@pytest.mark.parametrize("length", ["-1", "abc", "1" * 5000, ""])
def test_a_length_that_is_none_is_refused(api, length):
    response = api.get("/health", headers={"content-length": length})
    assert response.status_code in (400, 413)


def test_a_body_without_a_length_is_counted_while_it_streams_in():
    taken = []

    async def reader(scope, receive, send):
        while (message := await receive()).get("more_body"):
            taken.append(len(message["body"]))

    async def endless():
        return {"type": "http.request", "body": b"x" * 300, "more_body": True}

    sent = []

    async def send(message):
        sent.append(message)

    guard = Guard(reader, None, None, 1000, lambda exchange: None)
    scope = {"type": "http", "method": "POST", "path": "/search", "headers": []}
    asyncio.run(guard(scope, endless, send))
    assert taken == [300, 300, 300]
    assert sent[0]["status"] == 413


def test_the_smallest_limit_that_is_set_counts(small_index):
    with served(small_space(small_index), ServeSettings(max_body_bytes=1000)) as client:
        assert client.post("/search", json={"q": "x" * 1000}).status_code == 413
        assert client.post("/search", json={"q": "o" * 900}).status_code == 200
