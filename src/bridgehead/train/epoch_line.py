"""What an epoch adds up to: sums over its steps, their means for the history, and what they say to a user.

This module is not about writing the history (`trackers`).
"""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from bridgehead.align.losses.information import mutual_information_bound, no_signal_warning
from bridgehead.train.outcome import StepOutcome


@dataclass
class EpochSums:
    """Sums over the steps of an epoch that is under way; plain numbers, so that a checkpoint can hold them.

    A value that one step lacks (`chance`, `information`) is left out of the epoch's line. `candidates` is a sum of
    logarithms: the line has the geometric mean, whose logarithm is the mean loss of rows without signal.
    """

    steps: int = 0
    skipped: int = 0
    loss: float = 0.0
    candidates: float = 0.0
    chance: float | None = 0.0
    information: float | None = 0.0
    left_out_a: int = 0
    left_out_b: int = 0
    terms: dict[str, float] = field(default_factory=dict)

    def add(self, outcome: StepOutcome, stepped: bool) -> None:
        """Count one step; `stepped` says whether the weights were changed."""
        self.steps += 1
        self.skipped += not stepped
        self.loss += outcome.loss
        self.candidates += math.log(outcome.n_candidates)
        self.chance = None if self.chance is None or outcome.chance is None else self.chance + outcome.chance
        if self.information is not None:
            self.information = None if outcome.information is None else self.information + outcome.information
        self.left_out_a += outcome.left_out_a
        self.left_out_b += outcome.left_out_b
        for name, value in outcome.terms.items():
            self.terms[name] = self.terms.get(name, 0.0) + value

    def means(self) -> dict[str, Any]:
        """Return the line's part: loss, chance_loss, candidates and, where there are any, the rest."""
        line: dict[str, Any] = {"loss": self.loss / self.steps}
        if self.chance is not None:
            line["chance_loss"] = self.chance / self.steps
        line |= {f"loss_{name}": value / self.steps for name, value in self.terms.items()}
        line["candidates"] = round(math.exp(self.candidates / self.steps), 9)
        if self.information is not None:
            line["mutual_information"] = self.information / self.steps
        line |= {name: count for name in ("left_out_a", "left_out_b") if (count := getattr(self, name))}
        if self.skipped:
            line["skipped_steps"] = self.skipped
        return line

    def plain(self) -> dict[str, Any]:
        """Return the sums as JSON values; the constructor takes them back."""
        return asdict(self)


def closing_notes(history: list[dict[str, Any]], warm: float) -> list[str]:
    """Return what the last epoch says of the whole training; `warm` are the epochs of warm-up, which say nothing."""
    if not history:
        return []
    last = history[-1]
    notes: list[str | None] = []
    if "chance_loss" in last and len(history) > warm:
        notes.append(no_signal_warning(last.get("loss_contrastive", last["loss"]), last["chance_loss"]))
    if "mutual_information" in last and last["candidates"] >= 2:
        loss = math.log(last["candidates"]) - last["mutual_information"]
        notes.append(mutual_information_bound(loss, last["candidates"]).warning())
    skipped = sum(line.get("skipped_steps", 0) for line in history)
    if skipped:
        notes.append(f"{skipped} steps were skipped because a gradient was not finite in half precision")
    return [note for note in notes if note]
