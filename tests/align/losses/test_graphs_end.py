"""The graph of a step ends with it: a training of any length takes the memory of one step."""

import gc
import weakref

import pytest
import torch

from bridgehead.align.bags import bag_sum, csr_batch
from bridgehead.align.losses import LossConfig, Objective
from bridgehead.align.losses.contrast import Positives
from bridgehead.align.losses.infonce import info_nce

LOSSES = [
    *({"name": name, "tile": tile} for name in ("info_nce", "sigmoid") for tile in ("auto", "none", 7)),
    {"name": "decoupled"},
    {"name": "hard_negative"},
    {"name": "guided"},
    {"name": "hierarchical"},
    {"name": "info_nce", "alignment_weight": 0.1, "uniformity_weight": 0.1},
]


@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: "-".join(map(str, loss.values())))
def test_nothing_of_a_step_stays_after_it(loss, n):
    objective = Objective(LossConfig(**loss))
    z_b, told = torch.randn(n, 4), {}
    if objective.needs_guide:
        told["guide"] = (torch.eye(n), torch.eye(n))
    if objective.needs_classes:
        told["classes"] = (torch.arange(n) % 3, torch.arange(n) % 3)
    rows = torch.randn(n, 4, requires_grad=True)
    seen = weakref.ref(rows)
    parts = objective(rows * 2, z_b, 5.0, Positives.diagonal(n), **told)
    parts.loss.backward()
    del rows, parts
    gc.collect()
    assert seen() is None


def test_a_loss_that_is_never_taken_backwards_goes_too():
    rows = torch.randn(200, 4, requires_grad=True)
    seen = weakref.ref(rows)
    loss = info_nce(rows, torch.randn(200, 4), 5.0, tile=16)
    del rows, loss
    gc.collect()
    assert seen() is None


def test_a_bag_sum_holds_its_table_no_longer_than_its_graph():
    from scipy import sparse

    table = torch.randn(30, 4, requires_grad=True)
    seen = weakref.ref(table)
    sums = bag_sum(table, csr_batch(sparse.random(5, 30, 0.2, format="csr", random_state=0)))
    sums.sum().backward()
    del table, sums
    gc.collect()
    assert seen() is None
