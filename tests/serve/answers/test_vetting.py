"""Texts that RDKit may come to read go through the sandbox first; a hostile one costs its own request only."""

import asyncio
import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead import molecules
from bridgehead.errors import SandboxBusyError, SandboxLimitError
from bridgehead.serve.answers.holder import SpaceHolder
from bridgehead.serve.answers.service import Service
from bridgehead.serve.answers.vetting import Vetting, may_be_structure
from bridgehead.serve.log import RequestLog
from bridgehead.serve.settings import ServeSettings
from served_space import error_of, served, small_space


class FakeSandbox:
    """Refuses texts that hold "Fr", and remembers what it was asked."""

    def __init__(self):
        self.asked = []
        self.seconds = 0.0

    async def call(self, task, *arguments):
        self.asked.append((task, *arguments))
        await asyncio.sleep(self.seconds)
        if "Fr" in str(arguments):
            raise SandboxLimitError("reading the structure took longer than 2 s; it is refused")
        return '<svg xmlns="http://www.w3.org/2000/svg"/>' if task == "depict" else [None]


def look(vetting, texts):
    return asyncio.run(vetting.structures(texts))


@given(st.text(alphabet="CNOclr[]()=#123 hxz\n\tBS@+-.%/\\\\", max_size=12) | st.text(max_size=12))
def test_whatever_rdkit_would_read_as_a_query_is_looked_at(text):
    read = []
    original, molecules.parse = molecules.parse, lambda word, **options: read.append(word) or original(word, **options)
    try:
        molecules.reads_as_smiles(text)
        molecules.why_no_smiles(text)
    finally:
        molecules.parse = original
    assert may_be_structure(text) or not read


def test_words_are_not_looked_at_and_forced_structures_are():
    assert not may_be_structure("inhibits an enzyme") and not may_be_structure("aspirin") and not may_be_structure("  ")
    assert may_be_structure("CC(=O)O") and may_be_structure("[hello]") and may_be_structure("hello", asked_for=True)
    assert not may_be_structure("C C", asked_for=True)


def test_what_was_looked_at_is_known():
    sandbox = FakeSandbox()
    vetting = Vetting(sandbox, 100)
    look(vetting, ["CC", "CO", "CC"])
    look(vetting, ["CO"])
    look(vetting, [])
    assert sandbox.asked == [("inspect", ["CC", "CO"])]
    for _ in range(3):
        with pytest.raises(SandboxLimitError, match="took longer"):
            look(vetting, ["[Fr]"])
    assert len(sandbox.asked) == 2


def test_no_more_is_known_than_there_is_room_for():
    sandbox = FakeSandbox()
    vetting = Vetting(sandbox, 3)
    for number in range(10):
        look(vetting, ["C" * (number + 1)])
    assert len(vetting._known) == 3
    look(vetting, ["C" * 10])
    assert len(sandbox.asked) == 10


def test_many_are_looked_at_in_parts():
    sandbox = FakeSandbox()
    look(Vetting(sandbox, 1000), ["C" * n for n in range(1, 51)])
    assert [len(texts) for _, texts in sandbox.asked] == [20, 20, 10]


@pytest.fixture
def guarded(small_index):
    with served(small_space(small_index), ServeSettings(time_limit=0.5)) as client:
        sandbox = client.app.state.service.sandbox
        sandbox.close()
        fake = FakeSandbox()
        client.app.state.service._vetting = Vetting(fake, 100)
        sandbox.call = fake.call
        yield client, fake


def test_every_way_in_is_guarded(guarded):
    client, fake = guarded
    for path, asked in (
        ("/search", {"q": "[Fr]"}),
        ("/search", {"q": "Fr", "read_as": "smiles"}),
        ("/search", {"q": "o o", "similar_to": "[Fr]", "of": "molecule"}),
        ("/search", {"q": "o o", "substructure": "[Fr]", "of": "molecule"}),
        ("/encode", {"items": ["CC", "[Fr]"], "of": "molecule"}),
        ("/classify", {"items": ["[Fr]"], "labels": ["o"]}),
        ("/classify", {"items": ["o"], "labels": ["Fr"], "templates": ["[{}]"], "of": "molecule"}),
        ("/classify", {"items": ["o"], "labels": ["n"], "synonyms": {"n": ["[Fr]"]}, "of": "molecule"}),
    ):
        before = len(fake.asked)
        response = client.post(path, json=asked)
        assert response.status_code == 422, (path, asked, response.text)
        assert error_of(response)["type"] == "SandboxLimitError"
        assert len(fake.asked) <= before + 1
    assert client.post("/search", json={"q": "o o"}).status_code == 200
    assert "bridgehead_sandbox_limits_total 8.0" in client.get("/metrics").text


def test_pictures_are_drawn_in_the_sandbox_and_kept(guarded):
    client, fake = guarded
    first, again = client.get("/depict/m0"), client.get("/depict/m0")
    assert first.content == again.content == b'<svg xmlns="http://www.w3.org/2000/svg"/>'
    assert fake.asked == [("depict", "CCO", "molecule")]


def test_nobody_waits_for_the_sandbox_longer_than_for_anything_else(guarded):
    client, fake = guarded
    fake.seconds = 5.0
    assert client.post("/search", json={"q": "CCO"}).status_code == 504
    fake.seconds = 0.0
    assert client.post("/search", json={"q": "CCO"}).status_code == 200


def test_a_sandbox_with_a_long_queue_says_when_to_come_again(guarded):
    client, _ = guarded

    async def busy(task, *arguments):
        raise SandboxBusyError("64 structures wait to be read already; try again in a moment")

    client.app.state.service.sandbox.call = busy
    response = client.get("/depict/m0")
    assert response.status_code == 503 and response.headers["retry-after"] == "1"
    error_of(response)


def test_structures_of_every_day_pass(api):
    for asked in ({"q": "CC(=O)Oc1ccccc1C(=O)O"}, {"q": "c1ccccc1", "of": "molecule", "substructure": "c1ccccc1"},
                  {"q": "o o", "of": "molecule", "similar_to": "CCO", "least_similarity": 0.2}):  # fmt: skip
        response = api.post("/search", json=asked)
        assert response.status_code == 200, response.text
        assert response.json()["hits"]


def test_as_many_structures_wait_as_is_set(small_index):
    with contextlib.closing(small_space(small_index)) as space:
        settings = ServeSettings(sandbox_queue=3, sandbox_seconds=1.5)
        service = Service(SpaceHolder(space), settings, RequestLog(stream=io.StringIO()))
        assert (service.sandbox.waiting, service.sandbox.seconds) == (3, 1.5)
