"""What difference could be detected: against the normal limit, simulation, and statistical tables."""

import math

import numpy as np
import pytest
from scipy import stats

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.detectable import detectable_difference, power_of


def test_with_many_entities_it_is_two_point_eight_standard_errors() -> None:
    found = detectable_difference(0.4, 1_000_000)
    assert found == pytest.approx((1.959964 + 0.841621) * 0.4 / 1000, rel=1e-5)


@pytest.mark.parametrize(("n", "d"), [(2, 3.0), (4, 1.0), (10, 0.5), (50, 0.3), (400, 0.1)])
def test_power_is_that_of_the_noncentral_t(n: int, d: float) -> None:
    critical, shift = stats.t.ppf(0.975, n - 1), d * math.sqrt(n)
    expected = stats.nct.sf(critical, n - 1, shift) + stats.nct.sf(critical, n - 1, -shift)
    assert power_of(d, 1.0, n) == pytest.approx(expected, abs=1e-6)


def test_it_agrees_with_the_table_of_cohen() -> None:
    # A one-sample test of d = 0.5 at 5 % two-sided needs 34 for a power of 80 %.
    assert power_of(0.5, 1.0, 33) < 0.8 <= power_of(0.5, 1.0, 34)


@pytest.mark.parametrize("n", [2, 3, 5, 40, 500, 20_000])
def test_the_power_at_the_detectable_difference_is_that_which_was_asked_for(n: int) -> None:
    found = detectable_difference(0.3, n, power=0.9, level=0.01)
    assert found is not None
    assert power_of(found, 0.3, n, level=0.01) == pytest.approx(0.9, abs=1e-6)


def test_four_of_five_simulated_studies_find_it() -> None:
    rng = np.random.default_rng(0)
    found = detectable_difference(0.2, 25)
    assert found is not None
    samples = found + 0.2 * rng.standard_normal((4000, 25))
    share = (stats.ttest_1samp(samples, 0, axis=1).pvalue <= 0.05).mean()
    assert share == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 4000))


def test_degenerate_cases() -> None:
    assert detectable_difference(0.5, 1) is None
    assert detectable_difference(0.0, 50) == 0.0
    assert power_of(0.0, 1.0, 50) == pytest.approx(0.05, abs=1e-6)
    assert (power_of(0.1, 0.0, 50), power_of(0.0, 0.0, 50), power_of(0.1, 1.0, 1)) == (1.0, 0.05, 0.0)
    # Two entities could show nothing that recall can differ by.
    assert detectable_difference(0.5, 2) > 1  # type: ignore[operator]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 10), r"sd = -0\.1"),
        ((math.nan, 10), "sd = nan"),
        ((0.1, 0), "n_entities = 0"),
        ((0.1, 2.5), r"n_entities = 2\.5"),
        ((0.1, True), "n_entities = True"),
        ((0.1, 10, 1.0), r"power = 1\.0"),
        ((0.1, 10, 0.8, 0.0), r"level = 0\.0"),
        ((0.1, 10, 0.05, 0.1), "expected 0 < level < power < 1"),
    ],
)
def test_bad_input_is_refused(arguments: tuple, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ArgumentError, match=message):
        detectable_difference(*arguments)
