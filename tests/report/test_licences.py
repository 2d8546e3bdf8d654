import itertools

import pytest

from bridgehead.errors import ArgumentError
from bridgehead.report.licences import combine


def warnings(*pairs: tuple[str, str]) -> list[str]:
    return [note.text for note in combine(pairs) if note.warns]


def two(first: str, second: str) -> list[str]:
    return warnings(("data", first), ("encoder", second))


@pytest.mark.parametrize(
    "licence",
    ["MIT", "apache-2.0", "Apache License 2.0", "BSD-3-Clause", "CC0-1.0", "CC BY 4.0", "cc-by-4.0", "ISC", "PDDL-1.0",
     "ODC-By-1.0", "LGPL-2.1", "MPL-2.0", "MIT License", "The Unlicense"],
)  # fmt: skip
def test_free_licences_need_no_warning_alone_or_together(licence):
    assert warnings(("data", licence)) == []
    assert two(licence, "Apache-2.0") == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("CC-BY-SA-4.0", "ODbL-1.0"),
        ("CC-BY-SA-4.0", "GPL-2.0-only"),
        ("CC-BY-SA-3.0", "GPL-3.0-only"),
        ("ODbL-1.0", "GPL-3.0-or-later"),
        ("CC BY-SA 4.0", "CC BY-NC 4.0"),
        ("CC-BY-NC-SA-4.0", "GPL-3.0"),
        ("ODbL-1.0", "cc-by-nc-4.0"),
        ("CC-BY-ND-4.0", "CC-BY-SA-4.0"),
        ("GPL-2.0-only", "GPL-3.0-only"),
        ("GPL-2.0-only", "Apache-2.0"),
        ("GPL-3.0", "openrail"),
        ("llama2", "CC-BY-SA-4.0"),
        ("GFDL-1.3", "CC-BY-SA-4.0"),
    ],
)
def test_licences_that_ask_for_different_terms_may_not_combine(first, second):
    for one, other in ((first, second), (second, first)):
        found = two(one, other)
        assert any("may not combine" in text for text in found), found
        assert any(first in text and second in text for text in found)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("CC-BY-SA-4.0", "CC-BY-SA-4.0"),
        ("CC-BY-SA-3.0", "CC BY-SA 4.0"),
        ("ODbL-1.0", "odbl"),
        ("GPL-3.0-only", "AGPL-3.0"),
        ("GPL-2.0-or-later", "GPL-3.0"),
        ("GPL-2.0+", "GPL-3.0"),
        ("GPL-3.0", "Apache-2.0"),
        ("CC-BY-SA-4.0", "MIT"),
        ("CC-BY-SA-4.0", "CC-BY-4.0"),
    ],
)
def test_licences_that_go_together_are_no_warning(first, second):
    assert two(first, second) == []
    assert two(second, first) == []


def test_sharealike_and_gnu_3_go_together_one_way_which_is_said_without_a_warning():
    notes = combine([("data", "CC-BY-SA-4.0"), ("code", "GPL-3.0-or-later")])
    assert not any(note.warns for note in notes)
    assert any("one way" in note.text for note in notes)


def test_within_one_source_nothing_is_compared():
    assert warnings(("Guide to PHARMACOLOGY", "ODbL-1.0 AND CC-BY-SA-4.0")) == []
    # Against another source each of its licences counts.
    assert any("CC-BY-SA-4.0" in text for text in warnings(("Guide", "ODbL-1.0 AND CC-BY-SA-4.0"), ("x", "ODbL-1.0")))


def test_of_alternatives_the_one_with_the_fewest_warnings_counts():
    assert two("GPL-2.0-only OR MIT", "Apache-2.0") == []
    assert two("CC-BY-NC-4.0 OR GPL-3.0", "CC-BY-SA-4.0") == []


def test_an_exception_only_widens():
    assert two("GPL-2.0-or-later WITH Classpath-exception-2.0", "GPL-3.0") == []


@pytest.mark.parametrize("licence", ["", "  ", "other", "unknown", "None", "my own terms", "proprietary"])
def test_what_states_no_known_licence_is_a_warning_by_itself(licence):
    (text,) = warnings(("table", licence), ("encoder", "MIT"))
    assert "may not be passed on" in text and text.startswith("table")


def test_limits_on_use_are_told():
    assert "commercially" in warnings(("encoder", "CC-BY-NC-4.0"))[0]
    assert "commercially" in warnings(("encoder", "CC BY-NC-SA 3.0"))[0]
    assert "may not be passed on changed" in warnings(("encoder", "CC-BY-ND-4.0"))[0]
    (note,) = combine([("encoder", "bigscience-openrail-m")])
    assert not note.warns and "limits what it may be used for" in note.text


def test_the_order_of_sources_changes_no_verdict():
    sources = [("a", "ODbL-1.0"), ("b", "CC-BY-NC-4.0"), ("c", "MIT OR GPL-2.0-only"), ("d", "")]
    counts = {sum(n.warns for n in combine(order)) for order in itertools.permutations(sources)}
    assert len(counts) == 1


def test_warnings_come_first_and_nothing_is_said_twice():
    notes = combine([("data", "ODbL-1.0"), ("data", "ODbL-1.0"), ("encoder", "CC-BY-NC-4.0")])
    assert [note.warns for note in notes] == sorted((note.warns for note in notes), reverse=True)
    assert len({note.text for note in notes}) == len(notes)


def test_no_source_says_nothing():
    assert combine([]) == []


def test_no_sentence_is_a_verdict():
    for first, second in itertools.product(["ODbL-1.0", "CC-BY-NC-4.0", "", "CC-BY-ND-4.0"], repeat=2):
        for note in combine([("data", first), ("encoder", second)]):
            assert "may" in note.text or "asks" in note.text


def test_parentheses_say_what_a_choice_is_about():
    assert warnings(("data", "MIT OR Apache-2.0 AND CC-BY-NC-4.0")) == []
    [said] = warnings(("data", "(MIT OR Apache-2.0) AND CC-BY-NC-4.0"))
    assert "commercially" in said
    [said] = warnings(("data", "CC-BY-NC-4.0 AND ((MIT OR GPL-3.0-only))"))
    assert "commercially" in said
    assert warnings(("data", "((MIT) OR (CC-BY-NC-4.0))")) == []
    assert warnings(("data", "GNU General Public License v3 (GPLv3)")) == []


def test_many_choices_are_read_in_bounded_time():
    many = [(f"source {i}", "GPL-2.0-only OR CC-BY-SA-4.0") for i in range(40)]
    assert warnings(*many) == []
    assert warnings(*many, ("encoder", "CC-BY-SA-4.0")) == []
    assert warnings(*((source, "MIT OR GPL-3.0-only") for source, _ in many), ("code", "GPL-2.0-only")) == []
    assert warnings(("data", " AND ".join(["(MIT OR GPL-3.0-only)"] * 60))) == []


@pytest.mark.parametrize(
    "licence",
    ["(" * 50_000 + "MIT" + ")" * 50_000, " " * 200_000 + "|", "x" * 1_000_000, "(", ")(", "\ud800"],
)
def test_a_licence_that_is_no_licence_is_said_to_be_none(licence):
    assert len(warnings(("data", licence))) == 1


@pytest.mark.parametrize("licences", [None, 3, "MIT", [None], ["MIT"], [("data", None)], [("data", "MIT", "x")]])
def test_what_is_no_pair_of_source_and_licence_is_refused(licences):
    with pytest.raises(ArgumentError, match="expected pairs of texts"):
        combine(licences)
