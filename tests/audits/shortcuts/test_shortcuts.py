"""Shortcuts: scorers of a nuisance alone against naive scores, planted and clean, beside chance and a model."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bridgehead.audits import (
    column_shortcut,
    length_shortcut,
    mask_names,
    name_shortcut,
    overlap_shortcut,
    shortcut_findings,
)
from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import RetrievalReport, report_from_scores, retrieval_report
from bridgehead.links import Links
from bridgehead.texts import normalise

N = 120


def scores_of(array: np.ndarray) -> tuple[Callable[[Any], np.ndarray], Callable[[Any], np.ndarray]]:
    return lambda rows: array[rows], lambda rows: array.T[rows]


def recall(array: np.ndarray, links: Links, k: int = 10) -> list[float]:
    report = report_from_scores(lambda rows: array[rows], links=links, ks=(k,), n_resamples=0)
    return [report.a_to_b.recall[k], report.b_to_a.recall[k]]


def model_at(level: float, n: int = N, k: int = 10) -> RetrievalReport:
    """A model that puts the first `level` of its queries right and ranks the others last."""
    rng = np.random.default_rng(9)
    scores = rng.random((n, n))
    right = np.arange(n) < round(level * n)
    scores[np.arange(n), np.arange(n)] = np.where(right, 2.0, -1.0)
    return report_from_scores(lambda rows: scores[rows], links=Links.identity(n), ks=(1, k), n_resamples=0)


def many_links(seed: int = 0) -> Links:
    return Links(np.argwhere(np.random.default_rng(seed).random((40, 30)) < 0.07), 40, 30)


def test_recall_is_that_of_the_scorer_in_both_directions() -> None:
    links = many_links()
    scores = np.random.default_rng(1).integers(0, 4, (40, 30)).astype(float)
    found = shortcut_findings("dust", *scores_of(scores), links, k=5, names=("molecule", "text"))
    assert [one.value for one in found] == pytest.approx(recall(scores, links, 5))
    assert [one.name for one in found] == [
        "retrieval by dust alone, molecule -> text, recall@5",
        "retrieval by dust alone, text -> molecule, recall@5",
    ]
    assert {one.group for one in found} == {"shortcuts"}


@pytest.mark.parametrize(
    ("reached", "trained", "verdict"),
    [(0.0, 0.9, "pass"), (0.2, 0.9, "pass"), (0.5, 0.9, "warn"), (0.85, 0.9, "fail"), (0.9, 0.5, "fail")],
)
def test_the_verdict_goes_by_the_share_of_what_the_model_finds_above_chance(
    reached: float, trained: float, verdict: str
) -> None:
    scores = np.random.default_rng(2).random((N, N))
    scores[np.arange(N), np.arange(N)] = np.where(np.arange(N) < reached * N, 2.0, -1.0)
    found = shortcut_findings("dust", *scores_of(scores), Links.identity(N), model=model_at(trained))
    assert found[0].verdict == verdict
    share = max(0.0, (reached - 10 / N) / (trained - 10 / N))
    assert found[0].why.startswith(
        f"dust alone reaches {share:.0%} of what the model ({trained:.3f}) finds above chance"
    )


def test_without_a_model_more_than_chance_warns_and_a_model_at_chance_is_no_measure() -> None:
    scores = np.eye(N)
    alone = shortcut_findings("dust", *scores_of(scores), Links.identity(N))
    beside = shortcut_findings("dust", *scores_of(scores), Links.identity(N), model=model_at(0.05))
    clean = shortcut_findings("dust", *scores_of(np.zeros((N, N))), Links.identity(N))
    assert [one.verdict for one in (*alone, *beside, *clean)] == ["warn"] * 4 + ["pass"] * 2
    assert "and the model (0.050) does not" in beside[0].why
    assert clean[0].value == pytest.approx(10 / N)


def test_many_queries_are_sampled_and_the_model_is_looked_at_on_the_same_ones() -> None:
    n = 400
    scores = np.random.default_rng(3).random((n, n))
    model = model_at(0.5, n)
    found = shortcut_findings("dust", *scores_of(scores), Links.identity(n), model=model, max_queries=50, seed=4)
    assert "; 50 of 400 queries looked at" in found[0].why
    rows = np.sort(np.random.default_rng(4).choice(n, size=50, replace=False))
    assert found[0].value == pytest.approx(
        report_from_scores(
            lambda part: scores[part],
            links=Links.identity(n),
            ks=(10,),
            queries_a=np.isin(np.arange(n), rows),
            n_resamples=0,
        ).a_to_b.recall[10]
    )
    assert f"the model ({(rows < 200).mean():.3f})" in found[0].why


def test_only_queries_are_scored() -> None:
    asked: list[int] = []

    def forth(rows: np.ndarray) -> np.ndarray:
        asked.extend(rows.tolist())
        return np.zeros((len(rows), 500))

    queries = np.isin(np.arange(500), [3, 77, 400])
    shortcut_findings("dust", forth, lambda rows: np.zeros((len(rows), 500)), Links.identity(500), queries_a=queries)
    assert set(asked) == {3, 77, 400}


def test_entities_widen_what_chance_may_reach() -> None:
    scores = np.random.default_rng(5).random((N, N))
    links = Links.identity(N)
    own = shortcut_findings("dust", *scores_of(scores), links)[0]
    shared = shortcut_findings("dust", *scores_of(scores), links, entities_a=np.arange(N) // 10)[0]
    bound = [float(re.findall(r"at most ([\d.]+)", one.expected)[0]) for one in (own, shared)]
    assert bound[1] > bound[0]


def test_length_alone_finds_what_was_planted_and_nothing_in_random_lengths() -> None:
    rng = np.random.default_rng(6)
    lengths = rng.permutation(N) + 5.0
    planted = length_shortcut(lengths, lengths**2, Links.identity(N), model=model_at(0.9))
    turned = length_shortcut(lengths, -lengths, Links.identity(N), model=model_at(0.9))
    clean = length_shortcut(lengths, rng.permutation(N), Links.identity(N), model=model_at(0.9))
    assert [one.value for one in planted] == [1.0, 1.0]
    assert [one.verdict for one in planted] == ["fail", "fail"]
    assert [one.value for one in turned] == [1.0, 1.0]
    assert [one.verdict for one in clean] == ["pass", "pass"]


def test_equal_lengths_are_at_chance() -> None:
    found = length_shortcut(np.ones(N), np.arange(N), Links.identity(N))
    assert found[1].value == pytest.approx(10 / N)


def test_a_column_that_both_sides_carry_reaches_what_its_classes_allow() -> None:
    labels = [f"site {i % 6}" for i in range(N)]
    found = column_shortcut(labels, labels, Links.identity(N), column="site", model=model_at(0.9), k=10)
    assert [one.value for one in found] == pytest.approx([0.5, 0.5])
    assert [one.verdict for one in found] == ["warn", "warn"]
    assert found[0].name.startswith("retrieval by column site alone")
    shuffled = np.random.default_rng(7).permutation(labels).tolist()
    assert {one.verdict for one in column_shortcut(shuffled, labels, Links.identity(N), column="site")} == {"pass"}


def test_several_values_match_where_one_is_the_same_and_missing_ones_match_nothing() -> None:
    links = many_links()
    rng = np.random.default_rng(8)
    values_a = [tuple(rng.integers(0, 6, rng.integers(0, 3)).tolist()) for _ in range(40)]
    values_b: list[Any] = [None if i % 4 == 0 else int(rng.integers(0, 6)) for i in range(30)]
    same = np.array([[float(b is not None and b in a) for b in values_b] for a in values_a])
    found = column_shortcut(values_a, values_b, links, column="x", k=3)
    assert [one.value for one in found] == pytest.approx(recall(same, links, 3))


def test_word_overlap_is_the_cosine_of_binary_tf_idf_rows() -> None:
    rng = np.random.default_rng(9)
    words = [f"w{i}" for i in range(25)]
    texts_a = [" ".join(rng.choice(words, rng.integers(0, 8))) for _ in range(40)]
    texts_b = [" ".join(rng.choice([*words[:15], "Other", "β2"], rng.integers(0, 8))) for _ in range(30)]
    bags = [[set(re.findall(r"\w+", normalise(text))) for text in texts] for texts in (texts_a, texts_b)]
    every = [*bags[0], *bags[1]]
    idf = {w: np.log((1 + 70) / (1 + sum(w in bag for bag in every))) + 1 for bag in every for w in bag}

    def cosine(left: set[str], right: set[str]) -> float:
        norms = np.sqrt(sum(idf[w] ** 2 for w in left) * sum(idf[w] ** 2 for w in right))
        return float(sum(idf[w] ** 2 for w in sorted(left & right)) / norms) if norms else 0.0

    scores = np.round([[cosine(a, b) for b in bags[1]] for a in bags[0]], 9)
    links = many_links()
    found = overlap_shortcut(texts_a, texts_b, links, k=3)
    assert [one.value for one in found] == pytest.approx(recall(scores, links, 3), abs=1e-9)


def test_shared_words_are_found_and_texts_without_any_pass() -> None:
    rng = np.random.default_rng(10)
    own = [f"unique{i} " + " ".join(rng.choice(["the", "an", "of"], 5)) for i in range(N)]
    planted = overlap_shortcut([text.upper() for text in own], own, Links.identity(N), model=model_at(0.9))
    clean = overlap_shortcut(["alpha beta"] * N, own, Links.identity(N), model=model_at(0.9))
    assert [one.verdict for one in (*planted, *clean)] == ["fail", "fail", "pass", "pass"]
    assert clean[0].value == pytest.approx(10 / N)


def test_names_in_the_text_are_found_whatever_their_marks_and_listed() -> None:
    names = [(f"drug-{i}", f"long name {i}") for i in range(N)]
    texts = [f"It is known as Drug {i}, and inhibits." if i % 2 else "It is a drug." for i in range(N)]
    found = name_shortcut(
        names, texts, Links.identity(N), model=model_at(0.6), ids_a=[f"m{i}" for i in range(N)], names=("mol", "text")
    )
    assert found[0].verdict == "fail"
    assert found[0].name == "retrieval by names in the text alone, mol -> text, recall@10"
    assert f"{N // 2} of {N} linked text items hold names of their own mol" in found[0].why
    assert found[0].listed is not None
    assert (found[0].listed.columns, found[0].listed.total) == (("mol", "text", "names"), N // 2)
    assert found[0].listed.rows[0] == ("m1", "1", "drug 1")
    assert found[1].listed is None


def test_texts_that_name_nobody_pass_and_short_names_do_not_count() -> None:
    texts = ["an alcohol C of NO use"] * N
    found = name_shortcut(["C", "NO", None, ""] * (N // 4), texts, Links.identity(N), model=model_at(0.6))
    assert [one.verdict for one in found] == ["pass", "pass"]
    assert found[0].listed is None
    assert "0 of 120 linked" in found[0].why


def test_name_scores_are_those_of_a_naive_search() -> None:
    rng = np.random.default_rng(11)
    names = [[f"n{i % 7} x", f"n{i}"] for i in range(40)]
    texts = [" ".join(rng.choice(["n1 x", "n2 x", "n3", "n12", "foo", "n33"], 4)) for _ in range(30)]
    padded = [f" {text} " for text in texts]
    held = {name: [f" {name} " in text for text in padded] for own in names for name in own if len(name) > 2}
    scores = np.zeros((40, 30))
    for a, own in enumerate(names):
        for name in own:
            if len(name.replace(" ", "")) >= 3:
                scores[a] += np.array(held[name]) * np.log(31 / (1 + sum(held[name])))
    links = many_links()
    found = name_shortcut(names, texts, links, k=3)
    assert [one.value for one in found] == pytest.approx(recall(np.round(scores, 9), links, 3), abs=1e-9)


def test_masking_takes_out_the_longest_name_of_linked_items_alone() -> None:
    texts = ["Aspirin, an acid; aspirin sodium salt! (2-acetyl)", "ibuprofen beside Aspirin", "nobody"]
    masked, changed = mask_names(texts, [("aspirin", "aspirin sodium"), "Ibuprofen"], Links([[0, 0], [1, 1]], 2, 3))
    assert masked == ["it, an acid; it salt! (2-acetyl)", "it beside Aspirin", "nobody"]
    assert changed == 2
    assert mask_names(["2',3′-cAMP binds"], ["2',3'-camp"], mask="X")[0] == ["X binds"]


def test_masked_texts_are_not_found_by_name() -> None:
    names = [f"compound{i}" for i in range(N)]
    texts = [f"Here compound{i} is meant" for i in range(N)]
    masked, changed = mask_names(texts, names)
    assert changed == N
    assert name_shortcut(names, texts, Links.identity(N))[0].verdict == "warn"
    assert name_shortcut(names, masked, Links.identity(N))[0].verdict == "pass"


def test_what_does_not_fit_is_refused() -> None:
    links = Links.identity(N)
    zeros = scores_of(np.zeros((N, N)))
    with pytest.raises(ArgumentError, match="the model's report has no recall@3; it has recall@1"):
        shortcut_findings("dust", *zeros, links, model=model_at(0.5), k=3)
    with pytest.raises(ArgumentError, match="ranked 60 to 60 candidates and the shortcut's 120; expected one pool"):
        shortcut_findings("dust", *zeros, links, model=model_at(0.5, 60))
    with pytest.raises(LinksError, match="b -> a: no query has a true candidate"):
        shortcut_findings("dust", *zeros, links, queries_b=np.zeros(N, dtype=bool))
    with pytest.raises(ShapeError, match="queries_a is int64"):
        shortcut_findings("dust", *zeros, links, queries_a=np.zeros(N, dtype=np.int64))
    with pytest.raises(ArgumentError, match="max_queries = 0"):
        shortcut_findings("dust", *zeros, links, max_queries=0)
    with pytest.raises(NonFiniteRowsError, match="score_a_to_b"):
        shortcut_findings("dust", *scores_of(np.full((N, N), np.nan)), links)
    with pytest.raises(ShapeError, match=r"lengths_b has shape \(3,\); expected \(120,\)"):
        length_shortcut(np.ones(N), [1, 2, 3], links)
    with pytest.raises(ArgumentError, match="lengths_a is float64 or holds NaN"):
        length_shortcut(np.full(N, np.nan), np.ones(N), links)
    with pytest.raises(ShapeError, match="values_a has 1 entries"):
        column_shortcut(["x"], ["x"] * N, links, column="c")
    with pytest.raises(ShapeError, match="texts_b has 2 entries; expected 120"):
        overlap_shortcut(["x"] * N, ["x", "y"], links)
    with pytest.raises(ArgumentError, match="None is a NoneType; expected a text"):
        overlap_shortcut(["x"] * N, [None] * N, links)  # type: ignore[list-item]
    with pytest.raises(ShapeError, match="names_a is a str; expected a list of 120 entries"):
        name_shortcut("abc", ["x"] * N, links)
    with pytest.raises(LinksError, match="without links row i is paired"):
        mask_names(["x"], ["y", "z"])


def test_rows_given_as_a_model_are_compared_too() -> None:
    rows = np.random.default_rng(12).normal(size=(N, 16))
    model = retrieval_report(rows, rows, ks=(10,), n_resamples=0)
    found = length_shortcut(np.arange(N), np.arange(N), Links.identity(N), model=model)
    assert [one.verdict for one in found] == ["fail", "fail"]
