import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import sparse
from torch import nn

from bridgehead.align import TwoHeads
from bridgehead.align.losses.infonce import info_nce
from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import retrieval_report
from bridgehead.links import Links
from bridgehead.train import TrainConfig, fit_heads
from bridgehead.train.ensemble.fit import Course, Member, fit_ensemble
from bridgehead.train.ensemble.stacked import PairedLoss, StackedHead, StackedModels, check_losses, put_into

# Sixty pairs in batches of 12 are five steps an epoch.
TEN_STEPS = {"embed_dim": 8, "hidden": (16,), "epochs": 2, "batch_size": 12, "dropout": 0.0}


def config_of(**changes):
    return TrainConfig.of(TEN_STEPS, **changes)


def largest_difference(left, right):
    left, right = left.state_dict(), right.state_dict()
    assert left.keys() == right.keys()
    return max(float((left[name] - right[name]).abs().max()) for name in left)


def alone(views, config, seed, **given):
    return fit_heads(*views.fit, config=TrainConfig.of(config, seed=seed), **given)


ARCHITECTURES = {
    "default": {},
    "linear": {"hidden": ()},
    "relu without norm": {"activation": "relu", "norm": "none"},
    "three layers of rms and a residual": {"hidden": (8, 12, 16), "norm": "rms", "residual": "output"},
    "skips around layers": {"hidden": (16, 16, 16), "residual": "layers"},
    "sides of different depth": {"hidden_a": (24,), "hidden_b": (10, 12)},
    "unit rows": {"input_norm": "unit"},
    "raw rows and a fixed scale": {"input_norm": "none", "learn_scale": False},
    "dropout everywhere": {"dropout": 0.3, "input_dropout": 0.2, "hidden": (16, 12)},
    "one direction": {"direction": "a_to_b"},
    "a scale that reaches its bound": {"logit_scale_init": 99.99, "learning_rate": 3e-3},
}


