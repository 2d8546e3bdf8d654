"""The page on audits names every audit, and its code runs."""

import re
import tomllib
from pathlib import Path
from typing import get_args

from bridgehead.audits import Finding
from bridgehead.audits.finding import Group
from bridgehead.runs.auditing.registry import all_audits
from bridgehead.runs.evidence_config import CONTROLS, AuditConfig

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "audits.md").read_text(encoding="utf-8")


def test_every_audit_and_control_is_on_the_page():
    assert not [one.name for one in all_audits() if f"`{one.name}`" not in PAGE]
    assert {one.control for one in all_audits()} == {None, *CONTROLS}
    assert not [name for name in CONTROLS if f"`{name}`" not in PAGE]
    assert get_args(get_args(AuditConfig.model_fields["controls"].annotation)[0]) == CONTROLS


def test_the_config_on_the_page_is_one():
    shown = re.search(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL).group(1)
    assert AuditConfig(**tomllib.loads(shown)["audit"]).control_seeds == 3


def test_the_code_on_the_page_runs(capsys):
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, "audits.md", "exec"), {"__name__": "audits"})
    first, second = capsys.readouterr().out.splitlines()
    assert first == "fail 0.5"
    assert second.startswith("FAIL  records out of order: 1 ")


def test_a_finding_reads_back_from_its_entry():
    finding = Finding("x", 0.5, "1", "fail", "why", get_args(Group)[1], 0.1)
    assert Finding.of(finding.to_dict()) == finding
