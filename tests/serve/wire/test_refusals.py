"""Every error has one form and says nothing of files or code, whatever comes."""

import io
import json
import sqlite3

import pytest

from bridgehead.serve.log import RequestLog
from served_space import Letters, error_of, served, small_space


def post(api, content, path="/search", kind="application/json"):
    return api.post(path, content=content, headers={"content-type": kind})


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "q: Field required"),
        ({"q": ""}, "q"),
        ({"q": "   "}, "the query is empty"),
        ({"q": "x" * 10_001}, "10000 characters"),
        ({"q": 5}, "valid string"),
        ({"q": "x", "k": 0}, "k"),
        ({"q": "x", "k": 1001}, "k"),
        ({"q": "x", "k": "10"}, "k"),
        ({"q": "x", "k": 1.5}, "k"),
        ({"q": "x", "k": True}, "k"),
        ({"q": "x", "offset": -1}, "offset"),
        ({"q": "x", "offset": 10_001}, "offset"),
        ({"q": "x", "of": "protein"}, "no side 'protein'"),
        ({"q": "x", "read_as": "poem"}, "read_as"),
        ({"q": "x", "mode": "fast"}, "mode"),
        ({"q": "x", "least_similarity": 2}, "least_similarity"),
        ({"q": "x", "K": 3}, "K"),
        ({"q": "x", "filter": "nothing = 1"}, "nothing"),
        ({"q": "x", "filter": "mass <"}, "mass"),
        ({"q": "x", "filter": "1=1; DROP TABLE items"}, ""),
        ({"q": "x", "filter": {"$where": "sleep(10)"}}, ""),
        ({"q": "x", "filter": ["mass"]}, "filter"),
        ({"q": "C1CC(C", "read_as": "smiles"}, "not a valid SMILES"),
        ({"q": "x", "of": "molecule", "substructure": "C1CC(C"}, ""),
        ({"q": "x", "of": "molecule", "similar_to": "not a molecule"}, ""),
        ({"q": "x", "of": "text", "substructure": "CCO"}, "structures"),
        ([], ""),
        ("q", ""),
    ],
)  # fmt: skip
def test_a_search_that_cannot_be_answered_is_422_and_says_why(api, asked, says):
    response = api.post("/search", json=asked)
    assert response.status_code == 422, response.text
    assert says in error_of(response)["message"]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b'{"q": NaN}', b'{"q": "x", "least_similarity": Infinity}', b'{"q": "\xff\xfe"}',
        b'{"q": "\\ud800"}',
        b"[" * 10_000 + b"]" * 10_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000, b'{"q": "x", "filter": '
        + b'{"not": ' * 5000 + b"1" + b"}" * 5001, b"\x00", b'{"q": 1e999}', b"1" * 5000, b'{"q":"x"} trailing',
    ],
)  # fmt: skip
def test_a_body_that_is_no_json_of_ours_is_422(api, content):
    for path in ("/search", "/classify", "/encode"):
        response = post(api, content, path)
        assert response.status_code == 422, response.text
        error_of(response)


def test_a_filter_that_is_nested_deep_is_refused(api):
    for depth in (50, 150, 190):
        content = '{"q": "x", "filter": ' + '{"not": ' * depth + "1" + "}" * (depth + 1)
        assert post(api, content.encode()).status_code == 422
    assert api.post("/search", json={"q": "x", "filter": "not " * 2400 + "mass < 5"}).status_code == 422
    assert api.post("/search", json={"q": "x", "filter": "(" * 4000 + "mass < 5" + ")" * 4000}).status_code == 422


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_that_a_page_elsewhere_could_send_without_asking_is_refused(api, kind):
    response = post(api, b'{"q": "x"}', kind=kind)
    assert response.status_code == 415
    error_of(response)


def test_json_of_a_kind_with_parameters_is_taken(api):
    assert post(api, b'{"q": "ooo"}', kind="application/json; charset=utf-8").status_code == 200


def test_unknown_addresses_and_methods_have_the_form_of_errors(api):
    for path in ("/nowhere", "/items", "/items/", "/static/../settings.py", "/static/nope.js", "/docs", "/redoc",
                 "/report", "/search/"):  # fmt: skip
        response = api.get(path)
        assert response.status_code in (404, 405, 422), path
        error_of(response)
    response = api.delete("/search")
    assert response.status_code == 405 and response.headers["allow"] == "POST, OPTIONS"
    error_of(response)


def test_head_and_options_are_answered(api):
    get, head = api.get("/about"), api.head("/about")
    assert head.status_code == 200 and head.content == b""
    assert head.headers["content-length"] == str(len(get.content))
    options = api.options("/items/m0")
    assert options.status_code == 204 and options.headers["allow"] == "GET, HEAD, OPTIONS"
    assert "access-control-allow-origin" not in options.headers


@pytest.mark.parametrize("query", ["k=0", "k=1001", "k=x", "offset=-1", "k=1e3", "filter=", "filter=mass%20<", "of=q"])
def test_what_is_wrong_in_an_address_is_422(api, query):
    response = api.get(f"/similar/m0?{query}")
    assert response.status_code == 422, response.text
    error_of(response)


def test_an_id_that_is_too_long_is_refused(api):
    assert api.get("/items/" + "x" * 3000).status_code == 422


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/classify", {"items": [], "labels": ["x"]}),
        ("/classify", {"items": ["CCO"], "labels": []}),
        ("/classify", {"items": ["CCO"] * 1001, "labels": ["o"]}),
        ("/classify", {"items": ["CCO"], "labels": ["o"], "templates": ["no place"]}),
        ("/classify", {"items": ["CCO"], "labels": ["o", "o"]}),
        ("/classify", {"items": ["CCO"], "labels": ["o"], "abstain_below": 3}),
        ("/classify", {"items": "CCO", "labels": ["o"]}),
        ("/classify", {"items": [None], "labels": ["o"]}),
        ("/classify", {"items": ["CCO"], "labels": ["o"], "synonyms": {"p": ["q"]}}),
        ("/encode", {"items": ["x"], "of": "protein"}),
        ("/encode", {"items": ["x"]}),
        ("/encode", {"items": ["x" * 10_001], "of": "text"}),
    ],
)
def test_what_cannot_be_classified_or_encoded_is_422(api, path, asked):
    response = api.post(path, json=asked)
    assert response.status_code == 422, response.text
    error_of(response)


@pytest.mark.parametrize(
    "fault",
    [
        RuntimeError("secret of /srv/data/file.npy"),
        sqlite3.OperationalError("no such table: items"),
        FileNotFoundError(2, "No such file", "/srv/data/file.npy"),
        RecursionError("maximum recursion depth exceeded"),
        MemoryError(),
        KeyError("a"),
    ],
)
def test_a_fault_of_ours_is_told_by_its_request_id_alone(small_index, fault):
    stream = io.StringIO()
    encoder = Letters()
    encoder.fault = fault
    with served(small_space(small_index, encoder), log=RequestLog(stream=stream)) as api:
        response = api.post("/search", json={"q": "boom o"})
        assert response.status_code == 500
        said = error_of(response)
        assert said["type"] == "InternalError" and response.headers["x-request-id"] in said["message"]
        assert "srv" not in response.text and "Traceback" not in response.text and "items" not in response.text
        assert api.post("/search", json={"q": "o o"}).status_code == 200
    logged = [json.loads(line) for line in stream.getvalue().splitlines()]
    line = next(line for line in logged if line["status"] == 500)
    assert line["error"] == type(fault).__name__ and "/" not in "".join(line["at"])
    assert "secret" not in str(logged) and "boom" not in str(logged)
