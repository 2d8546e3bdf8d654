import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from sklearn.cross_decomposition import CCA
from sklearn.linear_model import Ridge

from bridgehead.align import NumpyHeads, load_heads
from bridgehead.align.closed_form import METHODS, ClosedForm, fit_closed_form
from bridgehead.errors import ArgumentError, ConfigError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.links import Links


def views(n: int = 200, d_a: int = 6, d_b: int = 5, shared: int = 3, noise: float = 0.3, seed: int = 0):
    """Two noisy linear views of the same hidden rows, float32, not centred."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n, shared))
    made = []
    for width in (d_a, d_b):
        rows = hidden @ rng.standard_normal((shared, width)) + noise * rng.standard_normal((n, width))
        made.append((rows + rng.standard_normal(width)).astype(np.float32))
    return made


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def cosines(found: ClosedForm, rows_a, rows_b):
    return found.transform_a(rows_a) @ found.transform_b(rows_b).T


def recall_at_1(found: ClosedForm, rows_a, rows_b) -> float:
    return float((cosines(found, rows_a, rows_b).argmax(axis=1) == np.arange(len(rows_a))).mean())


@pytest.mark.parametrize("method", METHODS)
def test_a_planted_rotation_is_recovered(method):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 5)).astype(np.float32)
    rotation = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    turned = 3 * rows @ rotation + 7
    options = {} if method == "procrustes" else {"regularisation": 0.0}
    found = fit_closed_form(rows, turned, None, method, 5, input_norm="none", **options)
    assert np.abs(found.transform_a(rows) - found.transform_b(turned)).max() < 2e-5
    assert found.correlations == pytest.approx(np.ones(5), abs=1e-5)
    fresh = rng.standard_normal((9, 5)).astype(np.float32)
    assert np.abs(found.transform_a(fresh) - found.transform_b(3 * fresh @ rotation + 7)).max() < 2e-5


def test_procrustes_is_the_rotation_of_scipy():
    a, b = views(d_a=4, d_b=4)
    found = fit_closed_form(a, b, method="procrustes", embed_dim=4, input_norm="none")
    centred_a, centred_b = a - a.mean(axis=0, dtype=np.float64), b - b.mean(axis=0, dtype=np.float64)
    rotation, _ = orthogonal_procrustes(centred_a, centred_b)
    assert cosines(found, a, b) == pytest.approx(unit(centred_a @ rotation) @ unit(centred_b).T, abs=2e-5)


def test_procrustes_in_fewer_dimensions_is_that_of_the_principal_axes():
    a, b = views(d_a=7, d_b=5)
    found = fit_closed_form(a, b, method="procrustes", embed_dim=3, input_norm="none")
    parts = []
    for rows in (a, b):
        centred = rows - rows.mean(axis=0, dtype=np.float64)
        parts.append(centred @ np.linalg.svd(centred, full_matrices=False)[2][:3].T)
    rotation, _ = orthogonal_procrustes(*parts)
    assert cosines(found, a, b) == pytest.approx(unit(parts[0] @ rotation) @ unit(parts[1]).T, abs=2e-5)


def test_ridge_is_that_of_scikit_learn_in_the_space_of_b():
    a, b = views()
    found = fit_closed_form(a, b, method="ridge", embed_dim=5, regularisation=0.5, input_norm="none")
    centred = a - a.mean(axis=0, dtype=np.float64)
    alpha = len(a) * 0.5 * centred.var(axis=0).mean()
    predicted = Ridge(alpha=alpha, fit_intercept=False).fit(centred, b - b.mean(axis=0)).predict(centred)
    assert cosines(found, a, b) == pytest.approx(unit(predicted) @ unit(b - b.mean(axis=0)).T, abs=2e-5)


def test_cca_has_the_canonical_correlations_and_directions_of_scikit_learn():
    a, b = views(noise=1.0)
    found = fit_closed_form(a, b, method="cca", embed_dim=3, regularisation=0.0)
    ours_a, ours_b = (heads_rows(found, side, rows) for side, rows in (("a", a), ("b", b)))
    theirs_a, theirs_b = CCA(3, max_iter=5000, tol=1e-10).fit(a, b).transform(a, b)
    for k in range(3):
        expected = np.corrcoef(theirs_a[:, k], theirs_b[:, k])[0, 1]
        assert found.correlations[k] == pytest.approx(expected, abs=1e-5)
        assert np.corrcoef(ours_a[:, k], ours_b[:, k])[0, 1] == pytest.approx(expected, abs=1e-5)
        assert abs(np.corrcoef(ours_a[:, k], theirs_a[:, k])[0, 1]) == pytest.approx(1, abs=1e-4)
    # Coordinates are uncorrelated, and their variances stand as the correlations do.
    covariance = np.cov(ours_a.T)
    assert covariance / covariance[0, 0] == pytest.approx(np.diag(found.correlations / found.correlations[0]), abs=1e-4)


def heads_rows(found: ClosedForm, side: str, rows):
    """Rows of a side before they are made unit, by the torch model."""
    with torch.no_grad():
        return getattr(found.to_model(), f"head_{side}")(torch.from_numpy(rows)).double().numpy()


def test_cca_of_one_column_a_side_worked_by_hand():
    # Over the links a = (0, 1, 2), b = (1, 0, 3): covariance 2/3, variances 2/3 and 14/9, correlation sqrt(3/7).
    found = fit_closed_form([[0.0], [1.0], [2.0]], [[1.0], [0.0], [3.0]], regularisation=0.0)
    assert found.correlations.tolist() == pytest.approx([(3 / 7) ** 0.5])
    assert found.embed_dim == 1
    z_a, z_b = found.transform_a([[5.0], [-5.0]]), found.transform_b([[5.0], [-5.0]])
    assert np.array_equal(z_a, z_b) and sorted(z_a[:, 0]) == [-1, 1]


@pytest.mark.parametrize("method", METHODS)
def test_each_link_counts_once_however_many_a_row_has(method):
    a, b = views(40)
    rng = np.random.default_rng(1)
    links = Links(rng.integers(0, 40, (90, 2)), 40, 40)
    found = fit_closed_form(a, b, links, method, 4, input_norm="none")
    paired = fit_closed_form(a[links.pairs[:, 0]], b[links.pairs[:, 1]], None, method, 4, input_norm="none")
    assert cosines(found, a, b) == pytest.approx(cosines(paired, a, b), abs=2e-5)


def test_rows_without_a_link_change_nothing():
    a, b = views(40)
    links = [(i, i) for i in range(30)]
    a_odd, b_odd = a.copy(), b.copy()
    a_odd[30:] *= 1e4
    b_odd[30:] += 1e4
    plain, odd = (fit_closed_form(*rows, links, embed_dim=3) for rows in ((a, b), (a_odd, b_odd)))
    assert np.array_equal(plain.transform_a(a), odd.transform_a(a))


def test_items_of_one_group_share_their_links():
    a, b = views(12)
    grouped = Links([(i, i) for i in range(10)], 12, 12, groups_a=[0, 0] + [-1] * 10)
    found = fit_closed_form(a, b, grouped, embed_dim=3)
    expected = fit_closed_form(a, b, grouped.expanded().pairs, embed_dim=3)
    assert np.array_equal(found.transform_a(a), expected.transform_a(a))


@pytest.mark.parametrize("method", METHODS)
def test_links_in_another_order_and_rows_in_another_order_give_the_same_space(method):
    a, b = views(50)
    order_a, order_b = np.random.default_rng(0).permutation(50), np.random.default_rng(1).permutation(50)
    inverse_a, inverse_b = np.argsort(order_a), np.argsort(order_b)
    found = fit_closed_form(a, b, None, method, 4)
    moved = fit_closed_form(a[order_a], b[order_b], np.stack([inverse_a, inverse_b], axis=1), method, 4)
    assert cosines(moved, a, b) == pytest.approx(cosines(found, a, b), abs=2e-5)


@pytest.mark.parametrize("method", ["cca", "procrustes"])
def test_swapped_sides_give_the_same_cosines(method):
    a, b = views()
    forth, back = fit_closed_form(a, b, None, method, 3), fit_closed_form(b, a, None, method, 3)
    assert back.transform_b(a) @ back.transform_a(b).T == pytest.approx(cosines(forth, a, b), abs=2e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("input_norm", ["unit", "none"])
def test_csr_rows_give_what_the_same_dense_rows_give(method, input_norm):
    rng = np.random.default_rng(0)
    a, b = (sparse.random_array((80, 12), density=0.4, rng=rng, dtype=np.float32, format="csr") for _ in "ab")
    dense = fit_closed_form(a.toarray(), b.toarray(), None, method, 6, input_norm=input_norm)
    found = fit_closed_form(a, b, None, method, 6, input_norm=input_norm)
    assert cosines(found, a, b) == pytest.approx(cosines(dense, a.toarray(), b.toarray()), abs=2e-5)
    mixed = fit_closed_form(a, b.toarray(), None, method, 6, input_norm=input_norm)
    assert cosines(mixed, a, b.toarray()) == pytest.approx(cosines(dense, a.toarray(), b.toarray()), abs=2e-5)


@pytest.mark.parametrize("method", METHODS)
def test_wide_rows_of_low_rank_lose_nothing_when_they_are_first_taken_to_few_dimensions(method):
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((90, 6))
    a = (hidden @ rng.standard_normal((6, 400))).astype(np.float32)
    b = (hidden @ rng.standard_normal((6, 30)) + rng.standard_normal((90, 30))).astype(np.float32)
    full = fit_closed_form(a, b, None, method, 4, input_norm="none")
    few = fit_closed_form(a, b, None, method, 4, input_norm="none", rank=30)
    csr = fit_closed_form(sparse.csr_matrix(a), b, None, method, 4, input_norm="none", rank=30)
    assert cosines(few, a, b) == pytest.approx(cosines(full, a, b), abs=1e-4)
    assert cosines(csr, sparse.csr_matrix(a), b) == pytest.approx(cosines(full, a, b), abs=1e-4)


def test_wide_csr_rows_are_never_made_dense():
    rng = np.random.default_rng(0)
    a = sparse.random_array((3000, 60_000), density=1e-4, rng=rng, dtype=np.float32, format="csr")
    b = rng.standard_normal((3000, 8)).astype(np.float32)
    fit_closed_form(a[:50], b[:50], rank=8)  # what is imported at first use is not counted
    tracemalloc.start()
    found = fit_closed_form(a, b, embed_dim=8, rank=16)
    found.transform_a(a[:10])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6 < a.shape[0] * a.shape[1] * 4


def test_the_same_seed_gives_the_same_maps():
    rng = np.random.default_rng(0)
    a = sparse.random_array((80, 500), density=0.1, rng=rng, dtype=np.float32, format="csr")
    b = rng.standard_normal((80, 5)).astype(np.float32)
    one, again, other = (fit_closed_form(a, b, rank=20, seed=seed).transform_a(a) for seed in (3, 3, 4))
    assert np.array_equal(one, again) and not np.array_equal(one, other)


@pytest.mark.parametrize("method", METHODS)
def test_linked_views_are_found_again_among_new_rows_and_shuffled_links_stay_at_chance(method):
    a, b = views(1000, 20, 15, shared=8, noise=0.05)
    right = fit_closed_form(a[:600], b[:600], None, method, 8)
    wrong = fit_closed_form(a[:600], b[np.random.default_rng(0).permutation(600)], None, method, 8)
    # Chance is 1/400. A rotation cannot undo that the two views are stretched differently, and finds far fewer.
    assert recall_at_1(right, a[600:], b[600:]) > (0.9 if method != "procrustes" else 0.05)
    assert recall_at_1(wrong, a[600:], b[600:]) < 0.02


def test_maps_are_saved_as_heads_and_torch_draws_as_before(tmp_path):
    a, b = views()
    csr = sparse.csr_matrix(b)
    found = fit_closed_form(a, csr, embed_dim=4)
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    found.save(tmp_path / "heads.safetensors")
    assert torch.equal(torch.rand(1), expected)
    for heads in (NumpyHeads.load(tmp_path / "heads.safetensors"), load_heads(tmp_path / "heads.safetensors")):
        assert np.abs(heads.project_a(a) - found.transform_a(a)).max() <= 1e-5
        assert np.abs(heads.project_b(csr) - found.transform_b(csr)).max() <= 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_a_note_says_where_all_is_linked_with_all_that_nothing_varies_together(method):
    a, b = views(n=5)
    found = fit_closed_form(a, b, [(i, j) for i in range(5) for j in range(5)], method=method)
    assert any("do not vary together" in note for note in found.notes)
    assert not any("do not vary together" in note for note in fit_closed_form(a, b, method=method).notes)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(3, 12),
    widths=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    embed_dim=st.integers(1, 12),
    method=st.sampled_from(METHODS),
    seed=st.integers(0, 999),
)
def test_rows_are_unit_and_finite_whatever_the_shapes(n, widths, embed_dim, method, seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((n, width)).astype(np.float32) for width in widths)
    pairs = rng.integers(0, n, (2 * n, 2))
    pairs = np.concatenate([pairs, [[0, 0], [1, 1]]])
    # Where all is linked with all, or one side's linked rows with one row, nothing varies together.
    assume(len(np.unique(pairs, axis=0)) < len(np.unique(pairs[:, 0])) * len(np.unique(pairs[:, 1])))
    found = fit_closed_form(a, b, pairs, method, embed_dim)
    for rows in (found.transform_a(a), found.transform_b(b)):
        assert rows.shape == (n, found.embed_dim) and rows.dtype == np.float32
        assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(n), abs=1e-5)
    assert found.embed_dim <= min(embed_dim, max(widths))
    assert (found.embed_dim < embed_dim) == any("dimensions, not" in note for note in found.notes)
    assert np.abs(found.correlations).max() <= 1 + 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_with_few_links_or_narrow_rows_the_space_is_as_wide_as_can_be_and_a_note_says_so(method):
    a, b = views(5, 8, 8)
    few = fit_closed_form(a, b, None, method, 16)
    assert few.embed_dim == 4
    assert few.notes[0].startswith("the space has 4 dimensions, not 16")
    a, b = views(100, 6, 2)
    assert fit_closed_form(a, b, None, method, 16).embed_dim == 2
    assert fit_closed_form(a, b, None, method, 2).notes == ()


def test_columns_that_do_not_vary_get_no_weight():
    a, b = views()
    still = np.concatenate([a, np.full((200, 2), 5.0, np.float32)], axis=1)
    for norm in ("standard", "none"):
        found = fit_closed_form(still, b, embed_dim=3, input_norm=norm)
        moved = still.copy()
        moved[:, 6:] = 9.0
        expected = fit_closed_form(a, b, embed_dim=3, input_norm=norm)
        assert found.transform_a(moved) == pytest.approx(found.transform_a(still), abs=1e-5)
        assert cosines(found, still, b) == pytest.approx(cosines(expected, a, b), abs=2e-5)


def test_rows_far_from_zero_are_aligned_as_well_as_those_around_it():
    a, b = views(noise=0.1)
    near = fit_closed_form(a, b, embed_dim=3)
    far = fit_closed_form(a + np.float32(1000), b, embed_dim=3)
    assert far.correlations == pytest.approx(near.correlations, abs=1e-3)


def test_cca_that_fits_anything_says_so():
    a, b = views(20, 30, 30)
    found = fit_closed_form(a, b, regularisation=0.0)
    assert found.correlations == pytest.approx(np.ones(19), abs=1e-4)
    assert any("any pairing is fitted perfectly" in note for note in found.notes)
    assert not any("fitted perfectly" in note for note in fit_closed_form(a, b).notes)


def test_without_any_relation_ridge_gives_rows_of_zero_length_not_nan():
    a = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    b = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    found = fit_closed_form(a, b, method="ridge", input_norm="none")
    assert found.transform_a(a).tolist() == [[0.0]] * 4 and found.correlations.tolist() == [0.0]


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"method": "pls"}, ArgumentError, "method = 'pls'; expected one of cca, ridge, procrustes"),
        ({"embed_dim": 0}, ConfigError, "embed_dim = 0"),
        ({"rank": 0}, ConfigError, "rank = 0"),
        ({"regularisation": -1.0}, ArgumentError, "regularisation = -1.0; expected a finite number of 0 or more"),
        ({"regularisation": float("nan")}, ArgumentError, "regularisation = nan"),
        ({"method": "procrustes", "regularisation": 0.1}, ArgumentError, "no meaning for a rotation"),
        ({"input_norm": "max"}, ArgumentError, "input_norm = 'max'; expected one of auto, none, unit, standard"),
        ({"links": [(0, 0)]}, ArgumentError, "1 links; .* expected at least two"),
        ({"links": [(0, 0), (0, 1)]}, ArgumentError, "linked rows of a are all equal"),
        ({"links": [(0, 0), (1, 0)]}, ArgumentError, "linked rows of b are all equal"),
        ({"links": [(0, 0), (1, 999)]}, LinksError, "outside side b"),
    ],
)
def test_what_cannot_be_is_refused(options, error, match):
    a, b = views()
    with pytest.raises(error, match=match):
        fit_closed_form(a, b, **options)


def test_rows_that_cannot_be_are_refused():
    a, b = views()
    with pytest.raises(LinksError, match="200 rows and side b 199"):
        fit_closed_form(a, b[:-1])
    with pytest.raises(ArgumentError, match="would make CSR rows dense"):
        fit_closed_form(sparse.csr_matrix(a), b, input_norm="standard")
    found = fit_closed_form(a, b)
    with pytest.raises(ShapeError, match="5 columns; this head reads 6"):
        found.transform_a(b)
    a[3, 2] = np.nan
    with pytest.raises(NonFiniteRowsError, match="rows 3"):
        fit_closed_form(a, b)


def test_a_closed_form_needs_no_torch():
    program = (
        "import sys, numpy as np\n"
        "from bridgehead.align.closed_form import fit_closed_form\n"
        "rows = np.random.default_rng(0).standard_normal((20, 3))\n"
        "fit_closed_form(rows, rows).transform_a(rows)\n"
        "print('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"
