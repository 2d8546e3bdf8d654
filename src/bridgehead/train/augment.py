"""Augmentation of training rows and items: token dropout, feature noise, latent mixing, SMILES written anew.

Each is a function of rows and a generator that returns rows of the same kind, the same object where it is off. What is
drawn depends on (seed, epoch, batch) alone, so a resumed training draws the same. This module is not about the settings
(`augment_config`) or about dropout inside a head.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from scipy import sparse

from bridgehead.align.bags import CsrBatch
from bridgehead.align.losses.contrast import Positives
from bridgehead.errors import ArgumentError, ShapeError, StructureError
from bridgehead.molecules import random_smiles
from bridgehead.train.augment_config import AugmentConfig
from bridgehead.vectors import IntArray

Rows = TypeVar("Rows", torch.Tensor, CsrBatch)
# Streams that no other use of the seed draws from.
_STREAM, _SMILES_STREAM = 41, 42


def batch_generator(seed: int, epoch: int, batch: int) -> torch.Generator:
    """Return the generator of all that augmentation draws for one batch."""
    words = np.random.SeedSequence([seed, _STREAM, epoch, batch]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(words[0] >> np.uint64(1)))


def augment_batch(
    rows_a: Any,
    rows_b: Any,
    config: AugmentConfig,
    generator: torch.Generator,
    std_a: torch.Tensor | None = None,
    std_b: torch.Tensor | None = None,
    alone: torch.Tensor | None = None,
) -> tuple[Any, Any]:
    """Return the rows of a batch's pairs (row i of a with row i of b), dense or CSR, varied as `config` says.

    Mixing comes first, then token dropout, then noise. `std_a`, `std_b` (d,) are the standard deviations of the columns
    of dense training rows (`column_std`), `alone` as in `mix_pairs`. Rows that nothing applies to come back as the same
    object.
    """
    if config.latent_mixing is not None:
        rows_a, rows_b = mix_pairs(rows_a, rows_b, config.latent_mixing, generator, alone)
    sides = []
    for rows, std in ((rows_a, std_a), (rows_b, std_b)):
        if isinstance(rows, CsrBatch):
            rows = drop_entries(rows, config.token_dropout, generator, rescale=config.rescale)
        sides.append(add_noise(rows, config.feature_noise, generator, std))
    return sides[0], sides[1]


def drop_entries(batch: CsrBatch, share: float, generator: torch.Generator, *, rescale: bool = True) -> CsrBatch:
    """Return the rows with each non-zero left out with probability `share`, in [0, 1).

    A row that would lose all keeps one, each alike: of n non-zeros an entry stays with probability
    q = 1 - share + share^n / n. `rescale` divides what stays by q, so that the mean over draws is the row itself.
    Entries that are zero are left out. Raises `ArgumentError` for another share.
    """
    _check_share(share)
    if share == 0:
        return batch
    rows = batch.row_numbers()
    counted = batch.weights != 0
    keep = _kept(rows, len(batch), counted, share, generator) & counted
    weights = batch.weights[keep]
    kept_rows = rows[keep]
    if rescale:
        n_counted = torch.bincount(rows[counted], minlength=len(batch)).double()
        stays = (1 - share) + share**n_counted / n_counted.clamp(min=1)
        weights = (weights / stays[kept_rows]).to(weights.dtype)
    sizes = torch.bincount(kept_rows, minlength=len(batch))
    offsets = (sizes.cumsum(0) - sizes).to(batch.offsets.dtype)
    return CsrBatch(batch.indices[keep], offsets, weights, batch.n_columns)


def kept_tokens(
    tokens: IntArray, starts: IntArray, special: Sequence[int], share: float, generator: torch.Generator
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which tokens stay, (n,) boolean, when each is left out with probability `share` in [0, 1).

    `tokens` (n,) are those of all items one after the other, item i from `starts[i]` to `starts[i + 1]`. Tokens of
    `special` (start, end, padding, mask) always stay, and of the others at least one of each item. Raises
    `ArgumentError` for another share.
    """
    _check_share(share)
    if share == 0:
        return np.ones(len(tokens), dtype=np.bool_)
    sizes = torch.from_numpy(np.diff(starts))
    rows = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    ordinary = torch.from_numpy(~np.isin(tokens, np.asarray(special, dtype=np.int64)))
    return np.asarray(_kept(rows, len(sizes), ordinary, share, generator).numpy())


def _kept(rows: torch.Tensor, n: int, may_go: torch.Tensor, share: float, generator: torch.Generator) -> torch.Tensor:
    """Return which entries stay: those that may not go, those whose draw is high, and the highest draw of each row."""
    draws = torch.rand(len(rows), generator=generator, dtype=torch.float64)
    draws = torch.where(may_go, draws, -1.0)
    highest = torch.full((n,), -1.0, dtype=draws.dtype).scatter_reduce_(0, rows, draws, "amax")
    return ~may_go | (draws >= share) | (draws == highest[rows])


def add_noise(rows: Rows, strength: float, generator: torch.Generator, std: torch.Tensor | None = None) -> Rows:
    """Return rows with Gaussian noise; `strength` 0 gives the same object.

    Dense rows (n, d): x + strength std e with e standard normal and `std` (d,) that of each column, None for 1. A
    constant column stays. CSR rows: each non-zero times exp(strength e - strength^2 / 2), whose mean is 1: additive
    noise would fill the zeros, and this keeps signs and zeros. Raises `ArgumentError` for a negative strength and
    `ShapeError` for a `std` of another width.
    """
    if strength < 0:
        raise ArgumentError(f"strength = {strength}; expected 0 or more, in standard deviations")
    if strength == 0:
        return rows
    if isinstance(rows, CsrBatch):
        draws = torch.randn(len(rows.weights), generator=generator, dtype=rows.weights.dtype)
        return rows.with_weights(rows.weights * (strength * draws - strength**2 / 2).exp())
    if std is not None and std.shape != rows.shape[1:]:
        raise ShapeError(f"std has shape {tuple(std.shape)}; expected one number for each of {rows.shape[1]} columns")
    draws = torch.randn(rows.shape, generator=generator, dtype=rows.dtype).to(rows.device)
    return rows + strength * draws * (1.0 if std is None else std.to(rows))


