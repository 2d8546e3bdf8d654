"""Classification in a tiny space whose encoders count letters, so that every cosine is known."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.zero_shot import classify_rows
from bridgehead.index import IndexSide, build_index, open_index
from bridgehead.search import Space

LABELS = ["carbon", "oxygen oxygen", "nitrogen none"]


class Letters:
    """The row of a text: how often c, o and n occur. What holds a ? cannot be read."""

    def encode(self, items):
        failures = [SimpleNamespace(index=i, reason="a question") for i, item in enumerate(items) if "?" in item]
        read = [item.lower() for item in items if "?" not in item]
        rows = np.array([[item.count(letter) for letter in "con"] for item in read], dtype=np.float32).reshape(-1, 3)
        return SimpleNamespace(rows=rows, failures=failures)


class Kept:
    """Heads that keep rows, but for what they make of zero, and a scale that training ended with."""

    logit_scale = 4.0

    def project_a(self, rows):
        return np.asarray(rows) + 1e-6

    project_b = project_a


def space_of(folder, kinds=("molecule", "text"), heads=None):
    sides = {
        side: IndexSide(name, np.eye(3, dtype=np.float32), ["c", "o", "n"], ["0", "1", "2"], kind=kind)
        for side, name, kind in zip("ab", ("molecule", "text"), kinds, strict=True)
    }
    build_index(folder, sides, "m")
    return Space(open_index(folder), Letters(), Letters(), heads or Kept())


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    with space_of(tmp_path_factory.mktemp("index")) as opened:
        yield opened


def answers(found):
    return [(one.position, one.answer) for one in found.items]


def test_items_are_put_to_the_nearest_label_with_cosines_and_shares_at_the_scale_of_training(space):
    found = space.classify(["cco", "oo"], ["c", "o"])
    assert answers(found) == [(0, "c"), (1, "o")]
    first = found.items[0].labels
    assert [one.label for one in first] == ["c", "o"]
    assert [one.score for one in first] == pytest.approx([2 / np.sqrt(5), 1 / np.sqrt(5)], abs=1e-5)
    powers = np.exp(4 * np.array([2, 1]) / np.sqrt(5))
    assert [one.share_among_candidates for one in first] == pytest.approx(powers / powers.sum(), abs=1e-4)
    assert (found.logit_scale, found.items_are, found.labels_are) == (4.0, "molecule", "text")


def test_what_cannot_be_read_is_listed_and_shifts_nothing(space):
    found = space.classify(["c", "what?", "", "xyz", "o", "  ", "'n\x00🧪"], ["c", "o", "n"])
    assert answers(found) == [(0, "c"), (4, "o"), (6, "n")]
    # What is no character is read as a question mark, which these encoders do not take.
    assert space.classify(["n\ud800"], ["c"]).unread[0].reason == "a question"
    assert [(one.position, one.reason) for one in found.unread] == [
        (1, "a question"), (2, "it is empty"), (3, "the encoder of molecule knows nothing of it"), (5, "it is empty"),
    ]  # fmt: skip
    nothing = space.classify(["?", ""], ["c", "o"])
    assert nothing.items == () and len(nothing.unread) == 2 and nothing.sensitivity == ()
    assert space.classify([], ["c"]).items == ()


def test_templates_and_synonyms_are_averaged_by_class(space):
    found = space.classify(["con"], ["c", "o"], ["{}", "n {}"], synonyms={"o": ["ooc"]})
    assert found.candidates == {"c": ("c", "n c"), "o": ("o", "n o", "ooc", "n ooc")}
    units = [
        np.array(counts) / np.linalg.norm(counts)
        for counts in ([1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 2, 0], [1, 2, 1])
    ]
    prototypes = [sum(units[:2]), sum(units[2:])]
    rows = classify_rows(np.ones((1, 3)), np.array(prototypes), logit_scale=4.0)
    assert [one.label for one in found.items[0].labels] == [["c", "o"][c] for c in rows.classes[0]]
    assert [one.score for one in found.items[0].labels] == pytest.approx(rows.scores[0].tolist(), abs=1e-5)


def test_none_of_these_is_answered_where_the_nearest_is_too_far(space):
    found = space.classify(["cc", "con"], ["c", "o"], abstain_below=0.9)
    assert answers(found) == [(0, "c"), (1, None)] and found.abstain_below == 0.9
    assert found.items[1].labels[0].label == "c" and found.items[1].n_tied == 2
    assert "none of these (nearest: c, cosine 0.577, share 0.500, tied with 1 more)" in "\n".join(found.lines())


def test_texts_can_be_put_to_structures(space):
    found = space.classify(["too good", "carbon"], ["CC", "OO"], of="molecule")
    assert answers(found) == [(0, "OO"), (1, "CC")]
    assert (found.items_are, found.labels_are) == ("text", "molecule")
    assert answers(space.classify(["too good"], ["CC", "OO"], of="a")) == [(0, "OO")]


@pytest.mark.parametrize(
    ("kinds", "labels_are"),
    [(("text", "molecule"), "molecule"), (("text", "text"), "text"), (("rows", "rows"), "text")],
)
def test_labels_are_on_the_side_of_texts_or_on_the_second(kinds, labels_are, tmp_path):
    with space_of(tmp_path, kinds) as opened:
        assert opened.classify(["c"], ["o", "c"]).labels_are == labels_are


def test_how_answers_move_with_other_candidates_is_shown(space):
    found = space.classify(["cc", "cco", "n"], ["c", "o", "n"], ["{}", "o {}"], synonyms={"c": ["cc"]})
    moves = {one.name: one for one in found.sensitivity}
    assert list(moves) == [
        "without the class 'c'", "without the class 'n'", "without the class 'o'", "the template '{}' alone",
        "the template 'o {}' alone", "without synonyms", "the synonym 'cc' as a candidate of its own",
    ]  # fmt: skip
    assert moves["without the class 'c'"].changed == pytest.approx(2 / 3)
    assert moves["without the class 'c'"].changed_of_kept == 0
    assert moves["the synonym 'cc' as a candidate of its own"].change_of_top_share < 0
    assert found.notes == ()
    single = space.classify(["cc"], ["c", "o"])
    assert single.notes == ("how answers move with another template or a synonym is not known: give some",)


def test_of_many_items_some_are_enough_to_see_how_answers_move(space, monkeypatch):
    monkeypatch.setattr("bridgehead.search.classify._MOST_MOVED", 10)
    found = space.classify(["cc", "oo"] * 20, ["c", "o"])
    assert len(found.items) == 40 and {one.n_items for one in found.sensitivity} == {10}
    assert "with other candidates (10 items):" in found.lines()


def test_labels_that_the_encoder_cannot_tell_apart_are_said(space):
    found = space.classify(["cc"], ["ccx", "ccz", "o"])
    assert "nothing tells these labels apart, the encoder reads them alike: ccx, ccz" in found.notes
    assert found.items[0].n_tied == 2 and found.items[0].answer == "ccx"


def test_a_label_of_which_nothing_is_known_is_refused_and_a_prompt_is_only_noted(space):
    with pytest.raises(ArgumentError, match=r"2 of 3 labels cannot be candidates, read as text: 'xyz', 'zzz' \(the en"):
        space.classify(["c"], ["c", "xyz", "zzz"])
    with pytest.raises(ArgumentError, match=r"1 of 2 labels .*: 'why\?' \(a question\); reword"):
        space.classify(["c"], ["c", "why?"])
    found = space.classify(["c"], ["c", "xyz"], synonyms={"xyz": ["ooo"]})
    assert (
        found.notes[0] == "1 prompts have no row and count for nothing: 'xyz' (the encoder of text knows nothing of it)"
    )
    assert [one.label for one in found.items[0].labels] == ["c", "xyz"]


def test_the_result_is_json_and_lines(space):
    found = space.classify(["cc", "?"], LABELS, k=2, abstain_below=0.1)
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert stored["items"][0]["labels"][0].keys() == {"label", "score", "share_among_candidates"}
    assert len(stored["items"][0]["labels"]) == 2 and stored["unread"][0]["position"] == 1
    assert "change_of_top_share" in stored["sensitivity"][0]
    text = "\n".join(found.lines())
    assert "shares are among these labels alone" in text and "1  ?  not read: a question" in text


def test_the_scale_is_the_usual_one_where_training_left_none(tmp_path):
    with space_of(tmp_path, heads=SimpleNamespace(project_a=Kept().project_a, project_b=Kept().project_b)) as opened:
        assert opened.classify(["c"], ["c", "o"]).logit_scale == pytest.approx(1 / 0.07)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cco", ["c"]), r"items is a str \('cco'\); expected a list of items"),
        ((None, ["c"]), "items is a NoneType"),
        (([1], ["c"]), "item 0 is a int"),
        ((["c"], "c"), "labels is a str"),
        ((["c"], []), "labels is empty"),
        ((["c"], ["c", "c"]), "occurs twice"),
        ((["c"], ["c"], ["a drug"]), r"template 0 is 'a drug'; expected a text with \{\}"),
        ((["c"], ["c"], "{}"), "templates is one text"),
        ((["c"], ["c"], ["{}"], 0), "k = 0"),
        ((["c"], ["c"], ["{}"], 1, 2.0), "abstain_below = 2.0; expected a cosine"),
        ((["c"], ["c"], ["{}"], 1, None, {"d": ["e"]}), "none of the labels"),
        ((["c"], ["c"], ["{}"], 1, None, None, "protein"), "no side 'protein'"),
    ],
)
def test_what_cannot_be_asked_is_refused(space, arguments, message):
    with pytest.raises(ArgumentError, match=message):
        space.classify(*arguments)


def test_search_stays_light_and_classification_needs_no_torch():
    script = (
        "import sys, bridgehead.search\n"
        "print([n for n in ('torch', 'sklearn', 'bridgehead.evaluate') if n in sys.modules])\n"
        "import bridgehead.search.classify\n"
        "print([n for n in ('torch', 'sklearn', 'rdkit', 'faiss') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]
