import threading
from itertools import combinations
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from bridgehead.report import Control, Curves, Heatmap, Measure, figures


def read(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in read(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_bins_double_and_end_at_the_pool():
    assert figures.doubling_edges(1).tolist() == [1, 2]
    assert figures.doubling_edges(4).tolist() == [1, 2, 4, 8]
    assert figures.bin_labels(figures.doubling_edges(5), 5) == ["1", "2–3", "4–5"]
    assert figures.bin_labels(figures.doubling_edges(80_000), 80_000)[-1] == "66k–80k"
    assert figures.doubling_edges(0).tolist() == [1, 2]


def test_every_rank_has_a_bin():
    for n in (1, 2, 3, 7, 8, 9, 1000):
        counts, _ = np.histogram(np.arange(1, n + 1), bins=figures.doubling_edges(n))
        assert counts.sum() == n


@pytest.mark.parametrize(("n", "p"), [(1, 1), (6, 1), (7, 2), (9, 3), (5, 5)])
def test_chance_shares_equal_a_count_of_all_orders(n, p):
    edges = figures.doubling_edges(n)
    firsts = [min(places) + 1 for places in combinations(range(n), p)]
    expected = np.histogram(firsts, bins=edges)[0] / len(firsts)
    np.testing.assert_allclose(figures.chance_shares(edges, n, [p, p]), expected, atol=1e-12)


def test_chance_shares_average_over_queries_and_pass_over_those_without_truth():
    edges = figures.doubling_edges(4)
    one, two = (figures.chance_shares(edges, 4, [p]) for p in (1, 2))
    np.testing.assert_allclose(figures.chance_shares(edges, 4, [1, 2, 0]), (one + two) / 2)


def test_colours_are_variables_of_the_page_with_a_fallback():
    svg = figures.recall_bars({"measured": {"recall@1": Measure(0.4, 0.3, 0.5, 0.1)}})
    assert "var(--first, #0072b2)" in svg
    assert "var(--ink, #1d2731)" in svg
    assert ": #1d2731" not in svg


def test_recall_bars_are_ordered_by_k_and_pass_over_other_measures():
    group = {"recall@10": Measure(0.9), "mrr": Measure(0.3), "recall@5": Measure(0.8), "recall@1": Measure(0.4)}
    assert [text for text in texts(figures.recall_bars({"g": group})) if "@" in text] == [
        "recall@1",
        "recall@5",
        "recall@10",
    ]


def test_recall_bars_survive_odd_legends():
    assert "$x$ ?? <b>" in texts(figures.recall_bars({"$x$ 分子 <b>": {"recall@1": Measure(0.4)}}))


def test_a_histogram_without_ranks_and_with_infinite_ones_is_drawn():
    read(figures.rank_histogram([], 10))
    read(figures.rank_histogram([1.5, np.inf, np.nan], 10, [1, 1, 1]))


def test_only_logged_curves_are_drawn():
    drawn = figures.training_curves(Curves([1, 2], [1.0, 0.5], logit_scale=[14.0, 15.0]))
    assert [name for name, _ in drawn] == ["loss", "logit_scale"]
    assert {"temperature", "logit_scale"} <= set(texts(drawn[1][1]))
    assert figures.training_curves(Curves()) == []


@pytest.mark.parametrize("scale", [[14.3], [14.3, 14.3], [1.0, 100.0]])
def test_a_scale_of_one_epoch_or_one_value_is_drawn(scale):
    epochs = list(range(1, len(scale) + 1))
    read(figures.training_curves(Curves(epochs, logit_scale=scale, best_epoch=1))[0][1])


def test_the_control_is_drawn_with_and_without_runs():
    for runs in ([0.01, 0.02], [0.01], []):
        read(figures.shuffled_strip(Control("a to b", "mrr", 0.5, runs, 0.01, 0.02, "pass", "")))


def test_the_heatmap_is_one_image_whatever_its_size():
    for n in (1, 2, 40):
        svg = figures.score_heatmap(Heatmap(np.eye(n), np.ones((n, n), dtype=bool)))
        assert len(svg) < 300_000
        images = list(read(svg).iter("{http://www.w3.org/2000/svg}image"))
        assert len(images) == 2
        assert all(e.get("{http://www.w3.org/1999/xlink}href", "").startswith("data:image/png") for e in images)


def test_settings_of_the_process_are_left_as_they_were():
    before = dict(matplotlib.rcParams)
    threads = [threading.Thread(target=figures.rank_histogram, args=([1.0, 2.0], 9)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dict(matplotlib.rcParams) == before


def test_a_drawing_that_fails_frees_the_lock():
    with pytest.raises(ValueError, match="could not convert"):
        figures.score_heatmap(Heatmap(np.array([["x"]])))
    with pytest.raises(ValueError, match="same size"):
        figures.shuffled_strip(Control("a to b", "mrr", 0.5, [[0.1, 0.2], [0.3, 0.4]], 0.01, 0.02, "pass", ""))
    read(figures.rank_histogram([1.0], 9))
