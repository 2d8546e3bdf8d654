import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import sparse

from bridgehead.align import bags
from bridgehead.align.bags import CsrBatch, bag_sum, csr_batch
from bridgehead.align.gradient_memory import LEAST_BYTES
from bridgehead.errors import ShapeError


def random_csr(n, columns, seed=0, density=0.2):
    return sparse.csr_matrix(sparse.random(n, columns, density, random_state=seed, dtype=np.float32))


def test_the_sum_over_a_bag_is_the_product_with_the_table():
    csr, table = random_csr(9, 40), torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    assert np.allclose(bag_sum(table, csr_batch(csr)).numpy(), csr @ table.numpy(), atol=1e-6)


def test_its_gradient_is_that_of_torch_and_of_finite_differences():
    csr = random_csr(9, 40, seed=1)
    batch = csr_batch(csr, [3, 3, 0, 8])
    table = torch.randn(40, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda weights: bag_sum(weights, batch), (table,))
    weights = batch.weights.double()
    theirs = F.embedding_bag(batch.indices, table, batch.offsets, mode="sum", per_sample_weights=weights)
    upstream = torch.randn(4, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (expected,) = torch.autograd.grad(theirs, table, upstream)
    (found,) = torch.autograd.grad(bag_sum(table, batch), table, upstream)
    assert torch.allclose(found, expected, atol=1e-12)


def test_empty_rows_are_zero_and_no_rows_are_no_rows():
    table = torch.ones(4, 3)
    assert bag_sum(table, csr_batch(sparse.csr_matrix((2, 4), dtype=np.float32))).tolist() == [[0.0] * 3] * 2
    assert bag_sum(table, csr_batch(sparse.csr_matrix((0, 4), dtype=np.float32))).shape == (0, 3)


def test_unit_divides_each_row_by_its_norm_and_leaves_a_zero_row():
    csr = sparse.csr_matrix(np.array([[3, 0, 4], [0, 0, 0], [0, 2, 0]], dtype=np.float32))
    assert csr_batch(csr).unit().weights.tolist() == pytest.approx([0.6, 0.8, 1.0])


def test_row_numbers_say_the_row_of_each_entry():
    csr = sparse.csr_matrix(np.array([[1, 1], [0, 0], [0, 1]], dtype=np.float32))
    assert csr_batch(csr).row_numbers().tolist() == [0, 0, 2]


def test_dense_rows_are_refused():
    with pytest.raises(ShapeError, match="expected a CSR matrix, got ndarray"):
        csr_batch(np.eye(3))


def their_sum(table, batch):
    weights = batch.weights.to(table.dtype)
    return F.embedding_bag(batch.indices, table, batch.offsets, mode="sum", per_sample_weights=weights)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-6), (torch.float64, 1e-12), (torch.bfloat16, 0.05)])
def test_value_and_gradient_are_those_of_torch_in_every_precision(dtype, tolerance):
    batch = csr_batch(random_csr(30, 200, seed=2), [0, 7, 7, 29, 3]).unit()
    generator = torch.Generator().manual_seed(3)
    table = torch.randn(200, 16, generator=generator).to(dtype).requires_grad_()
    upstream = torch.randn(5, 16, generator=generator).to(dtype)
    ours, theirs = bag_sum(table, batch), their_sum(table, batch)
    assert torch.allclose(ours, theirs, atol=tolerance)
    (found,), (expected,) = (torch.autograd.grad(sums, table, upstream) for sums in (ours, theirs))
    assert found.dtype == dtype and torch.allclose(found, expected, atol=tolerance)


def test_a_table_that_is_read_in_parts_gives_the_same_sums(monkeypatch):
    batch, torch_csr = csr_batch(random_csr(300, 100, seed=4)), bags._torch_csr
    table = torch.randn(100, 8, generator=torch.Generator().manual_seed(4))
    whole = bag_sum(table, batch)
    assert torch.equal(whole, their_sum(table, batch))
    parts = []
    monkeypatch.setattr(bags, "_PART_BYTES", 7 * 8 * 4)
    monkeypatch.setattr(bags, "_torch_csr", lambda *given: parts.append(given) or torch_csr(*given))
    assert torch.allclose(bag_sum(table, batch), whole, atol=1e-5)
    assert len(parts) == 15


