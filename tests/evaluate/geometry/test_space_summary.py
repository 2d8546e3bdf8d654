"""`geometry_report`: the parts put together, samples said, JSON-safe, every degenerate size."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError
from bridgehead.evaluate.geometry import (
    alignment_cosine,
    geometry_report,
    hubness,
    modality_gap,
    similarity_histograms,
    spread,
    uniformity,
)


def rows(n, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def test_the_record_holds_what_the_parts_give():
    z_a, z_b, links = rows(40), rows(30, seed=1), [(i, i % 30) for i in range(40)]
    found = geometry_report(z_a, z_b, links, k=5, seed=2)
    assert found.alignment_cosine == alignment_cosine(z_a, z_b, links)
    assert found.uniformity == {"a": uniformity(z_a), "b": uniformity(z_b)}
    assert (found.hubness["a_to_b"], found.hubness["b_to_a"]) == hubness(z_a, z_b, 5)
    assert found.spread == {"a": spread(z_a), "b": spread(z_b)}
    assert found.gap == modality_gap(z_a, z_b, links, seed=2)
    assert found.histograms == similarity_histograms(z_a, z_b, links, seed=2)
    assert (found.n_rows, found.n_links, found.n_dimensions, found.sampled) == ((40, 30), 40, 6, False)


def test_a_sample_is_said_and_hubs_keep_the_row_numbers_of_the_whole_side():
    z_a, z_b = np.abs(rows(300)), rows(200, seed=1)
    # Odd rows of b lie in a cone about the middle of a: they are the hubs.
    z_b[1::2] = 1 + 0.01 * rows(100, seed=2)
    links = [(i, i) for i in range(200)]
    found = geometry_report(z_a, z_b, links, sample=50)
    assert found.looked_at == (50, 50) and found.sampled
    assert all(row % 2 for row in found.hubness["a_to_b"].top_rows) and max(found.hubness["a_to_b"].top_rows) >= 50
    assert max(found.hubness["b_to_a"].top_rows) >= 50
    assert any("50 rows of a and 50 of b, drawn at random (seed 0)" in line for line in found.lines())
    assert found.to_dict() == geometry_report(z_a, z_b, links, sample=50).to_dict()


def test_the_record_is_json_and_comes_back_as_it_was():
    stored = geometry_report(rows(30), rows(30, seed=1), names=("molecule", "text")).to_dict()
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored
    assert len(stored["histograms"]["edges"]) == 41 and stored["hubness"]["a_to_b"]["n_queries"] == 30
    assert stored["names"] == ["molecule", "text"] and stored["gap"]["n_rows"] == [30, 30]


def test_the_lines_name_the_sides_and_put_chance_beside_the_figures():
    text = "\n".join(geometry_report(rows(60), rows(60, seed=1), names=("molecule", "text")).lines())
    for said in ("60 rows of molecule", "molecule -> text, first 10", "0.5 is guessing", "chance", "effective rank"):
        assert said in text
    assert "zero rows" not in text


@pytest.mark.parametrize("z", [np.ones((12, 3)), np.zeros((12, 3)), np.eye(1), np.eye(2), np.ones((2, 5))])
def test_every_degenerate_space_has_a_record(z):
    found = geometry_report(z, z)
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.lines() and (found.n_zero[0] > 0) == (not z.any())


def test_swapping_the_sides_swaps_the_record():
    z_a, z_b = rows(40), rows(40, seed=1)
    forth, back = geometry_report(z_a, z_b), geometry_report(z_b, z_a)
    assert forth.hubness["a_to_b"] == back.hubness["b_to_a"] and forth.spread["a"] == back.spread["b"]
    assert forth.alignment_cosine == pytest.approx(back.alignment_cosine, abs=1e-15)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"names": "ab"}, ArgumentError, "names = 'ab'"),
        ({"names": ("a", None)}, ArgumentError, "expected two"),
        ({"k": 0}, ArgumentError, "k = 0"),
        ({"sample": 1}, ArgumentError, "sample = 1"),
        ({"seed": None}, ArgumentError, "seed = None"),
        ({"links": []}, LinksError, "no links"),
        ({"z_b": np.full((20, 6), np.inf)}, NonFiniteRowsError, "b: 20 of 20 rows"),
    ],
)
def test_what_does_not_fit_is_refused(change, error, message):
    with pytest.raises(error, match=message):
        geometry_report(**{"z_a": rows(20), "z_b": rows(20, seed=1)} | change)


def test_geometry_is_imported_without_torch_or_scikit_learn():
    names = "('torch', 'sklearn', 'rdkit')"
    script = f"import sys, bridgehead.evaluate.geometry; print([n for n in {names} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
