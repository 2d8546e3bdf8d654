"""The page on the service says what the service does: its code runs, its tables are those of the source."""

import re
from pathlib import Path

import pytest

from bridgehead.serve.settings import PROMISED, ServeSettings
from served_process import running

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "service.md").read_text(encoding="utf-8")


def test_every_limit_stands_in_its_table():
    rows = [f"| {name} | {most:,} | {what} |" for name, most, what in PROMISED]
    rows += [f"| `{name}` | {default} | {says} |" for name, default, says in ServeSettings.explained()]
    assert [line for line in PAGE.splitlines() if line in rows] == rows


def test_every_route_stands_in_its_table(api):
    routes = set(api.get("/openapi.json").json()["paths"])
    shown = set(re.findall(r"`(?:GET|POST) (/[\w./{}]*)", PAGE))
    assert routes <= shown
    # What is shown and not in the document is answered all the same.
    for route in shown - routes - {"/report"}:
        assert api.get(route).status_code == 200, route


def test_every_status_of_an_error_stands_in_its_table(api):
    answers = [
        answer
        for operations in api.get("/openapi.json").json()["paths"].values()
        for operation in operations.values()
        for answer in operation["responses"]
    ]
    named = {status for status in answers if status[0] in "45"}
    assert named - {"415"} <= set(re.findall(r"^\| (\d{3}) \|", PAGE, flags=re.MULTILINE))


@pytest.mark.slow
def test_the_code_of_the_page_runs_from_top_to_bottom(small_index, capsys):
    with running(small_index) as (_, port):
        scope = {"__name__": "service", "url": f"http://127.0.0.1:{port}"}
        for block in re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE):
            exec(compile(block, "service.md", "exec"), scope)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("read as words | ")
    assert printed[3:] == ["oxygen", "3 <svg True",
                           "404 UnknownIdError /items/nobody was answered with 404: no item of this index has the id "
                           "'nobody'"]  # fmt: skip
