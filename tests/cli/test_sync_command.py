"""The commands `sync` and `index`: what they hand to the library, what they print, how they end."""

import json
from pathlib import Path

from typer.testing import CliRunner

from bridgehead.cli.commands import app
from bridgehead.errors import RunBusyError
from bridgehead.runs.syncing.far import FarItem
from bridgehead.runs.syncing.reading import FailedRecord
from bridgehead.runs.syncing.report import IndexSync, SyncReport

REPORT = SyncReport(
    side="molecule",
    dry_run=False,
    n_records=1234,
    failed=tuple(FailedRecord(n, f"B{n}" if n else "", "no \x1b[2Jstructure") for n in range(12)),
    unknown=("U1",),
    far=(FarItem("N1", 0.1234),),
    far_below=0.25,
    same_as={"N2": "aspirin"},
    indexes=(
        IndexSync("refit", added=1200, changed=2, unchanged=20, own=7, removed=3, growth=0.034),
        IndexSync("evaluated", added=0, changed=0, unchanged=1222, own=7, removed=0, growth=0.2, compacted=("line",)),
    ),
)


def call(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_sync_prints_counts_first_then_what_deserves_a_look(stage, tmp_path):
    asked = {}

    def sync(run, file, **options):
        options.pop("progress")("sync", "encode new molecule items", 1, 2)
        asked.update(run=run, file=file, **options)
        return REPORT

    stage("sync", sync)
    done = call("sync", tmp_path, "items.csv", "--delete-missing", "--side", "text", "--id", "code")
    assert done.exit_code == 0, done.output
    assert asked == {"run": tmp_path, "file": "items.csv", "side": "text", "id": "code", "delete_missing": True,
                     "dry_run": False}  # fmt: skip
    assert done.stdout.splitlines() == [
        "molecule: added 1,200, changed 2, unchanged 20, removed 3, failed 12, of 1,234 records",
        "of the unchanged, 7 belong to the run, whose pairs say what they are",
        "index with the evaluated heads: added 0, changed 0, unchanged 1,222, removed 0",
        "12 failed:",
        "  record 0: no \ufffd[2Jstructure",
        *[f"  B{n}: no \ufffd[2Jstructure" for n in range(1, 10)],
        "  and 2 more",
        "1 items of which the encoder knows nothing; they are found by id, names and words alone:",
        "  U1",
        "1 items of the same exact identity as another id:",
        "  N2 = aspirin",
        "1 new items far from all training items (cosine to the nearest below 0.250):",
        "  N1, 0.123",
        "index with the refit heads: grown by 3.4% since recall was measured; it is again at 10 %",
        "index with the evaluated heads: recall measured again",
        "  line",
    ]


def test_sync_as_json_holds_every_failure(stage, tmp_path):
    stage("sync", lambda run, file, **options: REPORT)
    found = json.loads(call("sync", tmp_path, "items.csv", "--dry-run", "--json").stdout)
    assert found == json.loads(json.dumps(REPORT.to_dict()))
    assert len(found["failed"]) == 12 and found["far"] == [{"id": "N1", "nearest": 0.1234}]


def test_a_run_that_is_busy_is_the_users_matter(stage, tmp_path):
    def busy(run, file, **options):
        raise RunBusyError("written by another process (pid 7)")

    stage("sync", busy)
    done = call("sync", tmp_path, "items.csv")
    assert done.exit_code == 1 and "error: written by another process" in done.stderr
    assert call("sync", tmp_path).exit_code == 2


def test_index_builds_compacts_or_takes_a_snapshot(stage, tmp_path):
    asked = []
    stage("index", lambda run, progress: asked.append("index") or {"lines": ["built"]})
    stage("compact", lambda run, progress: asked.append("compact") or {"refit": ["a"], "lines": ["anew"]})
    stage("snapshot", lambda run, target, progress: asked.append(target) or Path(target))
    assert call("index", tmp_path).stdout == "built\n" and call("index", tmp_path, "--compact").stdout == "anew\n"
    done = call("index", tmp_path, "--snapshot", tmp_path / "s")
    assert f"wrote {tmp_path / 's'}; search it" in done.stdout
    assert json.loads(call("index", tmp_path, "--snapshot", tmp_path / "s", "--json").stdout) == {
        "snapshot": str(tmp_path / "s")
    }
    assert asked == ["index", "compact", tmp_path / "s", tmp_path / "s"]
    refused = call("index", tmp_path, "--compact", "--snapshot", tmp_path / "s")
    assert refused.exit_code == 2 and "two things" in refused.stderr
