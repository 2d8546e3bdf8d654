"""Four poolings by hand, with padding on either side."""

import pytest
import torch

from bridgehead.encode.pooling import POOLINGS, pool
from bridgehead.errors import ArgumentError, ShapeError

# Three tokens of two columns; what stands at padding must never count.
TOKENS = [[1.0, -8.0], [2.0, -2.0], [6.0, -5.0]]
PADDING = [[float("nan"), float("inf")]] * 2
EXPECTED = {"mean": [3.0, -5.0], "cls": [1.0, -8.0], "max": [6.0, -2.0], "last": [6.0, -5.0]}


@pytest.mark.parametrize("how", POOLINGS)
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_on_either_side_has_no_influence(how: str, side: str) -> None:
    padded, mask = TOKENS + PADDING, [1, 1, 1, 0, 0]
    if side == "left":
        padded, mask = PADDING + TOKENS, [0, 0, 1, 1, 1]
    hidden = torch.tensor([padded, [[7.0, 7.0]] * 5])
    rows = pool(hidden, torch.tensor([mask, [1] * 5]), how)
    assert rows.tolist() == [EXPECTED[how], [7.0, 7.0]]


@pytest.mark.parametrize("how", POOLINGS)
def test_a_sequence_without_a_token_gives_a_zero_row(how: str) -> None:
    rows = pool(torch.full((2, 3, 4), 5.0), torch.tensor([[0, 0, 0], [0, 1, 0]]), how)
    assert rows.tolist() == [[0.0] * 4, [5.0] * 4]
    assert pool(torch.zeros(2, 0, 4), torch.zeros(2, 0), how).tolist() == [[0.0] * 4] * 2


@pytest.mark.parametrize("how", POOLINGS)
def test_without_a_mask_every_position_is_a_token(how: str) -> None:
    assert pool(torch.tensor([TOKENS]), None, how).tolist() == [EXPECTED[how]]


def test_sums_of_half_precision_are_taken_in_float32_and_float64_stays() -> None:
    # 4096 ones sum to 2048 in float16, whose next number after 2048 is 2050.
    rows = pool(torch.ones(1, 4096, 1, dtype=torch.float16), None, "mean")
    assert rows.dtype == torch.float32 and rows.item() == 1.0
    assert pool(torch.ones(1, 2, 1, dtype=torch.float64), None, "last").dtype == torch.float64


@pytest.mark.parametrize("how", POOLINGS)
def test_the_gradient_reaches_tokens_only(how: str) -> None:
    hidden = torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    pool(hidden, torch.tensor([[0, 1, 1, 0]]), how).sum().backward()
    assert hidden.grad is not None and torch.isfinite(hidden.grad).all()
    assert not hidden.grad[0, [0, 3]].any() and hidden.grad[0, 1:3].sum() == 3


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="pooling = 'median'; expected one of mean, cls, max, last"):
        pool(torch.zeros(1, 2, 3), None, "median")
    with pytest.raises(ShapeError, match=r"\(1, 3\); expected \(B, T, d\)"):
        pool(torch.zeros(1, 3), None, "mean")
    with pytest.raises(ShapeError, match=r"the mask has shape \(1, 3\)"):
        pool(torch.zeros(1, 2, 3), torch.ones(1, 3), "mean")
