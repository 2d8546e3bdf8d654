import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.align.losses.contrast import Positives, unit
from bridgehead.align.losses.infonce import info_nce, info_nce_parts
from bridgehead.align.losses.tiled import sigmoid_tiled
from bridgehead.align.losses.tiles import Tiling, available_memory, choose_tile
from bridgehead.errors import ArgumentError, NonFiniteRowsError
from tiled_inputs import LargestResult, largest_difference, many_to_many, rows_of, value_and_gradients

FORMS = ("outside", "inside")
DIRECTIONS = ("both", "a_to_b", "b_to_a")


def naive_directions(z_a, z_b, scale, matches, form):
    """Both directions by loops in float64, from the definition."""
    a, b = ([row / max(np.linalg.norm(row), 1e-300) for row in rows.numpy()] for rows in (z_a, z_b))

    def one_way(anchors, candidates, is_match):
        costs = []
        for i, u in enumerate(anchors):
            scores = [scale * sum(x * y for x, y in zip(u, v, strict=True)) for v in candidates]
            top = max(scores)
            log_sum = top + math.log(sum(math.exp(score - top) for score in scores))
            mine = [score for j, score in enumerate(scores) if is_match(i, j)]
            if mine and form == "outside":
                costs.append(log_sum - sum(mine) / len(mine))
            elif mine:
                costs.append(log_sum - max(mine) - math.log(sum(math.exp(score - max(mine)) for score in mine)))
        return sum(costs) / len(costs)

    return one_way(a, b, lambda i, j: (i, j) in matches), one_way(b, a, lambda i, j: (j, i) in matches)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [0.0, 1.0, 14.0, 100.0, 1000.0])
@pytest.mark.parametrize("tile", [1, 4, 11, 16])
def test_value_equals_loops_in_float64_at_any_scale_and_tile(form, scale, tile):
    z_a, z_b, links = many_to_many(11, 9)
    matches = {tuple(pair) for pair in links.expanded().pairs.tolist()}
    forth, back = naive_directions(z_a, z_b, scale, matches, form)
    parts = info_nce_parts(z_a, z_b, scale, links, form, tile=tile)
    assert float(parts.a_to_b) == pytest.approx(forth, rel=1e-10, abs=1e-12)
    assert float(parts.b_to_a) == pytest.approx(back, rel=1e-10, abs=1e-12)
    assert float(parts.loss) == pytest.approx((forth + back) / 2, rel=1e-10, abs=1e-12)
    assert (parts.left_out_a, parts.left_out_b) == (1, info_nce_parts(z_a, z_b, scale, links).left_out_b)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("n_a, n_b", [(23, 23), (23, 17), (17, 23)])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_value_and_gradients_equal_those_of_the_plain_loss(form, direction, n_a, n_b, dtype, tolerance):
    z_a, z_b, links = many_to_many(n_a, n_b, dtype)
    for scale in (0.0, 14.0, 100.0):
        inputs = (z_a, z_b, torch.tensor(scale, dtype=dtype))
        plain = value_and_gradients(lambda *x: info_nce(*x, links, form, direction), *inputs)
        for tile in (1, 7, n_a, n_a + 5):
            tiled = value_and_gradients(lambda *x, t=tile: info_nce(*x, links, form, direction, tile=t), *inputs)
            assert largest_difference(tiled, plain) < tolerance, (scale, tile)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_links_any_shape_and_any_tile_give_the_plain_loss(data):
    n_a, n_b, tile = (data.draw(st.integers(1, 9)) for _ in range(3))
    pair = st.tuples(st.integers(0, n_a - 1), st.integers(0, n_b - 1))
    pairs = sorted(data.draw(st.sets(pair, min_size=1)))
    scale = torch.tensor(data.draw(st.sampled_from([0.0, 3.0, 100.0, 500.0])), dtype=torch.float64)
    z_a, z_b = rows_of((n_a, 3), (n_b, 3), seed=data.draw(st.integers(0, 1000)))
    form = data.draw(st.sampled_from(FORMS))
    plain = value_and_gradients(lambda *x: info_nce(*x, pairs, form), z_a, z_b, scale)
    tiled = value_and_gradients(lambda *x: info_nce(*x, pairs, form, tile=tile), z_a, z_b, scale)
    assert largest_difference(tiled, plain) < 1e-10


