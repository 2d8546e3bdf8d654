"""`AlignmentMetrics`: recall, reciprocal rank, alignment and uniformity of rows that match by position.

It is thin over the exact tie levels (`exact`, `ties`). `retrieval_report` has links, intervals and chance; this module
has none of them.
"""

from functools import cached_property
from typing import Any, Literal

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import finite_number, whole_number
from bridgehead.evaluate.ranks.exact import CosineRows, levels_both_ways
from bridgehead.evaluate.ranks.levels import Truth
from bridgehead.evaluate.ties import TieLevels, expected_recall, expected_reciprocal_rank
from bridgehead.vectors import unit_rows

Direction = Literal["a_to_b", "b_to_a"]

_KS = (1, 5, 10)
_BLOCK = 1024


class AlignmentMetrics:
    """How well two sides of an aligned space match, where row i of `z_b` is the one true match of row i of `z_a`.

    `z_a` and `z_b` are arrays or tensors (N, d) of floats or integers, N at least 1; torch is not imported. They are
    normalised here, and a zero row has cosine 0 with everything. Nothing of size N x N is made, but for `sim_matrix`.

    A tie is settled otherwise than by the usual formulas. Those count as rank the number of candidates that score at
    least as high as the true one, which puts it last among equals, and let the order in which a sort happens to leave
    equals decide whether it is in the first k. Here a true match that is tied with t - 1 others, g being above, stands
    in each of the places g + 1 .. g + t with probability 1 / t, and metrics are expectations over that: recall@k is
    clip(k - g, 0, t) / t, and the reciprocal rank (H_{g+t} - H_g) / t. So constant rows have recall@k = k / N and a
    mean reciprocal rank of H_N / N in whatever order they come. Cosines (float64) that differ by at most 1e-12 are
    tied. Without ties both conventions agree.

    Raises `NonFiniteRowsError`, naming the rows, for NaN and infinity, and `ShapeError` unless both sides have the same
    shape.

    >>> import numpy as np
    >>> AlignmentMetrics(np.eye(4), np.eye(4)).recall_at_k(1)
    1.0
    """

    def __init__(self, z_a: Any, z_b: Any) -> None:
        self._given = (z_a, z_b)
        self._rows = (CosineRows(z_a, "z_a"), CosineRows(z_b, "z_b"))
        shapes = [(len(rows), rows.n_columns) for rows in self._rows]
        if shapes[0] != shapes[1] or shapes[0][0] == 0:
            raise ShapeError(
                f"z_a has shape {shapes[0]} and z_b {shapes[1]}; expected the same, of at least one row: row i of one "
                "is the match of row i of the other (retrieval_report takes links)"
            )

    @property
    def z_a(self) -> Any:
        """Unit rows of side a, (N, d), of the kind that was given: tensor or array."""
        return self._as_given(unit_rows(self._given[0], "z_a"))

    @property
    def z_b(self) -> Any:
        """As `z_a`, for side b."""
        return self._as_given(unit_rows(self._given[1], "z_b"))

    @property
    def sim_matrix(self) -> Any:
        """All cosines, (N, N), of the kind that was given; made anew each time it is read, and used by no method."""
        return self._as_given(unit_rows(self._given[0], "z_a") @ unit_rows(self._given[1], "z_b").T)

    def recall_at_k(self, k: int = 10, direction: Direction = "a_to_b") -> float:
        """Return the share of queries whose match is among the first k candidates, in [0, 1].

        "a_to_b" looks rows of a up among those of b, "b_to_a" the other way. k above N counts as N. Raises
        `ArgumentError` for a k under 1 or another direction.
        """
        return float(expected_recall(self._levels(direction), whole_number(k, "k", 1)).mean())

    def mean_reciprocal_rank(self, direction: Direction = "a_to_b") -> float:
        """Return the mean of 1 / rank of the match, in (0, 1]. Raises `ArgumentError` for another direction."""
        return float(expected_reciprocal_rank(self._levels(direction)).mean())

    def alignment_score(self) -> float:
        """Return the mean cosine of matched rows, in [-1, 1]."""
        rows_a, rows_b = self._rows
        total = 0.0
        for rows in self._blocks():
            total += float((rows_a.unit64(rows) * rows_b.unit64(rows)).sum())
        return total / len(rows_a)

    def uniformity(self, t: float = 2.0) -> float:
        """Return log mean exp(-t |u_i - u_j|^2) over the unit rows u of side a, at most 0; lower is more even.

        The mean is over all N^2 ordered pairs, a row with itself among them, whose distance is 0: it is never under
        -log N, and 0 for one row. An estimate over pairs of different rows has no such floor. Source: Wang and Isola
        2020 (arXiv:2005.10242), section 4.1.2. Raises `ArgumentError` for a t that is not over 0.
        """
        t = finite_number(t, "t", "a finite number over 0", above=0)
        side = self._rows[0]
        total = 0.0
        for rows in self._blocks():
            block = side.unit64(rows)
            total += _kernel_sum(block, block, t, same=True)
            # A pair of blocks stands for its mirror image too.
            total += 2 * sum(
                _kernel_sum(block, side.unit64(others), t) for others in self._blocks() if others.start > rows.start
            )
        return float(np.log(total) - 2 * np.log(len(side)))

    def report(self) -> dict[str, float]:
        """Return recall@1, @5 and @10 and the mean reciprocal rank in both directions, alignment and uniformity."""
        short: dict[Direction, str] = {"a_to_b": "a2b", "b_to_a": "b2a"}
        recalls = {
            f"recall@{k}_{name}": self.recall_at_k(k, direction) for direction, name in short.items() for k in _KS
        }
        ranks = {f"mrr_{name}": self.mean_reciprocal_rank(direction) for direction, name in short.items()}
        return {**recalls, **ranks, "alignment": self.alignment_score(), "uniformity": self.uniformity()}

    def _levels(self, direction: Direction) -> TieLevels:
        if not isinstance(direction, str) or direction not in ("a_to_b", "b_to_a"):
            raise ArgumentError(f"direction = {direction!r:.80}; expected 'a_to_b' or 'b_to_a'")
        return self._both_ways[0 if direction == "a_to_b" else 1]

    @cached_property
    def _both_ways(self) -> tuple[TieLevels, TieLevels]:
        rows = np.arange(len(self._rows[0]), dtype=np.int64)
        truth = Truth(rows, rows, rows, n_without=0)
        (forth, _), (back, _) = levels_both_ways(*self._rows, truth, truth)
        return forth, back

    def _blocks(self) -> list[slice]:
        n = len(self._rows[0])
        return [slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]

    def _as_given(self, array: Any) -> Any:
        like = self._given[0]
        if not hasattr(like, "new_tensor"):
            return array
        # A tensor of whole numbers would cut unit rows to 0 and 1: it is made one of floats first.
        return (like if like.is_floating_point() else like.float()).new_tensor(array)


def _kernel_sum(left: Any, right: Any, t: float, same: bool = False) -> float:
    """Return the sum of exp(-t |u - v|^2) over all rows u of `left` and v of `right` (float64)."""
    squares = ((left * left).sum(axis=1)[:, None], (right * right).sum(axis=1)[None, :])
    distances = np.maximum(squares[0] + squares[1] - 2 * (left @ right.T), 0)
    if same:
        # A row's distance to itself is 0, whatever rounding says.
        np.fill_diagonal(distances, 0)
    return float(np.exp(-t * distances).sum())
