"""Zero-shot classification in a space: raw items of one side are put to the nearest of described classes on the other.

Items and prompts are encoded and projected here; what follows from their rows is in `bridgehead.evaluate.zero_shot`.
Torch only with encoders that are torch models. This module is not about how often answers are right: that needs items
whose class is known, and `zero_shot_report`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.zero_shot.answers import ClassifiedRows, classify_rows
from bridgehead.evaluate.zero_shot.prompts import PLACE, Prompts, prompts_of
from bridgehead.evaluate.zero_shot.prototypes import class_prototypes
from bridgehead.evaluate.zero_shot.record import NONE_LABEL
from bridgehead.evaluate.zero_shot.scores import DEFAULT_SCALE, checked_threshold
from bridgehead.evaluate.zero_shot.sensitivity import Sensitivity, candidate_set_sensitivity, prompt_sets
from bridgehead.vectors import FloatArray, IntArray

if TYPE_CHECKING:
    from bridgehead.search.space import Space

_SHOWN = 80
_MOST_REMOVED = 20
_MOST_MOVED = 5000


@dataclass(frozen=True)
class LabelScore:
    """A class as an answer for an item: its `score` is a cosine in [-1, 1], `share_among_candidates` its softmax share
    in [0, 1] among these labels, conditional on them and no probability that it is true."""

    label: str
    score: float
    share_among_candidates: float


@dataclass(frozen=True)
class ClassifiedItem:
    """What an item was put to.

    `position` counts the items that came, from 0. `answer` is a label, or None where the nearest one is too far ("none
    of these"). `labels` are the nearest, best first. `n_tied` labels share the first place; over 1, nothing tells them
    apart and the one given first is named.
    """

    position: int
    item: str
    answer: str | None
    labels: tuple[LabelScore, ...]
    n_tied: int


@dataclass(frozen=True)
class UnreadItem:
    """An item that has no answer: its `position` among the items that came, and why."""

    position: int
    item: str
    reason: str


@dataclass(frozen=True)
class Classified:
    """Answers with all that they are conditional on: the `candidates`, their `prompts`, the scale, the threshold.

    `items` are those with an answer in the order they came, `unread` the others. `items_are` and `labels_are` are the
    shown names of the sides. `candidates` maps a label to its prompts. `sensitivity` says how the answers move with
    another set of candidates, over 5,000 items at most. `notes` are sentences on labels that are alike or were read in
    part.
    """

    items: tuple[ClassifiedItem, ...]
    unread: tuple[UnreadItem, ...]
    items_are: str
    labels_are: str
    candidates: dict[str, tuple[str, ...]]
    templates: tuple[str, ...]
    logit_scale: float
    abstain_below: float | None
    sensitivity: tuple[Sensitivity, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-safe entries."""
        return asdict(self) | {"sensitivity": [one.to_dict() for one in self.sensitivity]}

    def lines(self) -> list[str]:
        """Return answers, what was not read and how answers move, as lines to print."""
        head = (
            f"{len(self.items):,} items of {self.items_are} among {len(self.candidates):,} labels read as "
            f"{self.labels_are}; shares are among these labels alone"
        )
        answers = [_answer_line(item) for item in self.items]
        unread = [f"{one.position}  {_short(one.item)}  not read: {one.reason}" for one in self.unread]
        moves = [f"  {one.line()}" for one in self.sensitivity]
        return [
            head, *answers, *unread, *([""] if self.notes else []), *self.notes,
            *(["", f"with other candidates ({self.sensitivity[0].n_items:,} items):", *moves] if moves else []),
        ]  # fmt: skip


def classify_items(
    space: "Space",
    items: Sequence[str],
    labels: Sequence[str],
    templates: Sequence[str] = (PLACE,),
    k: int | None = None,
    abstain_below: float | None = None,
    synonyms: Mapping[str, Sequence[str]] | None = None,
    of: str | None = None,
) -> Classified:
    """Return the nearest labels of each item; `Space.classify` says what the arguments are."""
    given = _item_texts(items)
    checked_threshold(abstain_below)
    prompts = prompts_of(labels, templates, synonyms)
    of_labels = space.side(of) if of is not None else _text_side(space.kinds)
    of_items = "b" if of_labels == "a" else "a"
    rows, unheard = _rows(space, of_labels, prompts.texts)
    prototypes = _prototypes(rows, prompts, unheard, space.names[of_labels])
    z_items, unread = _rows(space, of_items, given)
    read = np.array([i for i in range(len(given)) if i not in unread], dtype=np.int64)
    scale = getattr(space.heads, "logit_scale", None) or DEFAULT_SCALE
    found = classify_rows(z_items[read], prototypes, k, scale, abstain_below)
    return Classified(
        items=tuple(_item(found, row, int(i), given[i], prompts.labels) for row, i in enumerate(read.tolist())),
        unread=tuple(UnreadItem(i, given[i], reason) for i, reason in sorted(unread.items())),
        items_are=space.names[of_items],
        labels_are=space.names[of_labels],
        candidates={
            label: tuple(prompts.texts[i] for i in np.flatnonzero(prompts.class_of == c).tolist())
            for c, label in enumerate(prompts.labels)
        },
        templates=prompts.templates,
        logit_scale=scale,
        abstain_below=found.abstain_below,
        sensitivity=tuple(_moves(z_items[read], prototypes, prompts, rows, found)),
        notes=(*_unheard_notes(prompts, unheard), *_alike_notes(prototypes, prompts.labels), *_open_notes(prompts)),
    )


def _item_texts(items: Any) -> list[str]:
    if isinstance(items, str | bytes | Mapping) or not hasattr(items, "__iter__"):
        raise ArgumentError(
            f"items is a {type(items).__name__} ({items!r:.{_SHOWN}}); expected a list of items: [item]"
        )
    found = list(items)
    for position, item in enumerate(found):
        if not isinstance(item, str):
            raise ArgumentError(f"item {position} is a {type(item).__name__} ({item!r:.{_SHOWN}}); expected text")
    return found


def _text_side(kinds: Mapping[str, str]) -> str:
    """Return the side that labels are on unless said otherwise: that of texts, the second one where both are or none
    is."""
    return "a" if kinds.get("a") == "text" and kinds.get("b") != "text" else "b"


def _rows(space: "Space", side: str, texts: Sequence[str]) -> tuple[FloatArray, dict[int, str]]:
    """Return a row of the space for each text (n, d), zero where there is none, and why for those."""
    return space.encode(texts, side)


def _prototypes(rows: FloatArray, prompts: Prompts, unheard: dict[int, str], side: str) -> FloatArray:
    """Return a row for each label; raises `ArgumentError` for labels that have none, which could never be answered."""
    prototypes = class_prototypes(rows, prompts.class_of, len(prompts.labels))
    silent = np.flatnonzero(~prototypes.any(axis=1)).tolist()
    if silent:
        first = np.flatnonzero(prompts.class_of == silent[0]).tolist()
        why = next((unheard[i] for i in first if i in unheard), "the rows of its prompts cancel")
        names = ", ".join(repr(_short(prompts.labels[c])) for c in silent[:10]) + (", ..." if len(silent) > 10 else "")
        raise ArgumentError(
            f"{len(silent)} of {len(prompts.labels)} labels cannot be candidates, read as {side}: {names} ({why}); "
            "reword them, give synonyms, or leave them out"
        )
    return prototypes


def _item(found: ClassifiedRows, row: int, position: int, item: str, labels: Sequence[str]) -> ClassifiedItem:
    answer = int(found.answer[row])
    return ClassifiedItem(
        position=position,
        item=item,
        answer=labels[answer] if answer >= 0 else None,
        labels=tuple(
            LabelScore(labels[c], score, share)
            for c, score, share in zip(
                found.classes[row].tolist(),
                found.scores[row].tolist(),
                found.share_among_candidates[row].tolist(),
                strict=True,
            )
        ),
        n_tied=int(found.n_tied[row]),
    )


def _moves(
    z_items: FloatArray, prototypes: FloatArray, prompts: Prompts, rows: FloatArray, found: ClassifiedRows
) -> list[Sensitivity]:
    if len(found) == 0:
        return []
    # The classes that are answered most are those whose removal moves most.
    counts = np.bincount(found.classes[:, 0], minlength=len(prototypes))
    first: IntArray = np.argsort(-counts, kind="stable")
    sets = prompt_sets(prompts, rows, first.tolist(), _MOST_REMOVED)
    # Every set is scored anew; shares of thousands of items, evenly spread, are those of all to a percent.
    some = np.unique(np.linspace(0, len(found) - 1, min(len(found), _MOST_MOVED)).astype(np.int64))
    return candidate_set_sensitivity(z_items[some], prototypes, sets, found.logit_scale)


def _unheard_notes(prompts: Prompts, unheard: dict[int, str]) -> list[str]:
    shown = [f"{_short(prompts.texts[i])!r} ({reason})" for i, reason in sorted(unheard.items())[:5]]
    more = ", ..." if len(unheard) > 5 else ""
    return [f"{len(unheard)} prompts have no row and count for nothing: {', '.join(shown)}{more}"] if unheard else []


def _alike_notes(prototypes: FloatArray, labels: Sequence[str]) -> list[str]:
    groups: dict[bytes, list[str]] = {}
    for row, label in zip(np.round(prototypes, 9) + 0.0, labels, strict=True):
        groups.setdefault(row.tobytes(), []).append(label)
    return [
        f"nothing tells these labels apart, the encoder reads them alike: {', '.join(map(_short, alike))}"
        for alike in groups.values()
        if len(alike) > 1
    ]


def _open_notes(prompts: Prompts) -> list[str]:
    """Return what the sensitivity does not say because nothing to vary was given."""
    open_to = [
        *(["another template"] if len(prompts.templates) == 1 else []),
        *(["a synonym"] if all(len(own) == 1 for own in prompts.names) else []),
    ]
    return [f"how answers move with {' or '.join(open_to)} is not known: give some"] if open_to else []


def _answer_line(item: ClassifiedItem) -> str:
    first = item.labels[0]
    tied = f", tied with {item.n_tied - 1} more" if item.n_tied > 1 else ""
    score = f"cosine {first.score:.3f}, share {first.share_among_candidates:.3f}{tied}"
    if item.answer is None:
        return f"{item.position}  {_short(item.item)}  {NONE_LABEL} (nearest: {_short(first.label)}, {score})"
    others = "; ".join(f"{_short(one.label)} {one.share_among_candidates:.3f}" for one in item.labels[1:3])
    return f"{item.position}  {_short(item.item)}  {_short(item.answer)} ({score})" + (f"; {others}" if others else "")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."
