import numpy as np
import pytest
import torch

from bridgehead.align import Positives, info_nce
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.links import Links
from bridgehead.negatives import MemoryBank, bank_loss


def unit(rows):
    return torch.nn.functional.normalize(torch.as_tensor(rows, dtype=torch.float64), dim=1)


def rows(n, d=5, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)))


def loss_of(z_a, z_b, links, direction):
    return info_nce(z_a, z_b, 7.0, links, direction=direction)


def naive(anchors, candidates, positive, s=7.0):
    """One direction of InfoNCE, form outside, term by term."""
    costs = []
    for i, u in enumerate(unit(anchors)):
        scores = [s * float(u @ v) for v in unit(candidates)]
        total = np.log(sum(np.exp(score) for score in scores))
        own = [total - scores[j] for j in range(len(scores)) if positive(i, j)]
        if own:
            costs.append(sum(own) / len(own))
    return sum(costs) / len(costs)


def test_the_oldest_rows_leave_first():
    bank = MemoryBank(4, 2)
    z = torch.eye(2)[[0, 1, 0]] * 3
    bank.push(z, [0, 1, 2], z, [10, 11, 12])
    assert bank.filled.tolist() == [3, 3] and bank.items_a.tolist() == [0, 1, 2, -1]
    bank.push(z, [3, 4, 5], z, [13, 14, 15])
    # Places 3, 0, 1: item 2 is the oldest that is left.
    assert bank.items_a.tolist() == [4, 5, 2, 3] and bank.items_b.tolist() == [14, 15, 12, 13]
    assert torch.allclose(bank.rows_a[0], torch.tensor([0.0, 1.0])) and bank.next_place.tolist() == [2, 2]


def test_of_more_rows_than_it_holds_the_last_stay():
    bank = MemoryBank(3, 5)
    bank.push(rows(7), range(7), rows(2), range(2))
    assert sorted(bank.items_a.tolist()) == [4, 5, 6]
    assert bank.filled.tolist() == [3, 2]
    assert torch.allclose(bank.rows_a, unit(rows(7))[4:].float())


def test_an_empty_bank_is_the_plain_loss_exactly():
    z_a, z_b, links = rows(6).float().requires_grad_(), rows(6, seed=1).float().requires_grad_(), Links.identity(20)
    batch = np.arange(6) + 3
    for size in (0, 8):
        for direction in ("both", "a_to_b", "b_to_a"):
            found = bank_loss(loss_of, MemoryBank(size, 5).extended(z_a, batch, z_b, batch, links), direction)
            plain = info_nce(z_a, z_b, 7.0, direction=direction)
            assert torch.equal(found, plain)
            for one, other in zip(
                torch.autograd.grad(found, (z_a, z_b)), torch.autograd.grad(plain, (z_a, z_b)), strict=True
            ):
                assert torch.equal(one, other)


def test_rows_of_the_bank_are_negatives_where_not_linked_and_positives_where_linked():
    # Item 0 of a matches items 0 and 7 of b; item 7 of b waits in the bank. Groups: 8 of b is the same as 1 of b.
    groups_b = np.full(10, -1)
    groups_b[[1, 8]] = 3
    links = Links([[0, 0], [0, 7], [1, 1], [2, 2], [9, 9]], 10, 10, groups_b=groups_b)
    bank = MemoryBank(4, 5)
    old_a, old_b = rows(3, seed=5), rows(3, seed=6)
    bank.double()
    bank.push(old_a, [5, 6, 9], old_b, [7, 8, 9])
    z_a, z_b = rows(3, seed=1), rows(3, seed=2)
    batch = np.arange(3)
    extended = bank.extended(z_a, batch, z_b, batch, links)
    assert extended.n_bank == (3, 3) and extended.items_b.tolist() == [0, 1, 2, 7, 8, 9]
    truth = links.matrix.toarray()
    forth = naive(z_a, torch.cat([z_b, old_b]), lambda i, j: truth[i, extended.items_b[j]])
    back = naive(z_b, torch.cat([z_a, old_a]), lambda i, j: truth[extended.items_a[j], i])
    assert extended.forth.pairs.tolist() == [[0, 0], [0, 3], [1, 1], [1, 4], [2, 2]]
    assert float(bank_loss(loss_of, extended)) == pytest.approx((forth + back) / 2, abs=1e-12)
    assert float(bank_loss(loss_of, extended, "a_to_b")) == pytest.approx(forth, abs=1e-12)
    assert float(bank_loss(loss_of, extended, "b_to_a")) == pytest.approx(back, abs=1e-12)