def large_table(n_columns=2000):
    width = -(-LEAST_BYTES // (4 * n_columns))
    return torch.randn(n_columns, width, generator=torch.Generator().manual_seed(5)).requires_grad_()


def test_the_gradient_of_the_next_step_takes_the_memory_of_the_last_and_nothing_of_its_values():
    table, places = large_table(), []
    for step in range(3):
        batch = csr_batch(random_csr(4, 2000, seed=step, density=0.01))
        bag_sum(table, batch).sum().backward()
        (expected,) = torch.autograd.grad(their_sum(table, batch).sum(), table)
        assert torch.allclose(table.grad, expected, atol=1e-6)
        places.append(table.grad.data_ptr())
        # What an optimiser or a clipping left there must not come back.
        table.grad.fill_(float("nan"))
        table.grad = None
    assert len(set(places)) == 1


def test_a_gradient_that_is_kept_or_added_to_is_never_written_over():
    table, batches = large_table(), [csr_batch(random_csr(4, 2000, seed=seed, density=0.01)) for seed in range(3)]
    bag_sum(table, batches[0]).sum().backward()
    kept, copy = table.grad, table.grad.clone()
    table.grad = None
    for batch in batches[1:]:
        bag_sum(table, batch).sum().backward()
    assert torch.equal(kept, copy)
    (expected,) = torch.autograd.grad(sum(their_sum(table, batch).sum() for batch in batches[1:]), table)
    assert torch.allclose(table.grad, expected, atol=1e-6)


def test_one_table_that_two_bags_of_a_step_read_gets_the_sum_of_both_gradients():
    table, batch = large_table(), csr_batch(random_csr(4, 2000, density=0.01))
    (bag_sum(table, batch) + 2 * bag_sum(table, batch)).sum().backward()
    (expected,) = torch.autograd.grad(3 * their_sum(table, batch).sum(), table)
    assert torch.allclose(table.grad, expected, atol=1e-6)


@pytest.mark.parametrize("part_bytes", [1 << 30, 20_000])
def test_equal_inputs_give_equal_bits_wherever_they_lie_in_memory(part_bytes, monkeypatch):
    monkeypatch.setattr(bags, "_PART_BYTES", part_bytes)
    csr, table = random_csr(64, 500, seed=6), torch.randn(500, 37, generator=torch.Generator().manual_seed(6))
    found = []
    for shift in (0, 1, 5):
        room = torch.empty(table.numel() + shift)
        moved = room[shift:].view(table.shape).copy_(table).requires_grad_()
        weights = torch.cat([torch.zeros(shift), torch.from_numpy(csr.data)])[shift:]
        sums = bag_sum(moved, csr_batch(csr).with_weights(weights))
        (gradient,) = torch.autograd.grad(sums.square().sum(), moved)
        found.append((sums.detach(), gradient))
    assert all(torch.equal(sums, found[0][0]) and torch.equal(gradient, found[0][1]) for sums, gradient in found)


def test_columns_of_either_integer_type_are_read():
    batch = csr_batch(random_csr(6, 30, seed=7))
    wide = CsrBatch(batch.indices.long(), batch.offsets.long(), batch.weights, batch.n_columns)
    table = torch.randn(30, 4, generator=torch.Generator().manual_seed(7))
    assert torch.equal(bag_sum(table, batch), bag_sum(table, wide))
    assert torch.equal(batch.unit().weights, wide.unit().weights)


def test_rows_without_entries_and_a_batch_without_any_have_a_zero_gradient():
    table = torch.ones(4, 3, requires_grad=True)
    for csr in (sparse.csr_matrix((2, 4), dtype=np.float32), sparse.csr_matrix((0, 4), dtype=np.float32)):
        batch = csr_batch(csr).unit()
        assert torch.equal(torch.autograd.grad(bag_sum(table, batch).sum(), table)[0], torch.zeros(4, 3))


def test_the_batch_of_a_whole_matrix_is_its_own_memory():
    csr = random_csr(3, 5)
    batch = csr_batch(csr)
    csr.data[:] = 0
    csr.indices[:] = 0
    assert float(batch.weights.abs().sum()) > 0 and int(batch.indices.max()) > 0