@pytest.mark.parametrize("changes", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_each_member_ends_where_training_it_alone_ends_after_ten_steps_in_float32(few, changes):
    config = config_of(**changes)
    found = fit_ensemble(*few.fit, config=config, members=[Member(seed) for seed in (3, 0, 7)])
    for result, seed in zip(found, (3, 0, 7), strict=True):
        single = alone(few, config, seed)
        assert largest_difference(result.model, single.model) < 1e-5
        for line, expected in zip(result.history, single.history, strict=True):
            assert line.keys() == expected.keys()
            assert line | {"seconds": 0} == pytest.approx(expected | {"seconds": 0}, abs=1e-5, rel=1e-5)


def test_validation_chooses_the_same_epoch_and_stops_at_the_same_one_as_alone(few):
    config = config_of(epochs=12, patience=1, learning_rate=2e-2)
    valid = (*few.valid, None)
    found = fit_ensemble(*few.fit, config=config, members=[Member(seed) for seed in range(4)], valid=valid)
    singles = [alone(few, config, seed, valid=valid) for seed in range(4)]
    assert [result.best_epoch for result in found] == [single.best_epoch for single in singles]
    assert [len(result.history) for result in found] == [len(single.history) for single in singles]
    assert len({len(result.history) for result in found}) > 1
    assert [result.notes for result in found] == [single.notes for single in singles]
    for result, single in zip(found, singles, strict=True):
        assert largest_difference(result.model, single.model) < 1e-3
        assert result.history[0]["valid_mrr"] == pytest.approx(single.history[0]["valid_mrr"], abs=1e-6)


def many_to_many(n=60):
    rows = np.arange(n)
    return Links(np.concatenate([np.stack([rows, rows // 2], 1), np.stack([rows[::3], (rows[::3] + 9) // 2], 1)]), n, n)


@pytest.mark.parametrize("changes", [{}, {"form": "inside"}, {"dropout": 0.3}, {"direction": "b_to_a"}])
def test_items_with_several_links_are_trained_as_alone(few, changes):
    config, links = config_of(**changes), many_to_many()
    found = fit_ensemble(*few.fit, links, config, [Member(1), Member(2)])
    for result, seed in zip(found, (1, 2), strict=True):
        single = fit_heads(*few.fit, links, TrainConfig.of(config, seed=seed))
        assert largest_difference(result.model, single.model) < 1e-5


def test_members_have_links_and_directions_of_their_own(few):
    wrong = np.stack([np.arange(60), np.roll(np.arange(60), 7)], axis=1)
    members = [Member(0), Member(0, links=wrong), Member(0, direction="a_to_b"), Member(0, direction="b_to_a")]
    found = fit_ensemble(*few.fit, config=config_of(), members=members)
    singles = [
        fit_heads(*few.fit, links, config_of(direction=direction))
        for links, direction in [(None, "both"), (wrong, "both"), (None, "a_to_b"), (None, "b_to_a")]
    ]
    assert all(largest_difference(one.model, two.model) < 1e-5 for one, two in zip(found, singles, strict=True))
    assert largest_difference(found[0].model, found[1].model) > 1e-3


def test_a_hidden_column_is_trained_as_its_mean_and_ignored_by_the_finished_model(few):
    a, b = few.fit
    replaced = a.copy()
    replaced[:, [2, 5]] = a[:, [2, 5]].mean(axis=0)
    for input_norm in ("standard", "none"):
        config = config_of(input_norm=input_norm)
        found = fit_ensemble(a, b, None, config, [Member(0, hide_a=[2, 5]), Member(0)])
        single = fit_heads(replaced, b, None, config)
        np.testing.assert_allclose(found[0].model.project_a(a), single.model.project_a(replaced), atol=2e-5)
        np.testing.assert_allclose(found[0].model.project_b(b), single.model.project_b(b), atol=2e-5)
        other = a.copy()
        other[:, [2, 5]] = 50.0
        np.testing.assert_array_equal(found[0].model.project_a(other), found[0].model.project_a(a))
        assert np.abs(found[1].model.project_a(other) - found[1].model.project_a(a)).max() > 0.01


def test_a_member_without_a_side_stays_at_chance_and_the_others_learn(few):
    members = [Member(0), Member(0, hide_b="all")]
    config = config_of(epochs=30, learning_rate=1e-2)
    found = fit_ensemble(*few.fit, config=config, members=members, valid=(*few.valid, None))
    seeing, blind = (
        retrieval_report(r.model.project_a(few.valid[0]), r.model.project_b(few.valid[1]), None, ks=(1,), n_resamples=0)
        for r in found
    )
    assert seeing.a_to_b.recall[1] > 0.4
    assert blind.a_to_b.recall[1] == pytest.approx(1 / 20)
    assert blind.a_to_b.mrr == pytest.approx(sum(1 / k for k in range(1, 21)) / 20)
    assert np.log(12) < found[1].history[-1]["loss"] < np.log(12) + 0.1
    assert any("no signal" in note for note in found[1].notes)


def plain_training(views, start, partners, orders, dtype, choose=True):
    """The two-view study's loop as the protocol describes it: plain modules, AdamW over everything, one model."""
    towers = nn.ModuleList(
        nn.Sequential(copy.deepcopy(head.first), nn.ReLU(), copy.deepcopy(head.rest[0]))
        for head in (start.head_a, start.head_b)
    ).to(dtype)
    (x_a, x_b), (valid_a, valid_b) = (
        [torch.from_numpy(rows).to(dtype) for rows in part] for part in (views.fit, views.valid)
    )

    def loss_of(a, b):
        left, right = F.normalize(towers[0](a), dim=1), F.normalize(towers[1](b), dim=1)
        scores = left @ right.T / 0.08
        return (F.cross_entropy(scores, torch.arange(len(a))) + F.cross_entropy(scores.T, torch.arange(len(a)))) / 2

    optimiser = torch.optim.AdamW(towers.parameters(), lr=2e-3, weight_decay=1e-3)
    best, kept, best_epoch = float("inf"), towers.state_dict(), 0
    for epoch, order in enumerate(orders, start=1):
        for batch in torch.as_tensor(order).split(120):
            optimiser.zero_grad()
            loss_of(x_a[batch], x_b[torch.as_tensor(partners)[batch]]).backward()
            optimiser.step()
        if choose and epoch % 5 == 0:
            with torch.no_grad():
                value = float(loss_of(valid_a, valid_b))
            if value < best:
                best, kept, best_epoch = value, copy.deepcopy(towers.state_dict()), epoch
    towers.load_state_dict(kept)
    return towers, best_epoch


def study(views, epochs, dtype, seeds, choose=True):
    config = TrainConfig.of(
        embed_dim=16, hidden=(40,), activation="relu", norm=False, dropout=0.0, input_norm="none", epochs=epochs,
        batch_size=120, learning_rate=2e-3, weight_decay=1e-3, betas=(0.9, 0.999), logit_scale_init=1 / 0.08,
        learn_scale=False, patience=None,
    )  # fmt: skip
    n = len(views.fit[0])
    partners = {"true": np.arange(n), "wrong": np.roll(np.random.default_rng(5).permutation(n), 1)}
    given, members = [], []
    for seed in seeds:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            start = TwoHeads(config.heads((views.fit[0].shape[1], False), (views.fit[1].shape[1], False)))
        rng = np.random.default_rng(seed)
        orders = [rng.permutation(n) for _ in range(epochs)]
        for own in partners.values():
            given.append((start, own, orders))
            links = np.stack([np.arange(n), own], axis=1)
            members.append(Member(seed, links=links, start=start, orders=orders))
    course = Course(rate="constant", decay="all", chosen_by="loss", validate_every=5)
    valid = (*views.valid, None) if choose else None
    return given, fit_ensemble(*views.fit, None, config, members, valid=valid, course=course, dtype=dtype)


def tower_difference(model, towers):
    pairs = [(model.head_a, towers[0]), (model.head_b, towers[1])]
    return max(
        float((ours - theirs).detach().abs().max())
        for head, tower in pairs
        for ours, theirs in [
            (head.first.weight, tower[0].weight), (head.first.bias, tower[0].bias),
            (head.rest[0].weight, tower[2].weight), (head.rest[0].bias, tower[2].bias),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "epochs", "tolerance"),
    [(torch.float32, 2, 1e-5), (torch.float64, 17, 1e-9)],
    ids=["12 steps in float32", "102 steps in float64"],
)
def test_the_studys_models_equal_plain_ones_trained_alone(views, dtype, epochs, tolerance):
    given, found = study(views, epochs, dtype, seeds=(6050, 6051), choose=False)
    for (start, partners, orders), result in zip(given, found, strict=True):
        plain, _ = plain_training(views, start, partners, orders, dtype, choose=False)
        assert tower_difference(result.model, plain) < tolerance
        assert result.model.head_a.first.weight.dtype == dtype


@pytest.mark.slow
def test_the_studys_final_recalls_and_chosen_epochs_are_those_of_plain_models(views):
    given, found = study(views, 160, torch.float32, seeds=range(6050, 6053))
    recalls = []
    for (start, partners, orders), result in zip(given, found, strict=True):
        towers, best_epoch = plain_training(views, start, partners, orders, torch.float32)
        with torch.no_grad():
            rows = [towers[side](torch.from_numpy(views.held_out[side])).numpy() for side in (0, 1)]
        projected = result.model.project_a(views.held_out[0]), result.model.project_b(views.held_out[1])
        reports = [retrieval_report(*both, None, ks=(1,), n_resamples=0) for both in (projected, rows)]
        recalls.append([[report.a_to_b.recall[1], report.b_to_a.recall[1]] for report in reports])
        assert abs(result.best_epoch - best_epoch) <= 5
    ours, theirs = np.array(recalls).transpose(1, 0, 2)
    for start in (0, 1):
        np.testing.assert_allclose(ours[start::2].mean(axis=0), theirs[start::2].mean(axis=0), atol=0.005)
    assert ours[0::2].mean() > 0.9
    assert ours[1::2].mean() < 0.02


def test_the_loss_of_pairs_and_its_gradients_equal_info_nce_on_each_model():
    generator = torch.Generator().manual_seed(0)
    for dtype, scale, tolerance in [
        (torch.float64, 3.0, 1e-12),
        (torch.float64, 100.0, 1e-11),
        (torch.float32, 30.0, 2e-5),
        (torch.float32, 100.0, 5e-5),
    ]:
        z_a, z_b = (torch.randn(3, 20, 6, generator=generator).to(dtype).requires_grad_() for _ in range(2))
        log = torch.full((3,), scale, dtype=dtype).log().requires_grad_()
        forth = torch.tensor([0.5, 1.0, 0.0], dtype=dtype)
        ways = ("both", "a_to_b", "b_to_a")
        expected = torch.stack([info_nce(z_a[m], z_b[m], log[m].exp(), direction=way) for m, way in enumerate(ways)])
        gradients = torch.autograd.grad(expected.sum(), [z_a, z_b, log])
        found = PairedLoss(forth)(z_a.detach(), z_b.detach(), log.detach().exp())
        for ours, theirs in zip(found, (expected.detach(), *gradients), strict=True):
            torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


def test_a_zero_row_has_the_loss_and_gradients_that_it_has_alone():
    rows = torch.eye(4, dtype=torch.float64)[None].clone()
    rows[0, 2] = 0
    other = torch.rand(1, 4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    z_a, z_b = rows[0].clone().requires_grad_(), other[0].clone().requires_grad_()
    expected = info_nce(z_a, z_b, 5.0)
    gradients = torch.autograd.grad(expected, [z_a, z_b])
    loss, by_a, by_b, _ = PairedLoss(torch.tensor([0.5], dtype=torch.float64))(
        rows, other, torch.tensor([5.0]).double()
    )
    torch.testing.assert_close(loss[0], expected.detach())
    torch.testing.assert_close((by_a[0], by_b[0]), gradients)


@pytest.mark.parametrize("norm", ["layer", "rms", "none"])
@pytest.mark.parametrize("residual", ["none", "layers"])
def test_gradients_of_stacked_heads_equal_those_of_autograd(norm, residual):
    config = TrainConfig.of(embed_dim=5, hidden=(6, 6), norm=norm, residual=residual, input_norm="none")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        models = [TwoHeads(config.heads((4, False), (3, False))).double() for _ in range(2)]
        x, gradient = torch.randn(2, 7, 4).double(), torch.randn(2, 7, 5).double()
        for model in models:
            for weight in model.parameters():
                weight.data += 0.1 * torch.randn_like(weight)
    stack = StackedModels(models, torch.float64)
    z = stack.a.forward(x)
    stack.a.backward(gradient)
    for m, model in enumerate(models):
        model.eval()
        expected = model.head_a(x[m])
        torch.testing.assert_close(z[m], expected.detach())
        expected.backward(gradient[m])
        for name, weight in model.head_a.named_parameters():
            found = stack.a.gradients[name][m]
            torch.testing.assert_close(found.T if weight.ndim == 2 else found.reshape(weight.shape), weight.grad)
    copied = TwoHeads(models[0].config).double()
    put_into(copied, stack.weights, 1)
    assert largest_difference(copied, models[1]) == 0


def test_training_an_ensemble_neither_uses_nor_moves_torchs_own_generator_and_leaves_starts_alone(few):
    config = config_of(dropout=0.2)
    start = TwoHeads(config.heads((14, False), (11, False)))
    before = copy.deepcopy(start.state_dict())
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again = (fit_ensemble(*few.fit, config=config, members=[Member(0, start=start)]) for _ in range(2))
    assert torch.equal(torch.rand(3), expected)
    assert largest_difference(first[0].model, again[0].model) == 0
    assert all(torch.equal(before[name], value) for name, value in start.state_dict().items())


def test_progress_gets_a_line_of_each_member_after_each_epoch(few):
    seen = []
    fit_ensemble(
        *few.fit, config=config_of(), members=[Member(0), Member(1)],
        progress=lambda epoch, epochs, lines: seen.append((epoch, epochs, [line["epoch"] for line in lines])),
    )  # fmt: skip
    assert seen == [(1, 2, [1, 1]), (2, 2, [2, 2])]


def test_the_validation_loss_is_that_of_all_links_as_one_batch_in_both_directions(few):
    course = Course(chosen_by="loss", validate_every=2)
    for links in (None, np.array([[0, 1], [0, 2], [3, 1], [7, 9]])):
        found = fit_ensemble(
            *few.fit, config=config_of(direction="a_to_b"), members=[Member(0), Member(1)],
            valid=(*few.valid, links), course=course,
        )  # fmt: skip
        for result in found:
            assert [("valid_loss" in line) for line in result.history] == [False, True]
            rows_a, rows_b = result.model.project_a(few.valid[0]), result.model.project_b(few.valid[1])
            pairs = Links.of(links, 20, 20)
            at_a, at_b = pairs.pairs.T
            expected = info_nce(
                torch.from_numpy(rows_a[at_a]), torch.from_numpy(rows_b[at_b]), result.history[-1]["logit_scale"],
                pairs.within(at_a, at_b),
            )  # fmt: skip
            assert result.history[-1]["valid_loss"] == pytest.approx(float(expected), abs=1e-5)


def test_what_cannot_be_trained_together_is_refused_with_the_reason(few):
    a, b = few.fit
    one = [Member(0)]
    with pytest.raises(ArgumentError, match="expected at least one Member"):
        fit_ensemble(a, b)
    with pytest.raises(ArgumentError, match="expected at least one Member"):
        fit_ensemble(a, b, None, config_of(), Member(0))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"the start of member 0 is a int; expected two heads"):
        fit_ensemble(a, b, None, config_of(), [Member(0, start=5)])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="CSR matrix; expected dense rows"):
        fit_ensemble(sparse.csr_array(a), b, None, config_of(), one)
    more = np.concatenate([np.stack([np.arange(60)] * 2, 1), [[0, 1]]])
    with pytest.raises(ArgumentError, match="60 to 61 links; expected equal numbers"):
        fit_ensemble(a, b, None, config_of(), [*one, Member(1, links=more)])
    with pytest.raises(ArgumentError, match="norm = 'batch' is not trained"):
        fit_ensemble(a, b, None, config_of(norm="batch"), one)
    with pytest.raises(ArgumentError, match=r"loss = .*decoupled.* is not followed"):
        fit_ensemble(a, b, None, config_of(loss={"name": "decoupled"}), one)
    with pytest.raises(ArgumentError, match="input_norm = 'unit': a row's norm"):
        fit_ensemble(a, b, None, config_of(input_norm="unit"), [Member(0, hide_a=[1])])
    with pytest.raises(ArgumentError, match=r"hide_b = .*column numbers from 0 to 10"):
        fit_ensemble(a, b, None, config_of(), [Member(0, hide_b=[11])])
    with pytest.raises(ArgumentError, match=r"expected \(2, 60\): for each epoch"):
        fit_ensemble(a, b, None, config_of(), [Member(0, orders=[np.zeros(60, int)] * 2)])
    other = TwoHeads(config_of(embed_dim=4).heads((14, False), (11, False)))
    with pytest.raises(ArgumentError, match="start of member 0 has the architecture"):
        fit_ensemble(a, b, None, config_of(), [Member(0, start=other)])
    with pytest.raises(LinksError, match=r"member 1 \(seed 4\): side a has one distinct item"):
        fit_ensemble(a, b, None, config_of(), [*one, Member(4, links=[[0, 0], [0, 1]])])
    with pytest.raises(ShapeError, match="valid rows_a have"):
        fit_ensemble(a, b, None, config_of(), one, valid=(b, b, None))
    with pytest.raises(ArgumentError, match="rate = 'linear'; expected 'cosine' or 'constant'"):
        Course(rate="linear")
    with pytest.raises(ArgumentError, match=r"dtype = torch.float16; expected"):
        fit_ensemble(a, b, None, config_of(), one, dtype=torch.float16)


def test_weights_that_the_last_step_made_infinite_are_refused_with_the_member(few):
    config = TrainConfig.of(
        embed_dim=4, epochs=1, batch_size=100, warmup_epochs=0, weight_decay=1e30, learning_rate=1e30
    )
    with pytest.raises(NonFiniteRowsError, match=r"of member 0 \(seed 3\) holds NaN or infinity after the last step"):
        fit_ensemble(*few.fit, None, config, [Member(3)])


def test_a_last_batch_that_joins_in_some_epochs_only_is_refused_before_training(few):
    # Item 0 of b has 58 of 62 links: with batches of 20 the last two links are often both its own.
    rows = np.arange(60)
    links = np.concatenate([np.stack([rows, np.where(rows < 58, 0, rows)], 1), [[0, 1], [1, 2]]])
    with pytest.raises(ArgumentError, match=r"last batch \(2 links\) names a single item.*another batch_size than 20"):
        fit_ensemble(*few.fit, links, config_of(batch_size=20), [Member(0), Member(1)])


def test_a_loss_that_is_not_finite_names_its_member(few):
    with pytest.raises(NonFiniteRowsError, match=r"the loss of second is not finite"):
        check_losses(torch.tensor([1.0, float("nan")]), ["first", "second"])
    config = config_of(learning_rate=1e38, norm="none", input_norm="none")
    with pytest.raises(NonFiniteRowsError, match=r"member 0 \(seed 0\), member 1 \(seed 1\) is not finite"):
        fit_ensemble(*few.fit, config=config, members=[Member(0), Member(1)])


def test_heads_over_csr_rows_are_not_stacked():
    config = TrainConfig.of().heads((4, True), (4, True))
    with pytest.raises(ArgumentError, match="use fit_heads"):
        StackedHead(config.a, {}, {})
