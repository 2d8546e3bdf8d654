from types import SimpleNamespace

import numpy as np
import pytest

from bridgehead.links import Links
from bridgehead.runs.study.duplicated_texts import copied, duplicated, same_text_links
from bridgehead.runs.study.source_tag import N_SOURCES, with_tags
from bridgehead.runs.study.spread import measure
from bridgehead.runs.study.views import in_two_dimensions, score_window
from bridgehead.runs.two_view import PairedRows, first_model, two_views

PERFECT = SimpleNamespace(project_a=lambda rows: rows, project_b=lambda rows: rows)


def events(n=10):
    """Rows in which every event is a direction of its own, so that rows of the same event match and no others."""
    return PairedRows(np.eye(n, dtype=np.float32), np.eye(n, dtype=np.float32))


def test_a_fifth_of_the_texts_is_copied_into_as_many_other_rows():
    texts, copies = copied(180)
    assert len(texts) == len(copies) == 36
    assert len(set(texts) | set(copies)) == 72
    np.testing.assert_array_equal(texts, copied(180)[0])


def test_only_the_copies_change_and_with_another_measurement_of_the_event_their_images_do_too():
    part = two_views().valid
    texts, copies = copied(180)
    rest = np.setdiff1d(np.arange(180), copies)
    kept, again = (duplicated(part, texts, copies, again=again) for again in (False, True))
    for found in (kept, again):
        np.testing.assert_array_equal(found.b[copies], part.b[texts])
        np.testing.assert_array_equal(found.b[rest], part.b[rest])
        np.testing.assert_array_equal(found.a[rest], part.a[rest])
    np.testing.assert_array_equal(kept.a, part.a)
    # The new images are near those of the event they show again, and nobody's exact copy.
    assert np.abs(again.a[copies] - part.a[texts]).max() < 1.5
    assert np.abs(again.a[copies] - part.a[texts]).mean() < 0.15
    assert (np.abs(again.a[copies] - part.a[texts]).max(axis=1) > 0).all()


def test_equal_texts_share_each_others_images():
    rows = np.array([[1, 0], [0, 1], [1, 0], [2, 2]], dtype=np.float32)
    matrix = same_text_links(rows).matrix.toarray()
    np.testing.assert_array_equal(matrix, [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])


def test_diagonal_and_group_aware_recall_of_a_perfect_model_are_those_worked_by_hand():
    # Texts 0 and 1 stand in rows 2 and 3 too. Images 2 and 3 lost their text: all ten candidates tie at 0.
    part = duplicated(events(), np.array([0, 1]), np.array([2, 3]), again=False)
    diagonal = measure([PERFECT], part.a, part.b, Links.identity(10))
    grouped = measure([PERFECT], part.a, part.b, same_text_links(part.b))
    assert diagonal.values["a_to_b.recall@1"].mean == pytest.approx((6 + 2 * 1 / 2 + 2 * 1 / 10) / 10)
    assert grouped.values["a_to_b.recall@1"].mean == pytest.approx((6 + 2 + 2 * 2 / 10) / 10)
    assert diagonal.values["b_to_a.recall@1"].mean == pytest.approx((6 + 2) / 10)
    assert grouped.values["b_to_a.recall@1"].mean == pytest.approx(1)
    assert grouped.chance["a_to_b.recall@1"] == pytest.approx((6 * 1 / 10 + 4 * 2 / 10) / 10)


def test_the_queries_concerned_alone_are_asked_for_with_a_mask():
    part = duplicated(events(), np.array([0, 1]), np.array([2, 3]), again=False)
    mask = np.arange(10) < 4
    found = measure([PERFECT], part.a, part.b, same_text_links(part.b), mask)
    assert found.values["a_to_b.recall@1"].mean == pytest.approx((2 + 2 * 2 / 10) / 4)


def test_tags_are_one_further_column_of_either_side():
    code = np.linspace(-1, 1, N_SOURCES).astype(np.float32)
    tags = np.array([0, 9, 4])
    found = with_tags(PairedRows(np.ones((3, 2)), np.zeros((3, 1))), code, tags, tags[::-1])
    assert found.a.shape == (3, 3)
    assert found.a.dtype == np.float32
    np.testing.assert_array_equal(found.a[:, -1], code[[0, 9, 4]])
    np.testing.assert_array_equal(found.b[:, -1], code[[4, 9, 0]])
    np.testing.assert_array_equal(found.a[:, :2], 1)


def test_the_plane_is_that_of_principal_components_with_its_signs_settled():
    from sklearn.decomposition import PCA

    part, model = two_views().held_out, first_model(6050)
    found = in_two_dimensions(model, part, 20)
    both = np.concatenate([model.project_a(part.a[:20]), model.project_b(part.b[:20])]).astype(np.float64)
    expected = PCA(2, svd_solver="full").fit(both)
    points = np.concatenate([found.a, found.b])
    np.testing.assert_allclose(np.abs(points), np.abs(expected.transform(both)), atol=1e-6)
    assert found.share == pytest.approx(expected.explained_variance_ratio_.sum())
    cosines = both[:20] @ both[20:].T
    assert found.mate_cosine == pytest.approx(np.trace(cosines) / 20)
    assert found.other_cosine == pytest.approx((cosines.sum() - np.trace(cosines)) / 380)
    axes = np.linalg.lstsq(both - both.mean(axis=0), points, rcond=None)[0].T
    assert (axes[[0, 1], np.abs(axes).argmax(axis=1)] > 0).all()


def test_a_window_holds_the_cosines_of_the_first_images_in_rows():
    part, model = two_views().held_out, first_model(6052)
    window = score_window(model, part, 3)
    assert window.shape == (3, 3)
    z_a, z_b = model.project_a(part.a), model.project_b(part.b)
    assert window[0, 2] == pytest.approx(float(z_a[0] @ z_b[2]), abs=1e-6)
