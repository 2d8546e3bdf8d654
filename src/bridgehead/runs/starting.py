"""`bridgehead init`: a commented config for a file of pairs, which `run` accepts unchanged.

This module is not about guessing columns (`pairs.guess`).
"""

import json
import os
from pathlib import Path

from bridgehead.pairs import guess_columns

_ENCODERS = {"molecule": "molecule:fingerprints", "text": "text:ngram"}

_TEMPLATE = """\
# A run of bridgehead. Check the guesses, then: bridgehead run {config_name}
# All settings with their defaults are in docs/config.md; relative paths are relative to this file.
schema = 1
name = {title}

[pairs]
path = {path}
# Side a is what is held out by default: entities of a never cross the split.
{why}
a = {a}
b = {b}
{id}
kind_a = {kind_a}          # "molecule" (SMILES), "text", or "rows" for anything whose rows you bring yourself
kind_b = {kind_b}
{quote}# entity = "..."         # a column that says which items of a are one entity (kind_a other than molecule)
# group = ["..."]        # columns that a split must not cut through: donor, slide, batch, project
# names = ["name"]       # columns with names of a's items, so that they are found by name
quality = "keep"         # "drop" leaves generic and too short texts out of training, never out of test or index

[split]
hold_out = "a"           # "a", "b" or "both"
fractions = [0.8, 0.1, 0.1]
seed = 0

[encode]
# text:ngram | text:hf=<model or folder> | molecule:fingerprints | rows:<file.npz, .parquet or .npy> | "x + y"
a = {encoder_a}
b = {encoder_b}

[train]
seed = 0                 # fixes everything; the defaults are right for up to a hundred thousand pairs on a laptop

[evaluate]
shuffled = 1             # controls trained on shuffled links, which must fall to chance
# slices = ["..."]       # columns whose labels make slices of the figures: source, class
# pool_a = ["unpaired"]  # further candidates: `unpaired` items, `chemicals`, or files like `path`

[contract]               # what no program can know of these figures; the report asks until it is answered
# unit = "..."           # what one pair is
# crossing = "..."       # what may stand on both sides of the split, and why that is no leak
# match = "..."          # when a candidate is right, and which right ones the pairs may lack
# pool = "..."           # how the candidates came together, and how hard they are to tell apart
# shortcuts = "..."      # which shortcuts the data offers, and which were ruled out

[index]
# extra_a = ["chemicals"]   # further items to search: the compounds of the package chemicals, or files like `path`
"""


def init_config(path: str | Path, quote: str = "auto", encoding: str = "utf-8", out: str | Path = "config.toml") -> str:
    """Return the text of a config for the pairs in `path`, to be written to `out`: columns and kinds are guessed.

    The path of the pairs is written relative to the folder of `out`. Raises as `pairs.guess_columns`.
    """
    guess = guess_columns(path, quote, encoding)  # type: ignore[arg-type]
    target = Path(out).resolve().parent
    relative = os.path.relpath(Path(path).resolve(), target)
    quoted = f"quote = {_text(quote)}\n" if quote != "auto" else ""
    if encoding != "utf-8":
        quoted += f"encoding = {_text(encoding)}\n"
    id_line = f"id = {_text(guess.id)}" if guess.id is not None else '# id = "..."             # a column of unique ids'
    kind_a, kind_b = guess.kinds
    return _TEMPLATE.format(
        config_name=Path(out).name,
        title=_text(f"{guess.a} and {guess.b}"),
        path=_text(relative),
        why="\n".join(f"# {' '.join(why.split())}" for why in guess.why),
        a=_text(guess.a),
        b=_text(guess.b),
        id=id_line,
        kind_a=_text(kind_a),
        kind_b=_text(kind_b),
        quote=quoted,
        encoder_a=_text(_ENCODERS[kind_a]),
        encoder_b=_text(_ENCODERS[kind_b]),
    )


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