def test_the_batch_is_never_its_own_negative():
    links = Links.identity(10)
    bank = MemoryBank(8, 5)
    z_a, z_b = rows(4), rows(4, seed=1)
    bank.push(z_a, [0, 1, 2, 3], z_b, [0, 1, 2, 3])
    # The same items again: nothing of the bank is used, and the loss is the plain one.
    extended = bank.extended(z_a, [0, 1, 2, 3], z_b, [0, 1, 2, 3], links)
    assert extended.n_bank == (0, 0)
    assert torch.equal(bank_loss(loss_of, extended), info_nce(z_a, z_b, 7.0))
    # Two items again, on side a alone: those two are left out there.
    extended = bank.extended(z_a, [2, 3, 4, 5], z_b, [6, 7, 8, 9], links)
    assert extended.items_a.tolist() == [2, 3, 4, 5, 0, 1] and extended.n_bank == (2, 4)


def test_the_bank_gets_no_gradient_and_is_not_changed_by_reading():
    bank = MemoryBank(4, 5)
    z_a, z_b = rows(3).requires_grad_(), rows(3, seed=1).requires_grad_()
    bank.push(z_a, [0, 1, 2], z_b, [0, 1, 2])
    before = {name: tensor.clone() for name, tensor in bank.state_dict().items()}
    assert not bank.rows_a.requires_grad
    loss = bank_loss(loss_of, bank.extended(z_a, [3, 4, 5], z_b, [3, 4, 5], Links.identity(6)))
    loss.backward()
    assert z_a.grad.abs().sum() > 0
    assert all(torch.equal(before[name], tensor) for name, tensor in bank.state_dict().items())


def test_the_state_dict_takes_it_up_where_it_was():
    bank, other = MemoryBank(5, 5), MemoryBank(5, 5)
    bank.push(rows(3), [0, 1, 2], rows(3, seed=1), [0, 1, 2])
    other.load_state_dict(bank.state_dict())
    for each in (bank, other):
        each.push(rows(4, seed=2), [3, 4, 5, 6], rows(4, seed=3), [3, 4, 5, 6])
    assert all(torch.equal(bank.state_dict()[name], tensor) for name, tensor in other.state_dict().items())


def test_more_negatives_make_the_loss_larger():
    links, batch = Links.identity(100), np.arange(10)
    z_a, z_b = rows(10), rows(10, seed=1)
    bank = MemoryBank(50, 5)
    losses = []
    for step in range(4):
        losses.append(float(bank_loss(loss_of, bank.extended(z_a, batch, z_b, batch, links))))
        items = 10 + 10 * step + np.arange(10)
        bank.push(rows(10, seed=10 + step), items, rows(10, seed=20 + step), items)
    assert losses == sorted(losses) and losses[0] < losses[-1]


def test_very_large_and_zero_rows_are_kept_as_directions():
    bank = MemoryBank(3, 2)
    z = torch.tensor([[3e30, 4e30], [0.0, 0.0], [3e-30, 4e-30]])
    bank.push(z, [0, 1, 2], z, [0, 1, 2])
    assert torch.allclose(bank.rows_a, torch.tensor([[0.6, 0.8], [0.0, 0.0], [0.6, 0.8]]))


def test_links_of_the_extended_batch_are_what_losses_take():
    bank = MemoryBank(3, 5)
    bank.push(rows(2), [7, 8], rows(3), [7, 8, 9])
    extended = bank.extended(rows(2), [0, 1], rows(2), [0, 1], Links.identity(10))
    assert len(Positives.of(extended.forth, 2, 5)) == len(Positives.of(extended.back, 4, 2)) == 2


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: MemoryBank(-1, 4), ArgumentError, "size = -1"),
        (lambda: MemoryBank(4, 0), ArgumentError, "dim = 0"),
        (lambda: MemoryBank(4, 3).push(rows(2), [0, 1], rows(2), [0, 1]), ShapeError, r"expected \(n, 3\)"),
        (lambda: MemoryBank(4, 5).push(rows(2), [0], rows(2), [0, 1]), ShapeError, r"items_a \(1,\)"),
        (
            lambda: bank_loss(
                loss_of, MemoryBank(4, 5).extended(rows(2), [0, 1], rows(2), [0, 1], Links.identity(2)), "x"
            ),
            ArgumentError,
            "direction = 'x'",
        ),
    ],
)
def test_what_does_not_fit_a_bank_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()
