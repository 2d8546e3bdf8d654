import numpy as np
import pytest
from scipy import sparse

from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError
from bridgehead.report import plane_views
from bridgehead.report.planes import principal_plane
from bridgehead.vectors import unit_rows


def test_the_plane_is_that_of_the_singular_vectors():
    rows = np.random.default_rng(0).normal(size=(30, 5)) * [5, 3, 1, 0.5, 0.1]
    centred = rows - rows.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    found = principal_plane(rows)
    np.testing.assert_allclose(np.abs(found.points), np.abs(u[:, :2] * s[:2]), atol=1e-9)
    assert found.share == pytest.approx((s[:2] ** 2).sum() / (s**2).sum())
    assert (found.points[np.abs(found.points).argmax(axis=0), [0, 1]] > 0).all()


def test_sparse_rows_lie_where_dense_ones_do():
    rows = np.random.default_rng(0).normal(size=(20, 50)) * (np.random.default_rng(1).random((20, 50)) < 0.2)
    dense, thin = principal_plane(rows), principal_plane(sparse.csr_matrix(rows))
    np.testing.assert_allclose(thin.points, dense.points, atol=1e-9)


@pytest.mark.parametrize("rows", [np.ones((1, 3)), np.ones((4, 3)), np.zeros((4, 3)), np.zeros((0, 3))])
def test_rows_that_do_not_differ_lie_at_the_origin(rows):
    found = principal_plane(rows)
    np.testing.assert_array_equal(found.points, np.zeros((len(rows), 2)))
    assert found.share == 0


def test_rows_on_a_line_hold_everything_on_one_axis():
    found = principal_plane(np.outer([0.0, 1.0, 3.0], [1.0, 1.0]))
    np.testing.assert_allclose(found.points[:, 1], 0, atol=1e-7)
    assert found.share == pytest.approx(1.0)


def test_mates_stay_mates_and_both_sides_share_a_plane_after_training():
    rng = np.random.default_rng(0)
    z_a = rng.normal(size=(10, 4))
    z_b = z_a[[3, 1, 2]] * 7
    before = (sparse.csr_matrix(rng.normal(size=(10, 9)).astype(np.float32)), rng.normal(size=(3, 2)))
    first, after = plane_views(z_a, z_b, [(3, 0), (1, 1), (2, 2)], before)
    assert [first.title, after.title] == ["before training", "after training"]
    assert after.points_a.shape == after.points_b.shape == (3, 2)
    for view in (first, after):
        assert view.links.shape == (3, 2)
    for a, b in after.links:
        np.testing.assert_allclose(after.points_a[a], after.points_b[b], atol=1e-9)
    # Each side before training has the same size, whatever the length of its rows.
    for points in (first.points_a, first.points_b):
        assert (points**2).sum(axis=1).mean() == pytest.approx(1.0)


def test_of_many_pairs_a_bounded_number_is_taken_evenly():
    rows = np.random.default_rng(0).normal(size=(500, 4))
    (view,) = plane_views(rows, rows, most=50)
    assert len(view.links) == len(view.points_a) == 50
    assert view.note.startswith("50 of 500 pairs in the plane that holds ")
    whole = principal_plane(np.concatenate([unit_rows(rows[[0, 499]])] * 2))
    (two,) = plane_views(rows, rows, most=2)
    np.testing.assert_allclose(two.points_a, whole.points[:2], atol=1e-9)


def test_an_item_with_several_mates_is_one_point():
    rows = np.random.default_rng(0).normal(size=(4, 3))
    (view,) = plane_views(rows, rows, [(0, 0), (0, 1), (2, 1)])
    assert (len(view.points_a), len(view.points_b)) == (2, 2)
    assert view.links.tolist() == [[0, 0], [0, 1], [1, 1]]


def test_what_cannot_be_drawn_is_refused():
    rows = np.eye(3)
    with pytest.raises(LinksError, match="no pair is linked"):
        plane_views(rows, rows, np.zeros((0, 2), dtype=np.int64))
    with pytest.raises(ArgumentError, match="at least 1 pair"):
        plane_views(rows, rows, most=0)
    with pytest.raises(NonFiniteRowsError, match="z_b: 1 of 3 rows"):
        plane_views(rows, np.array([[np.nan, 0, 0], *rows[1:]]))
