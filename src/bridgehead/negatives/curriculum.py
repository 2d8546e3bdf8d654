"""How hard an epoch is: the number of hard neighbours by schedule, from none to all.

A pure function of the epoch, so that a resumed training stands where it stood. Hard negatives from the first step on
can make training unstable; it is not about which they are (`mining`).
"""

import math

from bridgehead.errors import ArgumentError


def hard_share(epoch: int, start_epoch: int, ramp_epochs: int, ramp: str = "linear") -> float:
    """Return the share in [0, 1] of hard neighbours in an epoch, epochs counted from 0.

    0 before `start_epoch`; then with x = (epoch - start_epoch + 1) / (ramp_epochs + 1), at most 1, it is x ("linear")
    or (1 - cos(pi x)) / 2 ("cosine"), so it is 1 after `ramp_epochs` epochs, at once for 0. Raises `ArgumentError`.

    >>> [hard_share(epoch, start_epoch=1, ramp_epochs=1) for epoch in range(4)]
    [0.0, 0.5, 1.0, 1.0]
    """
    if ramp not in ("linear", "cosine"):
        raise ArgumentError(f"ramp = {ramp!r}; expected 'linear' or 'cosine'")
    if start_epoch < 0 or ramp_epochs < 0:
        raise ArgumentError(f"start_epoch = {start_epoch}, ramp_epochs = {ramp_epochs}; expected 0 or more")
    if epoch < start_epoch:
        return 0.0
    x = min(1.0, (epoch - start_epoch + 1) / (ramp_epochs + 1))
    return x if ramp == "linear" else (1 - math.cos(math.pi * x)) / 2


def hard_count(k_hard: int, epoch: int, start_epoch: int, ramp_epochs: int, ramp: str = "linear") -> int:
    """Return how many hard neighbours an anchor brings in an epoch: `hard_share` of `k_hard`, rounded up."""
    # A share such as 3 x 1/3 must not become 4 by rounding of the product.
    return math.ceil(round(k_hard * hard_share(epoch, start_epoch, ramp_epochs, ramp), 9))
