"""How answers move when the candidates change: a synonym is added, a class removed, a template changed.

A softmax share has the candidates in its denominator, so another set gives other shares for the same item and the same
class, and sometimes another answer. This module measures by how much; which set is the right one it cannot say.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.ties import Float64Array
from bridgehead.evaluate.zero_shot.prompts import Prompts
from bridgehead.evaluate.zero_shot.prototypes import class_numbers, class_prototypes
from bridgehead.evaluate.zero_shot.scores import DEFAULT_SCALE, Classes
from bridgehead.vectors import IntArray, check_rows, to_numpy


@dataclass(frozen=True, eq=False)
class CandidateSet:
    """Another set of candidates: its `name`, `rows` (m, d), and `class_of` (m,), the class that each stands for.

    Several candidates may stand for one class (a name and its synonym, each by itself); a class with none was removed;
    -1 is a candidate that is none of the classes.
    """

    name: str
    rows: Any
    class_of: Any


@dataclass(frozen=True)
class Sensitivity:
    """What another candidate set does to the answers for the same `n_items` items.

    `changed` is the share of items whose answer is another class. Where classes were removed, `changed_of_kept` is that
    share among the items whose first answer is still there (None where there is none). `mean_top_share_before` and
    `mean_top_share_after` are the means of the first candidate's share. All are in [0, 1].
    """

    name: str
    n_candidates: int
    n_items: int
    changed: float
    changed_of_kept: float | None
    mean_top_share_before: float
    mean_top_share_after: float

    @property
    def change_of_top_share(self) -> float:
        """By how much the mean share of the first candidate went up (or, below 0, down)."""
        return self.mean_top_share_after - self.mean_top_share_before

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and `change_of_top_share` as JSON-safe entries."""
        return {**asdict(self), "change_of_top_share": self.change_of_top_share}

    def line(self) -> str:
        """Return what changed as one line to print."""
        return (
            f"{self.name}: {self.changed:.1%} of answers change, mean top share {self.mean_top_share_before:.3f} -> "
            f"{self.mean_top_share_after:.3f} ({self.n_candidates:,} candidates)"
        )


def candidate_set_sensitivity(
    z_items: Any,
    z_classes: Any,
    sets: Sequence[CandidateSet],
    logit_scale: float = DEFAULT_SCALE,
    block: int | None = None,
) -> list[Sensitivity]:
    """Return how the answers for `z_items` (n, d) among `z_classes` (C, d) change with each of `sets`.

    The answer is the class of the nearest candidate; of tied ones the lowest number of a class, in either set. Removing
    a class changes the answers that were this class and no other; what it changes for the rest is their share.
    `block`: items at once, without influence. Raises `ShapeError`, `NonFiniteRowsError`, and `ArgumentError` (no items,
    a set without candidates or of classes that there are not, scale or block out of range).

    >>> import numpy as np
    >>> z, names = np.array([[1.0, 0.0], [0.9, 0.1]]), np.eye(2)
    >>> again = CandidateSet("the first twice", names[[0, 1, 0]], [0, 1, 0])
    >>> found = candidate_set_sensitivity(z, names, [again])[0]
    >>> found.changed, round(found.mean_top_share_after, 2)
    (0.0, 0.5)
    """
    if check_rows(z_items, "z_items").shape[0] == 0:
        raise ArgumentError("there are no items, so no answer can change; expected at least one")
    n_classes = len(Classes(z_classes))
    if not isinstance(sets, list | tuple) or not all(isinstance(one, CandidateSet) for one in sets):
        raise ArgumentError(f"sets is a {type(sets).__name__}; expected a list of CandidateSet")
    before, share = _answers(z_items, z_classes, np.arange(n_classes), logit_scale, block, "z_classes")
    found = []
    for other in sets:
        size = np.shape(to_numpy(other.rows))[0] if np.ndim(to_numpy(other.rows)) else 0
        if size == 0:
            raise ShapeError(f"the candidate set {other.name!r} has no rows; expected at least one candidate")
        class_of = class_numbers(other.class_of, size, f"class_of of {other.name!r}", -1, n_classes - 1)
        after, new_share = _answers(z_items, other.rows, class_of, logit_scale, block, f"rows of {other.name!r}")
        kept = np.isin(before, class_of)
        moved = after != before
        found.append(
            Sensitivity(
                name=other.name,
                n_candidates=size,
                n_items=len(before),
                changed=float(moved.mean()),
                changed_of_kept=float(moved[kept].mean()) if kept.any() else None,
                mean_top_share_before=float(share.mean()),
                mean_top_share_after=float(new_share.mean()),
            )
        )
    return found


def prompt_sets(prompts: Prompts, rows: Any, first: Sequence[int] | None = None, most: int = 20) -> list[CandidateSet]:
    """Return the candidate sets that prompts suggest, beside that of all prompts averaged by class.

    `rows` (m, d) are those of `prompts.texts`, zero where a text could not be read. The sets: without each of `most`
    classes (numbers `first`, such as those answered most often; by default the first ones), where there are at least
    two; each template alone, where there are several; names without their synonyms; each synonym as a candidate of its
    own beside its class. A set in which a class would have no row that says anything is left out.
    """
    prototypes = class_prototypes(rows, prompts.class_of, len(prompts.labels))
    every = np.arange(len(prototypes))
    chosen = [int(c) for c in (every if first is None else first)][:most]
    sets = []
    if len(prototypes) > 1:
        sets += [
            CandidateSet(f"without the class {prompts.labels[c]!r}", prototypes[every != c], every[every != c])
            for c in chosen
        ]
    if len(prompts.templates) > 1:
        sets += [
            _part(prompts, rows, prompts.template_of == t, f"the template {template!r} alone")
            for t, template in enumerate(prompts.templates)
        ]
    synonyms = sorted({(int(c), int(n)) for c, n in zip(prompts.class_of, prompts.name_of, strict=True) if n > 0})
    if synonyms:
        sets.append(_part(prompts, rows, prompts.name_of == 0, "without synonyms"))
    for c, n in synonyms[:most]:
        inside = (prompts.class_of == c) & (prompts.name_of == n)
        own = class_prototypes(np.asarray(rows)[inside], np.zeros(int(inside.sum()), dtype=np.int64))
        name = f"the synonym {prompts.names[c][n]!r} as a candidate of its own"
        sets.append(CandidateSet(name, np.concatenate([prototypes, own]), np.append(every, c)))
    return [one for one in sets if one.rows.any(axis=1).all()]


def _part(prompts: Prompts, rows: Any, inside: Any, name: str) -> CandidateSet:
    chosen = class_prototypes(np.asarray(rows)[inside], prompts.class_of[inside], len(prompts.labels))
    return CandidateSet(name, chosen, np.arange(len(chosen)))


def _answers(
    z_items: Any, rows: Any, class_of: IntArray, scale: float, block: int | None, name: str
) -> tuple[IntArray, Float64Array]:
    """Return the class of each item's nearest candidate, and that candidate's share."""
    # Candidates in the order of their classes, so that a tie is won by the lowest class whatever the set.
    order = np.argsort(class_of, kind="stable")
    answers, shares = [], []
    for part in Classes(to_numpy(rows)[order], name).blocks(z_items, scale, block):
        answers.append(class_of[order][part.answer])
        shares.append(part.shares.max(axis=1))
    return np.concatenate(answers), np.concatenate(shares)
