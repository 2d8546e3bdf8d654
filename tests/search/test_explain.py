"""Why a hit is there, against plain loops over training pairs and lists."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from bridgehead.index import build_index
from bridgehead.search import REFERENCES, References, reference_attachment
from lettered_space import N_LEFT, N_RIGHT, TRAINED, lettered_space, side

QUERIES = [("abc", {}), ("aab bd", {"of": "left"}), ("l4", {}), ("l4", {"of": "left"}), ("d cc", {"mode": "hybrid"})]


def unit(space, side, number):
    with space.index.state() as state:
        return state.row(side, number).astype(np.float64)


def query_row(space, answer):
    item = answer.reading.item
    if item is not None:
        return unit(space, item.side, item.number)
    return space.encode([answer.reading.value], answer.reading.side)[0][0].astype(np.float64)


@pytest.mark.parametrize(("text", "options"), QUERIES)
def test_the_nearest_training_pair_is_the_one_whose_farther_end_is_nearest(lettered, text, options):
    answer = lettered.answer(text, k=8, explain=True, **options)
    query, side, target = query_row(lettered, answer), answer.reading.side, lettered.side(answer.of)
    ends = {"a": [int(a) for a, _ in TRAINED], "b": [int(b) for _, b in TRAINED]}
    numbers = {"a": lambda place: place, "b": lambda place: place + 90}
    for hit in answer.hits:
        row = unit(lettered, target, lettered.item(hit.id, target).number)
        cosines = [
            (query @ unit(lettered, side, numbers[side](ends[side][pair])),
             row @ unit(lettered, target, numbers[target](ends[target][pair])))
            for pair in range(len(TRAINED))
        ]  # fmt: skip
        best = max(min(both) for both in cosines)
        found = hit.explanation.nearest_pair
        assert min(found.to_query, found.to_hit) == pytest.approx(best, abs=2e-6)
        pair = next(i for i, (a, b) in enumerate(TRAINED) if (f"l{a}", f"r{b}") == (found.id_a, found.id_b))
        assert cosines[pair] == pytest.approx((found.to_query, found.to_hit), abs=2e-6)
        assert found.item_a == lettered.item(found.id_a).item and found.item_b == lettered.item(found.id_b).item


def test_blocks_of_training_pairs_do_not_change_the_nearest(lettered, monkeypatch):
    whole = [lettered.answer(text, k=8, explain=True, **options) for text, options in QUERIES]
    monkeypatch.setattr("bridgehead.search.explain._BLOCK", 4)
    assert [lettered.answer(text, k=8, explain=True, **options) for text, options in QUERIES] == whole


@pytest.mark.parametrize("mode", ["space", "words", "hybrid"])
def test_similarity_percentile_and_ranks_are_those_of_the_lists(lettered, mode):
    lists = {
        name: {hit.id: hit for hit in lettered.answer("abc d", k=1000, mode=name).hits} for name in ("space", "words")
    }
    references = References.load(lettered.index.attached("references"))
    answer = lettered.answer("abc d", k=20, mode=mode, explain=True)
    for hit in answer.hits:
        why = hit.explanation
        near = lists["space"][hit.id]
        assert why.similarity == pytest.approx(near.score, abs=1e-6)
        assert why.percentile == pytest.approx(near.percentile, abs=1e-3)
        assert why.percentile == pytest.approx(references.percentile("a", "b", why.similarity), abs=1e-9)
        assert why.ranks == {name: found[hit.id].rank for name, found in lists.items() if hit.id in found}
        assert (hit.percentile is None) == (mode == "words")
        assert set(why.matched_words) == {word for word in ("abc", "d") if word in hit.item.split()}


def test_without_a_row_there_are_words_and_their_rank_only(lettered):
    hit = lettered.answer("zz", explain=True).hits[0]
    assert hit.percentile is None and hit.explanation.similarity is None and hit.explanation.nearest_pair is None
    assert hit.explanation.matched_words == ("zz",) and hit.explanation.ranks == {"words": 1}


def test_nobody_who_does_not_ask_gets_an_explanation(lettered):
    assert all(hit.explanation is None for hit in lettered.answer("abc").hits)


def test_an_index_without_references_has_no_percentile_and_no_pair(ngrams):
    hit = ngrams.space.answer("inhibits the kinase", explain=True).hits[0]
    assert hit.percentile is None and hit.explanation.percentile is None and hit.explanation.nearest_pair is None
    assert hit.explanation.similarity == hit.score


def test_references_outlive_the_files_of_a_build_that_was_replaced(tmp_path):
    with lettered_space(tmp_path) as space:
        before = space.answer("abc", explain=True)
        for folder in tmp_path.glob("build-*"):
            shutil.rmtree(folder / "attached")
        assert space.answer("abc", explain=True) == before and before.hits[0].percentile is not None


def test_references_are_those_of_the_new_build(tmp_path):
    with lettered_space(tmp_path) as space:
        before = space.answer("abc").hits[0].percentile
        rows = {side: np.ones((n, 8)) + 0.1 * np.eye(n, 8) for side, n in (("a", N_LEFT), ("b", N_RIGHT))}
        sides = {
            letter: replace(side(name, len(rows[letter]), 1), rows=rows[letter])
            for letter, name in (("a", "left"), ("b", "right"))
        }
        references = reference_attachment(rows["a"], rows["b"], TRAINED)
        build_index(tmp_path, sides, "model", attachments={REFERENCES: references})
        found = space.answer("abc").hits[0]
        assert found.percentile != before
        assert found.percentile == References.load(space.index.attached(REFERENCES)).percentile("a", "b", found.score)
