import json

import pytest

from bridgehead.audits import Finding
from bridgehead.report import (
    Attribution,
    CardContent,
    Contract,
    ContractAnswer,
    Direction,
    Measure,
    QuerySet,
    SkippedAudit,
    render_card,
    write_card,
)
from bridgehead.report.card import plain
from bridgehead.report.card_head import flow


def card(**changes) -> CardContent:
    direction = Direction(
        "text", "molecule", 512, 812, {"recall@10": Measure(0.68, 0.65, 0.71, 0.0123)}, {"recall@10": Measure(0.57)}
    )
    settings = {
        "title": "Molecules and text",
        "summary": "Two heads over frozen encoders.",
        "names": ("molecule", "text"),
        "licence": "ODbL-1.0 AND CC-BY-SA-4.0",
        "aligned": [("links", "9,402")],
        "query_sets": [QuerySet("all queries", [direction])],
        "limits": ["Not for clinical use."],
        "sources": [Attribution("Guide to PHARMACOLOGY", "ODbL-1.0", "Cite it.")],
        "refit": True,
    }
    return CardContent(**{**settings, **changes})


def test_a_card_says_numbers_pool_chance_interval_and_baseline():
    text = render_card(card())
    assert "text to molecule: 512 queries among 812 candidates" in text
    assert "| recall@10 | 0.680 | 0.650 to 0.710 | 0.012 | 0.570 |" in text
    assert "**Measured before refit:**" in text
    assert "**Measured before refit:**" not in render_card(card(refit=False))


def test_the_head_is_yaml_whatever_is_in_it():
    yaml = pytest.importorskip("yaml")
    odd = 'a: "b"\n---\nlicense: mit # 分子'
    _, head, _ = render_card(card(licence=odd, names=(odd, "b"))).split("---\n", 2)
    assert yaml.safe_load(head)["license_name"] == odd
    assert yaml.safe_load(head)["tags"][2] == odd
    assert json.loads(head.splitlines()[1].partition(": ")[2]) == odd


def test_texts_of_a_user_cannot_become_markup():
    assert plain("<b>a|b</b>\n# x [l](u) `c`") == r"\<b\>a\|b\</b\> \# x \[l\]\(u\) \`c\`"
    text = render_card(card(title="<script>", limits=["- x\n\n# y"]))
    assert "<script>" not in text
    assert "\n# y" not in text


def test_empty_parts_are_left_out():
    text = render_card(card(query_sets=[], limits=[], sources=[]))
    assert "## How well" not in text and "## Limits" not in text and "## Sources" not in text


def test_a_direction_without_queries_has_no_table():
    empty = QuerySet("unseen", [Direction("a", "b", 0, 3, {})])
    assert "| measure |" not in render_card(card(query_sets=[empty]))


def test_a_card_is_written(tmp_path):
    write_card(tmp_path / "card.md", card())
    assert (tmp_path / "card.md").read_text(encoding="utf-8").startswith("---\nlicense: ")


def full() -> CardContent:
    listed = Finding("rows out of order", 0.31, "declared", "fail", "shifted from record 3,512 on", "data")
    return card(
        contract=Contract(
            [
                ContractAnswer("What is one pair?", "a record", "One ligand.", "config"),
                ContractAnswer("Which candidates?", "812 items", "", "missing"),
            ]
        ),
        findings=[Finding("near text", 0.0, "0", "pass", "none", "leakage"), listed],
        skipped=[SkippedAudit("column", "none was named")],
        sources=[Attribution("table", "ODbL-1.0", "", "data"), Attribution("encoder", "CC-BY-NC-4.0", "", "encoder")],
        datasets=["owner/pairs"],
        base_models=["owner/encoder"],
        tags=["chemistry", "molecule"],
    )


def test_the_contract_is_on_the_card_with_what_nobody_answered():
    text = render_card(full())
    assert "- **What is one pair?** One ligand. A record." in text
    assert "- **Which candidates?** 812 items. *The author of the data has not answered this yet.*" in text


def test_claims_are_counted_and_those_that_fail_have_their_reason():
    text = render_card(full())
    assert "1 of 2 claims that were checked hold." in text
    assert "- **fail** rows out of order: 0.31, expected declared. Shifted from record 3,512 on." in text
    assert "Hold: near text." in text and "Not checked: column." in text


def test_licences_that_may_not_combine_are_on_the_card():
    text = render_card(full())
    assert "- encoder (encoder, CC\\-BY\\-NC\\-4.0)." in text
    assert "may not combine" in text and "no legal advice" in text


def test_the_hub_reads_the_head_with_its_results():
    hub = pytest.importorskip("huggingface_hub")
    data = hub.ModelCard(render_card(full())).data
    assert data.license == "other" and data.base_model == ["owner/encoder"] and data.datasets == ["owner/pairs"]
    assert data.tags == ["contrastive-learning", "cross-modal-retrieval", "molecule", "text", "chemistry"]
    (result,) = data.eval_results
    assert (result.task_name, result.metric_type, result.metric_value) == ("text to molecule", "recall@10", 0.68)
    assert result.metric_name == "recall@10 among 812 candidates (95 % 0.650 to 0.710, chance 0.012)"
    assert result.dataset_name == "Molecules and text, held-out part (all queries)"


def test_a_licence_that_the_hub_knows_is_written_as_it_knows_it():
    assert 'license: "apache-2.0"\n' in render_card(card(licence="Apache-2.0"))
    assert 'license: "other"\nlicense_name: "MIT AND X"\n' in render_card(card(licence="MIT AND X"))


def test_a_card_without_figures_has_no_results():
    assert "model-index" not in render_card(card(query_sets=[]))
    rank = Direction("a", "b", 3, 5, {"median_rank": Measure(2.0)})
    assert "model-index" not in render_card(card(query_sets=[QuerySet("all queries", [rank])]))


@pytest.mark.parametrize("text", ['"\\', "\x00\x07\x85\u2028", "𝔐🧪", "\\ud83d", "- a: b # c", "{[&*!|>%@`"])
def test_any_text_comes_back_from_the_head_as_it_was(text):
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(flow({"a": [text, 1, 0.5, None, True]})) == {"a": [text, 1, 0.5, None, True]}


def test_what_is_no_character_becomes_a_question_mark():
    assert flow("\ud83d") == '"?"'
