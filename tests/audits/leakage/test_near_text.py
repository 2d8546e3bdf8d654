"""Near-duplicate texts: against a naive loop over all pairs, planted and clean, in any order."""

import re
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bridgehead.audits import near_duplicate_texts
from bridgehead.errors import ArgumentError, MissingExtraError, ShapeError
from bridgehead.texts import normalise

pytest.importorskip("datasketch", reason="needs the extra audit")

WORDS = [f"w{i}" for i in range(300)]


def sentences(n: int, seed: int, length: int = 30) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, length)) for _ in range(n)]


def jaccard(left: str, right: str, words: int = 3) -> float:
    def runs(text: str) -> set[tuple[str, ...]]:
        tokens = re.findall(r"\w+", normalise(text))
        return {tuple(tokens[i : i + words]) for i in range(max(1, len(tokens) - words + 1))}

    return len(runs(left) & runs(right)) / len(runs(left) | runs(right))


def changed(text: str, n_changes: int) -> str:
    tokens = text.split()
    tokens[:n_changes] = [f"new{i}" for i in range(n_changes)]
    return " ".join(tokens)


def test_planted_near_duplicates_are_found_with_their_exact_index() -> None:
    train, other = sentences(200, 0), sentences(97, 1)
    test = [changed(train[7], 1), changed(train[8], 2), changed(train[9], 20), *other]
    found = near_duplicate_texts(train + test, range(200), range(200, 300), ids=[f"t{i}" for i in range(300)])[0]
    assert (found.value, found.verdict, found.group) == (0.02, "warn", "leakage")
    assert found.listed is not None
    assert [row[:3] for row in found.listed.rows] == [
        ("t200", "t7", round(jaccard(train[7], test[0]), 3)),
        ("t201", "t8", round(jaccard(train[8], test[1]), 3)),
    ]


def test_unlike_texts_pass() -> None:
    found = near_duplicate_texts(sentences(300, 2), range(200), range(200, 300))[0]
    assert (found.value, found.verdict, found.listed) == (0.0, "pass", None)


def test_a_test_part_of_copies_with_a_word_changed_fails() -> None:
    train = sentences(100, 3)
    found = near_duplicate_texts(train + [changed(text, 1) for text in train], range(100), range(100, 200))[0]
    assert (found.value, found.verdict) == (1.0, "fail")


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("words", [1, 3])
def test_the_share_is_that_of_a_naive_loop_over_all_pairs(threshold: float, words: int) -> None:
    train = sentences(60, 4, length=14)
    test = [changed(train[i], i % 9) + (" more" if i % 9 == 0 else "") for i in range(40)]
    found = near_duplicate_texts(train + test, range(60), range(60, 100), threshold=threshold, words=words)[0]
    best = [max(jaccard(text, known, words) for known in train) for text in test]
    assert found.value == pytest.approx(np.mean(np.array(best) >= threshold))


def test_equal_texts_are_identity_and_not_counted_here() -> None:
    train = sentences(10, 5)
    test = [train[0].upper(), train[1], "12 ?? --", changed(train[2], 1)]
    found = near_duplicate_texts(train + test, range(10), range(10, 14))[0]
    assert "1 of 2 test items" in found.why
    assert "(2 more are in training word for word, or hold no word)" in found.why
    assert near_duplicate_texts(train + test[:2], range(10), [10, 11]) == []


def test_words_in_one_order_with_other_marks_between_them_have_the_index_one() -> None:
    train = sentences(5, 6)
    test = train[0].replace(" ", "; ")
    found = near_duplicate_texts([*train, test, test + "!"], range(5), [5, 6], threshold=1.0)[0]
    assert found.value == 1.0


def test_the_order_of_the_texts_changes_nothing() -> None:
    train = sentences(80, 7)
    texts = train + [changed(train[i], 1 + i % 5) for i in range(40)]
    order = np.random.default_rng(0).permutation(len(texts))
    before = near_duplicate_texts(texts, range(80), range(80, 120), ids=[str(i) for i in range(120)])[0]
    after = near_duplicate_texts(
        [texts[i] for i in order],
        np.flatnonzero(order < 80),
        np.flatnonzero(order >= 80),
        ids=[str(i) for i in order],
    )[0]
    assert after.value == before.value
    assert before.listed is not None
    assert after.listed is not None
    assert {row[:3] for row in after.listed.rows[:5]} <= {row[:3] for row in before.listed.rows}


def test_texts_shorter_than_a_run_are_compared_whole() -> None:
    found = near_duplicate_texts(["red drug", "Red-drug.", "blue drug"], [0], [1, 2])[0]
    assert found.value == 0.5


def test_many_texts_of_one_template_are_held_against_the_nearest_of_them() -> None:
    template = "it is an acid that is made of part {} joined to the part {} by way of an ester bond at the end"
    texts = [template.format(f"x{i}", f"y{j}") for i, j in product(range(30), range(10))]
    found = near_duplicate_texts(texts, range(200), range(200, 300), threshold=0.6)[0]
    best = [max(jaccard(text, known) for known in texts[:200]) for text in texts[200:]]
    assert found.value == pytest.approx(np.mean(np.array(best) >= 0.6))


def test_real_descriptions_take_seconds(shared_data: Path) -> None:
    import polars as pl

    folder = shared_data / "molecule_text"
    train, test = (
        pl.read_csv(folder / f"{name}.tsv.gz", separator="\t", quote_char=None)["description"].to_list()[:n]
        for name, n in (("pairs", 3000), ("test_open", 1664))
    )
    found = near_duplicate_texts(train + test, range(len(train)), range(len(train), len(train) + len(test)))[0]
    assert 0.001 < found.value < 0.1


def test_without_datasketch_the_error_gives_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bridgehead\[audit\]'"):
        near_duplicate_texts(["one two three", "one two four"], [0], [1])


def test_what_does_not_fit_is_refused() -> None:
    texts = ["one two three", "one two four"]
    with pytest.raises(ArgumentError, match="expected a Jaccard index above 0"):
        near_duplicate_texts(texts, [0], [1], threshold=0)
    with pytest.raises(ArgumentError, match="words = 0; expected a whole number of at least 1"):
        near_duplicate_texts(texts, [0], [1], words=0)
    with pytest.raises(ArgumentError, match="test items run from 2"):
        near_duplicate_texts(texts, [0], [2])
    with pytest.raises(ShapeError, match="ids has 1 entries"):
        near_duplicate_texts(texts, [0], [1], ids=["x"])
    with pytest.raises(ArgumentError, match="item 1 is a float"):
        near_duplicate_texts(["one two", float("nan")], [0], [1])  # type: ignore[list-item]
