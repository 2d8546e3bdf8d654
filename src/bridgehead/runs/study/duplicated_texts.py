"""Exercise: a fifth of the validation texts occur twice. Why diagonal recall then marks right answers wrong.

What counts as correct. Diagonal: the text in the image's own row, and the other way round. Group-aware: any text that
equals the one in the image's own row, number for number; for a text, any image whose row holds an equal text. The
models, rows and queries are the same for both; only the truth differs, and with it chance. This module is not about
training: the paired models of the main table are measured as they are.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bridgehead.links import Links
from bridgehead.runs.study.main_table import MainTable, aligned
from bridgehead.runs.study.spread import ARROWS, METRICS, SPOKEN, Measured, measure
from bridgehead.runs.two_view import N_FIT, PairedRows, TwoViews, seen_again
from bridgehead.vectors import FloatArray

SHARE = 0.2
"""The share of the part's texts that are copied into a second row."""

COUNTS_AS_CORRECT = {
    "diagonal": "the text in the image's own row, and the image in the text's own row",
    "group_aware": "any text equal to the one in the image's own row, and any image whose row holds an equal text",
}
WAYS = {
    "same_event": "the second row's image is another measurement of the same event, so the copied text is true of it",
    "other_event": "the second row keeps its image, of another event, so the copied text is not true of it",
}
_PICKED_SEED, _NOISE_SEED = 1_206_051, 1_206_052


@dataclass(frozen=True, eq=False)
class DuplicatedTexts:
    """Recall of the paired models by way (`WAYS`), by truth (`COUNTS_AS_CORRECT`), over all queries of the part.

    `touched` has the same for the queries whose text occurs twice alone, `n_touched` of `n_rows`.
    """

    found: dict[str, dict[str, Measured]]
    touched: dict[str, dict[str, Measured]]
    n_rows: int
    n_touched: int

    @property
    def conclusion(self) -> str:
        """What the numbers of the first way say, with those of the second beside them."""
        diagonal, grouped = (self.found["same_event"][truth] for truth in COUNTS_AS_CORRECT)
        told = [
            f"{SPOKEN[side]} {diagonal.values[metric].mean:.4f} by the diagonal and "
            f"{grouped.values[metric].mean:.4f} group-aware"
            for side in ARROWS
            for metric in [f"{side}.recall@1"]
        ]
        other = self.found["other_event"]["group_aware"].values["a_to_b.recall@1"].mean
        return (
            f"Where the copied text is true of both images, recall@1 is {', and '.join(told)}, from the same rankings. "
            "Of two equal texts, or two images of one event, the diagonal accepts one, so a perfect answer to one of "
            f"the {self.n_touched} queries concerned counts as wrong half of the time. The group-aware figure does "
            "not mend pairs that are false: where the copy stands beside an image of another event, image to text is "
            f"still {other:.4f}."
        )

    def table(self) -> list[tuple[str, ...]]:
        """Return the columns' names and a row for each way, metric and set of queries, as text."""
        rows: list[tuple[str, ...]] = [
            ("copied text", "queries", "metric", "diagonal (SD)", "group-aware (SD)", "chance", "chance, group-aware")
        ]
        sets = ((f"all {self.n_rows}", self.found), (f"the {self.n_touched} concerned", self.touched))
        for way in WAYS:
            for queries, found in sets:
                diagonal, grouped = (found[way][truth] for truth in COUNTS_AS_CORRECT)
                for metric in METRICS[:2]:
                    side, name = metric.split(".")
                    rows.append((
                        way.replace("_", " "), queries, f"{ARROWS[side]} {name}", str(diagonal.values[metric]),
                        str(grouped.values[metric]), f"{diagonal.chance[metric]:.4f}", f"{grouped.chance[metric]:.4f}",
                    ))  # fmt: skip
        return rows

    def lines(self) -> list[str]:
        """Return what counts as correct, the table and the conclusion, as lines to print."""
        return [
            f"duplicated texts: {self.n_touched // 2} of {self.n_rows} validation texts occur in a second row",
            *(f"  {truth.replace('_', '-')}: correct is {said}" for truth, said in COUNTS_AS_CORRECT.items()),
            *(f"  {way.replace('_', ' ')}: {said}" for way, said in WAYS.items()),
            *aligned(self.table()),
            self.conclusion,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what was measured by `validation.way.truth.metric`, chance too, and what counts as correct."""
        cells = {
            f"validation.{way}.{truth}.{metric}": (measured.values[metric], measured.chance[metric])
            for way, truths in self.found.items()
            for truth, measured in truths.items()
            for metric in METRICS
        }
        return {
            "measured": {key: spread.to_dict() for key, (spread, _) in cells.items()},
            "chance": {key: chance for key, (_, chance) in cells.items()},
            "n_rows": self.n_rows,
            "n_rows_whose_text_occurs_twice": self.n_touched,
            "counts_as_correct": COUNTS_AS_CORRECT,
            "ways": WAYS,
            "conclusion": self.conclusion,
        }


def duplicated_texts(data: TwoViews, main: MainTable) -> DuplicatedTexts:
    """Measure the paired models on the validation part with a fifth of its texts copied over others.

    36 of the 180 texts are copied into 36 other rows, both drawn with one fixed seed: so 72 rows share their text with
    one other row. Rows that are equal tie, and a tie counts by its expectation, whatever the order of the rows.
    """
    texts, copies = copied(len(data.valid))
    found: dict[str, dict[str, Measured]] = {}
    touched: dict[str, dict[str, Measured]] = {}
    for way in WAYS:
        part = duplicated(data.valid, texts, copies, again=way == "same_event")
        truths = {"diagonal": Links.identity(len(part)), "group_aware": same_text_links(part.b)}
        mask = np.zeros(len(part), dtype=bool)
        mask[np.concatenate([texts, copies])] = True
        for into, queries in ((found, None), (touched, mask)):
            into[way] = {
                truth: measure(main.models["paired"], part.a, part.b, links, queries) for truth, links in truths.items()
            }
    return DuplicatedTexts(found, touched, len(data.valid), 2 * len(copies))


def copied(n: int) -> tuple[Any, Any]:
    """Return the rows whose text is copied, a fifth of the `n`, and as many other rows that the copies go into."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(_PICKED_SEED)).numpy()
    many = round(SHARE * n)
    return order[:many], order[many : 2 * many]


def duplicated(part: PairedRows, texts: Any, copies: Any, again: bool) -> PairedRows:
    """Return the validation part with the texts of rows `texts` in the rows `copies` too.

    `again`: the rows `copies` get another measurement of the image of `texts`; else they keep their own image.
    """
    rows_a, rows_b = part.a.copy(), part.b.copy()
    rows_b[copies] = rows_b[texts]
    if again:
        rows_a[copies] = seen_again(N_FIT + texts, _NOISE_SEED)
    return PairedRows(rows_a, rows_b)


def same_text_links(rows_b: FloatArray) -> Links:
    """Return the links of row i with row i in which equal text rows share each other's images."""
    same = np.unique(rows_b, axis=0, return_inverse=True)[1].reshape(-1)
    return Links(Links.identity(len(rows_b)).pairs, len(rows_b), len(rows_b), groups_b=same)
