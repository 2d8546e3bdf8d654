"""Audits of a training: each planted fault is named, a clean training passes, and what is not there is not judged."""

from typing import Any

import numpy as np
import pytest

from bridgehead.audits import Finding
from bridgehead.audits.training import (
    EvaluatedPart,
    collapse_findings,
    convergence_findings,
    gap_findings,
    loss_findings,
    scale_findings,
)
from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError


def verdicts(findings: list[Finding]) -> dict[str, str]:
    assert {finding.group for finding in findings} <= {"training"}
    return {finding.name: finding.verdict for finding in findings}


def history(**columns: Any) -> list[dict[str, Any]]:
    n = len(next(iter(columns.values())))
    return [{"epoch": epoch + 1} | {name: values[epoch] for name, values in columns.items()} for epoch in range(n)]


# The logit scale.


def test_a_scale_within_its_bounds_passes():
    assert verdicts(scale_findings(history(logit_scale=[14.3, 20.0, 30.0, 31.0]))) == {
        "logit scale at its bound": "pass",
        "temperature": "pass",
    }


def test_a_scale_that_stays_at_its_highest_warns_with_the_epoch_it_got_there():
    bound, _ = scale_findings(history(logit_scale=[14.3, 60.0, 99.5, 100.0, 100.0]))
    assert (bound.verdict, bound.value) == ("warn", 0.6)
    assert "in epoch 3 and stayed" in bound.why
    always, _ = scale_findings(history(logit_scale=[100.0, 100.0]))
    assert "in epoch 1 and stayed" in always.why


def test_a_scale_at_its_lowest_fails():
    assert verdicts(scale_findings(history(logit_scale=[14.3, 2.0, 1.0])))["logit scale at its bound"] == "fail"


@pytest.mark.parametrize(("scale", "verdict"), [(5000.0, "fail"), (300.0, "warn"), (40.0, "pass"), (0.5, "fail")])
def test_an_unbounded_scale_is_judged_by_its_temperature(scale, verdict):
    (found,) = scale_findings(history(temperature=[0.07, 1 / scale]), bounds=None)
    assert (found.verdict, found.value) == (verdict, pytest.approx(1 / scale))


def test_a_scale_that_is_not_learned_or_not_there_is_not_judged():
    assert scale_findings(history(logit_scale=[14.3, 14.3]), learned=False) == []
    assert scale_findings(history(loss=[1.0])) == []


def test_a_history_or_bounds_of_another_kind_are_refused():
    with pytest.raises(ArgumentError, match="history is empty"):
        scale_findings([])
    with pytest.raises(ArgumentError, match="history is a str"):
        scale_findings("history.jsonl")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="line 1 of the history is None"):
        scale_findings([{}, None])  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="logit_scale = 'x'"):
        scale_findings([{"logit_scale": "x"}])
    with pytest.raises(ArgumentError, match=r"bounds = \(3, 1\)"):
        scale_findings([{"logit_scale": 2.0}], bounds=(3, 1))
    with pytest.raises(ArgumentError, match="NaN or infinite"):
        scale_findings([{"logit_scale": float("nan")}])


# The loss.


@pytest.mark.parametrize(("loss", "verdict"), [(4.1588, "fail"), (3.9, "warn"), (1.0, "pass")])
def test_a_loss_at_log_n_fails_and_one_little_below_it_warns(loss, verdict):
    lines = history(loss=[4.2, loss], chance_loss=[np.log(64)] * 2)
    (found,) = loss_findings(lines)
    assert (found.verdict, found.value) == (verdict, pytest.approx(loss / np.log(64)))


def test_the_contrastive_part_of_a_loss_is_what_is_held_against_chance():
    lines = history(loss=[9.0, 9.0], loss_contrastive=[4.0, 1.0], chance_loss=[4.16, 4.16])
    assert verdicts(loss_findings(lines)) == {"loss against chance": "pass"}


def test_epochs_of_warm_up_and_losses_without_a_level_of_chance_are_not_judged():
    assert loss_findings(history(loss=[4.16], chance_loss=[4.16])) == []
    assert loss_findings(history(loss=[4.16, 4.16])) == []
    assert loss_findings(history(loss=[0.0, 0.0], chance_loss=[0.0, 0.0])) == []


