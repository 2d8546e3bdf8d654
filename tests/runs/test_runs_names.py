"""The names of `bridgehead.runs`, which are loaded when they are first used."""

import pytest

from bridgehead import runs


@pytest.mark.parametrize("name", runs.__all__)
def test_every_public_name_of_runs_is_where_it_is_said_to_be(name):
    assert callable(getattr(runs, name))


def test_another_name_is_none_of_runs():
    with pytest.raises(AttributeError, match="no attribute 'fold_store_of'"):
        runs.fold_store_of  # noqa: B018
