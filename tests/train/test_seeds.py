import torch

from bridgehead.train.seeds import seed_draws, start_seed, step_seed


def test_seeds_of_steps_are_all_different_and_fit_torch():
    seeds = {step_seed(0, epoch, batch) for epoch in range(20) for batch in range(20)} | {start_seed(0)}
    assert len(seeds) == 401
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_seeding_draws_is_what_torch_does_on_the_processor():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2**62 + 5)
        expected = torch.rand(4)
        seed_draws(2**62 + 5)
        assert torch.equal(torch.rand(4), expected)
