"""The documentation says what the code does: generated pages are those that would be written now, links lead on."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from bridgehead.runs.config import config_of
from bridgehead.runs.folder import RECORDS

ROOT = Path(__file__).resolve().parent.parent


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["cli", "config"])
def test_a_generated_page_is_what_its_script_would_write(name):
    path = ROOT / "scripts" / f"write_{name}_docs.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert page(f"{name}.md") == script.render(), f"run: python scripts/{path.name}"


def test_every_setting_is_explained():
    assert not [line for line in page("config.md").splitlines() if line.startswith("| `") and line.endswith("|  |")]


def test_the_config_that_is_shown_is_one():
    shown = re.search(r"```toml\n(.*?)```", page("config.md"), flags=re.DOTALL).group(1)
    assert config_of(tomllib.loads(shown)).pairs.kind_a == "molecule"


def test_the_code_of_the_page_on_training_runs_from_top_to_bottom(capsys):
    scope = {"__name__": "training"}
    for block in re.findall(r"^```python\n(.*?)^```", page("training.md"), flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, "training.md", "exec"), scope)
    assert "(300, 5)" in capsys.readouterr().out


def test_the_code_of_the_page_on_comparing_runs(capsys):
    for block in re.findall(r"^```python\n(.*?)^```", page("comparing.md"), flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, "comparing.md", "exec"), {"__name__": "comparing"})
    assert "a_to_b.recall@1: 0.675 and 0.525" in capsys.readouterr().out


def test_the_code_of_the_page_on_evaluation_runs(capsys):
    for block in re.findall(r"^```python\n(.*?)^```", page("evaluation.md"), flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, "evaluation.md", "exec"), {"__name__": "evaluation"})
    assert capsys.readouterr().out.startswith("1200 ")


def test_the_code_of_the_page_on_filters_prints_what_the_page_shows(capsys):
    scope = {"__name__": "filters"}
    for block in re.findall(r"^```python\n(.*?)^```", page("filters.md"), flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, "filters.md", "exec"), scope)
    printed = capsys.readouterr().out
    shown = re.findall(r"^```text\n(.*?)^```", page("filters.md"), flags=re.DOTALL | re.MULTILINE)
    assert len(shown) == 3 and all(part in printed for part in shown)


def test_the_code_of_the_page_on_searching_runs(capsys):
    scope = {"__name__": "search"}
    for block in re.findall(r"^```python\n(.*?)^```", page("search.md"), flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, "search.md", "exec"), scope)
    assert "3 queries, 4 hits; 0 without a hit, 1 failed\nrow 1 (id q2): the query is empty" in capsys.readouterr().out


@pytest.mark.slow
def test_the_code_of_the_page_on_keeping_up_to_date_runs(capsys):
    scope = {"__name__": "keeping_up_to_date"}
    text = page("keeping_up_to_date.md")
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, "keeping_up_to_date.md", "exec"), scope)
    assert "molecule: added 1, changed 0, unchanged 1, removed 0, failed 1, of 3 records" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_links_between_pages_lead_somewhere(name):
    for target in re.findall(r"\]\((?!https?:|#)([^)]+)\)", page(name)):
        assert (ROOT / "docs" / target).exists(), f"{name} points to {target}"


def test_every_record_of_a_run_folder_is_explained():
    text = page("index.md")
    assert not [name for name in RECORDS.values() if f"`{name}`" not in text and f"`{name.split('/')[0]}/`" not in text]
