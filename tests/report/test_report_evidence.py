import re
from dataclasses import replace

import numpy as np
import pytest

from bridgehead.audits import Finding
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.report import (
    Attribution,
    Contract,
    ContractAnswer,
    FoldResults,
    GeometryFacts,
    Item,
    MapView,
    Measure,
    PoolCurve,
    PoolRecall,
    QueryCase,
    QueryCases,
    Similarities,
    Slice,
    SliceTable,
    render_report,
)
from bridgehead.report.html import PICTURE_BYTES, Pictures
from page_elements import HOSTILE, Elements, cells, words
from report_content import PICTURE, cases, filled


@pytest.fixture(scope="module")
def pages():
    return {}


@pytest.fixture
def page(content, pages):
    """A page with every part, rendered once for the tests that only read it."""
    if "full" not in pages:
        pages["full"] = render_report(filled(content))
    return pages["full"]


def test_every_part_is_there_and_every_link_of_the_page_leads_to_one(page):
    found = Elements(page)
    ids = {value for _, name, value in found.attributes if name == "id"}
    links = {value[1:] for tag, name, value in found.attributes if tag == "a" and name == "href"}
    assert links == {
        "overview", "numbers", "figures", "folds", "contract", "claims", "training", "space", "slices", "queries",
        "examples", "data", "aligned", "sources",
    }  # fmt: skip
    assert links <= ids


def test_a_full_page_loads_nothing_and_runs_nothing(page):
    found = Elements(page)
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & set(found.names)
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("src", "href", "xlink:href", "data", "srcset", "action", "poster"):
            assert value is not None and value.startswith(("#", "data:image/")), (tag, name, value)


def test_every_text_of_the_evidence_is_shown_as_it_is(content):
    found = Elements(render_report(filled(content, HOSTILE)))
    assert "script" not in found.names
    assert not any(name == "onerror" for _, name, _ in found.attributes)
    assert found.text.count(HOSTILE) > 40
    assert "{{ 49 }}" not in found.text and "'\"&49" not in found.text


def test_the_overview_counts_verdicts_and_names_what_failed_first(page):
    text = cells(page)
    # Four findings, and the shuffled links in both directions.
    assert re.search(r"4 pass 1 warn 1 fail of 6 claims that were checked; 1 audit did not run\.", text)
    assert text.index("Rows out of order") < text.index("Near text")
    assert "1 of 3 questions of the evaluation contract wait for an answer" in text


def test_the_shuffled_control_counts_once_where_audits_have_it_too(content):
    claims = [Finding("shuffled links", 0.01, "chance", "pass", "at chance", "controls")]
    assert "1 pass of 1 claim that were checked" in words(render_report(replace(content, findings=claims)))


def test_the_contract_says_who_answered(page):
    text = cells(page)
    assert "What is one pair? One ligand. A record." in text
    assert "Which candidates are ranked? 812 items. Not answered yet by the author of the data." in text
    assert "Which direction is measured? Both." in text


def test_claims_stand_in_groups_the_worst_first_with_cost_and_cases(page):
    text = cells(page)
    near, exact = text.index("118 texts have a near copy."), text.index("Exact structure on both sides None is.")
    assert near < exact
    assert "Expected under 0.05 · took 12 s" in text and "took 1 min 12 s" in text
    assert "The worst 2 of 133." in text
    assert "Other claims" in text and "metadata column no column was named" in text


def test_slices_have_counts_intervals_chance_and_all_queries_for_comparison(page):
    text = cells(page)
    assert "1 to 9 164 80 0.310 0.200 to 0.400 0.012 0.200" in text
    assert "all queries 0.310" in text
    assert "peptide 3 0.200" in text


def test_a_bar_is_as_long_as_its_share(page):
    bars = re.findall(r'<rect class="value" width="([\d.]+)"', page)
    assert bars[0] == "31.0"


def test_single_queries_show_rank_both_items_and_what_came_first(page):
    text = cells(page)
    assert "rank 3.5 of 812, 2 true items · cosine 0.410, first 0.520" in text
    assert "query t1 inhibits a kinase true imatinib CCO came first other CCN" in text
    assert "Best: text to molecule (3)" in text and "Around the median" in text and "Worst" in text


def test_folds_keep_both_spreads_apart(page):
    text = cells(page)
    assert "recall@10 0.600 0.550 to 0.650 0.060 0.011 0.037 0.029" in text
    assert "Two settings within 0.029 cannot be told apart." in text
    assert "Fold by fold (5)" in text


def test_differences_on_the_same_queries_have_interval_and_p(page):
    assert "MRR 0.400 0.450 +0.050 +0.020 to +0.080 < 0.001" in cells(page)
    assert "recall@10 0.520 0.550 +0.030 +0.010 to +0.050" in cells(page)


