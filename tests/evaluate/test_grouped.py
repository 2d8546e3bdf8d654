"""Group-aware recall: duplicated texts, what counts as right in either report, the paired gain."""

import json
from typing import Any

import numpy as np
import pytest

from bridgehead.errors import LinksError, ShapeError
from bridgehead.evaluate import retrieval_report
from bridgehead.evaluate.grouped import grouped_reports
from bridgehead.links import Links


def duplicated(n: int = 100, share: float = 0.4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs whose texts come in twos for a share of them, rows that agree, and the number of each text."""
    rng = np.random.default_rng(0)
    text = np.arange(n)
    twice = int(n * share) // 2 * 2
    text[1:twice:2] = text[0:twice:2]
    z_b = rng.normal(size=(n, 20))[text]
    return z_b + 0.05 * rng.normal(size=(n, 20)), z_b, text


def test_a_duplicated_text_is_a_coin_toss_by_own_and_right_by_group() -> None:
    z_a, z_b, text = duplicated()
    found = grouped_reports(z_a, z_b, groups_b=text, ks=(1, 5), names=("picture", "text"), n_resamples=200)
    # 40 of 100 pictures have two equal texts to choose from.
    assert found.own_only.a_to_b.recall[1] == pytest.approx(0.6 + 0.4 / 2, abs=1e-12)
    assert found.any_of_entity.a_to_b.recall[1] == 1.0
    assert found.gain["a_to_b.recall@1"] == pytest.approx(0.2, abs=1e-12)
    low, high = found.interval["a_to_b.recall@1"]
    assert 0.1 < low < 0.2 < high < 0.3
    assert found.n_grouped == 40
    assert found.own_only.a_to_b.n_true.tolist() == [1] * 100
    assert found.any_of_entity.a_to_b.n_true.tolist() == [2] * 40 + [1] * 60
    assert found.any_of_entity.a_to_b.chance["recall@1"] == pytest.approx(0.014, abs=1e-12)


def test_each_report_is_that_of_its_links() -> None:
    z_a, z_b, text = duplicated()
    found = grouped_reports(z_a, z_b, groups_b=[f"t{i}" for i in text], n_resamples=50)
    grouped = retrieval_report(z_a, z_b, Links([[i, i] for i in range(100)], 100, 100, groups_b=text), n_resamples=50)
    assert found.any_of_entity.to_dict() == grouped.to_dict()
    assert found.own_only.to_dict() == retrieval_report(z_a, z_b, n_resamples=50).to_dict()
    for key, value in found.gain.items():
        assert value == pytest.approx(found.any_of_entity.value(key) - found.own_only.value(key), abs=1e-12)


def test_the_numbers_and_words_are_json_and_lines() -> None:
    z_a, z_b, text = duplicated()
    found = grouped_reports(z_a, z_b, groups_b=text, ks=(1,), names=("picture", "text"), n_resamples=100)
    flat = found.to_dict()
    assert json.loads(json.dumps(flat, allow_nan=False)) == flat
    assert flat["own_only.a_to_b.recall@1"] == found.own_only.a_to_b.recall[1]
    assert "declared for the query itself" in str(flat["own_only.counts_as_correct"])
    lines = found.lines()
    assert lines[2] == "picture -> text:" and lines[3].startswith("  recall@1   1.000 any, 0.800 own, gain +0.200 (+0.")
    assert max(map(len, lines)) <= 120


def test_groups_that_add_nothing_gain_nothing() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(30, 4))
    found = grouped_reports(z, z + rng.normal(size=(30, 4)), groups_a=np.arange(30), n_resamples=20)
    assert set(found.gain.values()) == {0.0}
    assert set(found.interval.values()) == {(0.0, 0.0)}
    assert found.n_grouped == 0


def test_items_without_a_group_stay_alone_and_queries_need_a_declared_mate() -> None:
    z = np.eye(5)
    labels: list[Any] = ["x", "x", None, "", float("nan")]
    found = grouped_reports(z, z, [[0, 0], [2, 2], [3, 3]], groups_a=labels, ks=(1,), n_resamples=0)
    # Item 1 has a mate by its group alone: it asks in neither report.
    assert found.any_of_entity.a_to_b.queries.tolist() == found.own_only.a_to_b.queries.tolist() == [0, 2, 3]
    assert found.any_of_entity.b_to_a.n_true.tolist() == [2, 1, 1]


def test_masks_entities_and_lists_go_through() -> None:
    z_a, z_b, text = duplicated()
    mask = np.arange(100) < 50
    found = grouped_reports(
        z_a, z_b, groups_b=text, queries_a=mask, entities_a=text, n_resamples=20, candidates=([[0, 1]] * 100, None)
    )
    assert found.any_of_entity.a_to_b.n_queries == found.own_only.a_to_b.n_queries == 50
    assert found.own_only.a_to_b.n_true_missing == 48
    with pytest.raises(ShapeError, match="boolean mask"):
        grouped_reports(z_a, z_b, groups_b=text, queries_a=mask[:10])


def test_no_groups_or_one_for_only_some_items_is_refused() -> None:
    with pytest.raises(LinksError, match="there are no groups"):
        grouped_reports(np.eye(3), np.eye(3))
    with pytest.raises(LinksError, match="groups_b has shape"):
        grouped_reports(np.eye(3), np.eye(3), groups_b=["x", "y"])
