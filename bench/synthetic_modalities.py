"""Synthetic rows of two modalities: 2,000 clusters in 64 latent dimensions, an offset for each modality, noise.

An item has one latent vector; its row in each modality is that vector, turned into the space, moved by the modality's
offset and blurred. The centroids of the two modalities lie about 0.7 apart, as those of trained encoders do.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
LATENT, CLUSTERS = 64, 2000
SPREAD, OFFSET, NOISE = 0.5, 0.65, 0.3
BLOCK = 8192


class Modalities:
    """Draws latent vectors and their rows (n, dim) in modality 0 or 1; the same for equal seeds."""

    def __init__(self, dim: int = 512, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.dim = dim
        self.centres = (rng.standard_normal((CLUSTERS, LATENT)) / np.sqrt(LATENT)).astype(np.float32)
        self.turn = np.linalg.qr(rng.standard_normal((dim, LATENT)))[0].T.astype(np.float32)
        offsets = rng.standard_normal((2, dim))
        self.offsets = (OFFSET * offsets / np.linalg.norm(offsets, axis=1, keepdims=True)).astype(np.float32)

    def latent(self, n: int, rng: np.random.Generator) -> Rows:
        """Return n latent vectors, each near the centre of a random cluster."""
        blur = SPREAD / np.sqrt(LATENT) * rng.standard_normal((n, LATENT), dtype=np.float32)
        return np.asarray(self.centres[rng.integers(0, CLUSTERS, n)] + blur)

    def rows(self, latent: Rows, modality: int, rng: np.random.Generator) -> Rows:
        """Return the unit rows of latent vectors in a modality, each with noise of its own."""
        noise = NOISE / np.sqrt(self.dim) * rng.standard_normal((len(latent), self.dim), dtype=np.float32)
        rows = latent @ self.turn + self.offsets[modality] + noise
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def blocks(self, n: int, modality: int, seed: int = 1) -> Iterator[tuple[Rows, Rows]]:
        """Yield (latent, rows) of n items, in blocks."""
        rng = np.random.default_rng(seed)
        for start in range(0, n, BLOCK):
            latent = self.latent(min(BLOCK, n - start), rng)
            yield latent, self.rows(latent, modality, rng)


def write_shards(folder: Path, modalities: Modalities, n: int, per_shard: int = 16 * BLOCK) -> tuple[list[Path], Rows]:
    """Write n rows of modality 0 as float32 .npy shards; return their paths and 4,096 latent vectors among theirs."""
    paths: list[Path] = []
    latents: list[Rows] = []
    held: list[Rows] = []
    for latent, rows in modalities.blocks(n, 0):
        latents.append(latent[:: max(1, n // 4096)])
        held.append(rows)
        if sum(map(len, held)) >= per_shard:
            paths.append(_saved(folder, len(paths), held))
            held = []
    if held:
        paths.append(_saved(folder, len(paths), held))
    return paths, np.concatenate(latents)


def _saved(folder: Path, number: int, held: list[Rows]) -> Path:
    path = folder / f"shard-{number:04}.npy"
    np.save(path, np.concatenate(held), allow_pickle=False)
    return path
