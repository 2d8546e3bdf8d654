import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import sparse

from bridgehead.align.bags import bag_sum, csr_batch
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
