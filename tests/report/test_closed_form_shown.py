"""The closed-form baseline in the report and the card: beside the trained heads where it was measured."""

import re
from dataclasses import replace

import numpy as np
import pytest

from bridgehead.evaluate import retrieval_report
from bridgehead.report import (
    CardContent,
    Measure,
    QuerySet,
    direction_of,
    figures,
    render_card,
    render_report,
    stored_measures,
)

FITTED = {"recall@1": Measure(0.123), "recall@10": Measure(0.456), "mrr": Measure(0.234)}


@pytest.fixture
def with_fit(content):
    """The content with figures of a closed form for all queries, and for one direction of the unseen texts."""
    sets = list(content.query_sets)
    sets[0] = replace(sets[0], directions=[replace(one, closed_form=FITTED) for one in sets[0].directions])
    unseen = list(sets[1].directions)
    sets[1] = replace(sets[1], directions=[replace(unseen[0], closed_form={"mrr": Measure(0.0789)}), unseen[1]])
    return replace(content, query_sets=sets, closed_form="CCA, no training")


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_figures_read_from_a_record_are_those_of_the_report_itself():
    rng = np.random.default_rng(0)
    measured = retrieval_report(rng.normal(size=(12, 3)), rng.normal(size=(12, 3)), ks=(1, 5), n_resamples=30)
    record = {"method": "cca", "embed_dim": 3, "notes": [], **measured.to_dict()}
    assert stored_measures(record, "a_to_b") == direction_of(measured.a_to_b, "a", "b").measures
    assert stored_measures(record, "b_to_a") == direction_of(measured.b_to_a, "b", "a").measures
    assert list(stored_measures(record, "a_to_b")) == list(direction_of(measured.a_to_b, "a", "b").measures)


def test_a_record_without_figures_has_none_to_show():
    assert stored_measures({"method": "cca", "embed_dim": None, "notes": ["not fitted"]}, "a_to_b") == {}


def test_its_column_stands_in_each_table_where_it_was_measured(with_fit):
    page = render_report(with_fit)
    assert page.count("closed form</th>") == 3 and page.count("untrained</th>") == 4
    row = next(row for row in page.split("<tr ") if "<th>recall@10</th>" in row)
    assert row.rstrip().partition("</tr>")[0].endswith('<td class="n">0.456</td>')
    assert '<td class="n">0.079</td>' in page


def test_the_headline_the_note_and_the_bars_name_it(with_fit):
    page = render_report(with_fit)
    text = text_of(page)
    assert "· closed form 0.456" in text
    assert "Closed form: CCA, no training. Two linear maps" in text
    assert "closed-form baseline (CCA, no training)" in text


def test_it_is_nowhere_where_it_was_not_asked_for(content):
    text = render_report(content)
    assert "closed form" not in text.lower() and "closed-form" not in text


def test_one_that_could_not_be_fitted_is_a_sentence_and_no_column(content):
    notes = ["not fitted: 1 link"]
    text = text_of(render_report(replace(content, closed_form="CCA, no training", closed_form_notes=notes)))
    assert "Closed form: CCA, no training." in text and "Not fitted: 1 link." in text
    assert "Two linear maps" not in text and "closed-form baseline" not in text and "· closed form" not in text


def test_texts_about_it_are_shown_as_they_are(with_fit):
    hostile = "<script>alert(1)</script>"
    page = render_report(replace(with_fit, closed_form=hostile, closed_form_notes=[hostile]))
    assert hostile not in page and page.count("&lt;script&gt;alert(1)") >= 3


def test_a_baseline_has_its_colour_whatever_stands_before_it():
    bars = {"recall@1": Measure(0.4)}
    one = figures.recall_bars({"all": bars}, {"untrained": bars, "closed": bars})
    two = figures.recall_bars({"all": bars, "unseen": bars}, {"untrained": bars, "closed": bars})
    for svg in (one, two):
        assert "var(--fourth" in svg and "#8a949e" in svg and "var(--first" in svg
    assert "var(--third" in two and "var(--third" not in one


def test_the_card_has_its_column_where_it_was_measured(with_fit, content):
    def card(queries: QuerySet, name: str = "CCA, no training") -> str:
        return render_card(CardContent("t", "s", ("a", "b"), "other", [], [queries], closed_form=name))

    head = "| measure | value | 95 % interval | chance | untrained baseline | closed-form baseline (CCA, no training) |"
    text = card(with_fit.query_sets[0])
    assert head in text and "|---|---|---|---|---|---|" in text.replace(" ", "")
    row = next(line for line in text.splitlines() if line.startswith("| recall@10 |"))
    assert row.endswith("| 0.456 |") and row.count("|") == 7
    assert "closed" not in card(content.query_sets[0])
    assert "closed-form baseline (\\<b\\>)" in card(with_fit.query_sets[0], "<b>")