@pytest.mark.parametrize("n", [200, 300, 1100])
@pytest.mark.parametrize("products, tolerance", [("float32", 1e-5), ("bf16", 0.02)])
def test_auto_gives_the_plain_loss_whether_tiles_are_kept_or_not(n, products, tolerance, monkeypatch):
    z_a, z_b = rows_of((n, 16), (n + 3, 16), dtype=torch.float32)
    inputs = (z_a, z_b, torch.tensor(20.0))
    pairs = [(i, i) for i in range(n)]
    plain = value_and_gradients(lambda *x: info_nce(*x, pairs), *inputs)
    for kept in (512 * 2**20, 5 * 2**20, 0):
        monkeypatch.setattr("bridgehead.align.losses.tiles._KEPT", kept)
        tiled = value_and_gradients(lambda *x: info_nce(*x, pairs, tile="auto", products=products), *inputs)
        assert largest_difference(tiled, plain) < tolerance


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [3.0, 600.0])
def test_the_gradient_is_that_of_finite_differences(form, scale):
    # s = 600 is beyond the range of one exponential, so running maxima are used. Rows close to each other keep the
    # differences between scores small enough for finite differences.
    z_a, z_b = (
        torch.ones(3, dtype=torch.float64) + rows * (1 if scale == 3.0 else 0.01) for rows in rows_of((4, 3), (3, 3))
    )
    inputs = [z_a.requires_grad_(), z_b.requires_grad_(), torch.tensor(scale, dtype=torch.float64, requires_grad=True)]
    links = [(0, 0), (0, 2), (1, 0), (2, 1)]
    assert torch.autograd.gradcheck(lambda *x: info_nce(*x, links, form, tile=2), inputs)
    assert torch.autograd.gradcheck(lambda *x: info_nce_parts(*x, links, form, tile=2).b_to_a, inputs)


