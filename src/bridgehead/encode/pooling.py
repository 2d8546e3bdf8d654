"""From the hidden states of a sequence to one row: four poolings, right for padding on either side.

Only methods of tensors are used, so torch is not imported here. This module is not about running a model.
"""

from typing import Any

from bridgehead.errors import ArgumentError, ShapeError

POOLINGS = ("mean", "cls", "max", "last")


def check_pooling(how: Any) -> str:
    """Return `how` if it is one of `POOLINGS`. Raises `ArgumentError`."""
    if how not in POOLINGS:
        raise ArgumentError(f"pooling = {how!r}; expected one of {', '.join(POOLINGS)}")
    return str(how)


def pool(hidden: Any, mask: Any, how: str) -> Any:
    """Return one row for each sequence, (B, d), in float32 or better.

    `hidden` (B, T, d) are hidden states, `mask` (B, T) is nonzero where there is a token and 0 where there is padding,
    on whichever side (None: tokens throughout). `mean` is the mean over the tokens, `max` the largest value of each
    column over them, `cls` the first token, which with padding on the left is not the first position, and `last` the
    last token. What stands at padding, NaN even, has no influence. A sequence without a token gives a zero row.

    Raises `ArgumentError` (unknown pooling) and `ShapeError`.
    """
    check_pooling(how)
    if hidden.ndim != 3:
        raise ShapeError(f"hidden states have shape {tuple(hidden.shape)}; expected (B, T, d)")
    if mask is not None and tuple(mask.shape) != tuple(hidden.shape[:2]):
        raise ShapeError(
            f"the mask has shape {tuple(mask.shape)} and the hidden states {tuple(hidden.shape)}; expected (B, T) and "
            "(B, T, d)"
        )
    # An integer mask on the device of the hidden states; sums of half precision would lose digits, hence float32.
    real = hidden.new_ones(hidden.shape[:2]).bool() if mask is None else (mask != 0).to(hidden.device)
    if how in ("cls", "last"):
        return _at(hidden, _first(real) if how == "cls" else real.shape[1] - 1 - _first(real.flip(1)), real)
    if hidden.shape[1] == 0:
        return _raised(hidden).sum(dim=1)
    empty = ~real.any(dim=1, keepdim=True)
    if how == "max":
        return _raised(hidden.masked_fill(~real.unsqueeze(-1), -float("inf")).amax(dim=1)).masked_fill(empty, 0.0)
    total = _raised(hidden).masked_fill(~real.unsqueeze(-1), 0.0).sum(dim=1)
    return total / real.sum(dim=1, keepdim=True).clamp(min=1).to(total.dtype)


def _first(real: Any) -> Any:
    """Return the first position of each row that is True, (B,); 0 where none is."""
    return real.int().argmax(dim=1) if real.shape[1] else real.sum(dim=1)


def _at(hidden: Any, position: Any, real: Any) -> Any:
    if hidden.shape[1] == 0:
        return _raised(hidden).sum(dim=1)
    index = position.view(-1, 1, 1).expand(-1, 1, hidden.shape[2])
    return _raised(hidden.gather(1, index).squeeze(1)).masked_fill(~real.any(dim=1, keepdim=True), 0.0)


def _raised(rows: Any) -> Any:
    return rows if str(rows.dtype) == "torch.float64" else rows.float()
