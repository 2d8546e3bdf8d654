"""A small table whose texts follow from the molecules' fragments, its config, and what a run folder holds."""

import csv
import itertools

from bridgehead.runs.config import config_of

CORES = {"c1ccccc1": "an aromatic ring of carbons", "C1CCCCC1": "a saturated ring", "c1cccnc1": "a ring with nitrogen",
         "C1CCOC1": "a small ring with oxygen", "c1ccsc1": "a ring with sulfur"}  # fmt: skip
CHAINS = ["", "C", "CC", "CCC"]
GROUPS = {"O": "a hydroxyl that binds water", "N": "an amine that takes a proton", "Cl": "a heavy chlorine",
          "S": "a thiol that smells", "F": "a lasting fluorine", "N#C": "a nitrile with a triple bond"}  # fmt: skip

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
ASPIRIN_SODIUM = "CC(=O)Oc1ccccc1C(=O)[O-].[Na+]"
ASPIRIN_LYSINE = "CC(=O)Oc1ccccc1C(=O)O.NCCCC[C@H](N)C(=O)O"
QUININE = "COc1ccc2nccc([C@@H](O)[C@@H]3C[C@@H]4CCN3C[C@@H]4C=C)c2c1"
QUINIDINE = "COc1ccc2nccc([C@H](O)[C@H]3C[C@@H]4CCN3C[C@@H]4C=C)c2c1"
MIXTURE = "CN1C=NC2=C1C(=O)N(C(=O)N2C)C.CC(=O)Nc1ccc(O)cc1"
BAD = "C1CC(C"
WEAK = "a chemical compound"
HEADER = ["id", "smiles", "text", "name"]
SPECIAL = [
    ["aspirin", ASPIRIN, "inhibits cyclooxygenase and reduces inflammation", "Aspirin"],
    ["aspirin-na", ASPIRIN_SODIUM, "inhibits cyclooxygenase, as a salt", "Aspirin sodium"],
    ["aspirin-lys", ASPIRIN_LYSINE, "inhibits cyclooxygenase, for injection", "Aspirin lysine"],
    ["quinine", QUININE, "kills the parasite of malaria", "Quinine"],
    ["quinidine", QUINIDINE, "slows the heart by blocking sodium channels", "Quinidine"],
    ["mixture", MIXTURE, "wakes you up and lowers fever", "Caffeine with paracetamol"],
    ["no-text", "OCCCCCCCCO", "", "Octanediol"],
    ["no-molecule", "", "a text that no molecule has", ""],
    ["bad", BAD, "a text of something unreadable", "Broken"],
    ["weak", "CCCCCCCCC(C)C", WEAK, "Weakly described"],
]


def records():
    """Return 120 molecules, each with the text of its core and group that others share, and the special ones."""
    rows = []
    for number, ((core, is_a), chain, (end, has)) in enumerate(
        itertools.product(CORES.items(), CHAINS, GROUPS.items())
    ):
        rows.append([f"X{number}", end + chain + core, f"Consists of {is_a}, and carries {has}.", f"name {number}"])
    return rows[:60] + SPECIAL + rows[60:]


def write_table(path, rows, header=HEADER):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def settings_of(path, **sections):
    """Return settings for the table in `path`; a mapping given for a section changes its settings."""
    settings = {
        "pairs": {"path": str(path), "a": "smiles", "b": "text", "id": "id", "kind_a": "molecule", "names": ["name"]},
        "split": {"test": [ASPIRIN], "fractions": [0.7, 0.15, 0.15]},
        "encode": {"a": "molecule:fingerprints", "b": "text:ngram", "settings_a": {"processes": 1}},
        "train": {"epochs": 4, "embed_dim": 16, "batch_size": 32, "learning_rate": 0.01},
        # Cross-validation trains ten times more: tests of it ask for it.
        "evaluate": {"n_resamples": 20, "folds": 0},
    }
    for name, changes in sections.items():
        known = settings.get(name, {})
        settings[name] = {**known, **changes} if isinstance(known, dict) and isinstance(changes, dict) else changes
    return settings


def config(path, **sections):
    return config_of(settings_of(path, **sections))


def stamps(folder):
    """Return time and size of every file below a folder, but for locks."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def contents(folder):
    return {name: (folder / name).read_bytes() for name in stamps(folder)}
