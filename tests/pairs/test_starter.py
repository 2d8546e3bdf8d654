"""The packaged starter table, its lexicon, and the script that builds it."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from bridgehead.errors import InputFileNotFoundError
from bridgehead.pairs import starter_data
from bridgehead.pairs.starter_data import (
    ATTRIBUTION,
    LEXICON_PATH,
    STARTER_COLUMNS,
    read_starter_frame,
    starter_path,
)

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "build_starter.py"

# Ligands of the source that are substances of the body (or name a target class) and therefore occur in English
# phrases about targets: these words say what a target is, they do not give a ligand away.
SUBSTANCES_OF_THE_BODY = frozenset(
    re.split(
        r",\s+",
        """serotonin, 5-hydroxytryptamine, adrenaline, noradrenaline, histamine, acetylcholine, dopamine, adenosine,
        gaba, glycine, nmda, ampa, kainate, melatonin, prostacyclin, cortisol, aldosterone, progesterone, testosterone,
        estrogen, cholesterol, vasopressin, oxytocin, bradykinin, motilin, neurotensin, bombesin, sphingosine, lactate,
        heat, succinate, retinol, xanthine, uric acid, arachidonic acid, lysophosphatidic acid, sphingosine 1-phosphate,
        angiotensin ii, leukotriene b4, substance p, cyclic amp, cyclic gmp""",
    )
)


def load_build_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_starter", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["build_starter"] = module
    spec.loader.exec_module(module)
    return module


build_starter = load_build_script()


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return read_starter_frame()


@pytest.fixture(scope="module")
def lexicon() -> list[dict[str, Any]]:
    with LEXICON_PATH.open("rb") as stream:
        families: list[dict[str, Any]] = tomllib.load(stream)["family"]
    return families


@pytest.fixture(scope="module")
def source() -> Path:
    data = Path(os.environ.get("BRIDGEHEAD_DATA", ROOT.parent / "shared" / "data"))
    folder = data / "pharmacology"
    if not (folder / "ligands.tsv.gz").is_file():
        pytest.skip(
            f"the source tables are not at {folder}; set BRIDGEHEAD_DATA to the folder that holds pharmacology/"
        )
    return folder


def statements_of(frame: pl.DataFrame, name: str) -> list[str]:
    found: list[str] = frame.filter(pl.col("name") == name)["statement"].item().to_list()
    return found


def statement_counts(frame: pl.DataFrame) -> Counter[str]:
    return Counter(frame["statement"].explode().drop_nulls().to_list())


# --- the packaged table ---------------------------------------------------------------------------------------


def test_table_has_the_documented_columns_and_types(frame: pl.DataFrame) -> None:
    assert tuple(frame.columns) == STARTER_COLUMNS
    assert frame.schema == pl.Schema(build_starter.SCHEMA)
    assert frame.height == 8412
    assert frame.null_count().sum_horizontal().item() == 0


def test_every_row_has_a_unique_text_id_and_a_structure(frame: pl.DataFrame) -> None:
    ids = frame["id"].to_list()
    assert len(set(ids)) == len(ids)
    assert ids == sorted(ids, key=int)
    assert (frame["smiles"].str.len_chars() > 0).all()
    assert frame["inchikey"].str.contains(r"^[A-Z]{14}-[A-Z]{10}-[A-Z]$").all()


def test_lists_hold_no_duplicates_and_no_empty_text(frame: pl.DataFrame) -> None:
    for column in ("families", "targets", "statement"):
        assert (frame[column].list.len() == frame[column].list.n_unique()).all(), column
        assert (frame[column].explode().drop_nulls().str.len_chars() > 0).all(), column


def test_table_is_small_enough_to_package() -> None:
    assert starter_path().stat().st_size < 1_500_000


def test_facts_are_many_to_many_and_some_ligands_are_unpaired(frame: pl.DataFrame) -> None:
    per_ligand = frame["statement"].list.len()
    counts = statement_counts(frame)
    assert (per_ligand == 0).sum() > 1000
    assert (per_ligand > 1).sum() > 2000
    assert sum(count > 1 for count in counts.values()) > 1500
    assert per_ligand.sum() == sum(counts.values()) > 15_000
    assert len(counts) > 2500


def test_aspirin_inhibits_both_cyclooxygenases(frame: pl.DataFrame) -> None:
    statements = statements_of(frame, "aspirin")
    assert statements[0].startswith("Inhibits cyclooxygenase; ")
    assert statements[0].endswith("reduces inflammation, pain and fever.")
    assert statements[1].startswith("Inhibits cyclooxygenase-1 (COX-1)")
    assert statements[2] == (
        "Inhibits cyclooxygenase-2 (COX-2), the enzyme that makes prostaglandins; a nonsteroidal anti-inflammatory "
        "agent (NSAID) that reduces inflammation, pain and fever."
    )
    assert statement_counts(frame)[statements[2]] > 10


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("metoprolol", "a beta blocker that slows the heart and lowers blood pressure"),
        ("loratadine", "an antihistamine that relieves allergy, itching and hay fever"),
        ("omeprazole", "stops stomach acid"),
        ("morphine", "an opioid painkiller"),
        ("imatinib", "chronic myeloid leukaemia"),
        ("atorvastatin", "lowers blood cholesterol"),
        ("captopril", "an ACE inhibitor that lowers blood pressure"),
        ("furosemide", "a loop diuretic"),
        ("fluoxetine", "relieves depression"),
        ("amlodipine", "a calcium channel blocker"),
    ],
)
def test_well_known_medicines_say_what_they_are_known_for(frame: pl.DataFrame, name: str, words: str) -> None:
    assert any(words in statement for statement in statements_of(frame, name))


def test_names_carry_no_markup(frame: pl.DataFrame) -> None:
    for column in ("name", "synonyms", "targets", "families"):
        texts = frame[column].explode().drop_nulls() if frame[column].dtype == pl.List else frame[column]
        assert not texts.str.contains(r"</?[A-Za-z]+>|&#?[A-Za-z0-9]+;").any(), column


def test_no_statement_names_a_ligand(frame: pl.DataFrame) -> None:
    target_words = {word for text in _target_texts(frame) for word in _words(text)}
    names = {name.lower() for name in frame["name"].to_list() if re.search(r"[a-z]{4}", name)}
    names -= SUBSTANCES_OF_THE_BODY
    given_away = {
        name
        for statement in statement_counts(frame)
        for name in _phrases(statement)
        if name in names and not set(_words(name)) <= target_words
    }
    assert given_away == set()


def test_no_statement_gives_an_affinity(frame: pl.DataFrame) -> None:
    assert not any(re.search(r"\bp(?:IC|K|EC|A)\w*\b|\d\.\d{2}", statement) for statement in statement_counts(frame))


def test_statements_are_sentences(frame: pl.DataFrame) -> None:
    for statement in statement_counts(frame):
        assert statement[0].isupper() and statement.endswith(".") and not statement.endswith("..")
        assert "  " not in statement and "{}" not in statement and " ," not in statement
        assert 10 <= len(statement) <= 400


# --- the lexicon ----------------------------------------------------------------------------------------------


def test_lexicon_covers_the_families_that_matter(frame: pl.DataFrame, lexicon: list[dict[str, Any]]) -> None:
    named = [family["name"] for family in lexicon]
    ligands_of = Counter(frame["families"].explode().drop_nulls().to_list())
    assert len(set(named)) == len(named) >= 90
    assert set(named) <= set(ligands_of)
    assert {family for family, _ in ligands_of.most_common(110)} <= set(named)


def test_most_statements_carry_an_effect_from_many_families(frame: pl.DataFrame, source: Path) -> None:
    with_effect = sum(count for text, count in statement_counts(frame).items() if "; " in text)
    assert with_effect / sum(statement_counts(frame).values()) > 0.6
    assert len({family for family, _, _ in _phrase_uses(source)}) >= 60


def test_every_entry_and_phrase_applies_to_at_least_two_ligands(source: Path, lexicon: list[dict[str, Any]]) -> None:
    uses = _phrase_uses(source)
    interactions = build_starter.read_table(source / "interactions.tsv.gz")
    for family in lexicon:
        of_family = interactions.filter(pl.col("family") == family["name"])
        assert of_family["ligand_id"].n_unique() >= 2, family["name"]
        for entry in (family, *family.get("targets", ())):
            match = entry.get("match", "")
            hit = of_family.filter(pl.col("target").str.contains(match))
            assert hit["ligand_id"].n_unique() >= 2, (family["name"], match)
            for key in ("inhibition", "inhibitor", "activation", "activator", "partial"):
                if entry.get(key):
                    assert len(uses[family["name"], match, key]) >= 2, (family["name"], match, key)


def test_no_phrase_of_the_lexicon_names_a_ligand_or_its_brand(
    frame: pl.DataFrame, lexicon: list[dict[str, Any]]
) -> None:
    synonyms = {text.lower().strip("®™ ") for text in frame["synonyms"].explode().drop_nulls().to_list()}
    names = {name.lower() for name in frame["name"].to_list()} | synonyms
    names = {name for name in names if re.search(r"[a-z]{4}", name)} - SUBSTANCES_OF_THE_BODY
    for entry in _entries(lexicon):
        for key in ("kind", "inhibition", "inhibitor", "activation", "activator", "partial"):
            named = {phrase for phrase in _phrases(str(entry.get(key, ""))) if phrase in names}
            named -= {"lysophosphatidic acid", "sphingosine 1-phosphate", "angiotensin ii", "uric acid"}
            named -= {"arachidonic acid", "leukotriene b4", "substance p", "cyclic amp", "cyclic gmp"}
            assert named == set(), (entry, key)


def test_entries_hold_known_keys_and_plain_phrases(lexicon: list[dict[str, Any]]) -> None:
    effects = {"kind", "inhibition", "inhibitor", "activation", "activator", "partial"}
    for entry in _entries(lexicon):
        assert set(entry) <= effects | {"name", "naming", "general", "match", "called", "targets"}, entry
        for key in effects & set(entry):
            assert not re.search(r"[.;]$|^\s|\s$", entry[key]), entry
        for key in ("inhibitor", "activator"):
            assert re.match(r"(an?|the) |$", entry.get(key, "")), entry


# --- the build ------------------------------------------------------------------------------------------------


def test_names_lose_markup_and_keep_everything_else() -> None:
    clean = build_starter.clean_name
    assert clean("5-HT<sub>1A</sub> receptor") == "5-HT1A receptor"
    assert clean("&alpha;<sub>1</sub>-adrenoceptor") == "α1-adrenoceptor"
    assert clean('<span class="x">N</span>-methyl &beta;&#8322;') == "N-methyl β₂"
    assert clean("Advil&Reg;") == "Advil®"
    assert clean("SK&F 88070") == "SK&F 88070"
    assert clean("A<B and c>d") == "A<B and c>d"


@pytest.mark.parametrize(
    ("kind", "action", "verb", "direction"),
    [
        ("Inhibitor", "Inhibition", "Inhibits", "inhibition"),
        ("Antagonist", "Antagonist", "Is an antagonist that blocks", "inhibition"),
        ("Antagonist", "Inverse agonist", "Is an inverse agonist that lowers the basal activity of", "inhibition"),
        ("Agonist", "Full agonist", "Is an agonist that activates", "activation"),
        ("Agonist", "Partial agonist", "Is a partial agonist that partly activates", "partial"),
        ("Agonist", "", "Is an agonist that activates", "activation"),
        ("Allosteric modulator", "Positive", "Is a positive allosteric modulator that enhances", "activation"),
        ("Allosteric modulator", "Negative", "Is a negative allosteric modulator that dampens", "inhibition"),
        ("Channel blocker", "", "Is a channel blocker that blocks", "inhibition"),
        ("", "Binding", "Binds to", "neither"),
        ("", "", "Acts on", "neither"),
        ("Activator", "Inhibition", "Modulates", "neither"),
    ],
)
def test_verb_and_direction_follow_type_and_action(kind: str, action: str, verb: str, direction: str) -> None:
    assert build_starter.verb_phrase(kind, action) == (verb, direction)


def test_effect_follows_the_direction_of_the_action() -> None:
    words = build_starter.Lexicon(LEXICON_PATH)
    family, target = "Adrenoceptors", "β2-adrenoceptor"
    blocks = build_starter.compose("Antagonist", "Antagonist", family, target, words)
    activates = build_starter.compose("Agonist", "Full agonist", family, target, words)
    binds = build_starter.compose("", "Binding", family, target, words)
    assert "a beta blocker" in blocks and "bronchodilator" not in blocks
    assert "bronchodilator" in activates and "blocker" not in activates
    assert ";" not in binds


def test_an_unknown_family_gets_a_plain_apposition_and_no_effect() -> None:
    words = build_starter.Lexicon(LEXICON_PATH)
    assert build_starter.compose("Inhibitor", "Inhibition", "Zeta subfamily", "zeta 1", words) == (
        "Inhibits zeta 1, a member of the zeta subfamily."
    )
    assert build_starter.compose("Inhibitor", "", "", "zeta 1", words) == "Inhibits zeta 1."


def test_rebuilding_from_the_source_gives_the_packaged_table(source: Path, frame: pl.DataFrame, tmp_path: Path) -> None:
    rebuilt = build_starter.build(source, build_starter.Lexicon(LEXICON_PATH))
    assert_frame_equal(rebuilt, frame)
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    build_starter.write(rebuilt, first)
    build_starter.write(build_starter.build(source, build_starter.Lexicon(LEXICON_PATH)), second)
    assert first.read_bytes() == second.read_bytes()


# --- licences and loader --------------------------------------------------------------------------------------


def test_attribution_and_notice_name_source_and_licences() -> None:
    notice = (starter_path().parent / "NOTICE").read_text(encoding="utf-8")
    for text in (ATTRIBUTION, notice):
        for part in ("Guide to PHARMACOLOGY", "2020.5", "Open Database License", "CC BY-SA 4.0"):
            assert part in text


@pytest.mark.parametrize(
    ("file", "first", "last", "words"),
    [
        ("LICENSE", "Apache License", "limitations under the License.", 1581),
        ("LICENSES/ODbL-1.0.txt", "Open Database License", "terms of this License.", 3900),
        ("LICENSES/CC-BY-SA-4.0.txt", "Attribution-ShareAlike 4.0 International", "creativecommons.org.", 2700),
    ],
)
def test_licence_texts_are_whole(file: str, first: str, last: str, words: int) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert first in text[:200] and text.rstrip().endswith(last)
    assert len(text.split()) >= words


def test_a_missing_table_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(starter_data, "_FOLDER", tmp_path)
    with pytest.raises(InputFileNotFoundError, match="install it again"):
        starter_path()


# --- independent reading of the lexicon -----------------------------------------------------------------------


def _entries(lexicon: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for family in lexicon:
        yield family
        yield from family.get("targets", ())


def _target_texts(frame: pl.DataFrame) -> list[str]:
    return frame["targets"].explode().drop_nulls().to_list() + frame["families"].explode().drop_nulls().to_list()


def _words(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text.lower())


def _phrases(text: str) -> Iterator[str]:
    words = _words(text)
    for length in (1, 2, 3):
        for start in range(len(words) - length + 1):
            yield " ".join(words[start : start + length])


def _phrase_uses(source: Path) -> dict[tuple[str, str, str], set[str]]:
    """(family, match, key) of a lexicon phrase -> the ligands whose statements carry it."""
    words = build_starter.Lexicon(LEXICON_PATH)
    uses: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    keys = {"inhibition": ("inhibition", "inhibitor"), "activation": ("activation", "activator"), "neither": ()}
    for row in build_starter.read_table(source / "interactions.tsv.gz").iter_rows(named=True):
        family = words.families.get(row["family"])
        if family is None or not row["target"]:
            continue
        refined = next((x for x in family.get("targets", ()) if re.search(x["match"], row["target"])), {})
        direction = build_starter.verb_phrase(row["type"], row["action"])[1]
        if direction == "partial":
            asked = ("partial",) if "partial" in {**family, **refined} else keys["activation"]
        else:
            asked = keys[direction]
        for key in asked:
            entry = refined if key in refined else family
            if entry.get(key):
                uses[row["family"], entry.get("match", ""), key].add(row["ligand_id"])
    return uses
