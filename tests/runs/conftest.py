"""The small table, and a run of it that tests share and do not change."""

import shutil

import pytest
from small_run import config, records, write_table

from bridgehead import runs


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("table") / "pairs.csv", records())


@pytest.fixture(scope="session")
def finished(table, tmp_path_factory):
    """The run of all stages with the settings above; shared, so nobody may write into it."""
    return runs.run(config(table), tmp_path_factory.mktemp("finished") / "run")


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the finished run (with the cache it used) that a test may change."""
    shutil.copytree(finished.folder.parent, tmp_path / "copy")
    return runs.RunFolder(tmp_path / "copy" / "run", finished.config)