def test_hubs_time_memory_versions_and_config_are_told(page):
    text = cells(page)
    assert "151 of 512 queries have this molecule among their first 10; 6.3 by chance" in text
    assert "train 4 min 05 s 1.9 GB" in text
    assert 'schema = 1 name = "x"' in text and "numpy 2.3" in text and "heads ab12" in text


def test_licences_that_may_not_combine_are_a_warning_at_the_top(page):
    text = words(page)
    assert "notes on how the licences combine" in text
    assert "and encoder (CC-BY-NC-4.0) may not combine" in text
    assert "no legal advice" in text


def test_licences_that_combine_need_no_word(content):
    free = [Attribution("table", "CC-BY-4.0"), Attribution("encoder", "Apache-2.0")]
    assert "legal advice" not in words(render_report(replace(content, sources=free)))


def test_lists_of_their_own_are_told_instead_of_one_pool(content):
    queries = content.query_sets[0]
    first = replace(queries.directions[0], pool=np.arange(512) + 2, n_candidates=513, n_true_missing=3)
    text = words(render_report(replace(content, query_sets=[replace(queries, directions=[first])])))
    assert "512 queries, each with a list of its own (2 to 513 candidates, median 258)." in text
    assert "3 true items are missing from their query's list and count as not found" in text


def test_many_large_pictures_leave_the_file_under_three_megabytes(content):
    large = PICTURE.replace("M0 0L9 9", "M0 0L9 9" * 4000)
    groups = [cases(kind, "text", "molecule", 20, picture=large) for kind in ("best", "median", "worst")]
    page = render_report(replace(content, cases=groups))
    assert len(page) < 3_000_000
    assert page.count("data:image/svg") > 30
    assert re.search(r"\d+ pictures of items are left out", words(page))


def test_a_picture_too_large_by_itself_is_left_out_and_the_next_one_stays():
    pictures = Pictures()
    assert pictures.uri("x" * 100_000) == ""
    assert pictures.uri(PICTURE).startswith("data:image/svg+xml;base64,")
    assert pictures.left_out == 1
    assert pictures.room < PICTURE_BYTES


def test_long_texts_are_cut_and_empty_ones_said(content):
    case = QueryCase(Item("", ""), 1.0, 3, [Item("id", "word " * 500)])
    text = cells(render_report(replace(content, cases=[QueryCases("worst", "text", "molecule", [case])])))
    assert "query (empty) true id word word" in text
    assert len(text) < 12_000 + 240


def test_an_item_that_was_first_itself_stands_alone(content):
    case = QueryCase(Item("q", "text"), 1.0, 3, [Item("id", "CCO")])
    text = cells(render_report(replace(content, cases=[QueryCases("best", "text", "molecule", [case])])))
    assert (
        "rank 1 of 3 query" in text and "came first" not in text.partition("Query by query")[2].partition("query q")[2]
    )


def test_a_contract_without_gaps_says_so(content):
    whole = Contract([ContractAnswer("Which direction?", "both")])
    assert "Every question of the evaluation contract is answered." in words(
        render_report(replace(content, contract=whole))
    )


def test_parts_with_nothing_in_them_are_no_error(content):
    empty = replace(
        content,
        geometry=GeometryFacts(),
        folds=FoldResults(5, 1, 1, []),
        slices=[SliceTable("class", "text", "molecule", [Slice("none", 0, {})])],
        cases=[QueryCases("best", "text", "molecule", [])],
        contract=Contract([]),
    )
    assert "Which queries it serves" in words(render_report(empty))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: PoolCurve(1, [PoolRecall(5, 0.1), PoolRecall(5, 0.1)]), ArgumentError, "each larger"),
        (lambda: Similarities([0, 1], {"within a": [1, 2]}), ShapeError, "2 bins; expected 1"),
        (lambda: MapView("x", np.zeros((3, 3)), np.zeros((3, 2))), ShapeError, r"expected \(n, 2\)"),
        (lambda: MapView("x", np.zeros((3, 2)), np.zeros((3, 2)), np.array([[0, 3]])), ShapeError, "not there"),
        (lambda: MapView("x", np.zeros((3, 2)), np.zeros((3, 2)), np.array([0, 2])), ShapeError, r"links have shape"),
        (lambda: FoldResults(0, 1, 1, []), ArgumentError, "at least one of each"),
    ],
)
def test_content_that_does_not_fit_together_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_a_measure_without_chance_or_interval_has_a_bar_of_its_value_alone(content):
    table = SliceTable("class", "text", "molecule", [Slice("x", 3, {"recall@10": Measure(0.5)})])
    page = render_report(replace(content, slices=[table]))
    assert '<rect class="value" width="50.0" height="10"/></svg>' in page
