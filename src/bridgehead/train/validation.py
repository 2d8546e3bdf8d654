"""How good the heads are on the validation pairs: the number that chooses the epoch.

This module is not about the figures that are reported (`evaluate.retrieval_report` on the test split).
"""

import numpy as np
from scipy import sparse

from bridgehead.align.model import TwoHeads
from bridgehead.links import Links
from bridgehead.train.data import PairData
from bridgehead.vectors import FloatArray, score_blocks


def validation_metrics(model: TwoHeads, valid: PairData) -> dict[str, float]:
    """Return `valid_mrr_a_to_b`, `valid_mrr_b_to_a` and their mean `valid_mrr`, each in (0, 1]."""
    z_a, z_b = model.project_a(valid.rows_a), model.project_b(valid.rows_b)
    a_to_b, b_to_a = _mrr(z_a, z_b, valid.links), _mrr(z_b, z_a, valid.links.swapped())
    return {"valid_mrr": (a_to_b + b_to_a) / 2, "valid_mrr_a_to_b": a_to_b, "valid_mrr_b_to_a": b_to_a}


def _mrr(queries: FloatArray, candidates: FloatArray, links: Links) -> float:
    """Return the mean of 1 / best rank over queries with truth; ties count half."""
    matrix: sparse.csr_array = links.matrix
    found = []
    for rows, scores in score_blocks(queries, candidates):
        true = matrix[np.arange(rows.start, rows.stop)].toarray()
        has_truth = true.any(axis=1)
        best = np.where(true, scores, -np.inf).max(axis=1, keepdims=True)
        above = ((scores > best) & ~true).sum(axis=1) + ((scores == best) & ~true).sum(axis=1) / 2
        found.append(1 / (1 + above[has_truth]))
    return float(np.concatenate(found).mean())
