import numpy as np

from bridgehead.evaluate import retrieval_report
from bridgehead.report import Measure, direction_of


def test_a_direction_of_a_retrieval_report_becomes_content():
    rows = np.eye(8, dtype=np.float32)
    measured = retrieval_report(rows, rows, ks=(1, 4), n_resamples=50)
    constant = retrieval_report(np.ones((8, 2)), np.ones((8, 2)), ks=(1, 4), n_resamples=50)
    found = direction_of(measured.a_to_b, "text", "molecule", baseline=constant.a_to_b)
    assert found.measures["recall@4"] == Measure(1.0, 1.0, 1.0, 0.5)
    assert found.baseline["recall@1"].value == 1 / 8
    assert found.measures["median_rank"].value == 1.0
    assert not any(name.startswith(("ndcg", "recall_all")) for name in found.measures)
    assert (found.query, found.candidate, found.n_queries, found.n_candidates) == ("text", "molecule", 8, 8)
    assert list(found.ranks) == [1.0] * 8
    assert direction_of(measured.b_to_a, "a", "b").baseline == {}
