"""A served space for tests of this folder."""

import pytest

import served_space


@pytest.fixture(scope="session")
def small_index(tmp_path_factory):
    return served_space.write_index(tmp_path_factory.mktemp("served") / "index")


@pytest.fixture(scope="module")
def api(small_index):
    with served_space.served(served_space.small_space(small_index)) as client:
        yield client