@pytest.mark.parametrize(("nats", "verdict"), [(4.1, "warn"), (2.0, "pass"), (-0.1, "fail")])
def test_mutual_information_within_a_hair_of_log_n_is_saturated(nats, verdict):
    lines = history(loss=[1.0, np.log(64) - nats], mutual_information=[1.0, nats], candidates=[64.0, 64.0])
    assert verdicts(loss_findings(lines)) == {"mutual information": verdict}


def test_a_loss_that_is_no_number_fails_with_its_epoch():
    (found,) = loss_findings(history(loss=[4.0, float("nan"), 3.0]))
    assert (found.verdict, found.value) == ("fail", 2.0)
    assert "epoch 2" in found.why


# Collapse.


def test_spread_rows_pass_and_rows_in_one_direction_fail():
    rng = np.random.default_rng(0)
    spread, cone = rng.normal(size=(400, 32)), 8 + rng.normal(size=(400, 32))
    found = collapse_findings(spread, cone, ("molecule", "text"))
    assert verdicts(found)["mean cosine within molecule"] == "pass"
    assert verdicts(found)["mean cosine within text"] == "fail"
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (spread, cone)]
    for finding, unit in zip(found[::2], units, strict=True):
        cosines = unit @ unit.T
        assert finding.value == pytest.approx(cosines[~np.eye(400, dtype=bool)].mean(), abs=1e-12)


def test_rows_along_few_dimensions_fail_and_what_they_never_had_is_no_fault_of_training():
    rng = np.random.default_rng(0)
    line = rng.normal(size=(400, 1)) @ rng.normal(size=(1, 128))
    few = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 128))
    assert verdicts(collapse_findings(line, few)) == {
        "mean cosine within a": "pass",
        "dimensions of a used": "fail",
        "mean cosine within b": "pass",
        "dimensions of b used": "warn",
    }
    raw = rng.normal(size=(400, 6))
    assert verdicts(collapse_findings(few, few, before=(raw, raw)))["dimensions of b used"] == "pass"


def test_too_few_rows_and_rows_that_are_no_numbers_are_refused():
    with pytest.raises(ArgumentError, match="a has 9 rows; expected at least 10"):
        collapse_findings(np.eye(9), np.eye(9))
    with pytest.raises(NonFiniteRowsError):
        collapse_findings(np.full((20, 3), np.nan), np.eye(20, 3))


# Convergence.

CLEAN: dict[str, Any] = {
    "valid_recall@10": [0.1, 0.3, 0.5, 0.55, 0.58, 0.6, 0.61, 0.61],
    "alignment": [0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.5, 0.5],
    "uniformity": [-3.0, -3.2, -3.4, -3.5, -3.6, -3.6, -3.6, -3.6],
    "logit_scale": [14.3, 18.0, 22.0, 25.0, 27.0, 28.0, 28.3, 28.4],
}


def test_a_training_that_converged_shows_all_signals():
    assert verdicts(convergence_findings(history(**CLEAN))) == {
        "recall climbs": "pass",
        "alignment rises": "pass",
        "uniformity keeps": "pass",
        "temperature settles": "pass",
    }


def test_recall_that_falls_fails_and_recall_past_its_best_warns():
    assert verdicts(convergence_findings(history(valid_mrr=[0.5, 0.4, 0.3, 0.2]))) == {"recall climbs": "fail"}
    assert verdicts(convergence_findings(history(valid_mrr=[0.1, 0.6, 0.5, 0.4]))) == {"recall climbs": "warn"}


def test_recall_and_alignment_that_were_reached_in_a_few_epochs_have_risen():
    early = history(valid_mrr=[0.3, 0.6, 0.6, 0.6, 0.6, 0.6, 0.59, 0.59], alignment=[0.27, 0.4, 0.4, 0.39] + 4 * [0.36])
    assert verdicts(convergence_findings(early)) == {"recall climbs": "pass", "alignment rises": "pass"}
    assert verdicts(convergence_findings(history(valid_mrr=[0.6, 0.61, 0.59, 0.59]))) == {"recall climbs": "warn"}


