"""Write docs/cli.md from the commands' own --help.

    python scripts/write_cli_docs.py

A test compares the file with what this would write.
"""

from pathlib import Path

import typer
from typer.testing import CliRunner

from bridgehead.cli.commands import app

TARGET = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
INTRODUCTION = """\
# Command line

<!-- Written by scripts/write_cli_docs.py from the commands' own --help; change it there. -->

`bridgehead` is installed with the package; `python -m bridgehead.cli` is the same. Every command is one call into the
library (`bridgehead.runs`, `bridgehead.open_space`) and can do nothing that the library cannot.

**Output.** Results go to standard output, progress to standard error: a bar on a terminal, elsewhere a line where a
stage begins and one with the seconds where it ends, and a sign every half minute. `search` prints a table cut to the
width of a terminal, and elsewhere tab-separated values with every cell whole, after lines that begin with `#` and say
how the query was read.

**`--json`** prints one JSON document on standard output and nothing else there: the record that a stage left in the run
folder, or a search's hits. An error is a document as well, in the same place, with exit status 1:

```json
{"error": {"type": "ColumnError", "message": "no column 'smile'; the file has: smiles, description"}}
```

A command that is misspelt is no document: usage errors are text on standard error, with exit status 2. NaN and infinity
are null.

| exit status | |
|---|---|
| 0 | good |
| 1 | the input is at fault (a file, a config, a run folder, a query); `--debug` adds a traceback to the message |
| 2 | the command is at fault: an unknown option, a missing argument |
| 3 | kept for audits that fail |
| 70 | bridgehead is at fault; there is a traceback |
| 130 | interrupted by Ctrl-C; the same command goes on where it stopped |
| 141 | the reader of the output went away, as `head` does |
"""


def render() -> str:
    """Return the page: the introduction, then the help of `bridgehead` and of each command."""
    blocks = [INTRODUCTION, *_block([])]
    for name in typer.main.get_command(app).commands:  # type: ignore[attr-defined]
        blocks += [f"\n## {name}\n", *_block([name])]
    return "\n".join(blocks) + "\n"


def _block(command: list[str]) -> list[str]:
    shown = CliRunner().invoke(app, [*command, "--help"], prog_name="bridgehead", env={"COLUMNS": "100"}).output
    lines = [line.rstrip() for line in shown.strip().splitlines()]
    return ["```text", *lines, "```"]


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
