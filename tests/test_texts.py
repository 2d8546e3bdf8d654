"""Texts in one form: what counts as the same characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.texts import normalise


@pytest.mark.parametrize(
    "written, expected",
    [
        ("β-Blocker", "beta-blocker"),
        ("Β2 agonist", "beta2 agonist"),
        ("17.beta.-estradiol", "17beta-estradiol"),
        ("&beta;2-adrenoceptor", "beta2-adrenoceptor"),
        ("αβ T cell", "alphabeta t cell"),
        ("µ opioid", "mu opioid"),
        ("2′,3′-cAMP", "2',3'-camp"),
        ("2´,3`-cAMP", "2',3'-camp"),
        ("COX\u20112", "cox-2"),
        ("COX−2", "cox-2"),
        ("5‑HT₁A", "5-ht1a"),
        ("N,N-Dimethyltryptamine", "n,n-dimethyltryptamine"),
        ("a\x00b\tc\r\n d", "a b c d"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("Straße", "strasse"),
        ("阿司匹林", "阿司匹林"),
        ("🧪 test", "🧪 test"),
        ("lone \ud800 surrogate", "lone surrogate"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_characters_that_mean_the_same_get_one_form(written: str, expected: str) -> None:
    assert normalise(written) == expected


def test_greek_words_stay_greek() -> None:
    assert normalise("ΑΣΠΙΡΊΝΗ") == normalise("ασπιρίνη")
    assert "alpha" not in normalise("ασπιρίνη")


@given(st.text())
def test_a_second_time_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(alphabet="&.;βbetalphΑα'´\u0301\u0345\u0370ͅ -\u00ad‐·"))
def test_a_second_time_changes_nothing_near_the_rules(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_ten_megabytes_take_seconds_at_most() -> None:
    assert len(normalise("β-blocker " * 1_000_000)) == len("beta-blocker ") * 1_000_000 - 1
