"""Build the packaged starter table from the Guide to PHARMACOLOGY tables.

Owns the way from `ligands.tsv.gz` and `interactions.tsv.gz` to `starter.parquet`: cleaning of names,
the sentence that is made of one (type, action, target) fact, and the layout of the file. It is not about
reading the finished table, which is `bridgehead.pairs.starter_data`.

    python scripts/build_starter.py --source FOLDER [--output FILE]

The same input, lexicon and polars version give the same bytes.
"""

from __future__ import annotations

import argparse
import html
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

STARTER = Path(__file__).resolve().parents[1] / "src" / "bridgehead" / "pairs" / "starter"

INHIBITION, ACTIVATION, PARTIAL, NEITHER = "inhibition", "activation", "partial", "neither"

# (type, action) -> (verb phrase, which effect of the lexicon goes with it). A pair that is not here falls
# back to the action with any type, then to the type with any action, then to UNKNOWN.
VERBS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("Inhibitor", "*"): ("Inhibits", INHIBITION),
    ("Inhibitor", "Binding"): ("Inhibits", INHIBITION),
    ("Inhibitor", "Competitive"): ("Competitively inhibits", INHIBITION),
    ("Inhibitor", "Non-competitive"): ("Non-competitively inhibits", INHIBITION),
    ("Inhibitor", "Feedback inhibition"): ("Is a feedback inhibitor that inhibits", INHIBITION),
    ("Inhibitor", "Antagonist"): ("Inhibits", INHIBITION),
    ("Inhibitor", "Potentiation"): ("Modulates", NEITHER),
    ("Antagonist", "*"): ("Is an antagonist that blocks", INHIBITION),
    ("Antagonist", "Antagonist"): ("Is an antagonist that blocks", INHIBITION),
    ("Antagonist", "Binding"): ("Is an antagonist that blocks", INHIBITION),
    ("Antagonist", "Non-competitive"): ("Is a non-competitive antagonist that blocks", INHIBITION),
    ("Antagonist", "Irreversible inhibition"): ("Is an irreversible antagonist that blocks", INHIBITION),
    ("Antagonist", "Full agonist"): ("Modulates", NEITHER),
    ("Agonist", "*"): ("Is an agonist that activates", ACTIVATION),
    ("Agonist", "Agonist"): ("Is an agonist that activates", ACTIVATION),
    ("Agonist", "Binding"): ("Is an agonist that activates", ACTIVATION),
    ("Agonist", "Biased agonist"): ("Is a biased agonist that activates", ACTIVATION),
    ("Agonist", "Irreversible agonist"): ("Is an irreversible agonist that activates", ACTIVATION),
    ("Agonist", "Antagonist"): ("Modulates", NEITHER),
    ("Activator", "*"): ("Activates", ACTIVATION),
    ("Activator", "Binding"): ("Activates", ACTIVATION),
    ("Activator", "Positive"): ("Activates", ACTIVATION),
    ("Activator", "Agonist"): ("Activates", ACTIVATION),
    ("Activator", "Full agonist"): ("Fully activates", ACTIVATION),
    ("Activator", "Partial agonist"): ("Partly activates", PARTIAL),
    ("Activator", "Inhibition"): ("Modulates", NEITHER),
    ("Channel blocker", "*"): ("Is a channel blocker that blocks", INHIBITION),
    ("Channel blocker", "Antagonist"): ("Is a channel blocker that blocks", INHIBITION),
    ("Channel blocker", "Inhibition"): ("Is a channel blocker that blocks", INHIBITION),
    ("Channel blocker", "Pore blocker"): ("Is a channel blocker that blocks", INHIBITION),
    ("Gating inhibitor", "*"): ("Is a gating inhibitor that closes", INHIBITION),
    ("Gating inhibitor", "Antagonist"): ("Is a gating inhibitor that closes", INHIBITION),
    ("Gating inhibitor", "Inhibition"): ("Is a gating inhibitor that closes", INHIBITION),
    ("Allosteric modulator", "*"): ("Is an allosteric modulator of", NEITHER),
    ("Allosteric modulator", "Positive"): ("Is a positive allosteric modulator that enhances", ACTIVATION),
    ("Allosteric modulator", "Potentiation"): ("Is a positive allosteric modulator that enhances", ACTIVATION),
    ("Allosteric modulator", "Negative"): ("Is a negative allosteric modulator that dampens", INHIBITION),
    ("Allosteric modulator", "Neutral"): ("Is a neutral allosteric modulator of", NEITHER),
    ("Allosteric modulator", "Antagonist"): ("Is an allosteric antagonist that blocks", INHIBITION),
    ("Allosteric modulator", "Inhibition"): ("Is an allosteric inhibitor that inhibits", INHIBITION),
    ("Allosteric modulator", "Inverse agonist"): (
        "Is an allosteric inverse agonist that lowers the basal activity of",
        INHIBITION,
    ),
    ("Allosteric modulator", "Agonist"): ("Is an allosteric agonist that activates", ACTIVATION),
    ("Allosteric modulator", "Full agonist"): ("Is an allosteric full agonist that activates", ACTIVATION),
    ("Allosteric modulator", "Partial agonist"): (
        "Is an allosteric partial agonist that partly activates",
        PARTIAL,
    ),
    ("Allosteric modulator", "Activation"): ("Is an allosteric activator that activates", ACTIVATION),
    # The source says "Agonist" where nobody measured how full: the two are one statement, and partial is another.
    ("*", "Full agonist"): ("Is an agonist that activates", ACTIVATION),
    ("*", "Partial agonist"): ("Is a partial agonist that partly activates", PARTIAL),
    ("*", "Inverse agonist"): ("Is an inverse agonist that lowers the basal activity of", INHIBITION),
    ("*", "Irreversible inhibition"): ("Irreversibly inhibits", INHIBITION),
    ("*", "Inhibition"): ("Inhibits", INHIBITION),
    ("*", "Potentiation"): ("Potentiates", ACTIVATION),
    ("*", "Binding"): ("Binds to", NEITHER),
    ("*", "Mixed"): ("Modulates", NEITHER),
}
UNKNOWN = ("Acts on", NEITHER)

