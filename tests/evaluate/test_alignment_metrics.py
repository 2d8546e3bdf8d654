"""AlignmentMetrics against its formulas written out, against other parts of the package, and at its limits."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import torch

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import retrieval_report
from bridgehead.evaluate.alignment_metrics import AlignmentMetrics

KEYS = [
    "recall@1_a2b", "recall@5_a2b", "recall@10_a2b", "recall@1_b2a", "recall@5_b2a", "recall@10_b2a",
    "mrr_a2b", "mrr_b2a", "alignment", "uniformity",
]  # fmt: skip


def noisy(n: int, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    z_a = draw.standard_normal((n, d))
    return z_a, z_a + draw.standard_normal((n, d))


def written_out(z_a: torch.Tensor, z_b: torch.Tensor) -> dict[str, float]:
    """The usual formulas on the whole matrix of cosines."""
    a, b = (z / z.norm(dim=1, keepdim=True) for z in (z_a, z_b))
    cosines = a @ b.T
    found = {}
    for name, scores in (("a2b", cosines), ("b2a", cosines.T)):
        rank = (scores >= scores.diag()[:, None]).sum(dim=1)
        for k in (1, 5, 10):
            found[f"recall@{k}_{name}"] = (rank <= k).double().mean().item()
        found[f"mrr_{name}"] = (1 / rank.double()).mean().item()
    found["alignment"] = cosines.diag().mean().item()
    found["uniformity"] = torch.cdist(a, a).pow(2).mul(-2).exp().mean().log().item()
    return found


@pytest.mark.parametrize("n", [12, 300])
def test_the_report_is_that_of_the_formulas_written_out(n: int) -> None:
    z_a, z_b = noisy(n)
    report = AlignmentMetrics(torch.from_numpy(z_a), torch.from_numpy(z_b)).report()
    expected = written_out(torch.from_numpy(z_a), torch.from_numpy(z_b))
    assert list(report) == KEYS and report == pytest.approx(expected, abs=1e-12)
    assert 0.05 < report["recall@1_a2b"] < 0.95 and report["recall@1_a2b"] != report["recall@1_b2a"]


def test_ranks_and_recalls_by_hand() -> None:
    # Angles in degrees; the nearest of b to 0 is 10 (its match is 30, second), to 40 it is 30 (match 10, second).
    at = lambda angles: np.stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))], axis=1)  # noqa: E731
    metrics = AlignmentMetrics(at([0, 40, 90]), at([30, 10, 90]))
    assert metrics.recall_at_k(1) == pytest.approx(1 / 3) and metrics.recall_at_k(2) == 1.0
    assert metrics.mean_reciprocal_rank() == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    # From b, 30 is nearest to 40 (match 0, second); 10 is nearest to 0 (match 40, second).
    assert metrics.mean_reciprocal_rank("b_to_a") == pytest.approx(2 / 3)
    cosine = np.cos(np.radians([30, 30, 0]))
    assert metrics.alignment_score() == pytest.approx(cosine.mean())
    pairs = np.cos(np.radians([40, 90, 50]))
    mean = (3 + 2 * np.exp(-2 * (2 - 2 * pairs)).sum()) / 9
    assert metrics.uniformity() == pytest.approx(np.log(mean))


def test_it_agrees_with_the_retrieval_report_ties_and_zero_rows_included() -> None:
    z_a, z_b = noisy(80, d=3)
    z_b[10:20] = z_b[10]
    z_a[5] = 0
    metrics, report = AlignmentMetrics(z_a, z_b), retrieval_report(z_a, z_b, ks=(1, 5, 10), n_resamples=0)
    for direction, found in (("a_to_b", report.a_to_b), ("b_to_a", report.b_to_a)):
        assert metrics.mean_reciprocal_rank(direction) == pytest.approx(found.mrr, abs=1e-15)
        assert [metrics.recall_at_k(k, direction) for k in (1, 5, 10)] == [found.recall[k] for k in (1, 5, 10)]


def test_constant_rows_are_at_chance_and_one_row_is_first() -> None:
    n = 8
    metrics = AlignmentMetrics(np.ones((n, 3)), np.ones((n, 3)))
    assert [metrics.recall_at_k(k) for k in (1, 3, 8, 99)] == [1 / 8, 3 / 8, 1.0, 1.0]
    assert metrics.mean_reciprocal_rank() == pytest.approx(sum(1 / r for r in range(1, n + 1)) / n)
    assert metrics.uniformity() == pytest.approx(0.0, abs=1e-12)
    alone = AlignmentMetrics([[3.0, 4.0]], [[4.0, 3.0]]).report()
    assert alone["recall@1_a2b"] == 1.0 and alone["uniformity"] == 0.0 and alone["alignment"] == pytest.approx(0.96)


def test_the_pair_of_a_row_with_itself_counts_in_uniformity() -> None:
    # Opposite rows: distance 2 apart; two of four ordered pairs are a row with itself.
    assert AlignmentMetrics([[1.0, 0.0], [-1.0, 0.0]], np.eye(2)).uniformity(t=0.5) == pytest.approx(
        np.log((2 + 2 * np.exp(-0.5 * 4)) / 4)
    )


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    z_a, z_b = noisy(50)
    whole = AlignmentMetrics(z_a, z_b).report()
    for block in (1, 7, 50):
        monkeypatch.setattr("bridgehead.evaluate.alignment_metrics._BLOCK", block)
        assert AlignmentMetrics(z_a, z_b).report() == pytest.approx(whole, abs=1e-13)


def test_the_methods_make_nothing_of_n_by_n() -> None:
    z_a, z_b = noisy(6000, d=8)
    tracemalloc.start()
    AlignmentMetrics(z_a, z_b).report()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000 * 6000 * 8 / 2


def test_unit_rows_and_the_matrix_are_there_to_be_read_and_are_of_the_kind_that_was_given() -> None:
    z_a, z_b = noisy(5)
    arrays = AlignmentMetrics(z_a, z_b)
    tensors = AlignmentMetrics(torch.from_numpy(z_a).float(), torch.from_numpy(z_b).float())
    assert isinstance(arrays.sim_matrix, np.ndarray) and arrays.sim_matrix.shape == (5, 5)
    assert isinstance(tensors.sim_matrix, torch.Tensor) and tensors.z_b.dtype == torch.float32
    np.testing.assert_allclose(tensors.sim_matrix, arrays.sim_matrix, atol=1e-6)
    np.testing.assert_allclose((arrays.z_a * arrays.z_b).sum(axis=1).mean(), arrays.alignment_score())


def test_rows_of_a_model_under_training_are_taken() -> None:
    rows = torch.eye(3, dtype=torch.bfloat16, requires_grad=True)
    assert AlignmentMetrics(rows, rows * 2).report()["mrr_a2b"] == 1.0


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(NonFiniteRowsError, match=r"z_b: 1 of 3 rows hold NaN or infinity \(rows 2\)"):
        AlignmentMetrics(np.eye(3), np.diag([1.0, 1.0, np.nan]))
    with pytest.raises(ShapeError, match=r"z_a has shape \(3, 3\) and z_b \(2, 3\); expected the same"):
        AlignmentMetrics(np.eye(3), np.eye(3)[:2])
    with pytest.raises(ShapeError, match="at least one row"):
        AlignmentMetrics(np.zeros((0, 3)), np.zeros((0, 3)))
    metrics = AlignmentMetrics(np.eye(3), np.eye(3))
    for k in (0, -1, True, 1.5):
        with pytest.raises(ArgumentError, match="expected a whole number of at least 1"):
            metrics.recall_at_k(k)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="direction = 'a2b'; expected 'a_to_b' or 'b_to_a'"):
        metrics.recall_at_k(1, "a2b")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="t = 0"):
        metrics.uniformity(0)


def test_torch_is_not_imported() -> None:
    code = (
        "import sys; from bridgehead.evaluate.alignment_metrics import AlignmentMetrics\n"
        "print(AlignmentMetrics([[1.0, 0], [0, 1]], [[1.0, 0], [0, 1]]).report()['mrr_a2b'], 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "1.0 False\n", done.stderr
