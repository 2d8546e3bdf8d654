import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.depict import shown_text
from bridgehead.errors import ArgumentError


def test_white_space_of_any_kind_becomes_one_blank():
    assert shown_text("  inhibits\t\u00a0COX-2 \r\n\u2028 in vitro ") == "inhibits COX-2 in vitro"


def test_a_long_text_is_cut_at_a_word_and_says_so():
    assert shown_text("inhibits cyclooxygenase in vitro", 24) == "inhibits cyclooxygenase…"
    assert shown_text("inhibits cyclooxygenase in vitro", 26) == "inhibits cyclooxygenase…"
    assert shown_text("inhibits, cyclooxygenase", 10) == "inhibits…"


def test_a_long_word_is_cut_inside():
    assert shown_text("C" * 50, 10) == "C" * 9 + "…"


def test_a_text_that_fits_is_left_alone():
    assert shown_text("aspirin", 7) == "aspirin"
    assert shown_text("", 5) == ""
    assert shown_text("Äther 🧪 β-Laktam", 40) == "Äther 🧪 β-Laktam"


def test_characters_that_would_disturb_a_page_are_taken_out():
    # Control, right-to-left override, lone surrogate, private use, zero width no-break space.
    assert shown_text("a\x00\x07b\u202ec\ud800d\ue000e\ufefff") == "abcdef"
    assert shown_text("e" + "\u0301" * 40) == "e" + "\u0301" * 4


def test_joiners_that_scripts_need_stay():
    assert shown_text("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645") == (
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    )


def test_a_text_of_megabytes_is_cut_without_being_looked_through():
    assert shown_text("word " * 1_000_000, 20) == "word word word word…"
    assert shown_text(" " * 1_000_000 + "late", 20) == "…"


@given(st.text(), st.integers(1, 40))
def test_the_length_is_bounded_and_nothing_is_invented(text, most):
    shown = shown_text(text, most)
    assert len(shown) <= most
    assert set(shown) <= set(text) | {" ", "…"}
    assert "\n" not in shown


@pytest.mark.parametrize("text", [None, 3, b"bytes"])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(ArgumentError, match="expected str"):
        shown_text(text)


def test_a_length_under_one_is_refused():
    with pytest.raises(ArgumentError, match="at least 1"):
        shown_text("a", 0)


@pytest.mark.parametrize("most", [None, True, 2.5, "20", 0, -1])
def test_a_length_that_is_no_whole_number_is_refused(most):
    with pytest.raises(ArgumentError, match="most is"):
        shown_text("a text", most)
