from xml.etree import ElementTree

import numpy as np
import pytest

from bridgehead.report import Fold, MapView, PoolCurve, PoolRecall, Similarities
from bridgehead.report.figures import chance_shares, doubling_edges, rank_histogram
from bridgehead.report.space_figures import fold_dots, mates_map, pool_curves, similarity_histogram, thinned
from report_content import folds


def view(n: int, links=None) -> MapView:
    rng = np.random.default_rng(0)
    return MapView("x", rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), links)


def test_every_figure_is_one_well_formed_element_with_a_label():
    curve = PoolCurve(10, [PoolRecall(100, 0.9, 0.1), PoolRecall(1000, 0.6)])
    figures = [
        mates_map(view(5, np.array([[0, 0], [1, 4]]))),
        similarity_histogram(Similarities(np.linspace(-1, 1, 5), {"within a": [0, 1, 2, 3]})),
        pool_curves([curve]),
        fold_dots(folds().per_fold),
    ]
    for svg in figures:
        root = ElementTree.fromstring(svg)
        assert root.attrib["role"] == "img" and root.attrib["aria-label"]
        assert "<script" not in svg and "http" not in svg.replace("http://www.w3.org", "")


def test_only_points_with_a_mate_are_drawn_and_their_links_stay_theirs():
    links = np.array([[4, 0], [4, 2], [1, 2]])
    shown = view(5, links)
    points_a, points_b, found = thinned(shown)
    assert len(points_a) == len(points_b) == 2
    for (a, b), (row_a, row_b) in zip(links, found, strict=True):
        np.testing.assert_array_equal(points_a[row_a], shown.points_a[a])
        np.testing.assert_array_equal(points_b[row_b], shown.points_b[b])


def test_of_many_mates_a_bounded_number_is_drawn_evenly_over_their_order():
    links = np.column_stack([np.arange(1000)] * 2)
    points_a, _, found = thinned(view(1000, links), most=100)
    assert len(found) == len(points_a) == 100
    np.testing.assert_array_equal(points_a[0], view(1000).points_a[0])
    np.testing.assert_array_equal(points_a[-1], view(1000).points_a[999])
    assert len(mates_map(view(20_000, np.column_stack([np.arange(20_000)] * 2)))) < 150_000


def test_without_links_the_points_of_both_sides_are_drawn():
    points_a, points_b, found = thinned(view(50), most=20)
    assert (len(points_a), len(points_b), len(found)) == (20, 20, 0)
    assert ElementTree.fromstring(mates_map(view(0))) is not None


@pytest.mark.parametrize("counts", [[0, 0, 0, 0], [0, 0, 0, 9]])
def test_a_histogram_of_nothing_or_of_one_bin_is_drawn(counts):
    assert similarity_histogram(Similarities(np.linspace(-1, 1, 5), {"across, true": counts, "other": counts}))


def test_pools_of_one_size_and_folds_of_one_are_drawn():
    assert pool_curves([PoolCurve(1, [PoolRecall(50, 0.4)])])
    assert fold_dots([Fold("1", "a", "b", 5, 5, {"mrr": 0.4, "median_rank": 3.0})])
    assert "median" not in fold_dots([Fold("1", "a", "b", 5, 5, {"mrr": 0.4, "median_rank": 3.0})])


def test_chance_of_lists_is_the_mean_over_the_queries_of_their_own_chance():
    edges = doubling_edges(8)
    # One true item among 2, and one among 8: uniform over the ranks of each list.
    found = chance_shares(edges, 8, [1, 1], [2, 8])
    np.testing.assert_allclose(found, [(1 / 2 + 1 / 8) / 2, (1 / 2 + 2 / 8) / 2, (4 / 8) / 2, (1 / 8) / 2], atol=1e-12)
    np.testing.assert_allclose(chance_shares(edges, 8, [1, 2]), chance_shares(edges, 8, [1, 2], [8, 8]), atol=1e-12)


def test_the_histogram_of_ranks_takes_lists_of_their_own():
    assert rank_histogram([1.0, 3.0], 8, [1, 1], [2, 8]) != rank_histogram([1.0, 3.0], 8, [1, 1])
