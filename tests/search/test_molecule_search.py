"""Structures as questions and as filters: to texts, to structures through the space, substructure and similarity."""

import itertools

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator
from small_run import records

from bridgehead.align.closed_form import fit_closed_form
from bridgehead.encode import make_encoder
from bridgehead.errors import ArgumentError, StructureError
from bridgehead.index import IndexSide, build_index, open_index
from bridgehead.search import Query, Space

ROWS = [row for row in records() if row[0].startswith("X")]
SMILES, TEXTS = [row[1] for row in ROWS], sorted({row[2] for row in ROWS})
RING, AMINE = "c1ccccc1", "[NX3;H2]"


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    folder = tmp_path_factory.mktemp("molecules")
    encoder_a = make_encoder("molecule:fingerprints", min_count=1, processes=1).fit(SMILES)
    encoder_b = make_encoder("text:ngram").fit(TEXTS)
    rows = encoder_a.encode(SMILES).rows, encoder_b.encode(TEXTS).rows
    links = np.array([(i, TEXTS.index(row[2])) for i, row in enumerate(ROWS)])
    heads = fit_closed_form(*rows, links=links, method="ridge", embed_dim=20).heads
    sides = {
        "a": IndexSide("molecule", heads.project_a(rows[0]), SMILES, [row[0] for row in ROWS], "molecule",
                       payload=[{"number": i} for i in range(len(ROWS))]),
        "b": IndexSide("text", heads.project_b(rows[1]), TEXTS, [f"t{i}" for i in range(len(TEXTS))]),
    }  # fmt: skip
    build_index(folder, sides, "m")
    with Space(open_index(folder), encoder_a, encoder_b, heads) as opened:
        yield opened


def holds(smiles, pattern):
    return Chem.MolFromSmiles(smiles).HasSubstructMatch(Chem.MolFromSmarts(pattern))


def tanimoto(one, other):
    bits = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048).GetFingerprint
    return DataStructs.TanimotoSimilarity(bits(Chem.MolFromSmiles(one)), bits(Chem.MolFromSmiles(other)))


def everything(space, text, **options):
    return space.answer(text, k=1000, **options).hits


def test_a_structure_finds_texts_and_through_the_space_structures(space):
    answer = space.answer("Nc1ccccc1")
    assert (answer.reading.kind, answer.of) == ("smiles", "text")
    assert answer.hits[0].item == "Consists of an aromatic ring of carbons, and carries an amine that takes a proton."
    answer = space.answer("C1=CC=CC=C1N", of="molecule")  # the same one, written another way
    assert answer.hits[0].item == "Nc1ccccc1" and answer.hits[0].score == pytest.approx(1, abs=1e-5)
    assert "Nc1ccccc1" not in [hit.item for hit in space.similar(answer.hits[0].id, k=1000).hits]


@pytest.mark.parametrize("mode", ["space", "words", "hybrid"])
def test_a_substructure_leaves_of_every_list_what_holds_it(space, mode):
    for pattern, text in itertools.product((RING, AMINE, "C1CC1"), ("an amine", "Nc1ccccc1", "a ring with sulfur")):
        options = {"of": "molecule", "mode": mode}
        expected = [hit.id for hit in everything(space, text, **options) if holds(hit.item, pattern)]
        found = everything(space, text, substructure=pattern, **options)
        # Fused ranks are those among what passes the screen.
        assert sorted(hit.id for hit in found) == sorted(expected)
        if mode != "hybrid":
            assert [hit.id for hit in found] == expected
        pages = [
            space.answer(text, k=7, offset=offset, substructure=pattern, **options)
            for offset in range(0, len(expected) + 7, 7)
        ]
        assert [hit.id for page in pages for hit in page.hits] == [hit.id for hit in found]
        assert [page.more for page in pages] == [len(expected) > page * 7 + 7 for page in range(len(pages))]


def test_similarity_is_tanimoto_and_goes_with_every_other_filter(space):
    text, like = "an amine that takes a proton", "NCc1ccccc1"
    near = {hit.id for hit in everything(space, text) if tanimoto(hit.item, like) >= 0.3}
    found = everything(space, text, similar_to=like, least_similarity=0.3)
    assert near and {hit.id for hit in found} == near
    order = [hit.id for hit in everything(space, text) if hit.id in near]
    assert [hit.id for hit in found] == order
    both = everything(space, text, similar_to=like, least_similarity=0.3, substructure=AMINE, where="number < 60")
    assert [hit.id for hit in both] == [
        hit.id for hit in found if holds(hit.item, AMINE) and hit.payload["number"] < 60
    ]
    assert space.answer(text, similar_to=like, least_similarity=0.3).n_searched == len(near)


def test_what_does_not_parse_or_has_no_structures_is_refused_with_the_reason(space):
    for options, error, message in (
        ({"substructure": "C1CC("}, StructureError, "C1CC"),
        ({"similar_to": "C1CC("}, StructureError, "C1CC"),
        ({"substructure": RING, "of": "text"}, ArgumentError, "no structures"),
        ({"similar_to": RING, "of": "text"}, ArgumentError, "no structures"),
        ({"read_as": "smiles"}, StructureError, "an amine"),
    ):
        with pytest.raises(error, match=message):
            space.answer("an amine", **options)
    bad, good = space.answer_all([Query("an amine", substructure="C1CC("), Query("an amine", k=1)])
    assert isinstance(bad, StructureError) and len(good.hits) == 1


def test_only_as_many_matches_are_looked_for_as_a_page_needs(space):
    looked_at = []

    def verify(pattern, smiles):
        looked_at.extend(smiles)
        return [holds(one, pattern) for one in smiles]

    space.verify_substructure = verify
    try:
        answer = space.answer("a ring of carbons", k=2, substructure=RING)
    finally:
        space.verify_substructure = None
    assert len(answer.hits) == 2 and answer.more and 2 < len(looked_at) < 24
    assert len(set(looked_at)) == len(looked_at)
