"""Rows and items that are varied in training: expectation, seeds, and what must never happen."""

import numpy as np
import pytest
import torch
from scipy import sparse

from bridgehead.align.bags import CsrBatch, csr_batch
from bridgehead.align.losses.contrast import Positives
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.molecules import canonical_smiles
from bridgehead.train.augment import (
    add_noise,
    alone_pairs,
    augment_batch,
    batch_generator,
    column_std,
    drop_entries,
    kept_tokens,
    mix_pairs,
    smiles_of_epoch,
)
from bridgehead.train.augment_config import AugmentConfig


def dense_of(batch: CsrBatch) -> np.ndarray:
    parts = (batch.weights.numpy(), batch.indices.numpy(), batch.ends().numpy())
    return sparse.csr_array(parts, shape=(len(batch), batch.n_columns)).toarray()


def some_csr(n=6, columns=40, seed=0) -> CsrBatch:
    return csr_batch(sparse.random(n, columns, 0.3, format="csr", random_state=seed, dtype=np.float32))


def draw(number: int) -> torch.Generator:
    return batch_generator(0, 0, number)


def test_what_is_off_is_the_same_object() -> None:
    batch, rows = some_csr(), torch.randn(6, 3, generator=draw(0))
    assert drop_entries(batch, 0.0, draw(0)) is batch
    assert add_noise(batch, 0.0, draw(0)) is batch and add_noise(rows, 0.0, draw(0)) is rows
    same_a, same_b = augment_batch(batch, rows, AugmentConfig(), draw(0))
    assert same_a is batch and same_b is rows


def test_what_is_drawn_depends_on_seed_epoch_and_batch_alone() -> None:
    config = AugmentConfig(token_dropout=0.3, feature_noise=0.5, latent_mixing=1.0)

    def varied(*place: int) -> tuple[np.ndarray, np.ndarray]:
        rows = torch.arange(12.0).reshape(6, 2)
        csr, dense = augment_batch(some_csr(), rows, config, batch_generator(*place), std_b=torch.ones(2))
        return dense_of(csr), dense.numpy()

    torch.rand(3)
    first, again = varied(1, 2, 3), varied(1, 2, 3)
    assert all(np.array_equal(left, right) for left, right in zip(first, again, strict=True))
    for place in ((0, 2, 3), (1, 0, 3), (1, 2, 0)):
        assert not any(np.array_equal(left, right) for left, right in zip(first, varied(*place), strict=True))


def test_the_mean_of_rows_with_dropped_entries_is_the_row_however_short() -> None:
    csr = sparse.csr_matrix(np.array([[2, 0, 0, 0], [1, 4, 0, 0], [1, 2, 3, 4]], dtype=np.float32))
    batch = csr_batch(csr)
    n, share = 20_000, 0.7
    many = csr_batch(csr, np.repeat(np.arange(3), n))
    found = dense_of(drop_entries(many, share, draw(1))).reshape(3, n, 4).mean(axis=1)
    # An entry of a row of one always stays; of a row of k it stays with q = 0.3 + 0.7^k / k, standard error under 0.04.
    assert np.allclose(found, dense_of(batch), atol=0.12)
    kept = (dense_of(drop_entries(many, share, draw(1), rescale=False)).reshape(3, n, 4) != 0).mean(axis=1)
    assert kept[0, 0] == 1 and kept[1, :2] == pytest.approx(0.3 + 0.7**2 / 2, abs=0.015)
    assert kept[2] == pytest.approx(0.3 + 0.7**4 / 4, abs=0.015)


def test_dropping_never_leaves_a_zero_row_but_of_zero_rows() -> None:
    csr = sparse.random(400, 30, 0.05, format="csr", random_state=1, dtype=np.float32)
    # A stored zero is no entry that a row could live on.
    csr.data[::7] = 0
    left = dense_of(drop_entries(csr_batch(csr), 0.99, draw(2)))
    assert np.array_equal((left != 0).any(axis=1), (csr.toarray() != 0).any(axis=1))
    # One entry a row, and one in a hundred of the others.
    assert (left != 0).sum() == pytest.approx((csr.toarray() != 0).any(axis=1).sum(), abs=15)


def test_dropped_rows_without_rescaling_are_parts_of_the_rows() -> None:
    batch = some_csr(50)
    before, after = dense_of(batch), dense_of(drop_entries(batch, 0.5, draw(3), rescale=False))
    assert np.array_equal(after[after != 0], before[after != 0])


def test_special_tokens_stay_and_no_text_loses_all_its_words() -> None:
    tokens, starts = np.tile([101, 7, 8, 9, 102], 3000), np.arange(0, 15_001, 5)
    kept = kept_tokens(tokens, starts, [101, 102], 0.6, draw(4)).reshape(3000, 5)
    assert kept[:, [0, 4]].all() and kept[:, 1:4].any(axis=1).all()
    assert kept[:, 1:4].mean() == pytest.approx(0.4 + 0.6**3 / 3, abs=0.02)
    only_special = kept_tokens(np.array([101, 102]), np.array([0, 2]), [101, 102], 0.9, draw(4))
    assert only_special.all()
    assert kept_tokens(tokens, starts, [101], 0.0, draw(4)).all()


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_outside_its_range_is_refused(share: float) -> None:
    with pytest.raises(ArgumentError, match="expected a share in"):
        drop_entries(some_csr(), share, draw(0))


