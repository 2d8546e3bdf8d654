"""The untrained nearest-neighbour baseline: against a naive loop, and what it says of unseen texts."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bridgehead.audits import KnownPairs, nearest_neighbour_report
from bridgehead.errors import LinksError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import report_from_scores
from bridgehead.links import Links

N_TRAIN, N_TEST, N_TEXTS = 60, 25, 18


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    left, right = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300) for rows in (left, right))
    return left @ right.T


@pytest.fixture
def parts() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    train_a, test_a = rng.poisson(0.4, size=(N_TRAIN, 30)), rng.poisson(0.4, size=(N_TEST, 30))
    train_a[3] = 0
    # Training texts are 0 .. 13, test texts 6 .. 17 of the whole table: 8 are shared.
    train_links = Links(np.argwhere(rng.random((N_TRAIN, 14)) < 0.15), N_TRAIN, 14)
    test_links = Links(np.argwhere(rng.random((N_TEST, 12)) < 0.2), N_TEST, 12)
    texts = rng.poisson(0.5, size=(N_TEXTS, 20)).astype(float)
    return {
        "train": (train_a.astype(float), train_links, list(range(14)), texts[:14]),
        "test": (test_a.astype(float), test_links, list(range(6, 18)), texts[6:]),
    }


def naive_scores(parts: dict[str, Any], n_neighbours: int | None) -> np.ndarray:
    (train_a, train_links, train_keys, train_b), (test_a, _, test_keys, test_b) = parts["train"], parts["test"]
    near = cosines(test_a, train_a)
    known = {
        key: np.max([near[:, a] for a, b in train_links.pairs if b == position], axis=0)
        for position, key in enumerate(train_keys)
    }
    scores = np.zeros((len(test_a), len(test_keys)))
    for column, key in enumerate(test_keys):
        if key in known:
            scores[:, column] = known[key]
        elif n_neighbours:
            close = cosines(test_b[column : column + 1], train_b)[0]
            best = sorted(range(len(train_keys)), key=lambda i: -close[i])[:n_neighbours]
            scores[:, column] = np.max([close[i] * known[train_keys[i]] for i in best], axis=0)
    return scores


@pytest.mark.parametrize("n_neighbours", [None, 1, 4, 50])
@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("block", [3, 256])
def test_report_equals_that_of_a_naive_loop(
    parts: dict[str, Any], n_neighbours: int | None, as_csr: bool, block: int
) -> None:
    def known(part: str) -> KnownPairs:
        rows_a, links, keys, rows_b = parts[part]
        wrap = sparse.csr_array if as_csr else np.asarray
        return KnownPairs(wrap(rows_a), links, keys, wrap(rows_b) if n_neighbours else None)

    found = nearest_neighbour_report(
        known("train"), known("test"), n_neighbours=n_neighbours or 10, block=block, n_resamples=0, names=("m", "t")
    )
    scores = naive_scores(parts, n_neighbours)
    expected = report_from_scores(lambda rows: scores[rows], links=parts["test"][1], n_resamples=0, names=("m", "t"))
    assert found.to_dict() == pytest.approx(expected.to_dict(), abs=1e-10)


def test_a_training_copy_of_each_test_molecule_is_found(parts: dict[str, Any]) -> None:
    rows, links, keys, _ = parts["test"]
    part = KnownPairs(rows + 0.01, links, keys)
    report = nearest_neighbour_report(part, part, ks=(1,), n_resamples=0)
    assert report.a_to_b.recall[1] == pytest.approx(1.0, abs=1e-12)


def test_an_unseen_text_is_at_chance_as_a_strict_query(parts: dict[str, Any]) -> None:
    train_a, train_links, train_keys, _ = parts["train"]
    test_a, test_links, test_keys, _ = parts["test"]
    unseen = np.array(test_keys) >= 14
    report = nearest_neighbour_report(
        KnownPairs(train_a, train_links, train_keys),
        KnownPairs(test_a, test_links, test_keys),
        ks=(1, 5),
        queries_b=unseen,
        n_resamples=0,
    ).b_to_a
    assert report.values == pytest.approx(report.chance, abs=1e-12)


def test_keys_may_be_texts(parts: dict[str, Any]) -> None:
    def known(part: str, name: Any) -> KnownPairs:
        rows_a, links, keys, _ = parts[part]
        return KnownPairs(rows_a, links, [name(key) for key in keys])

    by_number = nearest_neighbour_report(known("train", int), known("test", int), n_resamples=0)
    by_text = nearest_neighbour_report(known("train", "t{}".format), known("test", "t{}".format), n_resamples=0)
    assert by_text.to_dict() == by_number.to_dict()


def test_what_does_not_fit_is_refused(parts: dict[str, Any]) -> None:
    rows, links, keys, rows_b = parts["test"]
    good = KnownPairs(rows, links, keys, rows_b)
    with pytest.raises(ShapeError, match=r"train.rows_a has 24 entries; expected 25"):
        nearest_neighbour_report(KnownPairs(rows[1:], links, keys), good)
    with pytest.raises(ShapeError, match=r"test.keys_b has 11 entries; expected 12"):
        nearest_neighbour_report(good, KnownPairs(rows, links, keys[1:]))
    with pytest.raises(ShapeError, match="29 columns in train and 30 in test"):
        nearest_neighbour_report(KnownPairs(rows[:, 1:], links, keys), good)
    unlike = [f"new {key}" for key in keys]
    with pytest.raises(ShapeError, match="rows of b have 19 columns"):
        nearest_neighbour_report(KnownPairs(rows, links, keys, rows_b[:, 1:]), KnownPairs(rows, links, unlike, rows_b))
    with pytest.raises(LinksError, match="train has no links"):
        nearest_neighbour_report(KnownPairs(rows, Links(np.zeros((0, 2), dtype=int), 25, 12), keys), good)
    with pytest.raises(NonFiniteRowsError, match=r"test\.rows_a"):
        nearest_neighbour_report(good, KnownPairs(rows * np.nan, links, keys))