_TAG = re.compile(r"</?(?:i|b|em|strong|sub|sup|small|span|p|br)(?:\s+[\w-]+=[^<>]*)?\s*/?>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]+|#[xX][0-9A-Fa-f]+);")
_ARTICLE = re.compile(
    r"^[^,]*(?:receptor|adrenoceptor|channel|transporter|subunit|exchanger|complex|pump|protein)s?(?: \(|$)"
)
_COMMON_WORD = re.compile(r"[A-Z][a-z]{3,}(?=[ /-])")
_PROPER_NAMES = frozenset({"Bruton", "Janus", "Plasmodium"})
_CODE = re.compile(r"^(?:[0-9]+(?:\.[0-9-]+)+\.?-?\s+|[0-9][A-Z]\.\s+|[A-Z][0-9]+:\s+|Type [IVX]+ RTKs:\s+)")


def clean_name(text: str) -> str:
    """`text` without HTML tags and entities (Greek letters become Unicode); anything else stays as found.

    Only known tags and entities closed by a semicolon are touched, so "SK&F 88070" and "A<B" survive.
    """
    plain = _ENTITY.sub(lambda found: _entity(found.group()), _TAG.sub("", text))
    return " ".join(plain.split())


def _entity(entity: str) -> str:
    decoded = html.unescape(entity)
    return html.unescape(entity.lower()) if decoded == entity else decoded


@dataclass(frozen=True)
class Entry:
    """What the lexicon knows of one target: how it is called, what it is, and what acting on it does."""

    called: str
    kind: str
    effects: Mapping[str, str]
    family: str
    family_effects: Mapping[str, str]


