"""From a csv of molecules and descriptions to a search, in a folder of its own.

    python examples/table_to_search.py [FOLDER]

The table is made here: scaffolds and groups, each pair with a sentence. On the command line the same is
`bridgehead init pairs.csv`, `bridgehead run config.toml`, `bridgehead search runs/config "..."`.
"""

import csv
import itertools
import sys
import tempfile
from pathlib import Path

import bridgehead as bh
from bridgehead import runs

SCAFFOLDS = {
    "c1ccccc1": "an aromatic ring of carbons",
    "C1CCCCC1": "a saturated ring of six carbons",
    "c1cccnc1": "an aromatic ring with a nitrogen",
    "CCCC": "an open chain of carbons",
    "C1CCOC1": "a small ring with an oxygen",
}
GROUPS = {
    "OC(=O)": "a carboxylic acid that gives a proton away",
    "O": "a hydroxyl group that binds water",
    "N": "an amine that takes a proton up",
    "Cl": "a chlorine that makes it heavy",
    "N#C": "a nitrile with a triple bond",
    "S": "a thiol that smells strongly",
    "F": "a fluorine that resists oxidation",
    "NC(=O)": "an amide like those in proteins",
}


def write_pairs(path: Path) -> None:
    """Write a csv with an id, a SMILES and a description for each combination."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["compound_id", "smiles", "description"])
        combinations = itertools.product(SCAFFOLDS.items(), GROUPS.items())
        for number, ((scaffold, is_a), (group, has)) in enumerate(combinations):
            description = f"Consists of {is_a}, and carries {has}."
            writer.writerow([f"X{number:03}", group + scaffold, description])


def main(folder: Path) -> None:
    """Write the table, let the columns be guessed, run every stage, and ask two questions."""
    write_pairs(folder / "pairs.csv")
    config = folder / "config.toml"
    config.write_text(runs.init_config(folder / "pairs.csv", out=config), encoding="utf-8")
    run = bh.run(config)

    measured = run.record("evaluate")["all"]
    pool, found, chance = (measured[f"b_to_a.{key}"] for key in ("n_candidates", "mrr", "chance_mrr"))
    print(f"text to molecule, MRR among {pool} molecules held out: {found:.2f}, chance {chance:.2f}")
    with bh.open_space(run.folder) as space:
        for query in ("an amine on an aromatic ring", "OC(=O)c1ccccc1"):
            answer = space.answer(query, k=3)
            print(f"\n{query}: {answer.reading.explanation}")
            for hit in answer.hits:
                print(f"  {hit.rank}  {hit.score:.2f}  {hit.item}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
