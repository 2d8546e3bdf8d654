"""How good the heads are on the validation pairs: the number that chooses the epoch.

This module is not about the figures that are reported, which are of the test split.
"""

from bridgehead.align.model import TwoHeads
from bridgehead.evaluate import retrieval_report
from bridgehead.links import Links
from bridgehead.train.data import PairData
from bridgehead.vectors import FloatArray


def validation_metrics(model: TwoHeads, pairs: PairData) -> dict[str, float]:
    """Return `valid_mrr`, the mean of both directions' MRR in (0, 1], and what stands beside it in the history.

    That is `valid_mrr_a_to_b`, `valid_mrr_b_to_a` and `valid_recall@10`, the mean of both directions' recall@10. All
    rows of the other side are candidates. Raises `LinksError` without a link.
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
    }
