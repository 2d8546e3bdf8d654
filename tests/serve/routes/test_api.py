"""What the routes answer, held to the models that the OpenAPI document is made of."""

import json
from urllib.parse import quote

import pytest

from bridgehead.serve.routes import models
from served_space import IDS, error_of


def search(api, **asked):
    response = api.post("/search", json=asked)
    assert response.status_code == 200, response.text
    models.SearchAnswer.model_validate_json(response.content, strict=True)
    return response.json()


def test_a_search_says_how_it_was_read_and_what_it_found(api):
    found = search(api, q="o o o", k=2)
    assert (found["query"], found["of"], found["kind"], found["k"], found["offset"]) == (
        "o o o", "molecule", "molecule", 2, 0,
    )  # fmt: skip
    assert found["reading"]["kind"] == "text"
    assert found["hits"][0]["id"] == "m%2F2"
    assert found["hits"][0]["name"] == "peroxide" and found["hits"][0]["has_picture"]
    assert found["n_searched"] == len(IDS) and found["more"]


def test_names_stand_apart_from_the_payload_unless_it_has_its_own(api):
    hits = {hit["id"]: hit for hit in search(api, q="c o", k=10, of="molecule")["hits"]}
    assert hits["m0"]["payload"] == {"mass": 46.1, "tags": ["solvent"], "name": "ethanol"}
    assert hits["m 4?&#é"]["payload"]["name"] == "my own"


def test_pages_go_on_where_the_last_one_ended(api):
    first, second = search(api, q="c n o", k=4), search(api, q="c n o", k=4, offset=4)
    assert [hit["rank"] for hit in first["hits"] + second["hits"]] == [1, 2, 3, 4, 5, 6]
    assert (first["more"], second["more"]) == (True, False)


def test_a_filter_is_text_or_an_expression(api):
    found = search(api, q="c o", k=10, of="molecule", filter="mass < 50")
    assert {hit["id"] for hit in found["hits"]} == {"m0", "m/1"}
    assert found["n_searched"] == 2


def test_an_explanation_comes_where_it_is_asked_for(api):
    assert search(api, q="ethanol", read_as="text", k=1)["hits"][0]["explanation"] is None
    assert search(api, q="o o ethanol", k=1, explain=True)["hits"][0]["explanation"]["similarity"] is not None


# The test client takes percent signs out twice; a real server is asked for that id in `test_listening`.
@pytest.mark.parametrize("identifier", [one for one in IDS if "%" not in one])
def test_an_item_is_found_by_its_id_whatever_that_holds(api, identifier):
    response = api.get(f"/items/{quote(identifier, safe='')}?of=molecule")
    assert response.status_code == 200
    found = models.ItemAnswer.model_validate_json(response.content, strict=True)
    assert found.id == identifier and found.of == "molecule" and found.side == "a"


def test_of_tells_items_of_one_id_apart(api):
    assert api.get("/items/5").json()["of"] == "molecule"
    assert api.get("/items/5?of=text").json()["item"] == "词"


def test_an_unknown_id_is_404_on_every_route_of_an_item(api):
    for route in ("items", "similar", "depict"):
        response = api.get(f"/{route}/nobody")
        assert response.status_code == 404
        assert "nobody" in error_of(response)["message"]


def test_neighbours_leave_the_item_itself_out(api):
    response = api.get("/similar/m0?k=3")
    models.SearchAnswer.model_validate_json(response.content, strict=True)
    ids = [hit["id"] for hit in response.json()["hits"]]
    assert len(ids) == 3 and "m0" not in ids and response.json()["of"] == "molecule"
    assert api.get("/similar/m0?of=text&k=1").json()["of"] == "text"


def test_a_molecule_is_drawn_and_a_text_is_not(api):
    drawn = api.get("/depict/m0")
    assert drawn.status_code == 200 and drawn.headers["content-type"] == "image/svg+xml"
    assert drawn.text.startswith("<svg ") and "sandbox" in drawn.headers["content-security-policy"]
    again = api.get("/depict/m0", headers={"If-None-Match": drawn.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert api.get("/depict/t0").status_code == 404


def test_items_are_encoded_into_unit_rows_with_failures_listed(api):
    response = api.post("/encode", json={"items": ["ooo", "zzz", "c"], "of": "text"})
    found = models.EncodeAnswer.model_validate_json(response.content, strict=True)
    assert (found.of, found.dim, len(found.rows)) == ("text", 3, 3)
    assert [failure.position for failure in found.failures] == [1]
    assert found.rows[1] == [0.0, 0.0, 0.0]


def test_items_are_classified(api):
    asked = {"items": ["CCO", "NN"], "labels": ["oo", "nn"], "templates": ["{}", "{} c"], "k": 1}
    response = api.post("/classify", json=asked)
    assert response.status_code == 200, response.text
    found = models.ClassifyAnswer.model_validate_json(response.content, strict=True)
    assert [one.answer for one in found.items] == ["oo", "nn"]


def test_about_says_what_is_served(api):
    response = api.get("/about")
    found = models.AboutAnswer.model_validate_json(response.content, strict=True)
    assert [(side.side, side.name, side.n_items) for side in found.sides] == [("a", "molecule", 6), ("b", "text", 5)]
    assert {field.name for field in found.sides[0].fields} >= {"mass", "tags"}
    assert found.max_k == 1000 and found.measured is None and found.report is None


def test_the_service_says_that_it_lives_and_takes_requests(api):
    assert api.get("/health").json() == {"status": "alive"}
    assert api.get("/ready").json() == {"status": "ready"}


def test_metrics_count_routes_and_not_what_was_asked(api):
    api.get("/items/secret-of-mine")
    api.get("/nowhere/at/all")
    page = api.get("/metrics").text
    assert 'bridgehead_requests_total{route="/items/{id:id}",status="404"}' in page
    assert 'bridgehead_requests_total{route="unknown",status="404"}' in page
    assert "secret-of-mine" not in page and "nowhere" not in page
    for name in ("request_seconds_bucket", "queue_length", "batch_size_bucket", "encode_seconds_bucket",
                 "answer_seconds_bucket", "index_items", "index_change", "sandbox_limits_total"):  # fmt: skip
        assert f"bridgehead_{name}" in page, name


def test_the_document_of_the_interface_has_examples_and_the_form_of_errors(api):
    document = api.get("/openapi.json").json()
    paths = document["paths"]
    assert set(paths) == {
        "/search", "/classify", "/encode", "/items/{id}", "/similar/{id}", "/depict/{id}", "/about", "/health",
        "/ready",
    }  # fmt: skip
    for path, operations in paths.items():
        for operation in operations.values():
            if path not in ("/health", "/ready"):
                assert operation["responses"]["422"]["content"]["application/json"]["schema"]["$ref"].endswith(
                    "ErrorAnswer"
                )
    for name in ("SearchRequest", "ClassifyRequest", "EncodeRequest"):
        schema = document["components"]["schemas"][name]
        assert schema["additionalProperties"] is False and schema["examples"]
    assert document["components"]["schemas"]["SearchRequest"]["properties"]["k"]["maximum"] == 1000
    assert "HTTPValidationError" not in json.dumps(document)


def test_the_examples_of_the_document_are_answered(api):
    for name in ("SearchRequest", "ClassifyRequest", "EncodeRequest"):
        document = api.get("/openapi.json").json()
        example = document["components"]["schemas"][name]["examples"][0]
        response = api.post(f"/{name.removesuffix('Request').lower()}", json=example)
        assert response.status_code == 200, (name, response.text)
