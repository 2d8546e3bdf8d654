"""The texts that stand for classes: names, synonyms and templates, and which text is of which class.

Text is filled in, never formatted: braces other than `{}` stay as they are. This module is not about rows
(`prototypes`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.vectors import IntArray

PLACE = "{}"
_SHOWN = 60


@dataclass(frozen=True, eq=False)
class Prompts:
    """The prompts of `len(labels)` classes: `texts` (m,), each of a class, one of its names, in one template.

    `names[c]` are the label of class c and its synonyms. `class_of`, `name_of` and `template_of` (m,) number the class,
    the name within it (0 is the label) and the template of each text.
    """

    labels: tuple[str, ...]
    templates: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]
    class_of: IntArray
    name_of: IntArray
    template_of: IntArray


def prompts_of(
    labels: Sequence[str], templates: Sequence[str] = (PLACE,), synonyms: Mapping[str, Sequence[str]] | None = None
) -> Prompts:
    """Return every name of every class in every template.

    `labels` are the classes' names, `templates` texts with `{}` where a name goes, `synonyms` further names of a label.
    White space at the ends of names is dropped. Raises `ArgumentError` for one text where a list is expected, an empty
    or repeated name, a name of two classes, a template without `{}` or given twice, and synonyms of no label.

    >>> prompts_of(["opioid", "statin"], ["{}", "a drug of the kind {}"]).texts[2:]
    ('statin', 'a drug of the kind statin')
    """
    names = [[name] for name in _texts(labels, "labels", "names of classes")]
    for label, more in _synonyms(synonyms).items():
        own = next((known for known in names if known[0] == label), None)
        if own is None:
            raise ArgumentError(f"synonyms are given for {label!r}, which is none of the labels")
        own += _texts(more, f"synonyms of {label!r}", "further names")
    _check_names(names)
    forms = _templates(templates)
    entries = [
        (c, n, t) for c, own in enumerate(names) for n, _ in enumerate(own) for t, _ in enumerate(forms)
    ]  # fmt: skip
    numbers = np.array(entries, dtype=np.int64).reshape(-1, 3)
    return Prompts(
        labels=tuple(own[0] for own in names),
        templates=tuple(forms),
        names=tuple(tuple(own) for own in names),
        texts=tuple(forms[t].replace(PLACE, names[c][n]) for c, n, t in entries),
        class_of=numbers[:, 0],
        name_of=numbers[:, 1],
        template_of=numbers[:, 2],
    )


def _texts(values: Any, what: str, expected: str) -> list[str]:
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise ArgumentError(
            f"{what} is a {type(values).__name__} ({values!r:.{_SHOWN}}); expected a list of {expected}"
        )
    found = []
    for position, value in enumerate(values):
        if not isinstance(value, str):
            raise ArgumentError(f"{what}: number {position} is a {type(value).__name__} ({value!r:.{_SHOWN}}), no text")
        if not value.strip():
            raise ArgumentError(f"{what}: number {position} is empty; expected {expected}")
        found.append(value.strip())
    if not found:
        raise ArgumentError(f"{what} is empty; expected {expected}")
    return found


def _synonyms(synonyms: Any) -> dict[str, Any]:
    if synonyms is None:
        return {}
    if not isinstance(synonyms, Mapping):
        raise ArgumentError(
            f"synonyms is a {type(synonyms).__name__}; expected label -> its further names, such as "
            '{"opioid": ["narcotic"]}'
        )
    return {str(label).strip(): more for label, more in synonyms.items()}


def _check_names(names: Sequence[Sequence[str]]) -> None:
    owner: dict[str, str] = {}
    for own in names:
        for name in own:
            if name in owner:
                raise ArgumentError(
                    f"the name {name!r} occurs twice, of {owner[name]!r} and of {own[0]!r}; "
                    "expected each name once, of one class"
                )
            owner[name] = own[0]


def _templates(templates: Any) -> list[str]:
    if isinstance(templates, str):
        raise ArgumentError(f"templates is one text ({templates!r:.{_SHOWN}}); expected a list: [template]")
    found = []
    for position, template in enumerate(templates if hasattr(templates, "__iter__") else [templates]):
        if not isinstance(template, str) or PLACE not in template:
            raise ArgumentError(
                f"template {position} is {template!r:.{_SHOWN}}; expected a text with {PLACE} where the name of a "
                f"class goes, such as 'a drug of the kind {PLACE}'"
            )
        if template in found:
            raise ArgumentError(f"the template {template!r:.{_SHOWN}} is given twice; it would count twice in the mean")
        found.append(template)
    if not found:
        raise ArgumentError(f"templates is empty; expected at least {PLACE!r}, the name of the class alone")
    return found
