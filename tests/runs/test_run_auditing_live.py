"""Audits of a run that trains an encoder: rows of before, the evaluated encoders, and the controls that can be had."""

import shutil

import pytest

from bridgehead import runs
from bridgehead.runs.folder import RunFolder

pytestmark = pytest.mark.slow


def test_controls_of_a_live_run_train_its_encoders_or_say_why_not(tuned, tmp_path):
    shutil.copytree(tuned.folder.parent, tmp_path / "copy")
    run = RunFolder(tmp_path / "copy" / "run", tuned.config)
    before = tuned.record("audit")
    assert {"leakage", "data", "shortcuts", "training", "geometry"} <= {f["group"] for f in before["findings"]}
    record = runs.audit(run, controls=["within", "one modality", "source tag"])
    reasons = {one["name"]: one["reason"] for one in record["skipped"]}
    for name in ("one modality", "planted source tag"):
        assert reasons[name] == "changes rows, and with [live] encoders are trained from the items themselves"
    within = [f for f in record["findings"] if f["name"].startswith("shuffled within length")]
    assert len(within) == 4
    assert not [f for f in within if f["verdict"] == "fail"]
    # The evaluated model is as it was.
    assert run.record("train")["model"] == tuned.record("train")["model"]
    assert run.path("heads.safetensors").read_bytes() == tuned.path("heads.safetensors").read_bytes()
