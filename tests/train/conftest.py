"""Two views of one latent event, as the second seed of the project makes them, for tests that train."""

from dataclasses import dataclass

import numpy as np
import pytest


@dataclass(frozen=True)
class Views:
    """Rows of both sides for the three parts; row i of a is linked with row i of b."""

    fit: tuple[np.ndarray, np.ndarray]
    valid: tuple[np.ndarray, np.ndarray]
    held_out: tuple[np.ndarray, np.ndarray]


def make_views(n_fit=720, n_valid=180, n_held_out=300, seed=1206050) -> Views:
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n_fit + n_valid + n_held_out, 5))
    sides = [np.tanh(latent @ rng.standard_normal((5, width)) / 5**0.5) for width in (14, 11)]
    sides = [(side + 0.045 * rng.standard_normal(side.shape)).astype(np.float32) for side in sides]
    cuts = (slice(0, n_fit), slice(n_fit, n_fit + n_valid), slice(n_fit + n_valid, None))
    return Views(*((sides[0][cut], sides[1][cut]) for cut in cuts))


@pytest.fixture(scope="session")
def views() -> Views:
    return make_views()


@pytest.fixture(scope="session")
def few() -> Views:
    return make_views(60, 20, 20)
