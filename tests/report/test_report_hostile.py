"""Texts of a user that no page can hold: controls, halves of characters, megabytes in one field."""

import re
from dataclasses import replace

from bridgehead.report import (
    Attribution,
    CardContent,
    Direction,
    Measure,
    QuerySet,
    render_card,
    render_report,
    write_card,
)
from report_content import filled

GONE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
WORD = "".join(map(chr, range(160))) + "half \ud800 of one\udfff"


def card(word: str) -> CardContent:
    queries = QuerySet(word, [Direction(word, word, 512, 812, {"recall@10": Measure(0.5)})], word)
    source = Attribution(word, word, word, word)
    return CardContent(
        word, word, (word, word), word, [(word, word)], [queries], [word], [word], [source],
        closed_form=word, datasets=[word], base_models=[word], tags=[word],
    )  # fmt: skip


def test_no_page_holds_controls_or_halves_of_characters(content, tmp_path):
    page, text = render_report(filled(replace(content, title=WORD), WORD)), render_card(card(WORD))
    assert GONE.search(page) is None
    assert GONE.search(text) is None
    write_card(tmp_path / "card.md", card(WORD))
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == text


def test_megabytes_in_every_field_make_a_page_of_a_few(content):
    word = "x " * 1_000_000
    assert len(render_report(filled(content, word))) < 4_000_000
    assert len(render_card(card(word))) < 500_000


def test_a_config_of_some_pages_is_shown_whole_with_its_lines(content):
    config = "".join(f"name_{i} = {i}\n\tpart = {i}\n" for i in range(500))
    assert "name_499 = 499\n\tpart = 499" in render_report(replace(content, config=config))
