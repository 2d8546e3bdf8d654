import pytest

from bridgehead.errors import ArgumentError
from bridgehead.negatives import hard_count, hard_share


def test_a_linear_ramp_rises_by_equal_steps_from_the_start():
    assert [hard_share(epoch, 2, 3) for epoch in range(8)] == [0, 0, 0.25, 0.5, 0.75, 1, 1, 1]


def test_a_cosine_ramp_starts_and_ends_gently():
    # (1 - cos(pi x)) / 2 at x = 1/4, 1/2, 3/4, 1.
    found = [hard_share(epoch, 0, 3, "cosine") for epoch in range(5)]
    assert found == pytest.approx([(1 - 0.5**0.5) / 2, 0.5, (1 + 0.5**0.5) / 2, 1, 1])


def test_without_a_ramp_all_come_at_once():
    assert [hard_count(4, epoch, 1, 0) for epoch in range(3)] == [0, 4, 4]


def test_counts_are_rounded_up_and_end_at_k():
    assert [hard_count(4, epoch, 1, 5) for epoch in range(9)] == [0, 1, 2, 2, 3, 4, 4, 4, 4]
    # Thirds of 3 are whole although their shares are not.
    assert [hard_count(3, epoch, 0, 2) for epoch in range(4)] == [1, 2, 3, 3]


@pytest.mark.parametrize("options", [{"ramp": "sine"}, {"start_epoch": -1}, {"ramp_epochs": -1}])
def test_a_schedule_that_cannot_be_is_refused(options):
    with pytest.raises(ArgumentError, match="expected"):
        hard_share(0, **{"start_epoch": 0, "ramp_epochs": 1, **options})
