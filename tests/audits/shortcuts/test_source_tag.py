"""A planted tag: a fit that takes it loses recall when it is drawn anew, one that cannot see it does not; drops."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse

from bridgehead.audits import (
    PairedRows,
    TagScale,
    change_columns,
    drop_findings,
    drops,
    masked_drop,
    plant_tag,
    source_tag_findings,
)
from bridgehead.audits.shortcuts.source_tag import Project
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate import retrieval_report
from bridgehead.links import Links

D = 12


def pairs(n: int, seed: int, noise: float = 0.3) -> PairedRows:
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, D))
    mix = np.random.default_rng(99).normal(size=(D, D))
    rows_b = hidden @ mix / np.sqrt(D) + noise * rng.normal(size=(n, D))
    return PairedRows(hidden + noise * rng.normal(size=(n, D)), rows_b, Links.identity(n))


def least_squares(seen: slice) -> Callable[[PairedRows], Project]:
    """A fit that maps b to a by least squares, of the columns in `seen` alone."""

    def fit(part: PairedRows) -> Project:
        a, b = part.links.pairs.T
        weights = np.linalg.lstsq(part.rows_b[b][:, seen], part.rows_a[a][:, seen], rcond=None)[0]
        return lambda rows_a, rows_b: (rows_a[:, seen], rows_b[:, seen] @ weights)

    return fit


@pytest.mark.parametrize("strength", [1.0, 3.0])
def test_a_fit_that_sees_the_tag_loses_recall_when_it_is_drawn_anew(strength: float) -> None:
    train, test = pairs(400, 0, 1.0), pairs(200, 1, 1.0)
    found = source_tag_findings(least_squares(slice(None)), train, test, strength=strength, names=("image", "text"))
    assert [one.verdict for one in found] == ["warn", "warn"]
    assert all(one.value > 0.25 for one in found)
    assert found[0].name == "a planted source tag drawn anew, image -> text"
    assert "training takes a shared tag" in found[0].why
    assert found[0].group == "shortcuts"


def test_a_fit_that_cannot_see_the_tag_loses_nothing() -> None:
    found = source_tag_findings(least_squares(slice(0, D)), pairs(400, 0), pairs(200, 1))
    assert [(one.value, one.verdict) for one in found] == [(0.0, "pass")] * 2


def test_a_model_at_chance_has_nothing_to_lose() -> None:
    def fit(part: PairedRows) -> Project:
        return lambda rows_a, rows_b: (np.ones((len(rows_a), 2)), np.ones((len(rows_b), 2)))

    assert source_tag_findings(fit, pairs(50, 0), pairs(50, 1)) == []


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_connected_items_share_a_tag_and_rows_stay_as_they_were(wrap: object) -> None:
    links = Links([[0, 0], [0, 1], [1, 2], [2, 2], [3, 3]], 5, 4)
    rng = np.random.default_rng(0)
    rows_a, rows_b = rng.random((5, 3)).astype(np.float32), rng.random((4, 2)).astype(np.float32)
    part = PairedRows(wrap(rows_a), wrap(rows_b), links)  # type: ignore[operator]
    scale = TagScale.of(part, n_sources=1000)
    tagged = plant_tag(part, scale, seed=3)
    dense_a, dense_b = (
        rows if isinstance(rows, np.ndarray) else rows.toarray() for rows in (tagged.rows_a, tagged.rows_b)
    )
    assert dense_a.dtype == np.float32
    assert np.array_equal(dense_a[:, :3], rows_a)
    tag_a, tag_b = dense_a[:, 3] / scale.size_a, dense_b[:, 2] / scale.size_b
    assert tag_a[[0, 0, 1, 2, 3]] == pytest.approx(tag_b[[0, 1, 2, 2, 3]], abs=1e-6)
    assert len({round(float(tag), 6) for tag in tag_a}) == 4
    assert scale.size_a == pytest.approx(np.sqrt((rows_a.astype(float) ** 2).sum() / 5))
    again = plant_tag(part, scale, seed=3)
    assert abs(again.rows_a - tagged.rows_a).max() == 0


def test_tags_drawn_apart_say_nothing() -> None:
    part = pairs(2000, 0)
    tagged = plant_tag(part, TagScale.of(part), seed=1, shared=False)
    tags = np.stack([tagged.rows_a[:, D], tagged.rows_b[:, D]])
    assert abs(np.corrcoef(tags)[0, 1]) < 0.08
    assert len(np.unique(tags[0])) == 16


def test_a_drop_is_the_share_of_recall_above_chance_that_is_gone() -> None:
    n = 100
    before = retrieval_report(np.eye(n), np.eye(n), ks=(1,), n_resamples=0)
    half = np.eye(n)
    half[::2] = np.roll(np.eye(n), 1, axis=0)[::2]
    after = retrieval_report(half, np.eye(n), ks=(1,), n_resamples=0)
    drop = drops(before, after, k=1)[0]
    assert drop.share == pytest.approx(0.5 / 0.99)
    found = drop_findings("names masked", before, after, k=1)
    assert (found[0].verdict, found[0].name) == ("warn", "names masked, a -> b")
    assert found[0].why.startswith("recall@1 is 1.000 before and 0.500 after: -0.500 (-0.6")
    assert [one.verdict for one in drop_findings("nothing", before, before, k=1)] == ["pass", "pass"]


def test_all_lost_fails_and_a_gain_passes() -> None:
    n = 60
    good = retrieval_report(np.eye(n), np.eye(n), ks=(10,), n_resamples=0)
    bad = retrieval_report(np.roll(np.eye(n), 1, axis=0), np.eye(n), ks=(10,), n_resamples=0)
    some = np.eye(n)
    some[:30] = np.roll(np.eye(n), 1, axis=0)[:30]
    middle = retrieval_report(some, np.eye(n), ks=(10,), n_resamples=0)
    lost = masked_drop("all masked", lambda report: report, bad, good)
    assert [one.verdict for one in lost] == ["fail", "fail"]
    gained = drop_findings("made better", middle, good)
    assert all(one.value < 0 and one.verdict == "pass" for one in gained)
    assert drop_findings("nothing to lose", bad, good) == []


def test_few_entities_are_no_evidence_of_a_loss() -> None:
    n = 12
    options = {"ks": (1,), "n_resamples": 0, "entities_a": np.arange(n) // 6, "entities_b": np.arange(n)}
    half = np.eye(n)
    half[:4] = 0
    before = retrieval_report(np.eye(n), np.eye(n), **options)  # type: ignore[arg-type]
    after = retrieval_report(half, np.eye(n), **options)  # type: ignore[arg-type]
    found = drop_findings("masked", before, after, k=1)
    assert found[0].verdict == "warn"
    assert "too few entities to call it a loss" in found[0].why


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_columns_are_blanked_to_their_mean_or_shuffled_together(wrap: object) -> None:
    rows = np.random.default_rng(0).poisson(1.0, (50, 6)).astype(np.float32)
    given = wrap(rows)  # type: ignore[operator]
    blank, shuffled = change_columns(given, [1, 4]), change_columns(given, [1, 4], "shuffle", seed=1)
    blank, shuffled = (one if isinstance(one, np.ndarray) else one.toarray() for one in (blank, shuffled))
    rest = [0, 2, 3, 5]
    assert np.array_equal(blank[:, rest], rows[:, rest])
    assert np.array_equal(shuffled[:, rest], rows[:, rest])
    assert blank[:, [1, 4]] == pytest.approx(np.tile(rows[:, [1, 4]].mean(axis=0), (50, 1)))
    order = np.random.default_rng(1).permutation(50)
    assert np.array_equal(shuffled[:, [1, 4]], rows[order][:, [1, 4]])
    assert np.array_equal(given if isinstance(given, np.ndarray) else given.toarray(), rows)


def test_a_blanked_column_shows_what_hung_on_it() -> None:
    train, test = pairs(400, 0, 2.0), pairs(200, 1, 2.0)
    scale = TagScale.of(train, strength=3.0)
    project = least_squares(slice(None))(plant_tag(train, scale))
    tagged = plant_tag(test, scale, seed=1)
    before = retrieval_report(*project(tagged.rows_a, tagged.rows_b))

    def report_of(rows: np.ndarray) -> object:
        return retrieval_report(*project(rows, tagged.rows_b))

    tag, other = (
        masked_drop("column blanked", report_of, change_columns(tagged.rows_a, [column]), before)  # type: ignore[arg-type]
        for column in (D, 0)
    )
    assert tag[0].value > 0.25
    assert tag[0].value > 3 * other[0].value


def test_what_does_not_fit_is_refused() -> None:
    part = pairs(10, 0)
    with pytest.raises(ShapeError, match="rows_b has 9 rows; expected 10"):
        PairedRows(part.rows_a, part.rows_b[:9], part.links)
    with pytest.raises(ArgumentError, match="n_sources = 1"):
        TagScale.of(part, 1)
    with pytest.raises(ArgumentError, match=r"strength = 0\.0; expected a number above 0"):
        TagScale.of(part, strength=0.0)
    joined = PairedRows(np.ones((2, 2)), np.ones((2, 2)), Links([[0, 0], [0, 1], [1, 1]], 2, 2))
    with pytest.raises(ArgumentError, match="links connect all items into 1 component"):
        plant_tag(joined, TagScale.of(joined))
    with pytest.raises(ArgumentError, match="expected 'blank' or 'shuffle'"):
        change_columns(part.rows_a, [0], "zero")  # type: ignore[arg-type]
    for columns in ([], [12], [-1], [0.5]):
        with pytest.raises(ArgumentError, match="expected numbers of columns, 0 to 11"):
            change_columns(part.rows_a, columns)
    one, other = (retrieval_report(np.eye(n), np.eye(n), ks=(1,), n_resamples=0) for n in (5, 6))
    with pytest.raises(ArgumentError, match="the first report has 5 queries and the second 6"):
        drops(one, other, k=1)
    with pytest.raises(ArgumentError, match="do not both have"):
        drops(one, one, k=7)
