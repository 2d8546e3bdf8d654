"""What can be searched after a run: merged molecules, further pools, odd queries, and what is refused on opening."""

import json

import pytest
from small_run import ASPIRIN, config, records, write_table

from bridgehead import runs
from bridgehead.errors import ArgumentError, BridgeheadError
from bridgehead.runs.examples import example_lines
from bridgehead.runs.folder import RunFolder
from bridgehead.search import open_space

ODD = ["", "   ", "\t\n"]
QUERIES = ["αναστέλλει την κυκλοοξυγενάση", "抑制环氧合酶", "🧪🔥", "β-blocker", "5-HT1A", "NOT * \"",
           "'; DROP TABLE items;--", "\x00", "a" * 5000, "2',3'-cAMP", "CO", "NO", "*CC*", "[Na+]", "(",
           "cyclooxygenase"]  # fmt: skip


@pytest.fixture(scope="module")
def space(finished):
    with open_space(finished.folder) as opened:
        yield opened


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("of", ["molecule", "text", None])
def test_any_text_is_answered_or_answered_with_nothing(space, query, of):
    answer = space.answer(query, k=5, of=of)
    assert len(answer.hits) <= 5 and answer.reading.explanation
    assert [hit.rank for hit in answer.hits] == list(range(1, len(answer.hits) + 1))


@pytest.mark.parametrize("query", ODD)
def test_an_empty_query_is_refused(space, query):
    with pytest.raises(ArgumentError, match="query"):
        space.answer(query)


def test_more_than_there_are_gives_all_once(space):
    hits = space.answer("an amine that takes a proton", k=10_000, of="molecule").hits
    assert len(hits) == space.index.size("a") == len({hit.id for hit in hits}) == 128
    assert not space.answer("an amine", k=5, offset=10_000, of="molecule").hits


def test_words_find_molecules_of_the_text_and_molecules_their_text(space):
    hits = space.answer("Consists of an aromatic ring of carbons, and carries a thiol that smells.", k=4).hits
    assert any("c1ccccc1" in hit.item and "S" in hit.item for hit in hits)
    text = space.answer(ASPIRIN, of="text", k=3)
    assert text.reading.kind in ("smiles", "id", "name", "inchikey") and len(text.hits) == 3


def test_a_hit_carries_its_texts_and_names(space):
    hit = next(hit for hit in space.answer("Aspirin", of="molecule", k=3).hits if hit.id == "aspirin")
    assert hit.payload["text"] == ["inhibits cyclooxygenase and reduces inflammation"]
    assert hit.payload["name"] == "Aspirin"


def test_the_same_molecule_under_two_notations_is_one_item_with_both_texts(tmp_path):
    twin = ["kekule", "OC1=CC=CC=C1", "burns the skin", "Carbolic acid"]
    path = write_table(tmp_path / "p.csv", [*records(), twin])
    run = RunFolder.of(config(path, index={"evaluated": False}), tmp_path / "run")
    assert list(runs.index(run)["n_items"]) == ["refit"] and not run.path("index-evaluated").exists()
    assert run.record("index")["n_items"]["refit"]["a"] == 128
    assert "1 of 129 molecule items merged: the same exact identity" in run.record("index")["notes"]
    with open_space(run.folder) as space:
        assert space.answer("Carbolic acid", of="molecule", k=1).hits[0].id == "X0"
        found = space.answer("Oc1ccccc1", of="molecule", k=1).hits[0]
        assert found.payload["text"][-1] == "burns the skin" and len(found.payload["text"]) == 2
        assert found.payload["names"] == ["name 0", "Carbolic acid"]


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    rows = [["P1", "OCCCCCCCCCCCCO", "", "Dodecanediol"], ["P2", "O=C(O)c1ccccc1OC(C)=O", "", "Acetylsalicylate"],
            ["P3", "C1CC(", "", "Broken"], ["X5", "CCCCCCCCCCCCCCCC", "", "Hexadecane"]]  # fmt: skip
    return write_table(tmp_path_factory.mktemp("pool") / "more pool.csv", rows)


