import math

import pytest
import torch

from bridgehead.align.losses.config import LossConfig
from bridgehead.align.losses.contrast import Positives
from bridgehead.align.losses.decoupled import decoupled_loss
from bridgehead.align.losses.geometry import alignment_term, uniformity_term
from bridgehead.align.losses.guided import guided_loss
from bridgehead.align.losses.hard_negative import hard_negative_loss
from bridgehead.align.losses.hierarchical import hierarchical_loss
from bridgehead.align.losses.infonce import info_nce
from bridgehead.align.losses.objective import Objective
from bridgehead.align.losses.sigmoid import sigmoid_loss
from bridgehead.errors import ArgumentError, ConfigError, LinksError

LINKS = [(0, 0), (0, 2), (1, 1), (3, 3), (4, 3)]
CLASSES = (torch.tensor([0, 0, 1, 1, -1]), torch.tensor([0, 1, 1, 0, -1]))


def rows(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(5, 3, generator=generator, dtype=dtype, requires_grad=True) for _ in range(2)]


def guides():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(5, 2, generator=generator), torch.randn(5, 2, generator=generator)


CASES = [
    ({"name": "info_nce", "tile": 2}, lambda a, b, s, p, g, f, d: info_nce(a, b, s, p, f, d)),
    ({"name": "info_nce", "tile": "none"}, lambda a, b, s, p, g, f, d: info_nce(a, b, s, p, f, d)),
    ({"name": "decoupled"}, lambda a, b, s, p, g, f, d: decoupled_loss(a, b, s, p, form=f, direction=d)),
    (
        {"name": "hard_negative", "beta": 0.4, "tau_plus": 0.1},
        lambda a, b, s, p, g, f, d: hard_negative_loss(a, b, s, p, beta=0.4, tau_plus=0.1, form=f, direction=d),
    ),
    (
        {"name": "guided", "margin": 0.4},
        lambda a, b, s, p, g, f, d: guided_loss(
            a, b, s, p, guide_a=g[0], guide_b=g[1], margin=0.4, form=f, direction=d
        ),
    ),
    (
        {"name": "hierarchical", "coarse_weight": 0.2},
        lambda a, b, s, p, g, f, d: hierarchical_loss(
            a, b, s, p, classes_a=CLASSES[0], classes_b=CLASSES[1], coarse_weight=0.2, form=f, direction=d
        ),
    ),
]


@pytest.mark.parametrize(("settings", "function"), CASES)
@pytest.mark.parametrize("form", ["outside", "inside"])
@pytest.mark.parametrize("direction", ["both", "a_to_b", "b_to_a"])
def test_is_the_function_that_the_config_names(settings, function, form, direction):
    objective = Objective(LossConfig.of(settings), form, direction)
    (z_a, z_b), positives, guide = rows(), Positives.of(LINKS, 5, 5), guides()
    parts = objective(z_a, z_b, 8.0, positives, classes=CLASSES, guide=guide)
    expected = function(z_a, z_b, 8.0, LINKS, guide, form, direction)
    assert parts.loss.item() == pytest.approx(expected.item(), rel=1e-10)
    assert parts.terms["contrastive"].item() == parts.loss.item() and not parts.terms["contrastive"].requires_grad
    assert list(objective.parameters()) == []


def test_the_sigmoid_has_a_bias_that_is_learned_and_saved():
    objective = Objective(LossConfig(name="sigmoid", bias_init=-4.0))
    z_a, z_b = rows(torch.float32)
    parts = objective(z_a, z_b, 8.0, Positives.of(LINKS, 5, 5))
    assert parts.loss.item() == pytest.approx(sigmoid_loss(z_a, z_b, 8.0, -4.0, LINKS).item(), rel=1e-6)
    parts.loss.backward()
    assert list(objective.state_dict()) == ["bias"] and float(objective.bias.grad) != 0


def test_terms_are_added_by_their_weights_and_reported_without_them():
    config = LossConfig(name="decoupled", alignment_weight=0.5, uniformity_weight=2.0, uniformity_t=3.0)
    (z_a, z_b), positives = rows(), Positives.of(LINKS, 5, 5)
    parts = Objective(config)(z_a, z_b, 8.0, positives)
    alignment = alignment_term(z_a, z_b, LINKS)
    uniformity = (uniformity_term(z_a, 3.0) + uniformity_term(z_b, 3.0)) / 2
    contrastive = decoupled_loss(z_a, z_b, 8.0, LINKS)
    expected = contrastive + 0.5 * alignment + 2.0 * uniformity
    assert parts.loss.item() == pytest.approx(expected.item(), rel=1e-12)
    found = {name: term.item() for name, term in parts.terms.items()}
    assert found == pytest.approx(
        {"contrastive": contrastive.item(), "alignment": alignment.item(), "uniformity": uniformity.item()}, rel=1e-12
    )
    assert (parts.a_to_b.item() + parts.b_to_a.item()) / 2 == pytest.approx(contrastive.item(), rel=1e-12)
    for one, two in zip(
        torch.autograd.grad(parts.loss, (z_a, z_b)), torch.autograd.grad(expected, (z_a, z_b)), strict=True
    ):
        torch.testing.assert_close(one, two)


