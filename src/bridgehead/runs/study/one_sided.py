"""Exercise: the same training with image-to-text anchors alone. Does it change both directions of retrieval equally?

First weights, batch order, pairs and the choice of the epoch (lowest symmetric validation loss) are those of the
paired models, so the differences are within seeds. This module is not about the symmetric training (`main_table`).
"""

from dataclasses import dataclass
from typing import Any

from bridgehead.runs.study.main_table import EpochCallback, MainTable, aligned, sides, signed, trained
from bridgehead.runs.study.published import SPLITS
from bridgehead.runs.study.spread import ARROWS, METRICS, Measured, Spread, measure
from bridgehead.runs.two_view import SEEDS, TwoViews, epoch_orders, first_model
from bridgehead.train.ensemble.members import Member


@dataclass(frozen=True, eq=False)
class OneSided:
    """What the one-sided models reach by split, beside the symmetric ones of the same seeds."""

    one_sided: dict[str, Measured]
    symmetric: dict[str, Measured]

    def change(self, split: str, metric: str) -> Spread:
        """Return one-sided minus symmetric, within seeds."""
        return self.one_sided[split].values[metric].minus(self.symmetric[split].values[metric])

    @property
    def contrast(self) -> Spread:
        """How much better the trained direction fares than the other: the difference of their changes, held-out."""
        return self.change("held_out", "a_to_b.recall@1").minus(self.change("held_out", "b_to_a.recall@1"))

    @property
    def conclusion(self) -> str:
        """What the held-out recall@1 of these seeds says, and no more."""
        forth, back = (self.change("held_out", f"{side}.recall@1") for side in ARROWS)
        low, high = self.contrast.interval()
        told = (
            f"Without the text-to-image half of the loss, held-out recall@1 changes by {forth.mean:+.4f} (paired SD "
            f"{forth.sd:.4f}) image to text and by {back.mean:+.4f} ({back.sd:.4f}) text to image. The two changes "
            f"differ by {self.contrast.mean:+.4f}, 95 % interval over seeds {low:+.4f} to {high:+.4f}: "
        )
        if low > 0 or high < 0:
            better = "image to text, the direction trained," if low > 0 else "text to image, the one not trained,"
            return told + f"in this setting {better} fares better than the other."
        return told + (
            "these seeds do not tell them apart. Either half of the loss moves both towers, and a close pair is close "
            "whichever side asks; with other data the two directions may well part."
        )

    def table(self) -> list[tuple[str, ...]]:
        """Return the columns' names and a row for each split and metric, as text."""
        rows: list[tuple[str, ...]] = [("split", "metric", "symmetric (SD)", "one-sided (SD)", "change (paired SD)")]
        for split in SPLITS:
            for metric in METRICS:
                side, name = metric.split(".")
                change = self.change(split, metric)
                found = (str(part[split].values[metric]) for part in (self.symmetric, self.one_sided))
                where = (split.replace("_", "-"), f"{ARROWS[side]} {name}")
                rows.append((*where, *found, f"{signed(change.mean)} ({change.sd:.4f})"))
        return rows

    def lines(self) -> list[str]:
        """Return the table and the conclusion as lines to print."""
        return ["one-sided training: the image-to-text half of the loss alone", *aligned(self.table()), self.conclusion]

    def to_dict(self) -> dict[str, Any]:
        """Return what was measured by `split.condition.metric`, conditions being one_sided and its difference."""
        measured = {f"{split}.one_sided.{m}": self.one_sided[split].values[m] for split in SPLITS for m in METRICS}
        measured |= {
            f"{split}.one_sided_minus_symmetric.{m}": self.change(split, m) for split in SPLITS for m in METRICS
        }
        return {
            "measured": {key: spread.to_dict() for key, spread in measured.items()},
            "difference_of_changes": {**self.contrast.to_dict(), "interval": list(self.contrast.interval())},
            "conclusion": self.conclusion,
        }


def one_sided(data: TwoViews, main: MainTable, epochs: int = 160, progress: EpochCallback | None = None) -> OneSided:
    """Train one model a seed on the image-to-text loss alone and hold it beside the paired model of that seed."""
    members = [
        Member(seed, direction="a_to_b", start=first_model(seed), orders=list(epoch_orders(seed, epochs)))
        for seed in SEEDS
    ]
    models = trained(data, members, epochs, progress)
    parts = dict(zip(SPLITS, (data.valid, data.held_out), strict=True))
    found = {split: measure(models, *sides(part)) for split, part in parts.items()}
    return OneSided(found, {split: main.found[split]["paired"] for split in SPLITS})
