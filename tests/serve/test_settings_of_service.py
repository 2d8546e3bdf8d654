"""Every limit is explained and checked."""

import dataclasses

import pytest

from bridgehead.errors import ConfigError
from bridgehead.serve.settings import PROMISED, ServeSettings


def test_every_limit_is_explained():
    names = [field.name for field in dataclasses.fields(ServeSettings)]
    assert [name for name, _, says in ServeSettings.explained() if len(says) > 15] == names
    assert len({name for name, _, _ in PROMISED}) == len(PROMISED)


@pytest.mark.parametrize("name", [name for name, default, _ in ServeSettings.explained() if default is not False])
@pytest.mark.parametrize("value", [-1, "5", None, True, float("nan"), float("inf")])
def test_a_limit_out_of_range_is_refused(name, value):
    with pytest.raises(ConfigError, match=name):
        ServeSettings(**{name: value})


def test_settings_do_not_change_and_switches_are_switches():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ServeSettings().queue = 5
    with pytest.raises(ConfigError, match="true or false"):
        ServeSettings(log_queries=1)
