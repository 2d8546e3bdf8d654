"""What a loss says about the training: nats of mutual information, and whether anything was learnt at all.

Numbers in, numbers and sentences out, no torch. This module is not about retrieval, which measures what matters.
"""

import math
from dataclasses import dataclass
from typing import Any

from bridgehead.errors import ArgumentError

SATURATED = 0.95
"""Share of log N from which the readout says nothing more: a larger batch would read higher."""
NO_SIGNAL = 0.98
"""Share of the loss without signal from which nothing was learnt."""


@dataclass(frozen=True)
class MutualInformation:
    """`nats`, log N - loss, with N = `n_candidates`; it cannot read above log N.

    `saturated`: within 5 % of log N, where the batch and no longer the data limits it.
    """

    nats: float
    n_candidates: float
    saturated: bool

    def warning(self) -> str | None:
        """Return a sentence where the readout is saturated, else None."""
        if not self.saturated:
            return None
        highest = math.log(self.n_candidates)
        return (
            f"the mutual information reads {self.nats:.2f} nats, and with {self.n_candidates:g} candidates it cannot "
            f"read above {highest:.2f}: it is saturated, the true value may be far higher; use a larger batch to "
            "read it"
        )


def mutual_information_bound(loss: float, n_candidates: float) -> MutualInformation:
    """Return log N - loss, in nats, of an InfoNCE loss among N candidates, the anchor's positive among them.

    In expectation it is at most the mutual information of the two sides, where the loss is plain InfoNCE (unweighted,
    `info_nce`), each anchor has one positive, and the other candidates are drawn at random: `check_readable` and the
    sampling see to that. Mined or masked negatives, several positives and memory banks have no such reading. Under 0
    it says that the loss is worse than chance. For the mean of two directions N is the geometric mean of the two
    numbers of candidates. `loss` is finite, `n_candidates` at least 2. Raises `ArgumentError`.

    >>> mutual_information_bound(loss=1.0, n_candidates=512).nats
    5.238...

    Source: van den Oord et al. 2018 (arXiv:1807.03748) section 2.3; Poole et al. 2019 (arXiv:1905.06922) section 2.3
    for how it saturates at log N.
    """
    try:
        loss, n_candidates = float(loss), float(n_candidates)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"loss = {loss!r:.80}, n_candidates = {n_candidates!r:.80}; expected two numbers"
        ) from error
    if not math.isfinite(loss):
        raise ArgumentError(f"loss = {loss}; expected a finite number")
    if not (math.isfinite(n_candidates) and n_candidates >= 2):
        raise ArgumentError(f"n_candidates = {n_candidates:g}; expected at least 2, the positive among them")
    highest = math.log(n_candidates)
    nats = highest - loss
    return MutualInformation(nats, n_candidates, nats >= SATURATED * highest)


def check_readable(name: str, positives: Any) -> None:
    """Raise `ArgumentError` unless a batch has a reading: the loss `info_nce`, one positive a row, two rows a side.

    `positives` is the batch's `Positives`.
    """
    if name != "info_nce":
        raise ArgumentError(
            f"the loss is {name!r}; mutual information is read from plain InfoNCE alone, so expected 'info_nce'"
        )
    if min(positives.n_a, positives.n_b) < 2:
        raise ArgumentError(
            f"the batch has {positives.n_a} x {positives.n_b} rows; expected at least two on each side to read from"
        )
    if not positives.single:
        raise ArgumentError(
            "some rows of the batch have several positives; mutual information is read where each row has one, so "
            "sample without repeated or linked items, or do not read it"
        )


def is_readable(name: str, positives: Any) -> bool:
    """Return whether `check_readable` has nothing to say."""
    try:
        check_readable(name, positives)
    except ArgumentError:
        return False
    return True


def no_signal(loss: float, chance: float) -> bool:
    """Return whether a loss after warm-up is at 0.98 of `chance` or above: nothing was learnt.

    `chance` is the loss of rows without signal, log N for InfoNCE (`Objective.chance`); where it is 0 or less (one
    candidate), the answer is False, as there is nothing to compare with.
    """
    return chance > 0 and loss >= NO_SIGNAL * chance


def no_signal_warning(loss: float, chance: float) -> str | None:
    """Return a sentence where `no_signal` holds, else None."""
    if not no_signal(loss, chance):
        return None
    return (
        f"no signal: the loss is {loss:.3f} after warm-up, and rows without any have {chance:.3f}; check that the "
        "links join what belongs together, the learning rate, and that the encoders see the items"
    )
