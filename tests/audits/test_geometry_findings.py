"""What the shape of a space claims: planted gaps, hubs and strangers are named, and a good space passes."""

from dataclasses import replace

import numpy as np
import pytest

from bridgehead.audits import Finding
from bridgehead.audits.geometry_findings import geometry_findings
from bridgehead.errors import ShapeError
from bridgehead.evaluate.geometry import gap_correction, geometry_report

N = 200


def views(noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, 12))
    return z, z + noise * rng.normal(size=z.shape)


def judged(z_a: np.ndarray, z_b: np.ndarray, correct: bool = False, **options) -> dict[str, Finding]:
    correction = gap_correction(z_a, z_b, n_resamples=200) if correct else None
    found = geometry_findings(geometry_report(z_a, z_b, names=("molecule", "text")), correction, **options)
    assert {finding.group for finding in found} == {"geometry"}
    return {finding.name: finding for finding in found}


def test_a_good_space_passes_every_claim():
    found = judged(*views(), correct=True)
    assert {name: finding.verdict for name, finding in found.items()} == {
        "true pairs closer than random ones": "pass",
        "sides told apart": "pass",
        "gap correction": "pass",
        "largest hub, molecule -> text": "pass",
        "largest hub, text -> molecule": "pass",
    }


@pytest.mark.parametrize(("noise", "verdict"), [(0.5, "pass"), (4.0, "warn")])
def test_pairs_little_closer_than_strangers_warn(noise, verdict):
    assert judged(*views(noise))["true pairs closer than random ones"].verdict == verdict


def test_links_that_have_nothing_to_do_with_the_space_fail():
    z, _ = views()
    found = judged(z, np.random.default_rng(1).normal(size=z.shape))["true pairs closer than random ones"]
    assert found.verdict == "fail"
    assert found.value == pytest.approx(0.5, abs=0.06)


def test_a_side_in_a_place_of_its_own_warns():
    z_a, z_b = views()
    found = judged(z_a + 3, z_b - 3)
    assert found["sides told apart"].verdict == "warn"
    assert found["sides told apart"].value > 0.95
    assert "centroids" in found["sides told apart"].why


def test_a_gap_that_costs_recall_is_said_with_the_gain():
    z_a, z_b = views()
    offset = np.zeros(12)
    offset[0] = 6
    found = judged(z_a, z_b + offset, correct=True)["gap correction"]
    assert found.verdict == "warn"
    assert found.value > 0.02


def test_a_candidate_before_all_queries_is_a_hub_and_listed_by_its_id():
    z_a, z_b = views()
    # All queries lean one way, and one text lies exactly there: it is nearer to most than anything else.
    z_a, z_b = z_a.copy(), z_b.copy()
    z_a[:, 0] += 8
    z_b[7] = np.eye(12)[0]
    ids = [f"t{i}" for i in range(N)]
    found = judged(z_a, z_b, ids_b=ids)["largest hub, molecule -> text"]
    assert (found.verdict, found.value > 0.5) == ("fail", True)
    assert found.listed is not None
    assert found.listed.rows[0][0] == "t7"


def test_small_pools_in_which_every_list_holds_half_raise_no_alarm():
    z_a, z_b = views()
    found = judged(z_a[:20], z_b[:20])
    assert found["largest hub, molecule -> text"].verdict == "pass"


def test_what_a_report_lacks_is_not_judged():
    geometry = geometry_report(*views())
    bare = replace(geometry, gap=replace(geometry.gap, separability=None))
    bare = replace(bare, histograms=replace(geometry.histograms, true_above_random=None))
    assert len(geometry_findings(bare)) == 2


def test_ids_of_another_number_are_refused():
    with pytest.raises(ShapeError, match="ids of text has 3 entries; expected 200"):
        judged(*views(), ids_b=["x"] * 3)
