"""How good the heads are on the validation pairs: the number that chooses the epoch.

This module is not about the figures that are reported, which are of the test split.
"""

from bridgehead.align.model import TwoHeads
from bridgehead.evaluate import retrieval_report
from bridgehead.evaluate.geometry import alignment_cosine, uniformity
from bridgehead.links import Links
from bridgehead.train.data import PairData
from bridgehead.vectors import FloatArray

# Uniformity goes with the square of the rows, and is asked for after each epoch.
_SAMPLE = 500


def validation_metrics(model: TwoHeads, pairs: PairData) -> dict[str, float]:
    """Return `valid_mrr`, the mean of both directions' MRR in (0, 1], and what stands beside it in the history.

    That is `valid_mrr_a_to_b`, `valid_mrr_b_to_a` and `valid_recall@10`, the mean of both directions' recall@10, with
    all rows of the other side as candidates; `valid_alignment`, the mean cosine of linked rows, and `valid_uniformity`,
    the mean of both sides' log mean exp(-2 |u - v|^2) over pairs of rows (500 rows of a side at most, always the same
    ones; left out where a side has one row): an alignment that rises while uniformity goes to 0 is a collapse. Raises
    `LinksError` without a link.
    """
    return metrics_of_rows(model.project_a(pairs.rows_a), model.project_b(pairs.rows_b), pairs.links)


def metrics_of_rows(z_a: FloatArray, z_b: FloatArray, links: Links) -> dict[str, float]:
    """Return what `validation_metrics` does, of rows that are projected already."""
    report = retrieval_report(z_a, z_b, links, ks=(10,), n_resamples=0)
    forth, back = report.a_to_b, report.b_to_a
    return {
        "valid_mrr": (forth.mrr + back.mrr) / 2,
        "valid_mrr_a_to_b": forth.mrr,
        "valid_mrr_b_to_a": back.mrr,
        "valid_recall@10": (forth.recall[10] + back.recall[10]) / 2,
        "valid_alignment": alignment_cosine(z_a, z_b, links),
        **_uniformity(z_a, z_b),
    }


def _uniformity(z_a: FloatArray, z_b: FloatArray) -> dict[str, float]:
    if min(len(z_a), len(z_b)) < 2:
        return {}
    return {"valid_uniformity": (uniformity(z_a, sample=_SAMPLE) + uniformity(z_b, sample=_SAMPLE)) / 2}