def column_std(rows: Any, block: int = 8192) -> torch.Tensor:
    """Return the standard deviation (by n) of each column of dense rows (n, d), float32, summed in float64."""
    parts = [np.asarray(rows[start : start + block], dtype=np.float64) for start in range(0, len(rows), block)]
    mean = np.sum([part.sum(axis=0) for part in parts], axis=0) / len(rows)
    squares = np.sum([np.square(part - mean).sum(axis=0) for part in parts], axis=0)
    return torch.from_numpy(np.sqrt(squares / len(rows)).astype(np.float32))


def mix_pairs(
    rows_a: Rows, rows_b: Any, alpha: float, generator: torch.Generator, alone: torch.Tensor | None = None
) -> tuple[Rows, Any]:
    """Return the rows of pairs mixed with those of other pairs, the same share and partner on both sides.

    With a partner p(i), a random order of the pairs, and lambda_i ~ Beta(alpha, alpha),

        x_i' = lambda_i x_i + (1 - lambda_i) x_p(i),    y_i' = lambda_i y_i + (1 - lambda_i) y_p(i)

    and the mixed pair i matches itself. `rows_a` and `rows_b` are of equal length, row i of a with row i of b, each
    dense or CSR. In a many-to-many batch a mixed row would be a false negative of whatever its pair's items are linked
    with besides; so only the pairs that `alone` (n,) marks are mixed, and only with one another (`alone_pairs`): the
    others stay as they are, and the positives of the batch stay right. None is all. Fewer than two such pairs: nothing
    is mixed, and the same objects come back.

    Source: FuseMix, Vouitsis et al. 2024 (arXiv:2312.10144), section 4; there two batches are mixed with one share,
    here each pair of a batch has its own. Raises `ShapeError` for unequal lengths and `ArgumentError` for an alpha of 0
    or less.
    """
    if not alpha > 0:
        raise ArgumentError(f"alpha = {alpha}; expected a number over 0, of Beta(alpha, alpha)")
    n = len(rows_a)
    if len(rows_b) != n or (alone is not None and len(alone) != n):
        raise ShapeError(f"{n} rows of a, {len(rows_b)} of b: expected a row of each side for every pair")
    mixed = torch.arange(n) if alone is None else torch.nonzero(alone.cpu()).flatten()
    if len(mixed) < 2:
        return rows_a, rows_b
    seed = int(torch.randint(2**62, (), generator=generator))
    rng = np.random.default_rng(seed)
    partner, share = torch.arange(n), torch.ones(n, dtype=torch.float64)
    partner[mixed] = mixed[torch.from_numpy(rng.permutation(len(mixed)))]
    share[mixed] = torch.from_numpy(rng.beta(alpha, alpha, len(mixed)))
    return _mixed(rows_a, partner, share), _mixed(rows_b, partner, share)


def alone_pairs(positives: Positives) -> torch.Tensor:
    """Return which pairs i (row i of both sides) match themselves and nothing else, (n,) boolean."""
    itself = torch.zeros(positives.n_a, dtype=torch.bool, device=positives.a.device)
    itself[positives.a[positives.a == positives.b]] = True
    return itself & (positives.counts_a == 1) & (positives.counts_b == 1)


def _mixed(rows: Any, partner: torch.Tensor, share: torch.Tensor) -> Any:
    if not isinstance(rows, CsrBatch):
        own = share.to(rows)[:, None]
        return own * rows + (1 - own) * rows[partner.to(rows.device)]
    # As a product, so that columns that both rows hold become one entry: norms are taken entry by entry.
    n = len(rows)
    parts = (rows.weights.numpy(), rows.indices.numpy(), rows.ends().numpy())
    csr = sparse.csr_array(parts, shape=(n, rows.n_columns))
    at = (np.tile(np.arange(n), 2), np.concatenate([np.arange(n), partner.numpy()]))
    shares = np.concatenate([share.numpy(), 1 - share.numpy()]).astype(np.float32)
    product = sparse.csr_array((shares, at), shape=(n, n)) @ csr
    product.sort_indices()
    parts = (product.indices, product.indptr[:-1], product.data.astype(np.float32, copy=False))
    indices, offsets, weights = (torch.from_numpy(part) for part in parts)
    return CsrBatch(indices, offsets, weights, rows.n_columns)


def smiles_of_epoch(smiles: Sequence[str], seed: int, epoch: int) -> list[str]:
    """Return each SMILES written in another random way; item i is drawn from (seed, epoch, i).

    What cannot be read as a structure stays as it is. Cached rows do not see this: fingerprints are the same however a
    SMILES is written. It is for live encoders of SMILES text.
    """
    seeds = np.random.SeedSequence([seed, _SMILES_STREAM, epoch]).generate_state(len(smiles), np.uint64)
    return [_rewritten(text, int(own)) for text, own in zip(smiles, seeds, strict=True)]


def _rewritten(text: str, seed: int) -> str:
    try:
        return random_smiles(text, seed)
    except StructureError:
        return text


def _check_share(share: float) -> None:
    if not 0 <= share < 1:
        raise ArgumentError(f"share = {share}; expected a share in [0, 1) of what is left out")
