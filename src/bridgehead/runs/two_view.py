"""The two-view study's data: one latent event seen twice, its split, its wrong pairs and its schedules.

Five hidden coordinates make two noisy nonlinear views of 14 and 11 columns, so row i of one view belongs to row i of
the other and nothing else does. All is drawn from torch's generators with fixed seeds, in a fixed order, so that the
published figures can be repeated. This module is not about training or about what the figures prove.
"""

from dataclasses import dataclass

import numpy as np
import torch

from bridgehead.align.model import TwoHeads
from bridgehead.train.config import TrainConfig
from bridgehead.train.ensemble.members import Course, Member
from bridgehead.vectors import FloatArray, IntArray

SEEDS = (6050, 6051, 6052, 6053, 6054)
N_FIT, N_VALID, N_HELD_OUT = 720, 180, 300
WIDTHS = (14, 11)

_DATA_SEED, _WRONG_PAIRS_SEED, _ORDER_SEED = 1_206_050, 88_000, 99_000
_LATENT, _NOISE, _SMALLEST_STD = 5, 0.045, 1e-6


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Rows of both views, (n, 14) and (n, 11) float32; row i of `a` belongs to row i of `b`."""

    a: FloatArray
    b: FloatArray

    def __len__(self) -> int:
        return len(self.a)


@dataclass(frozen=True, eq=False)
class TwoViews:
    """The three parts of the study's 1,200 events, 720, 180 and 300, standardised by the rows of `fit` alone."""

    fit: PairedRows
    valid: PairedRows
    held_out: PairedRows


def two_views() -> TwoViews:
    """Return the study's data: view = tanh(latent @ map / sqrt(5)) + 0.045 noise, latent, map and noise normal.

    Each column has the mean of the 720 fit rows subtracted and is divided by their standard deviation (by n - 1). No
    two calls differ.
    """
    a, b = (_standardised(view, view) for view in _noisy_views()[0])
    n = N_FIT + N_VALID + N_HELD_OUT
    cuts = (slice(0, N_FIT), slice(N_FIT, N_FIT + N_VALID), slice(N_FIT + N_VALID, n))
    return TwoViews(*(PairedRows(a[cut], b[cut]) for cut in cuts))


def seen_again(events: IntArray, seed: int) -> FloatArray:
    """Return the first view of these events (numbers from 0 to 1,199) measured once more, (len, 14) float32.

    The events are those of `two_views`, the noise is new and drawn from `seed`; columns are standardised as there.
    """
    views, clean = _noisy_views()
    noise = torch.randn(len(events), WIDTHS[0], generator=torch.Generator().manual_seed(seed))
    return _standardised(clean[0][torch.from_numpy(np.asarray(events))] + _NOISE * noise, views[0])


def _noisy_views() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return both views of all events in their own units, with noise and without."""
    generator = torch.Generator().manual_seed(_DATA_SEED)
    latent = torch.randn(N_FIT + N_VALID + N_HELD_OUT, _LATENT, generator=generator)
    # First both maps, then both noises: another order would draw other data.
    maps = [torch.randn(_LATENT, width, generator=generator) for width in WIDTHS]
    clean = [torch.tanh(latent @ drawn / _LATENT**0.5) for drawn in maps]
    return [view + _NOISE * torch.randn(view.shape, generator=generator) for view in clean], clean


def _standardised(rows: torch.Tensor, view: torch.Tensor) -> FloatArray:
    """Return rows with the columns' mean and deviation of the fit part of `view` taken out."""
    fit = view[:N_FIT]
    return np.asarray(((rows - fit.mean(0, keepdim=True)) / fit.std(0, keepdim=True).clamp_min(_SMALLEST_STD)).numpy())


def wrong_pairs(n: int = N_FIT) -> IntArray:
    """Return the study's one derangement as links (n, 2): row i of a with a row of b that is never i.

    Whole permutations are drawn until one has no fixed point (about e of them are needed).
    """
    generator = torch.Generator().manual_seed(_WRONG_PAIRS_SEED)
    rows = torch.arange(n)
    while True:
        partners = torch.randperm(n, generator=generator)
        if not bool((partners == rows).any()):
            return torch.stack([rows, partners], dim=1).numpy()


def epoch_orders(seed: int, epochs: int = 160, n: int = N_FIT) -> IntArray:
    """Return the order of the pairs in each epoch of the models of `seed`, (epochs, n); both conditions share it."""
    generator = torch.Generator().manual_seed(_ORDER_SEED + seed)
    return torch.stack([torch.randperm(n, generator=generator) for _ in range(epochs)]).numpy()


def study_config(epochs: int = 160) -> TrainConfig:
    """Return the study's settings: towers of one ReLU layer of 40 into 16 dimensions (2,392 weights), s = 1 / 0.08."""
    return TrainConfig.of(
        embed_dim=16, hidden=(40,), activation="relu", norm=False, dropout=0.0, input_norm="none", epochs=epochs,
        batch_size=120, learning_rate=2e-3, weight_decay=1e-3, betas=(0.9, 0.999), logit_scale_init=1 / 0.08,
        learn_scale=False, patience=None,
    )  # fmt: skip


def study_course() -> Course:
    """Return how the study trains and chooses: constant rate, decay of all weights, validation loss each 5 epochs."""
    return Course(rate="constant", decay="all", chosen_by="loss", validate_every=5)


def first_model(seed: int, widths: tuple[int, int] = WIDTHS) -> TwoHeads:
    """Return the towers of `seed` before training; both conditions start from them. torch's generator is not moved.

    `widths` are the columns that the towers read.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TwoHeads(study_config().heads((widths[0], False), (widths[1], False)))


def study_members(epochs: int = 160) -> list[Member]:
    """Return the ten members of `fit_ensemble`: for each seed the true pairs, then the wrong ones."""
    wrong, members = wrong_pairs(), []
    for seed in SEEDS:
        start, orders = first_model(seed), epoch_orders(seed, epochs)
        members += [Member(seed, links=links, start=start, orders=list(orders)) for links in (None, wrong)]
    return members
