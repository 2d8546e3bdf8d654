"""Near rows: planted copies, clean rows, crowded encoders; and the search behind it against a product of everything."""

import numpy as np
import pytest
from scipy import sparse

from bridgehead.audits import near_rows
from bridgehead.audits.leakage import neighbours as module
from bridgehead.audits.leakage.neighbours import float64_unit_rows, nearest_rows
from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError


def rows(n: int, seed: int, d: int = 40) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_planted_copies_fail_whatever_their_length_and_are_named(wrap: object) -> None:
    train, test = rows(200, 0), rows(50, 1)
    test[:10] = 3 * train[100:110]
    found = near_rows(wrap(train), wrap(test), test_ids=[f"t{i}" for i in range(50)], side="molecule")  # type: ignore[operator]
    assert [(one.value, one.verdict) for one in found] == [(0.2, "fail"), (0.2, "warn")]
    assert found[0].group == "leakage"
    assert found[0].listed is not None
    assert found[0].listed.total == 10
    assert found[0].listed.rows[0] == ("t0", "100", 1.0)


def test_random_rows_pass() -> None:
    found = near_rows(rows(200, 0), rows(50, 1))
    assert [(one.value, one.verdict, one.listed) for one in found] == [(0.0, "pass", None)] * 2


def test_only_rows_at_or_above_the_threshold_count() -> None:
    train = np.zeros((3, 8))
    train[range(3), range(3)] = 1
    angle = np.zeros((100, 8))
    angle[:, 7] = 1
    angle[0, :] = [0.97, 0, 0, 0, 0, 0, 0, np.sqrt(1 - 0.97**2)]
    angle[1, :] = [0, 0.991, 0, 0, 0, 0, 0, np.sqrt(1 - 0.991**2)]
    high, low = near_rows(train, angle)
    assert (high.value, low.value) == (0.01, 0.02)
    assert (high.verdict, low.verdict) == ("pass", "warn")


def test_an_encoder_whose_rows_all_point_one_way_gives_no_finding() -> None:
    train, test = rows(100, 0) * 0.01 + 1, rows(20, 1) * 0.01 + 1
    assert near_rows(train, test) == []
    assert len(near_rows(train, test, thresholds=(0.999999,))) == 1


def test_the_share_within_training_stands_beside_it() -> None:
    train = np.repeat(rows(50, 2), 2, axis=0)
    assert "within training 100.0% have such a neighbour" in near_rows(train, rows(10, 3), thresholds=(1.0,))[0].why


def test_rows_of_texts_that_training_holds_can_be_left_out() -> None:
    train, test = rows(100, 0), rows(50, 1)
    test[:10] = train[:10]
    same = np.arange(50) < 10
    assert [one.verdict for one in near_rows(train, test, same_text=same)] == ["pass", "pass"]
    assert near_rows(train, test, same_text=np.ones(50, dtype=bool)) == []


def test_one_training_row_cannot_be_judged_and_zero_rows_are_near_to_nothing() -> None:
    assert near_rows(rows(1, 0), rows(5, 1)) == []
    assert near_rows(np.zeros((5, 3)), np.zeros((4, 3)))[0].value == 0.0


@pytest.mark.parametrize("kind", ["dense", "csr", "crowded csr"])
@pytest.mark.parametrize("small", [False, True])
def test_the_nearest_row_is_that_of_a_product_of_everything(
    kind: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:
        monkeypatch.setattr(module, "_OTHERS_AT_ONCE", 7)
        monkeypatch.setattr(module, "_BLOCK_BYTES", 200)
        monkeypatch.setattr(module, "_HEAVY_COLUMNS", 5)
        monkeypatch.setattr(module, "_PAIRS_AT_ONCE", 3)
    rng = np.random.default_rng(4)
    density = 1.5 if kind == "crowded csr" else 0.15
    others, asked = rng.poisson(density, size=(60, 30)).astype(float), rng.poisson(density, size=(40, 30)).astype(float)
    asked[:8], others[50:55], others[3] = others[20:28], others[20:25], 0
    wrap = np.asarray if kind == "dense" else sparse.csr_array
    found, where = nearest_rows(
        float64_unit_rows(wrap(asked), "rows"), float64_unit_rows(wrap(others), "rows"), floor=0.7
    )
    cosine = np.round(float64_unit_rows(asked, "x") @ float64_unit_rows(others, "x").T, 9)
    best = cosine.max(axis=1)
    assert (best >= 0.7).any()
    assert found == pytest.approx(np.where(best >= 0.7, best, 0), abs=1e-9)
    assert where.tolist() == np.where(best >= 0.7, cosine.argmax(axis=1), -1).tolist()


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_a_row_can_be_kept_from_finding_itself(wrap: object) -> None:
    unit = float64_unit_rows(wrap(np.abs(rows(30, 5, d=4))), "rows")  # type: ignore[operator]
    _, where = nearest_rows(unit, unit, floor=0.01, leave_out=np.arange(30))
    dense = unit.toarray() if hasattr(unit, "toarray") else unit
    cosine = np.round(dense @ dense.T, 9) - 9 * np.eye(30)
    assert where.tolist() == cosine.argmax(axis=1).tolist()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match="40 columns in training and 5 in test"):
        near_rows(rows(9, 0), rows(9, 0, d=5))
    with pytest.raises(NonFiniteRowsError, match="test rows of a: 9 of 9 rows"):
        near_rows(rows(9, 0), rows(9, 0) * np.nan)
    with pytest.raises(ArgumentError, match=r"thresholds = \(1.5,\); expected cosines"):
        near_rows(rows(9, 0), rows(9, 0), thresholds=(1.5,))
    with pytest.raises(ShapeError, match=r"expected a boolean mask \(9,\)"):
        near_rows(rows(9, 0), rows(9, 0), same_text=[True])
    with pytest.raises(ShapeError, match="train_ids has 1 entries; expected 9"):
        near_rows(rows(9, 0), rows(9, 0), train_ids=["x"])
