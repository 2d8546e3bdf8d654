"""Every loss of the family trains two linear maps: linked rows are found, rows paired at random stay at chance."""

import pytest
import torch

from bridgehead.align.losses.config import LossConfig
from bridgehead.align.losses.contrast import Positives
from bridgehead.align.losses.information import no_signal
from bridgehead.align.losses.objective import Objective

N, WIDTH, LATENT = 48, 12, 6


def trained(settings, *, paired, steps=150):
    """Return the share of new rows of a whose nearest of b is theirs, the last losses' mean, and chance."""
    generator = torch.Generator().manual_seed(0)
    mix_a, mix_b = (torch.randn(LATENT, WIDTH, generator=generator) for _ in range(2))
    heads = [torch.randn(WIDTH, LATENT, generator=generator).mul(0.3).requires_grad_() for _ in range(2)]
    log_scale = torch.tensor(2.3, requires_grad=True)
    objective, positives = Objective(LossConfig.of(settings)), Positives.diagonal(N)
    optimiser = torch.optim.Adam([*heads, log_scale, *objective.parameters()], lr=0.05)

    def draw():
        latent = torch.randn(N, LATENT, generator=generator)
        other = latent if paired else torch.randn(N, LATENT, generator=generator)
        return latent, latent @ mix_a, other @ mix_b

    losses = []
    for _ in range(steps):
        latent, x_a, x_b = draw()
        classes = (latent[:, 0] > 0).long()
        parts = objective(
            x_a @ heads[0], x_b @ heads[1], log_scale.exp(), positives, classes=(classes, classes), guide=(x_a, x_b)
        )
        optimiser.zero_grad()
        parts.loss.backward()
        optimiser.step()
        losses.append(parts.terms["contrastive"].item())
    with torch.no_grad():
        _, x_a, x_b = draw()
        cosines = torch.nn.functional.normalize(x_a @ heads[0]) @ torch.nn.functional.normalize(x_b @ heads[1]).T
        found = (cosines.argmax(dim=1) == torch.arange(N)).float().mean().item()
    return found, sum(losses[-20:]) / 20, objective.chance(N, N, positives)


@pytest.mark.parametrize("name", ["info_nce", "decoupled", "hard_negative", "sigmoid", "guided", "hierarchical"])
def test_pairs_that_belong_together_are_found(name):
    found, loss, chance = trained({"name": name, "uniformity_weight": 0.1, "alignment_weight": 0.1}, paired=True)
    assert found > 0.9
    assert chance is None or not no_signal(loss, chance)


@pytest.mark.parametrize("name", ["info_nce", "decoupled", "hard_negative", "sigmoid"])
def test_pairs_at_random_stay_at_chance_and_are_told_as_no_signal(name):
    found, loss, chance = trained({"name": name}, paired=False)
    assert found < 0.2
    assert no_signal(loss, chance)
