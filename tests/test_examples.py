"""The examples run as they stand and print what they promise."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples"
PRINTED = {
    "your_own_rows": ["spectrum -> molecule: 150 queries", "chance"],
    "table_to_search": ["text to molecule, MRR among", "read as words", "read as the structure"],
    "shuffled_control": ["a sound evaluation: ['pass']", "an evaluation with a mistake: ['fail']"],
}


def test_every_example_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(PRINTED)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs_as_it_stands(name, tmp_path):
    done = subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for words in PRINTED[name]:
        assert words in done.stdout
    assert list(tmp_path.iterdir()) == []
