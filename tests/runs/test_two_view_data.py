import numpy as np
import pytest
import torch

from bridgehead.links import Links
from bridgehead.runs.two_view import (
    SEEDS,
    epoch_orders,
    first_model,
    study_config,
    study_members,
    two_views,
    wrong_pairs,
)


def test_the_1200_events_are_split_in_order_into_720_180_and_300_rows_of_14_and_11_columns():
    data = two_views()
    assert [len(part) for part in (data.fit, data.valid, data.held_out)] == [720, 180, 300]
    for part in (data.fit, data.valid, data.held_out):
        assert (part.a.shape[1], part.b.shape[1]) == (14, 11)
        assert part.a.dtype == part.b.dtype == np.float32


def test_columns_are_standardised_by_the_rows_that_are_trained_on_alone():
    data = two_views()
    for rows in (data.fit.a, data.fit.b):
        np.testing.assert_allclose(rows.mean(axis=0, dtype=np.float64), 0, atol=1e-6)
        np.testing.assert_allclose(rows.std(axis=0, dtype=np.float64, ddof=1), 1, atol=1e-5)
    assert np.abs(data.held_out.a.mean(axis=0)).max() > 1e-3


def test_both_views_are_functions_of_the_same_five_numbers_up_to_noise():
    # tanh is undone by arctanh, after which a view of five latent coordinates has rank five.
    data = two_views()
    generator = torch.Generator().manual_seed(1_206_050)
    latent = torch.randn(1200, 5, generator=generator).double().numpy()
    maps = [torch.randn(5, width, generator=generator).double().numpy() for width in (14, 11)]
    for rows, drawn in ((data.fit.a, maps[0]), (data.fit.b, maps[1])):
        expected = np.tanh(latent[:720] @ drawn / np.sqrt(5))
        centred = expected - expected.mean(axis=0)
        slope = (rows * centred).sum(axis=0) / (centred**2).sum(axis=0)
        # What is left over is the noise of 0.045, in the units of the standardised column.
        np.testing.assert_allclose((rows - slope * centred).std(axis=0) / slope, 0.045, rtol=0.1)


def test_data_orders_and_wrong_pairs_are_the_same_each_time_and_leave_torchs_generator_alone():
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    first, again = two_views(), two_views()
    np.testing.assert_array_equal(first.held_out.b, again.held_out.b)
    np.testing.assert_array_equal(wrong_pairs(), wrong_pairs())
    np.testing.assert_array_equal(epoch_orders(6050, 3), epoch_orders(6050, 3))
    assert (epoch_orders(6050, 3) != epoch_orders(6051, 3)).any()
    assert first_model(6050).head_a.first.weight.equal(first_model(6050).head_a.first.weight)
    assert torch.equal(torch.rand(2), expected)


def test_the_wrong_pairs_give_every_row_another_ones_partner():
    pairs = wrong_pairs()
    np.testing.assert_array_equal(pairs[:, 0], np.arange(720))
    np.testing.assert_array_equal(np.sort(pairs[:, 1]), np.arange(720))
    assert (pairs[:, 0] != pairs[:, 1]).all()
    generator = torch.Generator().manual_seed(88_000)
    drawn = [torch.randperm(720, generator=generator).numpy() for _ in range(30)]
    first = next(order for order in drawn if (order != np.arange(720)).all())
    np.testing.assert_array_equal(pairs[:, 1], first)


def test_every_epoch_orders_all_pairs_and_the_order_is_drawn_from_the_seed():
    orders = epoch_orders(6052)
    assert orders.shape == (160, 720)
    assert (np.sort(orders, axis=1) == np.arange(720)).all()
    generator = torch.Generator().manual_seed(105_052)
    np.testing.assert_array_equal(orders[0], torch.randperm(720, generator=generator).numpy())


def test_the_towers_have_2392_weights_drawn_layer_by_layer_from_the_seed():
    model = first_model(6050)
    assert sum(weight.numel() for weight in model.parameters() if weight.requires_grad) == 2_392
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(6050)
        layers = [torch.nn.Linear(*sizes) for sizes in ((14, 40), (40, 16), (11, 40), (40, 16))]
    ours = [model.head_a.first, model.head_a.rest[0], model.head_b.first, model.head_b.rest[0]]
    for left, right in zip(ours, layers, strict=True):
        assert torch.equal(left.weight, right.weight)
        assert torch.equal(left.bias, right.bias)
    assert float(model.scale()) == pytest.approx(12.5, rel=1e-6)


def test_the_ten_members_pair_both_conditions_of_a_seed():
    members = study_members(epochs=2)
    assert [member.seed for member in members] == [seed for seed in SEEDS for _ in range(2)]
    for true, wrong in zip(members[::2], members[1::2], strict=True):
        assert true.links is None
        assert len(Links.of(wrong.links, 720, 720)) == 720
        assert true.start is wrong.start
        np.testing.assert_array_equal(true.orders, wrong.orders)
    assert study_config().links_per_batch(720) == 120
