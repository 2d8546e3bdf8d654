"""The small table, and a run of it that tests share and do not change."""

import shutil
from functools import partial

import pytest
from live_run import live_config
from small_run import config, records, write_table

from bridgehead import runs
from tiny_models import write_bert


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


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """The folder of a tiny BERT with random weights."""
    return write_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="session")
def live_settings(bert, tmp_path_factory):
    """What makes the config of a run that trains this BERT on half of the table (`live_run.live_config`)."""
    return partial(live_config, write_table(tmp_path_factory.mktemp("small") / "pairs.csv", records()[:70]), bert)


@pytest.fixture(scope="session")
def tuned(live_settings, tmp_path_factory):
    """A live run of all stages, with the control; shared, so nobody may write into it."""
    return runs.run(live_settings(evaluate={"shuffled": 1}), tmp_path_factory.mktemp("tuned") / "run")


@pytest.fixture(scope="session")
def frozen(live_settings, tmp_path_factory):
    """The same run over frozen encoders, without refit and index."""
    run = runs.RunFolder.of(live_settings(live=None), tmp_path_factory.mktemp("frozen") / "run")
    runs.evaluate(run)
    return run
