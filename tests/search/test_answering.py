"""Many queries at once give what each gives alone; neighbours, items and rows of a space."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from bridgehead.encode import make_encoder
from bridgehead.errors import ArgumentError, BridgeheadError, EncoderError, StructureError, UnknownIdError
from bridgehead.index import IndexSide, build_index, open_index
from bridgehead.index.writer import IndexWriter
from bridgehead.search import Query, Space
from bridgehead.vectors import unit_rows
from lettered_space import N_LEFT, N_RIGHT, Biased, Letters, lettered_space
from tiny_models import write_bert

MIXED = [
    Query("abc"), Query("aab bd", k=3), Query("l3"), Query("zz"), Query("nothing???", of="left"), Query("d", of="left"),
    Query("abc", mode="hybrid", distinct=True), Query("zz", mode="words", k=2, offset=1), Query("r9", of="right"),
    Query("abc", where="number < 7", k=100), Query("abc", where="weight = 1"), Query("x", of="middle"),
    Query("unicorn", read_as="id"), Query("abc", explain=True, k=2), Query("abc"), Query("头痛药"),
]  # fmt: skip


def outcome(space, query):
    try:
        return space.answer_all([query])[0]
    except BridgeheadError as error:
        return error


def same(one, other):
    return type(one) is type(other) and (str(one) == str(other) if isinstance(one, Exception) else one == other)


def test_queries_together_get_what_each_gets_alone_and_errors_touch_no_other(lettered):
    together = lettered.answer_all(MIXED)
    assert all(same(one, outcome(lettered, query)) for one, query in zip(together, MIXED, strict=True))
    assert [isinstance(one, BridgeheadError) for one in together] == [query in (MIXED[10], MIXED[11], MIXED[12])
                                                                     for query in MIXED]  # fmt: skip
    assert lettered.answer_all([]) == []
    with pytest.raises(ArgumentError, match=r"a query is a str \('abc'\); expected a Query"):
        lettered.answer_all(["abc"])
    with pytest.raises(type(together[10]), match="weight"):
        lettered.answer("abc", where="weight = 1")


def test_queries_of_a_side_are_encoded_in_one_call(lettered):
    encoder = lettered.encoders["a"]
    encoder.asked.clear()
    lettered.answer_all([Query(text, of="right") for text in ("abc", "bcd", "abc", "d ?")])
    assert encoder.asked == [["abc", "bcd", "d ?"]]


def test_with_real_encoders_and_heads_scores_are_the_same_to_the_last_bit(ngrams):
    queries = [Query(text, k=7, of="left") for text in ngrams.texts[:70]]
    for size in (1, 3, 16, 17, 70):
        answers = [a for start in range(0, 70, size) for a in ngrams.space.answer_all(queries[start : start + size])]
        if size == 1:
            alone = answers
        assert answers == alone
    assert all(len(answer.hits) == 7 for answer in alone)


def test_rows_of_items_do_not_depend_on_their_company(ngrams):
    rows, failures = ngrams.space.encode(["", *ngrams.texts[:20], "头痛药"], "right")
    assert failures == {0: "it is empty", 21: "the encoder of right knows nothing of it"}
    assert rows.shape == (22, 64) and not rows[[0, 21]].any()
    for position, text in enumerate(ngrams.texts[:20], start=1):
        assert np.array_equal(ngrams.space.encode([text], "b")[0][0], rows[position])
    assert np.linalg.norm(rows[1:21], axis=1) == pytest.approx(1, abs=1e-6)
    nothing, failures = ngrams.space.encode([], "left")
    assert nothing.shape == (0, 64) and failures == {}
    with pytest.raises(ArgumentError, match="no side 'middle'"):
        ngrams.space.encode(["x"], "middle")


def test_an_encoder_that_refuses_all_for_the_sake_of_one_is_asked_for_each(tmp_path):
    class Strict(Letters):
        def encode(self, items):
            if "bad" in items:
                raise EncoderError("one is bad")
            return super().encode(items)

    side = IndexSide("text", np.eye(8), list("abcdefgh"), list("12345678"))
    build_index(tmp_path, {"a": side, "b": side}, "m")
    with Space(open_index(tmp_path), Strict(), Strict(), Biased()) as space:
        found = space.answer_all([Query("abc"), Query("bad"), Query("cc")])
        assert [type(one).__name__ for one in found] == ["Answer", "EncoderError", "Answer"]
        assert found[2].hits[0].item == "c"


def test_threads_get_what_one_thread_gets(lettered):
    expected = [outcome(lettered, query) for query in MIXED]
    with ThreadPoolExecutor(8) as pool:
        rounds = list(pool.map(lambda query: outcome(lettered, query), MIXED * 12))
    assert all(same(one, expected[n % len(MIXED)]) for n, one in enumerate(rounds))


def test_neighbours_of_an_item_are_of_its_own_side_and_without_itself(lettered):
    whole = lettered.similar("l2", k=1000)
    assert whole.of == "left" and len(whole.hits) == N_LEFT - 1 == whole.n_searched and not whole.more
    assert "l2" not in [hit.id for hit in whole.hits]
    by_id = [hit for hit in lettered.answer("l2", k=1000, of="left").hits if hit.id != "l2"]
    assert [(hit.id, hit.score) for hit in whole.hits] == [(hit.id, hit.score) for hit in by_id]
    assert [hit.rank for hit in whole.hits] == list(range(1, N_LEFT))
    pages = [lettered.similar("l2", k=10, offset=offset) for offset in range(0, 90, 10)]
    assert [hit.id for page in pages for hit in page.hits] == [hit.id for hit in whole.hits]
    assert [page.more for page in pages] == [True] * 8 + [False]
    assert "near the left l2" in whole.explanation


def test_neighbours_take_filters_modes_and_another_side(lettered):
    other = lettered.similar("l2", k=1000, of="right")
    assert other.of == "right" and [hit.id for hit in other.hits] == [
        hit.id for hit in lettered.answer("l2", 1000).hits
    ]
    few = lettered.similar("l2", k=1000, where="number <= 2", distinct=True, mode="hybrid")
    assert {hit.id for hit in few.hits} | {id for hit in few.hits for id in hit.also} == {"l0", "l1"}
    assert few.n_searched == 2
    with pytest.raises(UnknownIdError, match="no item of this index has the id 'x'"):
        lettered.similar("x")
    with pytest.raises(UnknownIdError, match="no right of this index has the id 'l2'"):
        lettered.similar("l2", side="right")


def test_neighbours_of_an_item_of_which_nothing_is_known_share_its_words(lettered):
    answer = lettered.similar("l9")
    assert "knew nothing of this item" in answer.note and {hit.item for hit in answer.hits} == {"zz yy"}
    assert "l9" not in [hit.id for hit in answer.hits] and len(answer.hits) == N_LEFT // 10 - 1


def test_an_item_is_found_by_its_id(lettered):
    assert lettered.item("l3").side == "a" and lettered.item("r3", "right").payload["number"] == 3
    with pytest.raises(UnknownIdError):
        lettered.item("l3", "right")


def test_no_mode_and_no_filter_makes_an_order_of_what_nothing_is_known_of(lettered):
    for mode in ("space", "words", "hybrid"):
        for where in (None, "number < 50", "number > 50 and colour = 'red'"):
            for distinct in (False, True):
                options = {"mode": mode, "where": where, "distinct": distinct, "k": 1000}
                unknown = lettered.answer("xx qq", **options)
                assert unknown.hits == () and not unknown.more
                known = lettered.answer("zz", **options)
                assert {hit.item for hit in known.hits} == {"zz yy"} and {hit.read_as for hit in known.hits} == {
                    "words"
                }
                if mode != "words":
                    nobody = f"no right{' that passes the filters' if where else ''} holds its words: nothing to show"
                    assert f"knows nothing of it, and {nobody}" in unknown.note
                    assert "answered from the words alone" in known.note


def test_other_ways_to_read_a_text_are_listed(tmp_path):
    molecules = IndexSide("molecule", np.eye(8)[:3], ["CCO", "NO", "CC"], ["CO", "7", "CCCCC"], "molecule",
                          names=[["7"], ["nitroxyl"], ["ethane"]])  # fmt: skip
    texts = IndexSide("text", np.eye(8)[:1], ["abc"], ["7"])
    build_index(tmp_path, {"a": molecules, "b": texts}, "m")
    with Space(open_index(tmp_path), Letters(), Letters(), Biased()) as space:

        def readings(text, **options):
            answer = space.answer(text, **options)
            return answer.reading.kind, answer.readings

        assert readings("7") == ("id", ("name", "text"))
        assert readings("7", read_as="name") == ("name", ("id", "text"))
        assert readings("CO") == ("id", ("smiles", "text"))
        assert readings("CN") == ("text", ("smiles",))
        assert readings("c1ccccc1") == ("smiles", ("text",))
        assert readings("CCCCC", read_as="text") == ("text", ("id", "smiles"))
        assert readings("ache") == ("text", ())


def test_a_structure_that_cannot_be_encoded_is_refused_and_others_are_not(tmp_path):
    class Picky(Letters):
        def encode(self, items):
            found = super().encode(items)
            bad = [i for i, item in enumerate(items) if item == "N#N"]
            kept = [i for i in range(len(items)) if i not in bad]
            return SimpleNamespace(rows=found.rows[kept],
                                   failures=[SimpleNamespace(index=i, reason="too inert") for i in bad])  # fmt: skip

    molecules = IndexSide("molecule", np.eye(8)[:2], ["CCO", "CC"], ["1", "2"], "molecule")
    build_index(tmp_path, {"a": molecules, "b": IndexSide("text", np.eye(8)[:1], ["abc"], ["7"])}, "m")
    with Space(open_index(tmp_path), Picky(), Letters(), Biased()) as space:
        bad, good = space.answer_all([Query("N#N"), Query("C#C")])
        assert isinstance(bad, StructureError) and "'N#N' cannot be encoded: too inert" in str(bad)
        assert good.hits[0].item == "abc"
        with pytest.raises(StructureError):
            space.answer("C1CC(", read_as="smiles")
        assert [hit.id for hit in space.answer("C#C", of="molecule").hits] == ["1", "2"]


def test_an_answer_without_hits_says_why(lettered):
    assert (
        lettered.answer("abc", where="number > 1000").note
        == "there is no right that passes the filters: nothing to show"
    )
    assert lettered.answer("qqq abc", mode="words", where="number > 1000").note.startswith("no right that passes")
    assert lettered.answer("abcabc", mode="words").note == "no right holds its words: nothing to show"
    assert (
        lettered.answer("abc", offset=60).note == lettered.answer("zz", offset=60).note == "there is no hit number 61"
    )
    assert lettered.answer("abc").note == ""


def test_an_answer_is_of_one_state_while_items_come_and_go(tmp_path):
    space = lettered_space(tmp_path)
    stop = threading.Event()

    def write():
        # Each of these is one transaction: whoever sees one of the two items sees the other.
        pair = IndexSide("right", Letters().encode(["abc", "abc"]).rows, ["abc new", "abc new"], ["n1", "n2"])
        with IndexWriter(tmp_path) as writer:
            while not stop.is_set():
                writer.put("b", pair)
                writer.delete("b", ["n1", "n2"])
                changes.append(1)

    changes, seen = [], set()
    writing = threading.Thread(target=write)
    writing.start()
    try:
        for mode in itertools.islice(itertools.cycle(("space", "words", "hybrid")), 3000):
            answer = space.answer("abc", k=1000, mode=mode, explain=True)
            new = [hit.id for hit in answer.hits if hit.id.startswith("n")]
            assert new in ([], ["n1", "n2"]) and answer.n_searched == N_RIGHT + len(new)
            seen.add(len(new))
            if len(changes) >= 30 and len(seen) == 2:
                break
    finally:
        stop.set()
        writing.join()
        space.close()
    assert seen == {0, 2}


@pytest.mark.slow
def test_with_a_neural_encoder_answers_together_are_those_of_each_within_rounding(tmp_path):
    encoder = make_encoder(f"text:hf={write_bert(tmp_path / 'bert')}", batch_size=4)
    words = [
        "pain",
        "fever and pain",
        "a beta blocker",
        "opens the airways",
        "c",
        "kills bacteria in the wall",
        "x y z",
    ]
    rows = encoder.encode(words).rows
    heads = SimpleNamespace(project_a=unit_rows, project_b=unit_rows)
    sides = {side: IndexSide(side, unit_rows(rows), words, list(words)) for side in "ab"}
    build_index(tmp_path / "index", sides, "m")
    with Space(open_index(tmp_path / "index"), encoder, encoder, heads) as space:
        queries = [Query(f"{word} more", k=3) for word in words]
        for together, query in zip(space.answer_all(queries), queries, strict=True):
            alone = space.answer_all([query])[0]
            assert [hit.score for hit in together.hits] == pytest.approx([h.score for h in alone.hits], abs=1e-5)
