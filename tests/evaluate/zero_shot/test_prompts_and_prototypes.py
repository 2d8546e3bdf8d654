"""Names, synonyms and templates become texts; rows of prompts become one row a class."""

import numpy as np
import pytest
import torch

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate.zero_shot import class_prototypes, prompts_of


def test_every_name_stands_in_every_template_class_by_class():
    found = prompts_of(["opioid", " statin "], ["{}", "a {} drug"], {"opioid": ["narcotic"]})
    assert found.texts == (
        "opioid", "a opioid drug", "narcotic", "a narcotic drug", "statin", "a statin drug",
    )  # fmt: skip
    assert found.class_of.tolist() == [0, 0, 0, 0, 1, 1]
    assert found.name_of.tolist() == [0, 0, 1, 1, 0, 0]
    assert found.template_of.tolist() == [0, 1, 0, 1, 0, 1]
    assert found.labels == ("opioid", "statin") and found.names == (("opioid", "narcotic"), ("statin",))


def test_names_and_templates_are_filled_in_and_never_formatted():
    odd = ["{0.__class__}", "a{b}", "%s", "{}"]
    assert prompts_of(odd, ["{x} of {} and {}"]).texts == tuple(f"{{x}} of {name} and {name}" for name in odd[:3]) + (
        "{x} of {} and {}",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("opioid",), r"labels is a str \('opioid'\); expected a list of names of classes"),
        (([],), "labels is empty"),
        ((None,), "labels is a NoneType"),
        (({"a": 1},), "labels is a dict"),
        ((["a", 3],), "labels: number 1 is a int"),
        ((["a", " "],), "labels: number 1 is empty"),
        ((["a", "a "],), "the name 'a' occurs twice, of 'a' and of 'a'"),
        ((["a"], "{}"), r"templates is one text \('\{\}'\); expected a list"),
        ((["a"], ["drug"]), r"template 0 is 'drug'; expected a text with \{\} where the name of a class goes"),
        ((["a"], ["{}", None]), "template 1 is None"),
        ((["a"], ["{}", "{}"]), "is given twice"),
        ((["a"], []), "templates is empty"),
        ((["a"], 3), "template 0 is 3"),
        ((["a"], ["{}"], ["b"]), "synonyms is a list"),
        ((["a"], ["{}"], {"b": ["c"]}), "synonyms are given for 'b', which is none of the labels"),
        ((["a"], ["{}"], {"a": "c"}), "synonyms of 'a' is a str"),
        ((["a", "b"], ["{}"], {"a": ["b"]}), "the name 'b' occurs twice, of 'a' and of 'b'"),
    ],
)
def test_what_makes_no_prompts_is_refused_with_what_was_expected(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        prompts_of(*arguments)


def test_a_prototype_is_the_mean_of_unit_rows_made_a_unit_row_again():
    rows = np.array([[3.0, 0, 0], [0, 0.5, 0], [0, 0, 9], [0, 0, 1]])
    found = class_prototypes(rows, [1, 1, 0, 0])
    assert found == pytest.approx(np.array([[0, 0, 1], [np.sqrt(0.5), np.sqrt(0.5), 0]]))
    assert found.dtype == np.float64
    assert class_prototypes(torch.from_numpy(rows), torch.tensor([1, 1, 0, 0])) == pytest.approx(found)
    assert class_prototypes(rows[::-1], [0, 0, 1, 1]) == pytest.approx(found)


def test_a_zero_row_is_left_out_of_the_mean_and_an_unheard_class_has_a_zero_prototype():
    rows = np.array([[0.0, 0], [2, 0], [0, 0], [1, 1], [-1, -1]])
    found = class_prototypes(rows, [0, 0, 1, 2, 2], n_classes=4)
    assert found.tolist() == [[1, 0], [0, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: class_prototypes(np.eye(2), [0]), ShapeError, r"class_of has shape \(1,\); expected \(2,\)"),
        (lambda: class_prototypes(np.eye(2), [0.0, 1.0]), ArgumentError, "dtype float64"),
        (lambda: class_prototypes(np.eye(2), [True, False]), ArgumentError, "dtype bool"),
        (lambda: class_prototypes(np.eye(2), [0, -1]), ArgumentError, r"class_of\[1\] = -1"),
        (
            lambda: class_prototypes(np.eye(2), [0, 3], n_classes=2),
            ArgumentError,
            "n_classes = 2 and class_of goes to 3",
        ),
        (lambda: class_prototypes(np.zeros((0, 2)), np.zeros(0, int)), ArgumentError, "n_classes = None"),
        (lambda: class_prototypes(np.full((2, 2), np.nan), [0, 1]), NonFiniteRowsError, "rows 0, 1"),
    ],
)
def test_prompts_that_do_not_fit_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