def test_noise_on_dense_rows_is_in_units_of_the_column() -> None:
    rows = torch.tensor([[0.0, 5.0, 0.0], [10.0, 5.0, 2.0]]).repeat(5000, 1)
    std = column_std(rows.numpy())
    assert std.tolist() == pytest.approx([5.0, 0.0, 1.0])
    noise = add_noise(rows, 0.2, draw(5), std) - rows
    assert noise.std(dim=0).tolist() == pytest.approx([1.0, 0.0, 0.2], rel=0.03)
    assert noise.mean(dim=0).abs().max() < 0.05
    with pytest.raises(ShapeError, match="one number for each of 3 columns"):
        add_noise(rows, 0.2, draw(5), std[:2])
    with pytest.raises(ArgumentError, match="expected 0 or more"):
        add_noise(rows, -1.0, draw(5), std)


def test_noise_on_csr_rows_leaves_zeros_signs_and_the_mean() -> None:
    batch = csr_batch(sparse.csr_matrix(np.tile(np.array([[3, 0, -1]], dtype=np.float32), (40_000, 1))))
    found = dense_of(add_noise(batch, 0.3, draw(6)))
    assert (found[:, 1] == 0).all() and (found[:, 0] > 0).all() and (found[:, 2] < 0).all()
    assert found.mean(axis=0) == pytest.approx([3, 0, -1], abs=0.03)
    # The spread of exp(0.3 e - 0.045) is sqrt(exp(0.09) - 1).
    assert found[:, 2].std() == pytest.approx(np.sqrt(np.expm1(0.09)), rel=0.05)


def test_both_sides_of_a_pair_are_mixed_with_one_partner_in_one_share() -> None:
    # Row i of a is the i-th unit vector, so that a mixed row shows its share and partner.
    n = 64
    rows_a, rows_b = torch.eye(n), 3 * torch.eye(n)
    mixed_a, mixed_b = mix_pairs(rows_a, rows_b, 1.0, draw(7))
    assert torch.allclose(3 * mixed_a, mixed_b) and torch.allclose(mixed_a.sum(dim=1), torch.ones(n))
    assert ((mixed_a > 0).sum(dim=1) == 2).sum() > n - 8
    shares = mixed_a.diagonal()
    # Beta(1, 1) is uniform.
    assert float(shares.mean()) == pytest.approx(0.5, abs=0.15) and len(shares.unique()) > n - 8


def test_csr_rows_are_mixed_as_dense_ones_and_hold_each_column_once() -> None:
    batch, rows = some_csr(20, 15, seed=3), torch.randn(20, 4, generator=draw(8))
    mixed_csr, mixed_rows = mix_pairs(batch, rows, 0.7, draw(9))
    dense = torch.from_numpy(dense_of(batch))
    expected, same_rows = mix_pairs(dense, rows, 0.7, draw(9))
    assert np.allclose(dense_of(mixed_csr), expected.numpy(), atol=1e-6) and torch.equal(same_rows, mixed_rows)
    places = mixed_csr.row_numbers() * 15 + mixed_csr.indices
    assert len(places.unique()) == len(places)


def test_mixing_lets_gradients_through() -> None:
    rows = torch.randn(5, 3, generator=draw(0)).requires_grad_()
    mixed, _ = mix_pairs(rows, rows.detach(), 1.0, draw(1))
    mixed.sum().backward()
    # Shares of a row over all mixtures sum to what the mixtures take of it, in all to the number of rows.
    assert rows.grad is not None and float(rows.grad[:, 0].sum()) == pytest.approx(5.0, abs=1e-5)


def test_pairs_with_other_links_in_the_batch_are_not_mixed_and_no_partners() -> None:
    # Pairs 0 and 1 share an item, so each is a positive of the other; 2 to 5 match themselves alone.
    links = np.array([[0, 0], [0, 1], [1, 0], [1, 1], *([i, i] for i in range(2, 6))])
    alone = alone_pairs(Positives.of(links, 6, 6))
    assert alone.tolist() == [False, False, True, True, True, True]
    mixed, _ = mix_pairs(torch.eye(6), torch.eye(6), 1.0, draw(3), alone)
    assert torch.equal(mixed[:2], torch.eye(6)[:2]) and torch.equal(mixed[2:, :2], torch.zeros(4, 2))
    assert not torch.equal(mixed[2:], torch.eye(6)[2:])
    assert alone_pairs(Positives.of(np.array([[0, 1], [1, 0], [2, 2]]), 3, 3)).tolist() == [False, False, True]


def test_one_pair_has_nobody_to_be_mixed_with() -> None:
    rows = torch.ones(1, 2)
    assert mix_pairs(rows, rows, 1.0, draw(0))[0] is rows
    alone = torch.tensor([True, False])
    both = torch.ones(2, 2)
    assert mix_pairs(both, both, 1.0, draw(0), alone)[1] is both


def test_unequal_sides_and_an_alpha_of_zero_are_refused() -> None:
    with pytest.raises(ShapeError, match="expected a row of each side for every pair"):
        mix_pairs(torch.ones(3, 2), torch.ones(2, 2), 1.0, draw(0))
    with pytest.raises(ArgumentError, match="over 0"):
        mix_pairs(torch.ones(3, 2), torch.ones(3, 2), 0.0, draw(0))


def test_smiles_are_written_anew_each_epoch_and_what_is_none_stays() -> None:
    smiles = ["CC(=O)Oc1ccccc1C(=O)O", "no structure", "CCN(CC)CC"]
    first, second = smiles_of_epoch(smiles, 0, 0), smiles_of_epoch(smiles, 0, 1)
    assert first == smiles_of_epoch(smiles, 0, 0) and first != second
    assert first[:1] == smiles_of_epoch(smiles[:1], 0, 0)
    assert first[1] == "no structure"
    assert [canonical_smiles(text) for text in (first[0], second[2])] == [canonical_smiles(smiles[i]) for i in (0, 2)]