def test_recall_that_was_full_from_the_start_is_no_fault():
    assert verdicts(convergence_findings(history(valid_mrr=[0.99, 1.0, 1.0, 0.99]))) == {"recall climbs": "pass"}
    assert verdicts(convergence_findings(history(valid_mrr=[0.99, 1.0, 1.0, 0.6]))) == {"recall climbs": "fail"}


def test_alignment_that_rises_because_all_rows_become_one_point_is_collapse():
    lines = history(**CLEAN | {"uniformity": [-3.0, -2.5, -2.0, -1.5, -1.0, -0.5, -0.2, -0.1]})
    assert verdicts(convergence_findings(lines))["uniformity keeps"] == "fail"
    lines = history(**CLEAN | {"alignment": CLEAN["alignment"][::-1]})
    assert verdicts(convergence_findings(lines))["alignment rises"] == "warn"


@pytest.mark.parametrize("factor", [1.1, 0.9])
def test_a_temperature_that_still_moves_warns(factor):
    lines = history(logit_scale=[14.3 * factor**epoch for epoch in range(12)])
    (found,) = convergence_findings(lines)
    assert (found.verdict, found.value) == ("warn", pytest.approx(np.log(factor)))


def test_the_history_of_the_short_training_is_read_too():
    lines = history(**{"recall@10_a2b": [0.1, 0.2, 0.3, 0.4], "recall@10_b2a": [0.3] * 4, "temperature": [0.07] * 4})
    found = convergence_findings(lines)
    assert verdicts(found) == {"recall climbs": "pass", "temperature settles": "pass"}
    assert found[0].value == pytest.approx(0.15)


def test_too_few_epochs_are_refused():
    with pytest.raises(ArgumentError, match="3 epochs; expected at least 4"):
        convergence_findings(history(valid_mrr=[0.1, 0.2, 0.3]))
    with pytest.raises(ArgumentError, match="valid_mrr of nan in epoch 2"):
        convergence_findings(history(valid_mrr=[0.1, float("nan"), 0.3, 0.4]))


# Training pairs against others.


def views(n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 16))
    return z, z + noise * rng.normal(size=z.shape)


def test_pairs_outside_that_are_found_as_well_pass_though_the_parts_differ_in_size():
    (found,) = gap_findings(EvaluatedPart(*views(900, 0.5, 0)), EvaluatedPart(*views(100, 0.5, 1)))
    assert found.verdict == "pass"
    assert found.value == pytest.approx(1.0, abs=0.1)
    assert "among 100 candidates each" in found.expected


def test_memorised_pairs_fail_and_half_remembered_ones_warn():
    train = EvaluatedPart(*views(300, 0.1, 0))
    (memory,) = gap_findings(train, EvaluatedPart(views(200, 0, 1)[0], views(200, 0, 2)[0]))
    assert memory.verdict == "fail"
    (partly,) = gap_findings(train, EvaluatedPart(*views(200, 2.5, 1)))
    assert partly.verdict == "warn"
    (nothing,) = gap_findings(EvaluatedPart(views(200, 0, 1)[0], views(200, 0, 2)[0]), train, metric="recall@10")
    assert (nothing.verdict, nothing.value) == ("warn", 0.0)


def test_pairs_of_many_to_many_links_share_no_item_and_their_other_links_count():
    z_a, z_b = views(100, 0.1, 0)
    links = np.concatenate([np.stack([np.arange(100)] * 2, 1), [[i, (i + 1) % 100] for i in range(100)]])
    (found,) = gap_findings(EvaluatedPart(z_a, z_b, links), EvaluatedPart(z_a, z_b, links))
    assert found.value == pytest.approx(1.0)


def test_what_the_gap_cannot_be_read_from_is_refused():
    few, many = EvaluatedPart(*views(19, 0.1, 0)), EvaluatedPart(*views(50, 0.1, 0))
    with pytest.raises(ArgumentError, match="50 pairs of training and 19 held out"):
        gap_findings(many, few)
    with pytest.raises(ArgumentError, match="metric = 'mean_rank'"):
        gap_findings(many, many, metric="mean_rank")
    with pytest.raises(ShapeError, match="expected two dimensions"):
        gap_findings(EvaluatedPart(np.ones(3), np.ones(3)), many)