def test_the_same_call_gives_the_same_number_and_draws_nothing():
    objective, (z_a, z_b) = Objective(LossConfig(name="hard_negative")), rows()
    before = torch.get_rng_state()
    found = {objective(z_a, z_b, 8.0, Positives.of(LINKS, 5, 5)).loss.item() for _ in range(3)}
    assert len(found) == 1 and torch.equal(before, torch.get_rng_state())


def test_it_takes_links_wherever_it_takes_positives():
    (z_a, z_b) = rows()
    objective = Objective()
    assert objective(z_a, z_b, 8.0).loss.item() == pytest.approx(info_nce(z_a, z_b, 8.0).item(), rel=1e-10)
    assert objective(z_a, z_b, 8.0, LINKS).loss.item() == pytest.approx(
        info_nce(z_a, z_b, 8.0, LINKS).item(), rel=1e-10
    )
    with pytest.raises(LinksError, match="none of the 5 x 5"):
        objective(z_a, z_b, 8.0, [])


def test_what_a_loss_needs_is_asked_for():
    (z_a, z_b), positives = rows(), Positives.diagonal(5)
    guided, classed = Objective(LossConfig(name="guided")), Objective(LossConfig(name="hierarchical"))
    assert (guided.needs_guide, guided.needs_classes) == (True, False)
    assert (classed.needs_guide, classed.needs_classes) == (False, True)
    with pytest.raises(ArgumentError, match=r"no guide came; pass guide=\(rows_a, rows_b\)"):
        guided(z_a, z_b, 8.0, positives)
    with pytest.raises(ArgumentError, match=r"no classes came; pass classes=\(classes_a, classes_b\)"):
        classed(z_a, z_b, 8.0, positives)


def test_forms_and_directions_that_there_are_not_are_refused():
    with pytest.raises(ConfigError, match="form = 'inside', and the sigmoid loss judges each pair by itself"):
        Objective(LossConfig(name="sigmoid"), "inside")
    with pytest.raises(ArgumentError, match="form = 'between'"):
        Objective(form="between")
    with pytest.raises(ArgumentError, match="direction = 'up'"):
        Objective(direction="up")


@pytest.mark.parametrize("form", ["outside", "inside"])
@pytest.mark.parametrize("direction", ["both", "a_to_b", "b_to_a"])
@pytest.mark.parametrize("name", ["info_nce", "decoupled", "hard_negative", "hierarchical"])
@pytest.mark.parametrize("links", [[(0, 0), (1, 1), (2, 2)], [(0, 0), (0, 1), (2, 3), (1, 3), (3, 0)]])
def test_chance_is_what_rows_that_are_all_alike_cost(name, form, direction, links):
    objective = Objective(LossConfig(name=name), form, direction)
    z_a, z_b = torch.ones(4, 3, dtype=torch.float64), torch.ones(6, 3, dtype=torch.float64)
    positives, classes = (
        Positives.of(links, 4, 6),
        (torch.zeros(4, dtype=torch.int64), torch.ones(6, dtype=torch.int64)),
    )
    cost = objective(z_a, z_b, 9.0, positives, classes=classes).loss.item()
    chance = objective.chance(4, 6, positives)
    if (name, form) == ("hierarchical", "inside"):
        assert chance is None
    else:
        assert chance == pytest.approx(cost, abs=1e-10)


def test_chance_of_the_sigmoid_is_what_a_bias_alone_can_reach():
    objective = Objective(LossConfig(name="sigmoid", bias_init=-math.log(5)))
    alike = torch.ones(6, 3, dtype=torch.float64)
    cost = objective(alike, alike, 0.0, Positives.diagonal(6)).loss.item()
    assert objective.chance(6, 6) == pytest.approx(cost, rel=1e-6)
    assert objective.chance(6, 6, Positives.diagonal(6)) == pytest.approx(math.log(6) + 5 * math.log(6 / 5))


def test_chance_of_a_guided_loss_depends_on_what_is_masked():
    assert Objective(LossConfig(name="guided")).chance(4, 4) is None


def test_chance_of_a_single_candidate_is_0():
    for name in ("info_nce", "decoupled", "hard_negative", "sigmoid"):
        assert Objective(LossConfig(name=name)).chance(1, 1) == 0.0


@pytest.mark.parametrize(("direction", "n"), [("both", math.sqrt(12)), ("a_to_b", 4.0), ("b_to_a", 3.0)])
def test_mutual_information_is_read_from_the_contrastive_part_of_info_nce(direction, n):
    objective = Objective(LossConfig(alignment_weight=1.0), direction=direction)
    positives = Positives.of([(0, 0), (1, 3)], 3, 4)
    z_a, z_b = torch.eye(4)[:3], torch.eye(4)
    parts = objective(z_a, z_b, 2.0, positives)
    assert objective.reads_mutual_information(positives)
    read = objective.mutual_information(parts, positives)
    assert read.n_candidates == pytest.approx(n)
    assert read.nats == pytest.approx(math.log(n) - parts.terms["contrastive"].item(), rel=1e-6)


def test_mutual_information_is_not_read_from_other_losses_or_several_positives():
    objective, (z_a, z_b) = Objective(LossConfig(name="decoupled")), rows()
    assert not objective.reads_mutual_information(Positives.diagonal(5))
    with pytest.raises(ArgumentError, match="plain InfoNCE"):
        objective.mutual_information(objective(z_a, z_b, 1.0), Positives.diagonal(5))
    assert not Objective().reads_mutual_information(Positives.of(LINKS, 5, 5))