@pytest.mark.parametrize("scale", [100.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_whose_every_score_is_far_below_the_scale_are_exact(scale, dtype):
    # Opposite rows: every score is -s, so its exponential is 0 in the range that serves a score of +s.
    z = torch.tensor([[1.0, 0.0]] * 5, dtype=dtype)
    inputs = (z, -z, torch.tensor(scale, dtype=dtype))
    value, by_a, by_b, by_scale = value_and_gradients(lambda *x: info_nce(*x, tile=2), *inputs)
    assert float(value) == pytest.approx(math.log(5), rel=1e-4 if dtype == torch.float32 else 1e-10)
    assert torch.isfinite(by_a).all() and torch.isfinite(by_b).all()
    assert float(by_scale) == pytest.approx(0.0, abs=1e-4 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
@pytest.mark.parametrize("scale", [0.0, 30.0, 100.0])
def test_identical_rows_give_the_logarithm_of_the_number_of_candidates(n, scale):
    rows = torch.ones(n, 3, dtype=torch.float64)
    assert float(info_nce(rows, rows, scale, tile=3)) == pytest.approx(math.log(n), abs=1e-12)


def test_orthogonal_rows_give_the_closed_form_and_its_derivative_by_the_scale():
    # Cosines are the unit matrix of 6: each anchor costs log(e^s + 5) - s, with derivative e^s / (e^s + 5) - 1.
    value, _, _, by_scale = value_and_gradients(
        lambda *x: info_nce(*x, tile=4), torch.eye(6).double(), torch.eye(6).double(), torch.tensor(2.0).double()
    )
    assert float(value) == pytest.approx(math.log(math.exp(2) + 5) - 2, rel=1e-12)
    assert float(by_scale) == pytest.approx(math.exp(2) / (math.exp(2) + 5) - 1, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_neither_row_order_nor_the_side_that_comes_first_matters(form):
    z_a, z_b, links = many_to_many(13, 10)
    base = value_and_gradients(lambda a, b: info_nce(a, b, 9.0, links, form, tile=4), z_a, z_b)
    swapped = value_and_gradients(lambda b, a: info_nce(b, a, 9.0, links.swapped(), form, tile=4), z_b, z_a)
    assert largest_difference([swapped[0], swapped[2], swapped[1]], base) < 1e-12
    order = torch.randperm(13, generator=torch.Generator().manual_seed(1))
    moved = links.within(order.numpy(), np.arange(10))
    shuffled = value_and_gradients(lambda a, b: info_nce(a, b, 9.0, moved, form, tile=4), z_a[order], z_b)
    assert largest_difference([shuffled[0], shuffled[1], shuffled[2]], [base[0], base[1][order], base[2]]) < 1e-12


def test_rows_of_norm_1e4_at_scale_100_are_finite_and_equal_float64():
    z_a, z_b = (unit(rows) * 1e4 for rows in rows_of((50, 64), (50, 64), dtype=torch.float32))
    found = value_and_gradients(lambda a, b: info_nce(a, b, 100.0, tile=16), z_a, z_b)
    exact = value_and_gradients(lambda a, b: info_nce(a, b, 100.0), z_a.double(), z_b.double())
    assert all(torch.isfinite(each).all() for each in found)
    assert float(found[0]) == pytest.approx(float(exact[0]), rel=1e-5)
    assert float((found[1] - exact[1]).norm() / exact[1].norm()) < 1e-4


@pytest.mark.parametrize("scale, of_norm", [(1.0, 0.006), (14.0, 0.006), (30.0, 0.01), (100.0, 0.02)])
@pytest.mark.parametrize("noise", [None, 4.0, 2.5])
@pytest.mark.parametrize("d", [16, 128])
def test_bf16_products_stay_within_the_stated_error(scale, of_norm, noise, d):
    z_a, z_b = rows_of((400, d), (400, d), dtype=torch.float32)
    z_b = z_b if noise is None else z_a + noise * z_b
    inputs = (z_a, z_b, torch.tensor(scale))
    exact = value_and_gradients(lambda *x: info_nce(*x), *(each.double() for each in inputs))
    found = value_and_gradients(lambda *x: info_nce(*x, tile=150, products="bf16"), *inputs)
    assert found[0].dtype == torch.float32
    assert abs(float(found[0] - exact[0])) < 0.0005 * (1 + float(exact[0]))
    for ours, truth in zip(found[1:3], exact[1:3], strict=True):
        assert float((ours - truth).norm() / truth.norm()) < of_norm


def test_with_bf16_products_no_direction_is_below_0():
    # The score of a positive is part of the sum in the denominator; rounded there, it could exceed the sum.
    z_a, z_b = rows_of((64, 8), (64, 8), dtype=torch.float32)
    parts = info_nce_parts(z_a, z_a + 0.01 * z_b, 100.0, tile=16, products="bf16")
    assert float(parts.a_to_b) >= 0 and float(parts.b_to_a) >= 0


def test_gradients_of_one_side_or_of_the_scale_alone_are_those_of_all_together():
    z_a, z_b = rows_of((9, 4), (9, 4))
    full = value_and_gradients(lambda a, b: info_nce(a, b, 5.0, tile=4), z_a, z_b)
    only_b = value_and_gradients(lambda b: info_nce(z_a, b, 5.0, tile=4), z_b)
    only_s = value_and_gradients(lambda s: info_nce(z_a, z_b, s, tile=4), torch.tensor(5.0).double())
    plain_s = value_and_gradients(lambda s: info_nce(z_a, z_b, s), torch.tensor(5.0).double())
    assert largest_difference(only_b, [full[0], full[2]]) < 1e-14
    assert largest_difference(only_s, plain_s) < 1e-12


def test_the_gradient_can_be_taken_again_while_the_graph_is_retained():
    z_a, z_b = (rows.requires_grad_() for rows in rows_of((9, 4), (9, 4)))
    loss = info_nce(z_a, z_b, 5.0, tile=16)
    first = torch.autograd.grad(loss, z_a, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(2 * loss, z_a)[0] / 2)


def test_autocast_changes_neither_value_nor_gradients():
    z_a, z_b = rows_of((20, 8), (20, 8), dtype=torch.float32)
    outside = value_and_gradients(lambda *x: info_nce(*x, 50.0, tile=7), z_a, z_b)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        within = value_and_gradients(lambda *x: info_nce(*x, 50.0, tile=7), z_a, z_b)
    assert all(torch.equal(a, b) for a, b in zip(outside, within, strict=True))


def test_kept_tiles_are_freed_with_the_graph_though_the_loss_is_still_held():
    z_a, z_b = (rows.requires_grad_() for rows in rows_of((200, 4), (200, 4)))
    parts = info_nce_parts(z_a, z_b, 5.0, tile=200)
    parts.loss.backward()
    with pytest.raises(RuntimeError, match="have already been freed"):
        parts.loss.backward()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("products", ["float32", "bf16"])
def test_no_result_of_any_operation_is_larger_than_rows_or_tile(form, products):
    n, d, tile = 300, 8, 60
    z_a, z_b = (rows.requires_grad_() for rows in rows_of((n, d), (n, d), dtype=torch.float32))
    pairs = [(i, (i + step) % n) for i in range(n) for step in (0, 5)]
    with LargestResult() as seen:
        info_nce(z_a, z_b, 9.0, Positives.of(pairs, n, n), form, tile=tile, products=products).backward()
    assert seen.largest <= max(n * d, tile * tile)
    with LargestResult() as seen:
        bias = torch.tensor(-2.0, requires_grad=True)
        positives = Positives.of(pairs, n, n)
        sigmoid_tiled(unit(z_a), unit(z_b), torch.tensor(9.0), bias, positives, tile, products).backward()
    assert seen.largest <= max(n * d, tile * tile)


def test_without_gradients_each_tile_is_multiplied_once_and_with_them_four_times():
    z_a, z_b = rows_of((100, 4), (100, 4))
    with LargestResult() as seen:
        info_nce(z_a, z_b, 9.0, tile=50)
    assert seen.products == 4
    with torch.no_grad(), LargestResult() as seen:
        sigmoid_tiled(
            unit(z_a), unit(z_b).requires_grad_(), torch.tensor(1.0), torch.tensor(0.0), Positives.diagonal(100), 50
        )
    assert seen.products == 4
    with LargestResult() as seen:
        info_nce(z_a.requires_grad_(), z_b.requires_grad_(), 9.0, tile=50).backward()
    assert seen.products == 16
    with LargestResult() as seen:
        info_nce(z_a, z_b, 9.0, tile=100).backward()
    assert seen.products == 3


def test_tiles_that_memory_allows_are_not_computed_again(monkeypatch):
    z_a, z_b = (rows.requires_grad_() for rows in rows_of((1025, 4), (1025, 4), dtype=torch.float32))
    monkeypatch.setattr("bridgehead.align.losses.tiles._KEPT", 2 * 4 * 1024 * 1024)
    with LargestResult() as seen:
        info_nce(z_a, z_b, 9.0, tile="auto").backward()
    assert seen.products == 4 + 2 + 2 * 4


def test_rows_with_nan_are_named():
    z = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    z[4, 1] = float("nan")
    for scale in (10.0, 100.0):
        with pytest.raises(NonFiniteRowsError, match="rows 4 of z_a"):
            info_nce(z, torch.eye(3).repeat(3, 1), scale, tile=4)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"tile": 0}, "tile = 0; expected None, 'auto' or a whole number of rows, 1 or more"),
        ({"tile": -4}, "tile = -4"),
        ({"tile": True}, "tile = True"),
        ({"tile": 2.0}, r"tile = 2\.0"),
        ({"tile": "large"}, "tile = 'large'"),
        ({"tile": "auto", "products": "fp8"}, "products = 'fp8'; expected 'float32' or 'bf16'"),
        ({"products": "bf16"}, "needs tiles"),
    ],
)
def test_an_option_that_does_not_exist_is_refused_with_what_came_and_what_was_expected(options, match):
    with pytest.raises(ArgumentError, match=match):
        info_nce(torch.eye(3), torch.eye(3), 1.0, **options)
    rows, one, positives = torch.eye(3), torch.tensor(1.0), Positives.diagonal(3)
    with pytest.raises(ArgumentError, match=match):
        sigmoid_tiled(rows, rows, one, one, positives, **{"tile": None, **options})


def test_a_tile_is_the_batch_where_it_is_small_a_million_scores_above_and_fewer_where_memory_is_short(monkeypatch):
    assert choose_tile(32, 20, 512, torch.float32) == 32
    assert available_memory() > 0
    monkeypatch.setattr("bridgehead.align.losses.tiles.available_memory", lambda: 10**10)
    assert choose_tile(24_576, 24_576, 512, torch.float32) == 1024
    assert choose_tile(100_000, 256, 512, torch.float32) == 4096
    assert choose_tile(1200, 800, 512, torch.float32) == 1200
    assert Tiling.of("auto", 24_576, 24_576, 512, torch.float32).kept == 128
    assert Tiling.of(1024, 24_576, 24_576, 512, torch.float32).kept == 0
    # 8 x (4 x 256 x 256 + 2 x 256 x 512) x 4 bytes = 16.8 MB; twice the size needs 50 MB.
    monkeypatch.setattr("bridgehead.align.losses.tiles.available_memory", lambda: 20 * 10**6)
    assert choose_tile(24_576, 24_576, 512, torch.float32) == 256
    monkeypatch.setattr("bridgehead.align.losses.tiles.available_memory", lambda: 0)
    assert choose_tile(24_576, 24_576, 512, torch.float32) == 64
