"""What the last loss says: whether anything was learnt at all, and whether its mutual information can still be read.

This module is not about retrieval, which measures what matters (`evaluate`).
"""

import math

from bridgehead.audits.finding import Finding
from bridgehead.audits.training.history import History, check_history, series
from bridgehead.errors import ArgumentError
from bridgehead.evaluate.arguments import finite_number

NO_SIGNAL, LITTLE_SIGNAL = 0.98, 0.9
"""Shares of the loss without signal: from the first nothing was learnt (the training says the same), from the second
little. A loss of 0.9 log N is what guessing among N^0.9 candidates would have."""
SATURATED = 0.95
"""Share of log N from which the mutual information reads the batch and no longer the data, as in training."""


def loss_findings(history: History, warm: float = 1.0) -> list[Finding]:
    """Return whether the last epoch's loss is below that of rows without signal, and whether its reading is saturated.

    `history` as `training` says; `warm` epochs of warm-up say nothing. Findings of the group "training", each only
    where the lines hold what it needs:

    - *loss against chance*: value is loss / chance_loss of the last epoch (of the contrastive part, `loss_contrastive`,
      where the loss has several). For InfoNCE the chance is log N. Fails from 0.98 on (pinned at log N: wrong links, a
      rate of 0, encoders that do not see the items), warns from 0.9 on.
    - *mutual information*: value is (log N - loss) / log N, in (-inf, 1]. Warns from 0.95 on: the batch limits the
      reading, not the data. Under 0, worse than chance, it fails.
    - *finite loss*: only where a loss is NaN or infinite, and then it fails; value is the first such epoch.

    Raises `ArgumentError` for an empty history or entries that are no numbers. Costs nothing. Source: van den Oord et
    al. 2018 (arXiv:1807.03748), section 2.3.
    """
    check_history(history)
    for number, line in enumerate(history):
        loss = series([line], "loss")
        if loss is not None and not math.isfinite(loss[0]):
            why = f"the loss of epoch {line.get('epoch', number + 1)} is {loss[0]}: lower the rate, or train in float32"
            return [Finding("finite loss", float(number + 1), "every loss is finite", "fail", why, "training")]
    warm = finite_number(warm, "warm")
    found = [] if len(history) <= warm else _against_chance(history)
    return [*found, *_information(history)]


def _against_chance(history: History) -> list[Finding]:
    last = history[-1]
    loss, chance = series([last], "loss_contrastive" if "loss_contrastive" in last else "loss"), None
    if loss is not None:
        chance = series([last], "chance_loss")
    if loss is None or chance is None or chance[0] <= 0:
        return []
    ratio = float(loss[0] / chance[0])
    name = "loss against chance"
    expected = f"below {LITTLE_SIGNAL:g} of {chance[0]:.3f}, the loss of rows without signal"
    if ratio >= NO_SIGNAL:
        why = (
            f"the loss ended at {loss[0]:.3f}, where rows without signal have it: nothing was learnt; check that links "
            "join what belongs together, the learning rate, and that the encoders see the items"
        )
        return [Finding(name, ratio, expected, "fail", why, "training")]
    if ratio >= LITTLE_SIGNAL:
        why = f"the loss ended at {loss[0]:.3f}, little below that of rows without signal: hardly anything was learnt"
        return [Finding(name, ratio, expected, "warn", why, "training")]
    return [Finding(name, ratio, expected, "pass", f"the loss ended at {loss[0]:.3f}, well below it", "training")]


def _information(history: History) -> list[Finding]:
    found = series(history[-1:], "mutual_information")
    candidates = series(history[-1:], "candidates")
    if found is None or candidates is None or candidates[0] < 2:
        return []
    if not math.isfinite(found[0]):
        raise ArgumentError(f"the history has mutual_information = {found[0]}; expected finite numbers")
    highest = math.log(candidates[0])
    share = float(found[0] / highest)
    name = "mutual information"
    expected = f"from 0 to {SATURATED:g} of {highest:.2f} nats, the most that {candidates[0]:.0f} candidates can show"
    if share >= SATURATED:
        why = (
            f"reads {found[0]:.2f} nats and is saturated: the batch limits it, the true value may be far higher, and "
            "two such readings cannot be compared; a larger batch reads further"
        )
        return [Finding(name, share, expected, "warn", why, "training")]
    if share < 0:
        return [Finding(name, share, expected, "fail", "the loss is worse than chance: nothing was learnt", "training")]
    return [Finding(name, share, expected, "pass", f"reads {found[0]:.2f} nats, below what limits it", "training")]
