import json

import pytest

from bridgehead.report import Attribution, CardContent, Direction, Measure, QuerySet, render_card, write_card
from bridgehead.report.card import plain


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