def test_a_further_pool_is_merged_by_structure_and_searched(copied, table, pool):
    run = RunFolder.of(config(table, index={"extra_a": str(pool.parent / "*.csv"), "evaluated": False}), copied.folder)
    runs.index(run)
    assert run.record("index")["n_items"]["refit"]["a"] == 130
    assert any(
        "2 further molecule items of *.csv; 1 were there already" in note for note in run.record("index")["notes"]
    )
    with open_space(run.folder) as space:
        assert space.answer("Dodecanediol", of="molecule", k=1).hits[0].id == "P1"
        aspirin = space.answer("Acetylsalicylate", of="molecule", k=1).hits[0]
        assert aspirin.id == "aspirin" and aspirin.payload["names"] == ["Aspirin", "Acetylsalicylate"]
        # An id that is taken gets a stroke; nothing of the table changes its id.
        assert space.answer("Hexadecane", of="molecule", k=1).hits[0].id == "X5'"
        assert space.answer("X5", of="molecule", k=1).hits[0].id == "X5"


def test_a_changed_pool_is_indexed_again(copied, table, pool, tmp_path):
    mine = write_table(tmp_path / "pool.csv", [["P1", "OCCCCCCCCCCCCO", "", "Dodecanediol"]])
    run = RunFolder.of(config(table, index={"extra_a": str(mine), "evaluated": False}), copied.folder)
    runs.index(run)
    mine.write_bytes(pool.read_bytes())
    runs.index(run)
    with open_space(run.folder) as space:
        assert space.answer("Hexadecane", of="molecule", k=1).hits[0].id == "X5'"


def test_examples_are_answered_by_both_heads_and_the_rank_of_what_is_expected_is_said(copied, table):
    asked = [{"query": "inhibits cyclooxygenase", "of": "molecule", "expect": "aspirin"},
             {"query": ASPIRIN, "of": "text"},
             {"query": "an amine", "of": "molecule", "expect": "no such id"}]  # fmt: skip
    run = runs.run(config(table, examples=asked), copied.folder)
    first, second, third = run.record("index")["examples"]
    assert [answer["heads"] for answer in first["answers"]] == ["evaluated", "refit"]
    assert all(1 <= answer["expected_rank"] <= 128 == answer["n_candidates"] for answer in first["answers"])
    assert second["answers"][0]["expected_rank"] is None and second["answers"][0]["of"] == "text"
    assert third["answers"][0]["expected_rank"] is None
    lines = example_lines([first, second, third])
    assert any("the expected Aspirin (aspirin) came at" in line for line in lines)
    assert any("the expected no such id is no molecule of this index" in line for line in lines)
    assert "inhibits cyclooxygenase" in run.path("report.html").read_text()


@pytest.mark.parametrize("heads", ["refit", "evaluated"])
def test_heads_of_another_training_wait_until_the_index_is_built_again(copied, heads):
    with open_space(copied.folder, heads) as space:
        before = space.answer("Aspirin", k=5).hits
    own, other = copied.path("refit", "heads.safetensors"), copied.path("heads.safetensors")
    if heads == "evaluated":
        own, other = other, own
    own.write_bytes(other.read_bytes())
    with open_space(copied.folder, heads) as space:
        assert "another model now" in space.model_note
        assert space.answer("Aspirin", k=5).hits == before


def test_encoders_of_another_fit_wait_until_the_index_is_built_again(copied):
    with open_space(copied.folder) as space:
        before = space.answer("Aspirin", k=5).hits
    for name in ("encoder.json", "columns.npy"):
        copied.path("refit/encoders/a", name).write_bytes(copied.path("encoders/a", name).read_bytes())
    with open_space(copied.folder) as space:
        assert space.model_note and space.answer("Aspirin", k=5).hits == before


def test_another_version_of_a_library_is_refused_on_opening_and_mended_by_a_run(copied, monkeypatch):
    from bridgehead.encode import fingerprints

    monkeypatch.setattr(fingerprints, "_rdkit_version", lambda: "1999.09.1")
    with pytest.raises(BridgeheadError, match=r"version|another|other|again"):
        open_space(copied.folder)
    runs.run(copied)
    open_space(copied.folder).close()
    assert json.loads(copied.path("encoders/encoded.json").read_text())["a"]["fingerprint"]


def test_opening_needs_no_write_permission(copied):
    for path in [copied.folder, *copied.folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        with open_space(copied.folder) as space:
            assert space.answer("Aspirin", of="molecule", k=1).hits
    finally:
        for path in [copied.folder, *copied.folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
