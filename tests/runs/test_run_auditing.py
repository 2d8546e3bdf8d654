"""The stage audit: which audits run, what is kept of them, and that what they find is in the table."""

import json

import pytest
from small_run import config, records, stamps, write_table
from typer.testing import CliRunner

import bridgehead
from bridgehead import runs
from bridgehead.audits import Finding, Listing
from bridgehead.cli.commands import app
from bridgehead.errors import ArgumentError, ColumnError, ConfigError
from bridgehead.runs.auditing import budget, stage
from bridgehead.runs.auditing.applicable import NotApplicable
from bridgehead.runs.auditing.registry import Audit, all_audits
from bridgehead.runs.auditing.stage import audit_key, current_audit
from bridgehead.runs.auditing.table import audit_lines
from bridgehead.runs.config import config_of
from bridgehead.runs.folder import RunFolder


def changed(run, **audit):
    """Return the run with other settings of its audits."""
    settings = {**run.config.plain(), "audit": audit}
    return RunFolder(run.folder, config_of(settings))


def test_every_audit_has_findings_or_says_what_it_would_need(finished):
    record = finished.record("audit")
    names = [one.name for one in all_audits()]
    skipped = {entry["name"]: entry["reason"] for entry in record["skipped"]}
    assert all(skipped.values())
    # Each that ran was timed, those that found nothing to look at among them.
    assert list(record["costs"]) == [one.name for one in all_audits() if one.control is None]
    assert set(record["costs"]) | set(skipped) == set(names)
    found = [Finding.of(entry) for entry in record["findings"]]
    assert {finding.group for finding in found} == {
        "leakage", "data", "false negatives", "shortcuts", "baseline", "training", "geometry", "controls",
    }  # fmt: skip
    assert record["counts"] == {v: sum(f.verdict == v for f in found) for v in ("fail", "warn", "pass")}
    assert all(finding.seconds is not None for finding in found)
    assert "controls" not in {one.control for one in all_audits()}
    assert len({finding.name for finding in found}) == len(found)


def test_nothing_of_the_clean_table_leaks(finished):
    found = {f.name: f for f in map(Finding.of, finished.record("audit")["findings"])}
    for level in ("exact identity", "parent identity", "skeleton"):
        assert found[f"molecule in test and training, by {level}"].verdict == "pass"
    assert not [f.name for f in found.values() if f.verdict == "fail" and f.group in ("leakage", "data", "controls")]


def test_audits_that_are_done_are_not_run_again(copied, monkeypatch):
    before = stamps(copied.folder)
    monkeypatch.setattr(stage, "_prepare", lambda work: pytest.fail("looked again"))
    record = runs.audit(copied)
    assert record == copied.record("audit")
    assert stamps(copied.folder)["audit.json"] == before["audit.json"]
    assert bridgehead.audit(copied) == [Finding.of(entry) for entry in record["findings"]]
    assert current_audit(copied) == record
    # Of other settings it is not.
    assert current_audit(changed(copied, skip=["broad texts"])) is None


def test_audits_that_are_declined_or_cannot_do_their_work_stop_no_other(copied, monkeypatch):
    def too_large(work):
        raise MemoryError

    def nothing(work):
        raise NotApplicable("needs a third side")

    kept = [one for one in all_audits() if one.name in ("broad texts", "weak texts")]
    monkeypatch.setattr(stage, "all_audits", lambda: (Audit("x", too_large), Audit("y", nothing), *kept))
    record = runs.audit(changed(copied, skip=["weak texts"]))
    assert record["skipped"] == [
        {"name": "weak texts", "reason": "left out by audit.skip"},
        {"name": "x", "reason": "there is not enough memory for it"},
        {"name": "y", "reason": "needs a third side"},
    ]
    assert [f["name"] for f in record["findings"]] == ["text that fits many"]
    assert "  y: needs a third side" in record["lines"]


def test_audits_and_columns_that_there_are_not_are_refused(copied):
    with pytest.raises(ConfigError, match=r"audit.skip names 'luck'; the audits are identities across the split"):
        runs.audit(changed(copied, skip=["luck"]))
    with pytest.raises(ColumnError, match=r"audit.columns: no further column 'moon'; those beside .* are name"):
        runs.audit(changed(copied, columns=["moon"]))
    with pytest.raises(ArgumentError, match="no control 'sugar'; expected within, one modality, one-sided, source tag"):
        runs.audit(copied, controls=["sugar"])


