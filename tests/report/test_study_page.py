from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.report.content import MapView, Table
from bridgehead.report.study_figures import score_window, spread_bars
from bridgehead.report.study_page import (
    StudyBars,
    StudyContent,
    StudyGroup,
    StudyRow,
    StudySection,
    StudyWindow,
    render_study,
    with_minus,
    write_study,
)

ROW = StudyRow("a → b recall@1", "0.9747 (0.0038)", "0.9700 (0.0040)", "-0.0047", True, "0.0033")
HOSTILE = "<img src=x onerror=alert(1)>"


def content(**changed):
    base = StudyContent(
        title="Two views",
        summary="What it is.",
        told="1 of 1 means agrees.",
        all_within=True,
        tolerance=0.005,
        headline=[("recall@1", "0.9747", "chance 0.0033")],
        groups=[StudyGroup("Held out, true pairs", [ROW])],
        spread_note="Over seeds.",
        bars=StudyBars(["forth"], [("true", [0.9], [0.01]), ("shuffled", [0.003], [0.003])], [1 / 300]),
    )
    return replace(base, **changed)


def texts(svg):
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_the_page_shows_the_row_with_both_figures_and_whether_they_agree():
    page = render_study(content())
    for shown in ("0.9747 (0.0038)", "0.9700 (0.0040)", "−0.0047", ">yes<", ">agrees<", "within 0.005", "0.0033"):
        assert shown in page
    wrong = render_study(content(all_within=False, groups=[StudyGroup("g", [replace(ROW, within=False)])]))
    assert ">no<" in wrong
    assert ">does not agree<" in wrong


def test_every_text_is_escaped():
    section = StudySection(HOSTILE, HOSTILE, [HOSTILE], Table(HOSTILE, [HOSTILE], [[HOSTILE]], HOSTILE), HOSTILE)
    view = MapView(HOSTILE, np.eye(2), np.eye(2), np.array([[0, 0]]), HOSTILE)
    page = render_study(
        content(
            title=HOSTILE, summary=HOSTILE, told=HOSTILE, headline=[(HOSTILE,) * 3], spread_note=HOSTILE,
            groups=[StudyGroup(HOSTILE, [StudyRow(*[HOSTILE] * 4, True, HOSTILE)])], sections=[section], views=[view],
            windows=[StudyWindow(HOSTILE, np.eye(2), HOSTILE)], names=(HOSTILE, HOSTILE),
            protocol=[(HOSTILE, HOSTILE)], contract=[(HOSTILE, HOSTILE)],
            bars=StudyBars([HOSTILE], [(HOSTILE, [0.5], [0.1])], [0.1]),
        )
    )  # fmt: skip
    assert "<img" not in page
    assert "<script" not in page


def test_parts_that_are_not_there_have_no_heading():
    page = render_study(content())
    assert "Contract" not in page
    assert "protocol" not in page
    assert page.count("<svg") == 1


def test_the_page_is_written_as_one_file(tmp_path):
    write_study(tmp_path / "study.html", content())
    assert (tmp_path / "study.html").read_text(encoding="utf-8") == render_study(content())
    assert [path.name for path in tmp_path.iterdir()] == ["study.html"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-0.1 to -2", "−0.1 to −2"),
        ("top-5, 2026-01-02, 1e-5", "top-5, 2026-01-02, 1e-5"),
        ("(-3)", "(−3)"),
        ("held-out - none", "held-out - none"),
    ],
)
def test_negative_numbers_get_a_minus_sign_and_hyphens_stay(text, shown):
    assert with_minus(text) == shown


def test_bars_name_their_series_and_write_their_means():
    drawn = texts(spread_bars(["forth", "back"], [("true", [0.97, 0.96], [0.01, 0.02])], [0.003, 0.003]))
    assert {"true", "chance", "forth", "back", "0.970", "0.960"} <= set(drawn)


@pytest.mark.parametrize("n", [0, 5])
def test_bars_of_no_series_or_of_more_than_there_are_colours_for_are_refused(n):
    with pytest.raises(ArgumentError, match=f"{n} series"):
        spread_bars(["x"], [("s", [0.5], [0.1])] * n, [0.1])


def test_bars_of_uneven_lengths_are_refused():
    with pytest.raises(ShapeError, match=r"\[1, 2\] entries"):
        spread_bars(["x", "y"], [("s", [0.5], [0.1])], [0.1, 0.1])


def test_windows_share_the_scale_that_they_are_given_and_name_their_axes():
    drawn = texts(score_window(np.array([[0.1, 2.0]]), -1, 1, "spectrum", "molecule"))
    assert {"spectrum query", "molecule candidate", "cosine"} <= set(drawn)


@pytest.mark.parametrize("scores", [np.zeros(3), np.zeros((0, 2))])
def test_a_window_of_no_matrix_is_refused(scores):
    with pytest.raises(ShapeError, match=r"expected \(n, m\)"):
        score_window(scores, 0, 1)


def test_a_window_whose_scale_has_no_length_is_refused():
    with pytest.raises(ArgumentError, match="expected low below high"):
        score_window(np.eye(2), 1, 1)
