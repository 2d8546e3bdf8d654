"""Which descriptions are called generic or too short, rule by rule."""

from pathlib import Path

import pytest

from bridgehead.pairs import read_pairs, text_quality
from bridgehead.pairs.quality import RULES


@pytest.mark.parametrize(
    "text, rule",
    [
        ("compound", "generic words"),
        ("a chemical compound", "generic words"),
        ("The molecule is an organic compound.", "generic words"),
        ("It is a chemical.", "generic words"),
        ("beta blocker", "short"),
        ("Aspirin", "short"),
        ("123 / 45", "no words"),
        ("🧪 🧪 🧪", "no words"),
        ("N/A", "placeholder"),
        ("No description available.", "placeholder"),
        ("unknown", "placeholder"),
        ("nan", "placeholder"),
        ("---", "placeholder"),
        ("The molecule is a peptide.", "bare class"),
        ("The molecule is an azamacrocycle and a lactam.", "bare class"),
        ("It is a colorless liquid. (USCG, 1999)", "bare class"),
        (
            "The molecule is a natural product found in Citrus medica var. sarcodactylis with data available.",
            "source only",
        ),
        ("Rugosal is a natural product found in Rosa rugosa with data available.", "source only"),
        ("The molecule is a metabolite found in or produced by Saccharomyces cerevisiae.", "source only"),
        ("it is under investigation in clinical trial NCT01326858.", "status only"),
        (
            "it is a DEA Schedule I controlled substance. Substances in the DEA Schedule I have no accepted use.",
            "status only",
        ),
    ],
)
def test_texts_that_say_too_little_fall_under_a_rule(text: str, rule: str) -> None:
    assert text_quality([text]).rules == [rule]
    assert rule in RULES


@pytest.mark.parametrize(
    "text",
    [
        "Inhibits cyclooxygenase.  Reduces inflammation.",
        "Used as an herbicide.",
        "The molecule is a potent Myt1 kinase inhibitor.",
        "The molecule is a hydroxy fatty acid. The molecule is a natural product found in Euglena gracilis.",
        "It is a natural product found in Salix alba that inhibits cyclooxygenase.",
        "The molecule is under investigation in clinical trial NCT03239691 (A Study in Patients With Epilepsy).",
        "阿司匹林是一种解热镇痛药",
        "β-αναστολέας που μειώνει την πίεση",
        "The molecule is a peptide. " * 40,
        "x" * 5 + " and then ten megabytes " + "y " * 5_000_000,
    ],
)
def test_texts_that_say_something_are_good(text: str) -> None:
    quality = text_quality([text])
    assert quality.rules == [""]
    assert not quality.weak.any()


def test_short_and_generic_are_told_apart_and_counted() -> None:
    quality = text_quality(["Aspirin", "a chemical compound", "Used as an herbicide.", "compound", "Aspirin", ""])
    assert quality.short.tolist() == [True, False, False, False, True, True]
    assert quality.generic.tolist() == [False, True, False, True, False, False]
    assert quality.counts == {"short": 2, "generic words": 2, "no words": 1}


def test_no_texts_have_empty_masks() -> None:
    quality = text_quality([])
    assert (quality.weak.shape, quality.generic.shape, quality.counts) == ((0,), (0,), {})


def test_real_descriptions_keep_most_and_lose_the_shared_class_names(shared_data: Path) -> None:
    table = read_pairs(shared_data / "molecule_text" / "pairs.tsv.gz", "smiles", "description")
    quality = text_quality(table.b.items)
    assert 0.02 < quality.weak.mean() < 0.05
    by_text = dict(zip(table.b.items, quality.rules, strict=True))
    assert by_text["The molecule is a peptide."] == "bare class"
