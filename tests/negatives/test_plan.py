import numpy as np
import pytest

from bridgehead.errors import ArgumentError, RunStateError, ShapeError
from bridgehead.links import Links
from bridgehead.negatives import BatchPlan, NegativesConfig, mine_across, random_batches


def clusters(n_clusters=25, size=8, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.repeat(rng.standard_normal((n_clusters, 24)), size, axis=0)
    return [(centres + 0.3 * rng.standard_normal(centres.shape)).astype(np.float32) for _ in range(2)]


def hard_plan(batch_size=32, seed=0, links=None, **changes):
    settings = {"sampling": "hard", "start_epoch": 2, "ramp_epochs": 1, "mine_every": 3, **changes}
    return BatchPlan(Links.identity(200) if links is None else links, batch_size, seed, NegativesConfig.of(settings))


def lists(batches):
    return [(a.tolist(), b.tolist()) for a, b in batches]


def neighbours_met(batches):
    """The mean number of others of its cluster that an item finds in its batch."""
    return np.mean([(a[:, None] // 8 == a // 8).sum(axis=1).mean() - 1 for a, _ in batches])


def test_the_default_is_the_random_batches_and_nothing_is_mined():
    links = Links([[0, 0], [0, 1], [1, 1], [2, 2], [3, 0]], 4, 3)
    plan = BatchPlan(links, 2, 7, NegativesConfig())
    assert not any(plan.wants_rows(epoch) for epoch in range(5))
    assert plan.n_batches == 3 and plan.state() == {}
    assert plan.notes == [
        "the last link of each epoch is alone in its batch, with nothing to be told from: it joins the one before"
    ]
    expected = [(links.pairs[batch, 0], links.pairs[batch, 1]) for batch in random_batches(links.pairs, 2, 7, 4)]
    assert lists(plan.batches(4)) == lists(expected)


def test_matches_through_groups_are_links_of_the_epoch_too():
    links = Links([[0, 0], [1, 1], [2, 2]], 3, 3, groups_b=np.array([0, 0, -1]))
    plan = BatchPlan(links, 8, 0, NegativesConfig())
    ((a, b),) = plan.batches(0)
    assert sorted(zip(a.tolist(), b.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)]


def test_mining_is_due_at_the_start_epoch_and_every_few_epochs_after_it():
    plan = hard_plan()
    rows = clusters()
    asked = []
    for epoch in range(9):
        if plan.wants_rows(epoch):
            asked.append(epoch)
            plan.mine(*rows, epoch)
            assert not plan.wants_rows(epoch)
        plan.batches(epoch)
    assert asked == [2, 5, 8]


def test_initial_rows_are_mined_once_before_the_first_epoch():
    plan = hard_plan(mine_from="initial", mine_every=5)
    assert plan.wants_rows(0)
    plan.mine(*clusters(), 0)
    assert not any(plan.wants_rows(epoch) for epoch in range(20))


def test_epochs_go_from_random_to_hard_by_schedule():
    plan = hard_plan()
    assert [plan.k_hard(epoch) for epoch in range(5)] == [0, 0, 2, 4, 4]
    rows = clusters()
    met = []
    for epoch in range(5):
        if plan.wants_rows(epoch):
            plan.mine(*rows, epoch)
        met.append(neighbours_met(plan.batches(epoch)))
    assert max(met[:2]) < 1.6 < 2.2 < met[2] < met[3]
    # Before its start a plan with hard negatives draws what a plain one draws.
    plain = BatchPlan(Links.identity(200), 32, 0, NegativesConfig())
    assert lists(plain.batches(1)) == lists(plan.batches(1))


@pytest.mark.parametrize("mine_from", ["initial", "current"])
@pytest.mark.parametrize("repeat", [False, True])
def test_hard_neighbours_meet_whatever_they_are_mined_from(mine_from, repeat):
    plan = hard_plan(mine_from=mine_from, mine_every=5, start_epoch=0, ramp_epochs=0, repeat_neighbours=repeat)
    plan.mine(*clusters(), 0)
    batches = plan.batches(3)
    assert neighbours_met(batches) > 2.2
    assert len(batches) == plan.n_batches == (34 if repeat else 7)
    if not repeat:
        assert sorted(np.concatenate([a for a, _ in batches]).tolist()) == list(range(200))


@pytest.mark.parametrize("mine_from", ["initial", "current"])
def test_rows_without_a_link_are_no_neighbours(mine_from):
    rows_a, rows_b = clusters()
    kept = np.flatnonzero(np.arange(200) % 3 > 0)
    settings = {"mine_from": mine_from, "mine_every": 5, "start_epoch": 0, "ramp_epochs": 0}
    plan = hard_plan(links=Links(np.stack([kept, kept], axis=1), 200, 200), **settings)
    plan.mine(rows_a, rows_b, 0)
    among = hard_plan(links=Links.identity(len(kept)), **settings)
    among.mine(rows_a[kept], rows_b[kept], 0)
    expected = [(kept[a].tolist(), kept[b].tolist()) for a, b in among.batches(1)]
    assert lists(plan.batches(1)) == expected
    assert plan.notes == among.notes


def test_the_number_of_batches_with_repeats_does_not_change_along_the_curriculum():
    plan = hard_plan(repeat_neighbours=True)
    rows = clusters()
    for epoch in range(4):
        if plan.wants_rows(epoch):
            plan.mine(*rows, epoch)
        assert len(plan.batches(epoch)) == plan.n_batches == 34


def test_batches_depend_on_seed_epoch_and_mining_alone_and_a_state_resumes_them():
    rows = clusters()
    plan = hard_plan()
    plan.mine(*rows, 2)
    expected = {epoch: lists(plan.batches(epoch)) for epoch in (2, 3, 4)}
    assert expected[2] != expected[3]
    resumed = hard_plan()
    resumed.load_state(plan.state())
    assert not resumed.wants_rows(4) and resumed.wants_rows(5)
    assert {epoch: lists(resumed.batches(epoch)) for epoch in (4, 2, 3)} == expected
    assert resumed.notes[: len(resumed.notes) - 1] == plan.notes[: len(plan.notes) - 1]
    other = hard_plan(seed=1)
    other.mine(*rows, 2)
    assert lists(other.batches(2)) != expected[2]


def test_an_empty_state_is_a_fresh_plan():
    plan = hard_plan()
    plan.load_state({})
    assert plan.wants_rows(2)


def test_a_shortage_is_said_and_survives_a_resume():
    rows = clusters()
    plan = hard_plan(max_score=-0.1)
    plan.mine(*rows, 2)
    plan.batches(3)
    found = mine_across(*rows, k=16, max_score=-0.1)
    note = f"mining for epoch 3, rows of a: {len(found.shortage):,} of 200 anchors have fewer than 16"
    assert any(line.startswith(note) for line in plan.notes)
    resumed = hard_plan(max_score=-0.1)
    resumed.load_state(plan.state())
    assert resumed.notes == [line for line in plan.notes if line.startswith("mining")]


def test_how_many_hard_neighbours_an_anchor_met_is_said():
    plan = hard_plan()
    plan.mine(*clusters(), 2)
    plan.batches(3)
    assert any("epoch 4: an anchor met" in note and "of its 4 hard neighbours" in note for note in plan.notes)


def test_distinct_batches_are_planned_and_what_is_left_out_is_said():
    pairs = np.stack([np.arange(300), np.where(np.arange(300) < 200, 0, np.arange(300))], axis=1)
    plan = BatchPlan(Links(pairs, 300, 300), 16, 0, NegativesConfig.of({"sampling": "distinct"}))
    batches = plan.batches(0)
    assert len(batches) == plan.n_batches
    assert all(len(np.unique(b)) == len(b) for _, b in batches)
    assert any("193 of 300 links were in no batch" in note for note in plan.notes)


def test_no_links_are_no_batches():
    plan = hard_plan(links=Links([], 3, 3))
    assert plan.batches(5) == [] and not plan.wants_rows(5) and plan.n_batches == 1


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: hard_plan(batch_size=1), ArgumentError, "batch_size = 1"),
        (lambda: hard_plan(batch_size=5), ArgumentError, "greater than k_hard"),
        (lambda: hard_plan().mine(np.ones((199, 4)), np.ones((200, 4)), 2), ShapeError, "rows_a has 199 rows"),
        (lambda: hard_plan().batches(2), RunStateError, "call mine first"),
        (lambda: hard_plan().mine(*clusters(), 0), ArgumentError, "no mining is due for epoch 0"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_a_state_of_other_data_is_refused():
    plan = hard_plan()
    plan.mine(*clusters(), 2)
    with pytest.raises(RunStateError, match="neighbours of 200 and 200 rows, this training has 9 and 9"):
        hard_plan(links=Links.identity(9)).load_state(plan.state())