class Lexicon:
    """The reviewed phrases of `lexicon.toml`, looked up by (family, target)."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as stream:
            self.families: dict[str, dict[str, Any]] = {
                family["name"]: family for family in tomllib.load(stream)["family"]
            }

    def entry(self, family: str, target: str) -> Entry:
        """The entry of `target`, its own refinement over its family's words, plain words where neither."""
        known = dict(self.families.get(family, {}))
        called = str(known.get("naming", "{}")).replace("{}", in_sentence(target))
        for refinement in known.get("targets", ()):
            found = re.search(refinement["match"], target)
            if found:
                known |= refinement
                if "called" in refinement:
                    called = found.expand(refinement["called"])
                break
        effects = _effects(known)
        kind = str(known.get("kind", plain_kind(family)))
        general = known.get("general", {})
        if isinstance(general, str):
            general = {"called": general}
        # The effect of one receptor is not that of its family: only words written for the whole family count.
        general = {"called": plain_family(family), **self.families.get(family, {}), **general}
        return Entry(called, kind, effects, str(general["called"]), _effects(general))


def in_sentence(name: str) -> str:
    """`name` with a small first letter where it opens with a common word ("Insulin receptor", not "Janus")."""
    found = _COMMON_WORD.match(name)
    return name[0].lower() + name[1:] if found and found.group() not in _PROPER_NAMES else name


def plain_family(family: str) -> str:
    """The database name of a family as it stands in a sentence: no code, a small first letter, an article."""
    name = in_sentence(_CODE.sub("", family))
    if re.fullmatch(r"[A-Z][a-z]{4,}", name):
        name = name.lower()
    return f"the {name}" if re.search(r"(?:family|pathway|receptor|complex)$", name) else name


def _effects(known: Mapping[str, Any]) -> dict[str, str]:
    effects = {INHIBITION: _effect(known, INHIBITION), ACTIVATION: _effect(known, ACTIVATION)}
    effects[PARTIAL] = str(known["partial"]) if "partial" in known else effects[ACTIVATION]
    return effects


def _effect(known: Mapping[str, Any], direction: str) -> str:
    """ "a beta blocker that slows the heart" of the class noun and the effect, or either, or nothing."""
    noun = str(known.get({INHIBITION: "inhibitor", ACTIVATION: "activator"}[direction], ""))
    effect = str(known.get(direction, ""))
    return f"{noun} that {effect}" if noun and effect else noun or effect


def plain_kind(family: str) -> str:
    """A family that the lexicon lacks, as an apposition made of its database name without codes."""
    name = _CODE.sub("", family)
    if not name:
        return ""
    if re.search(r"family(?:\b|$)|superfamily", name):
        return f"a member of the {in_sentence(name)}"
    if re.search(r"(?:receptors|channels|transporters|kinases|synthases|phosphatases|proteins)$", name):
        return f"one of the {in_sentence(name)}"
    return f"of the group {in_sentence(name)}"


def verb_phrase(kind: str, action: str) -> tuple[str, str]:
    """The verb phrase of a (type, action) and which effect goes with it (see `VERBS`)."""
    for key in ((kind, action), ("*", action), (kind, "*")):
        if key in VERBS:
            return VERBS[key]
    return UNKNOWN


def compose(kind: str, action: str, family: str, target: str, lexicon: Lexicon) -> str:
    """One English sentence about one fact, e.g. "Inhibits X, a Y; reduces Z." """
    verb, direction = verb_phrase(kind, action)
    entry = lexicon.entry(family, target)
    article = "the " if _ARTICLE.search(entry.called) else ""
    sentence = f"{verb} {article}{entry.called}"
    if entry.kind:
        sentence += f", {entry.kind}"
    effect = entry.effects.get(direction, "")
    return f"{sentence}; {effect}." if effect else f"{sentence}."


def compose_general(kind: str, action: str, family: str, target: str, lexicon: Lexicon) -> str:
    """The same fact in general words, family and effect: "Inhibits cyclooxygenase; reduces inflammation and pain."

    People ask at this level too, and descriptions of single proteins alone would be too fine for them. The effect is
    the family's own, where the lexicon has one. Empty where the source names no family or no direction.
    """
    _, direction = verb_phrase(kind, action)
    if not family or direction == NEITHER:
        return ""
    entry = lexicon.entry(family, target)
    effect = entry.family_effects.get(direction, "")
    verb = {ACTIVATION: "Activates", PARTIAL: "Partly activates"}.get(direction, "Blocks")
    if direction == INHIBITION and kind == "Inhibitor":
        verb = "Inhibits"
    return f"{verb} {entry.family}; {effect}." if effect else f"{verb} {entry.family}."


