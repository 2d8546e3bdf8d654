"""The page on zero-shot classification runs from top to bottom, and its links lead somewhere."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "zero_shot.md"


def test_the_code_of_the_page_runs_from_top_to_bottom(capsys):
    scope = {"__name__": "zero_shot"}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, "zero_shot.md", "exec"), scope)
    shown = capsys.readouterr().out
    assert "chance 0.333" in shown and "of no class refused" in shown and "without the class 'statin'" in shown
    assert scope["report"].accuracy[1] > 0.8 and scope["report"].abstention.none_refused > 0.6