def test_controls_train_where_they_are_named_and_are_kept(copied, monkeypatch):
    run = changed(copied, within=["length", "scaffold"])
    trained = []
    original = budget.fit_model
    monkeypatch.setattr(
        budget, "fit_model", lambda *args, **more: trained.append(more["train"]) or original(*args, **more)
    )
    record = runs.audit(run, controls=["within", "one modality", "one-sided", "source tag"])
    names = " ".join(f["name"] for f in record["findings"])
    for control in (
        "shuffled within length",
        "shuffled within scaffold",
        "molecule -> text only",
        "planted source tag",
    ):
        assert control in names
    assert not [one for one in record["skipped"] if "trains again" in one["reason"]]
    # Two groupings, two sides, two directions and a tag; each at the seed of the run.
    assert len(trained) == 7
    assert sorted(one.direction for one in trained) == ["a_to_b", "b_to_a", *["both"] * 5]
    # Nothing that was trained wrong on purpose is left, and nothing is trained again.
    assert not run.path("controls").exists() or not list(run.path("controls").iterdir())
    assert record["key"] == audit_key(run, record["controls"]) != audit_key(run)
    # A call that asks for fewer keeps what is there, on the page too.
    assert runs.audit(run) == run.record("audit") == current_audit(run)
    assert "shuffled within scaffold" in run.path("report.html").read_text()
    run.path("audit.json").unlink()
    again = runs.audit(run, controls=["one-sided", "source tag"])
    assert len(trained) == 7
    assert [f["value"] for f in again["findings"] if "only" in f["name"]] == [
        f["value"] for f in record["findings"] if "only" in f["name"]
    ]


def test_the_table_shows_failed_claims_first_with_their_cases():
    listing = Listing(("record", "place"), [(f"r{n}", n) for n in range(5)], 9)
    found = [
        Finding("fine", 0.1, "at most 0.2", "pass", "as it should be", "data", 0.25),
        Finding("bad", 12345.678, "0", "fail", "mend the file", "leakage", 1.5, listing),
    ]
    lines = audit_lines(found, [{"name": "other", "reason": "needs more"}], 2.0)
    assert lines == [
        "2 claims, 2 s: 1 fail, 0 warn, 1 pass",
        "",
        "      about    claim      value    s  expected",
        "FAIL  leakage  bad    1.235e+04  1.5  0",
        "      mend the file",
        "      - record r0; place 0",
        "      - record r1; place 1",
        "      - record r2; place 2",
        "      - and 6 more, the worst 5 in audit.json",
        "PASS  data     fine         0.1  0.2  at most 0.2",
        "",
        "not looked at:",
        "  other: needs more",
    ]


def test_the_command_gives_the_record_and_strict_exits_where_a_claim_failed(copied):
    path = str(copied.folder)
    plain = CliRunner().invoke(app, ["audit", path, "--json"])
    assert plain.exit_code == 0
    record = json.loads(plain.stdout)
    assert record["findings"] == copied.record("audit")["findings"]
    failed = record["counts"]["fail"] > 0
    assert CliRunner().invoke(app, ["audit", path, "--strict"]).exit_code == (3 if failed else 0)
    # One claim that failed, in the record that is there.
    content = json.loads(copied.path("audit.json").read_text())
    content["counts"]["fail"] = 1
    copied.path("audit.json").write_text(json.dumps(content))
    assert CliRunner().invoke(app, ["audit", path]).exit_code == 0
    assert CliRunner().invoke(app, ["audit", path, "--strict"]).exit_code == 3
    assert CliRunner().invoke(app, ["audit", path, "--controls", "sugar"]).exit_code == 1


def test_names_in_the_texts_are_caught_and_masked(tmp_path):
    rows = [[id_, smiles, f"{text} ({name})", name] for id_, smiles, text, name in records()]
    path = write_table(tmp_path / "pairs.csv", [row for row in rows if row[0] not in ("no-molecule", "bad")])
    found = {f.name: f for f in bridgehead.audit(RunFolder.of(config(path), tmp_path / "run"))}
    # Who ranks by the name finds every partner, and a model of four epochs not many more.
    by_name = found["retrieval by names in the text alone, text -> molecule, recall@10"]
    assert by_name.value == 1.0
    assert by_name.verdict == "fail"
    assert by_name.listed is None and found[by_name.name.replace("text -> molecule", "molecule -> text")].listed
    masked = [f for name, f in found.items() if name.startswith("names masked (21 of 21 text items hold one)")]
    # The model knows nothing of a name that it never saw: it lives on the rest of the text.
    assert [f.verdict for f in masked] == ["pass", "pass"]


def test_audits_that_are_made_anew_say_the_same(copied):
    before = copied.record("audit")
    copied.path("audit.json").unlink()
    again = runs.audit(copied)
    assert [{**f, "seconds": 0} for f in again["findings"]] == [{**f, "seconds": 0} for f in before["findings"]]
    assert again["skipped"] == before["skipped"]


def test_two_shuffled_seeds_are_held_against_true_links_at_the_same_budget(table, tmp_path):
    run = RunFolder.of(config(table, evaluate={"shuffled": 2, "closed_form": "none"}), tmp_path / "run")
    record = runs.audit(run)
    control = run.record("evaluate")["shuffled"]
    assert len(control["real"]["a_to_b.mrr"]) == 2
    named = [finding for finding in record["findings"] if finding["group"] == "controls"]
    paired = [finding for finding in named if "SD" in finding["why"]]
    assert len(named) == 8 and len(paired) == 4
    assert not list(run.path("shuffled").rglob("*.safetensors"))


def test_links_are_shuffled_within_the_columns_that_a_split_keeps_together(copied):
    run = changed(copied, within="group")
    record = runs.audit(run, controls=["within"])
    skipped = {one["name"]: one["reason"] for one in record["skipped"]}
    assert "needs pairs.group" in skipped["shuffled within groups"]