def read_table(path: Path) -> pl.DataFrame:
    """A gzip-compressed TSV with every value as cleaned text and missing ones as empty text."""
    frame = pl.read_csv(path, separator="\t", infer_schema=False).fill_null("")
    keep = {"smiles", "inchikey", "ligand_id"}
    return frame.with_columns(
        pl.col(name).map_elements(clean_name, return_dtype=pl.String) for name in frame.columns if name not in keep
    )


def facts_by_ligand(interactions: pl.DataFrame, lexicon: Lexicon) -> dict[str, dict[str, list[str]]]:
    """ligand id -> its distinct statements, targets and families; primary targets first, then by name."""
    order = (
        interactions.filter(pl.col("target") != "")
        .with_columns((pl.col("primary_target") != "t").alias("secondary"))
        .sort("ligand_id", "secondary", "target", "type", "action", "family")
    )
    facts: dict[str, dict[str, list[str]]] = {}
    for row in order.iter_rows(named=True):
        of_ligand = facts.setdefault(row["ligand_id"], {"statement": [], "targets": [], "families": []})
        fact = (row["type"], row["action"], row["family"], row["target"], lexicon)
        for column, value in (
            ("statement", compose_general(*fact)),
            ("statement", compose(*fact)),
            ("targets", row["target"]),
            ("families", row["family"]),
        ):
            if value and value not in of_ligand[column]:
                of_ligand[column].append(value)
    return facts


def build(source: Path, lexicon: Lexicon) -> pl.DataFrame:
    """The starter table of the two tables in the folder `source`: one row a ligand that has SMILES."""
    ligands = read_table(source / "ligands.tsv.gz")
    facts = facts_by_ligand(read_table(source / "interactions.tsv.gz"), lexicon)
    ligands = ligands.filter(pl.col("smiles") != "").sort(pl.col("ligand_id").cast(pl.Int64))
    rows = []
    for ligand in ligands.iter_rows(named=True):
        known = facts.get(ligand["ligand_id"], {"statement": [], "targets": [], "families": []})
        synonyms = [name.strip() for name in ligand["synonyms"].split("|") if name.strip()]
        rows.append(
            {
                "id": ligand["ligand_id"],
                "name": ligand["name"],
                "synonyms": synonyms,
                "smiles": ligand["smiles"],
                "inchikey": ligand["inchikey"],
                "approved": ligand["approved"] == "yes",
                "withdrawn": ligand["withdrawn"] == "yes",
                "ligand_type": ligand["type"],
                "families": known["families"],
                "targets": known["targets"],
                "statement": known["statement"],
            }
        )
    return pl.DataFrame(rows, schema=SCHEMA)


SCHEMA: Mapping[str, pl.DataType] = {
    "id": pl.String(),
    "name": pl.String(),
    "synonyms": pl.List(pl.String()),
    "smiles": pl.String(),
    "inchikey": pl.String(),
    "approved": pl.Boolean(),
    "withdrawn": pl.Boolean(),
    "ligand_type": pl.String(),
    "families": pl.List(pl.String()),
    "targets": pl.List(pl.String()),
    "statement": pl.List(pl.String()),
}


def write(frame: pl.DataFrame, path: Path) -> None:
    """Write `frame` as one zstd row group without statistics, the smallest form of it."""
    frame.write_parquet(path, compression="zstd", compression_level=19, statistics=False, row_group_size=1 << 20)


def main() -> None:
    """Read the arguments, build, write, and print the counts."""
    arguments = argparse.ArgumentParser(description="Build the packaged starter table.")
    arguments.add_argument(
        "--source", type=Path, required=True, help="folder of ligands.tsv.gz and interactions.tsv.gz"
    )
    arguments.add_argument("--output", type=Path, default=STARTER / "starter.parquet")
    given = arguments.parse_args()
    frame = build(given.source, Lexicon(STARTER / "lexicon.toml"))
    write(frame, given.output)
    statements = frame["statement"].explode().drop_nulls()
    print(
        f"{frame.height} ligands, {frame.filter(pl.col('statement').list.len() > 0).height} with statements, "
        f"{len(statements)} links, {statements.n_unique()} distinct statements, "
        f"{given.output.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
