"""The metrics of rows against scikit-learn and ranx: random problems, many true candidates, no ties."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import label_ranking_average_precision_score, ndcg_score, top_k_accuracy_score

from bridgehead.evaluate import retrieval_report
from bridgehead.links import Links

KS = (1, 5, 10, 40)


def problem(seed: int, n_a: int = 90, n_b: int = 120) -> tuple[Any, Any, Links]:
    rng = np.random.default_rng(seed)
    z_a, z_b = rng.standard_normal((n_a, 16)), rng.standard_normal((n_b, 16))
    return z_a, z_b, Links(np.argwhere(rng.random((n_a, n_b)) < 0.08), n_a, n_b)


def cosines(z_a: Any, z_b: Any) -> Any:
    return (z_a / np.linalg.norm(z_a, axis=1, keepdims=True)) @ (z_b / np.linalg.norm(z_b, axis=1, keepdims=True)).T


@pytest.mark.parametrize("seed", range(5))
def test_average_precision_and_ndcg_are_those_of_scikit_learn(seed: int) -> None:
    z_a, z_b, links = problem(seed)
    report = retrieval_report(z_a, z_b, links, ks=KS, n_resamples=0)
    scores, truth = cosines(z_a, z_b), links.matrix.toarray().astype(int)
    for found, own, matches in ((report.a_to_b, scores, truth), (report.b_to_a, scores.T, truth.T)):
        assert found.n_ties == 0 and found.n_true.max() > 5
        asked = matches.any(axis=1)
        own, matches = own[asked], matches[asked]
        assert found.map == pytest.approx(label_ranking_average_precision_score(matches, own), abs=1e-9)
        for k in KS:
            assert found.ndcg[k] == pytest.approx(ndcg_score(matches, own, k=k), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_recall_of_one_true_candidate_each_is_top_k_accuracy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z_a, z_b = rng.standard_normal((80, 6)), rng.standard_normal((80, 6))
    report = retrieval_report(z_a, z_b, ks=KS, n_resamples=0)
    for found, own in ((report.a_to_b, cosines(z_a, z_b)), (report.b_to_a, cosines(z_a, z_b).T)):
        for k in KS:
            expected = top_k_accuracy_score(np.arange(80), own, k=k, labels=np.arange(80))
            assert found.recall[k] == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_metrics_are_those_of_ranx() -> None:
    ranx = pytest.importorskip("ranx", reason="ranx is not installed: bench/ranks.py compares with it")
    z_a, z_b, links = problem(0)
    report = retrieval_report(z_a, z_b, links, ks=KS, n_resamples=0)
    own, matches = cosines(z_a, z_b), links.matrix.toarray()
    asked = np.flatnonzero(matches.any(axis=1)).tolist()
    qrels = ranx.Qrels({f"q{i}": {f"d{j}": 1 for j in np.flatnonzero(matches[i])} for i in asked})
    run = ranx.Run({f"q{i}": {f"d{j}": float(score) for j, score in enumerate(own[i])} for i in asked})
    names = {"mrr": "mrr", "map": "map", "r_precision": "r-precision"}
    names |= {f"recall@{k}": f"hit_rate@{k}" for k in KS} | {f"recall_all@{k}": f"recall@{k}" for k in KS}
    names |= {f"ndcg@{k}": f"ndcg@{k}" for k in KS}
    expected = ranx.evaluate(qrels, run, list(names.values()), make_comparable=False)
    for name, theirs in names.items():
        assert report.a_to_b.values[name] == pytest.approx(float(expected[theirs]), abs=1e-9), name
