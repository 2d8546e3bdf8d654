"""Sides of an index in a temporary folder, and the brute force that their searches are held against."""

import tempfile
from pathlib import Path

import numpy as np

from bridgehead.index.vectors import SideView, VectorPlan, open_base, write_side
from bridgehead.index.vectors.sources import ArrayRows


def written_side(rows, sample=None, kind="flat", floor=0.98, first=0, folder=None, **changes):
    """Return a view of `rows`, numbered from `first`, and the facts of its vectors."""
    with tempfile.TemporaryDirectory() as name:
        part = Path(folder or name)
        rows = np.asarray(rows, dtype=np.float32)
        samples = {"other side": sample} if sample is not None else {}
        plan = VectorPlan(kind=kind, recall_floor=floor)
        facts = write_side(part, "a", ArrayRows(rows), np.arange(first, first + len(rows)), samples, plan)
        # The mapped files stay while they are open, whatever becomes of the folder.
        return SideView(open_base(part, "a", facts), **changes), facts


def half(rows):
    """Return rows as they are stored: float16 of unit length; a zero row stays zero."""
    rows = np.asarray(rows, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(norms > 0, norms, 1)).astype(np.float32).astype(np.float16)


def brute(stored, query, numbers=None):
    """Return all numbers by float64 cosine, then number, and the scores by number: a plain loop."""
    numbers = range(len(stored)) if numbers is None else numbers
    query = np.asarray(query, dtype=np.float64)
    query = query / np.linalg.norm(query)
    scores = {}
    for number, row in zip(numbers, np.asarray(stored, dtype=np.float64), strict=True):
        norm = np.linalg.norm(row)
        scores[int(number)] = round(float(row @ query / norm), 12) if norm else 0.0
    return sorted(scores, key=lambda number: (-scores[number], number)), scores


def nearest(stored, queries, k, allowed=None):
    """Return (m, k) positions of the nearest stored rows, by one product of matrices; for rows without ties."""
    stored, queries = np.asarray(stored, np.float64), np.asarray(queries, np.float64)
    scores = (queries / np.linalg.norm(queries, axis=1, keepdims=True)) @ stored.T / np.linalg.norm(stored, axis=1)
    if allowed is not None:
        outside = np.ones(len(stored), bool)
        outside[allowed] = False
        scores[:, outside] = -np.inf
    return np.argsort(-scores, axis=1)[:, :k]


def shared(found, truth):
    """Return recall: the mean share of each row of `truth` among the numbers found."""
    return float(np.mean([len(set(r.numbers) & set(t)) / len(t) for r, t in zip(found, truth, strict=True)]))


def clustered(n, dim, seed, spread=0.6):
    """Return (n, dim) rows around sixty centres, the same for all seeds."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).standard_normal((60, dim))
    return (centres[rng.integers(0, 60, n)] + spread * rng.standard_normal((n, dim))).astype(np.float32)
