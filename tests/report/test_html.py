import re
from dataclasses import replace

import numpy as np
import pytest

from bridgehead.audits import Finding
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.report import (
    Answer,
    Attribution,
    Curves,
    Direction,
    Example,
    ExampleHit,
    Heatmap,
    Measure,
    QuerySet,
    ReportContent,
    Table,
    render_report,
    write_report,
)
from bridgehead.report.page import _recall_groups
from page_elements import HOSTILE, Elements, words


def test_a_report_is_written_as_one_file_and_nothing_else(content, tmp_path):
    write_report(tmp_path / "deep" / "report.html", content)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["report.html"]
    assert (tmp_path / "deep" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_report_loads_nothing_and_runs_nothing(content):
    page = render_report(content)
    found = Elements(page)
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & set(found.names)
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("src", "href", "xlink:href", "data", "srcset", "action", "poster"):
            assert value is not None and value.startswith(("#", "data:image/")), (tag, name, value)
    assert not re.search(r"url\((?!#)|@import", page)
    assert "default-src 'none'" in page


def test_every_text_of_the_content_is_shown_as_it_is(content):
    hostile = Direction(HOSTILE, HOSTILE, 1, 2, {HOSTILE: Measure(0.5)}, ranks=[1.0])
    page = render_report(
        replace(
            content,
            title=HOSTILE,
            names=(HOSTILE, HOSTILE),
            aligned=[(HOSTILE, HOSTILE)],
            summary=HOSTILE,
            baseline=HOSTILE,
            made=HOSTILE,
            headline=[HOSTILE],
            query_sets=[QuerySet(HOSTILE, [hostile], HOSTILE)],
            controls=[replace(content.controls[0], title=HOSTILE, why=HOSTILE, metric=HOSTILE)],
            findings=[Finding(HOSTILE, 0.1, HOSTILE, "warn", HOSTILE)],
            data=replace(
                content.data,
                counts=[(HOSTILE, HOSTILE)],
                notes=[HOSTILE],
                tables=[Table(HOSTILE, [HOSTILE], [[HOSTILE]], HOSTILE)],
            ),
            examples=[Example(HOSTILE, HOSTILE, HOSTILE, [Answer("refit", [ExampleHit(1, HOSTILE, 0.1, HOSTILE)], 1)])],
            sources=[Attribution(HOSTILE, HOSTILE, HOSTILE)],
        )
    )
    found = Elements(page)
    assert "script" not in found.names
    assert not any(name == "onerror" for _, name, _ in found.attributes)
    assert found.text.count(HOSTILE) > 20
    assert "49" not in re.sub(r"[\d.]*\d{3,}[\d.]*", "", found.text)


def test_a_picture_is_an_image_in_which_nothing_runs(content):
    hit = ExampleHit(1, "x", 0.1, picture='<svg onload="alert(1)"/>')
    page = render_report(replace(content, examples=[Example("q", "words", answers=[Answer("evaluated", [hit])])]))
    assert "onload" not in page
    assert 'src="data:image/svg+xml;base64,' in page


def test_the_headline_gives_value_interval_chance_pool_and_baseline(content):
    text = words(render_report(content))
    shown = content.query_sets[0].directions[0]
    measure = shown.measures["recall@10"]
    assert f"{measure.value:.3f}" in text
    assert f"95 %: {measure.low:.3f} to {measure.high:.3f}" in text
    assert f"chance 0.012 · untrained {shown.baseline['recall@10'].value:.3f}" in text
    assert "512 queries, pool of 812." in text
    assert "Text unseen in training" in text
    assert "164 queries, each ranked against 812 candidates; 12 without any true candidate are left out" in text


def test_refit_heads_are_said_not_to_be_measured(content):
    assert "Measured before refit." in words(render_report(content))
    assert "Measured before refit." not in words(render_report(replace(content, refit=False)))


def test_examples_say_where_the_expected_item_came_both_times(content):
    text = words(render_report(content))
    assert "aspirin came at rank 1,363 of 80,012." in text
    assert "aspirin came at rank 2 of 80,012." in text


def test_an_expected_item_without_a_rank_was_not_found(content):
    example = Example("q", "words", "aspirin", [Answer("refit", [])])
    assert "aspirin was not found." in words(render_report(replace(content, examples=[example])))


def test_long_lists_say_how_many_there_are(content):
    text = words(render_report(content))
    assert "Skipped rows (40)" in text and "The first 1 of 40." in text
    assert "Texts that were truncated (0)" in text and "None." in text


def test_the_least_content_makes_a_page_of_the_same_form():
    direction = Direction("a", "b", 0, 0, {})
    page = render_report(ReportContent("t", ("a", "b"), [], [QuerySet("all queries", [direction])]))
    text = words(page)
    assert "No query of this kind is in the test part." in text
    for heading in ("Training", "Is it real?", "Example queries", "Sources"):
        assert heading not in text


def test_a_set_with_no_queries_is_left_out_of_the_bars(content):
    empty = QuerySet("unseen", [Direction("a", "b", 0, 5, {}), Direction("b", "a", 0, 5, {})])
    page = render_report(replace(content, query_sets=[content.query_sets[0], empty]))
    assert "No query of this kind is in the test part." in words(page)


def test_figures_of_one_page_do_not_share_ids(content):
    found = Elements(render_report(content))
    ids = [value for _, name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_the_same_content_gives_the_same_bytes(content):
    assert render_report(content) == render_report(content)


def test_a_report_without_measurements_is_refused():
    with pytest.raises(ArgumentError, match="evaluate the run first"):
        ReportContent("t", ("a", "b"), [], [])


def test_content_that_does_not_fit_together_is_refused():
    with pytest.raises(ShapeError, match="loss has 2 values; expected one for each of the 1 epochs"):
        Curves([1], [0.5, 0.4])
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        Heatmap(np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="linked has shape"):
        Heatmap(np.zeros((2, 2)), np.zeros((3, 3), dtype=bool))
    with pytest.raises(ShapeError, match="row 0 of the table 't' has 1 cells; expected 2"):
        Table("t", ["a", "b"], [["x"]])


def test_a_set_of_queries_with_one_direction_stands_in_the_figure_of_that_direction() -> None:
    def direction(query: str, candidate: str, value: float) -> Direction:
        return Direction(query, candidate, 10, 20, {"recall@10": Measure(value)})

    content = ReportContent(
        title="t",
        names=("molecule", "text"),
        aligned=(),
        query_sets=(
            QuerySet("all queries", (direction("molecule", "text", 0.7), direction("text", "molecule", 0.6))),
            QuerySet("text unseen in training", (direction("text", "molecule", 0.3),)),
        ),
    )
    assert list(_recall_groups(content, 0)) == ["all queries"]
    assert _recall_groups(content, 1)["text unseen in training"]["recall@10"].value == 0.3
