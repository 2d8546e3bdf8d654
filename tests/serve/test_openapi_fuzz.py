"""Requests that the OpenAPI document allows, and such that it does not, against the service of a real run."""

import time

import pytest

import served_run

schemathesis = pytest.importorskip("schemathesis")
hypothesis = pytest.importorskip("hypothesis")

pytestmark = pytest.mark.slow

# Requests of each operation, half of them as the document allows; in all at least 2,000.
REQUESTS = {"search": 700, "classify": 400, "encode": 300, "item": 240, "similar": 300, "depict": 160}
FIXED = {"about": 10, "health": 10, "ready": 10}
LONGEST = 12.0
LONGEST_ADDRESS = 60_000


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzed")
    with served_run.running(served_run.small_run(folder), folder / "log") as (process, port):
        yield process, f"http://127.0.0.1:{port}", folder


@pytest.fixture(scope="module")
def operations(service):
    schema = schemathesis.openapi.from_url(f"{service[1]}/openapi.json")
    found = [result.ok() for result in schema.get_all_operations()]
    return {operation.definition.raw["operationId"]: operation for operation in found}


def checks():
    from schemathesis.specs.openapi import checks as openapi

    return [
        schemathesis.checks.not_a_server_error,
        openapi.status_code_conformance,
        openapi.content_type_conformance,
        openapi.response_headers_conformance,
        openapi.response_schema_conformance,
    ]


def put_questions(operation, mode, n, service):
    """Put `n` requests of an operation, the same ones every time; return how many there were."""
    asked = 0

    @hypothesis.seed(5)
    @hypothesis.settings(
        max_examples=n, deadline=None, database=None, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def put(case):
        nonlocal asked
        asked += 1
        began = time.monotonic()
        response = case.call(base_url=service[1], timeout=60)
        assert time.monotonic() - began < LONGEST
        if response.status_code == 400 and len(response.request.url) > LONGEST_ADDRESS:
            # The server refuses such a head before there is a request that the document could be about.
            return
        case.validate_response(response, checks=checks())
        told = response.content
        assert not any(place in told for place in (*served_run.NEVER_TOLD, str(service[2]).encode()))

    put()
    return asked


def test_every_operation_is_asked(operations):
    assert set(operations) == {*REQUESTS, *FIXED}


def test_two_thousand_requests_get_what_the_document_promises(operations, service):
    modes = schemathesis.GenerationMode
    asked = 0
    for name, n in {**REQUESTS, **FIXED}.items():
        for mode in (modes.POSITIVE, modes.NEGATIVE):
            # What takes nothing has no request that is not allowed.
            if mode == modes.POSITIVE or name in REQUESTS:
                asked += put_questions(operations[name], mode, n // 2, service)
    assert asked >= 2000
    process, url, _ = service
    assert process.poll() is None
    began = time.monotonic()
    assert schemathesis.openapi.from_url(f"{url}/openapi.json") is not None
    assert time.monotonic() - began < LONGEST
