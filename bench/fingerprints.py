"""Time `molecule:fingerprints` against RDKit in a plain loop, from SMILES to CSR, all four kinds.

    python bench/fingerprints.py [FILE] [--molecules N]

FILE has one SMILES a line (first field); default: the ligands of the starter table, then the compounds of the package
`chemicals`. Both sides start cold: the encoder's time includes the start of its worker processes. The results are
compared before a ratio is printed.
"""

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np
from scipy import sparse

import bridgehead
from bridgehead.encode.cache import CountRows
from bridgehead.encode.fingerprints import KINDS, FingerprintEncoder
from bridgehead.workers import available_cores


def starter_smiles() -> list[str]:
    """Return the SMILES of the starter table, then those of the package `chemicals` where it is installed."""
    import polars as pl

    table = Path(bridgehead.__file__).parent / "pairs" / "starter" / "starter.parquet"
    smiles = [text for text in pl.read_parquet(table)["smiles"].to_list() if text]
    found = importlib.util.find_spec("chemicals")
    if found is not None and found.submodule_search_locations:
        file = Path(found.submodule_search_locations[0]) / "Identifiers" / "chemical identifiers pubchem large.tsv"
        rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
        smiles += [row[4] for row in rows if len(row) > 4]
    return smiles


def plain_loop(smiles: list[str]) -> sparse.csr_matrix:
    """Parse, count and collect one molecule after the other, as one would write it at first."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import MACCSkeys, rdFingerprintGenerator

    generators = [
        rdFingerprintGenerator.GetMorganGenerator(radius=2, includeChirality=True),
        rdFingerprintGenerator.GetAtomPairGenerator(includeChirality=True),
        rdFingerprintGenerator.GetTopologicalTorsionGenerator(includeChirality=True),
    ]
    column_of: dict[tuple[int, int], int] = {}
    data, indices, indptr = [], [], [0]
    with rdBase.BlockLogs():
        for text in smiles:
            molecule = Chem.MolFromSmiles(text)
            if molecule is None:
                continue
            counts = [generator.GetSparseCountFingerprint(molecule).GetNonzeroElements() for generator in generators]
            counts.append(dict.fromkeys(MACCSkeys.GenMACCSKeys(molecule).GetOnBits(), 1))
            for kind, held in enumerate(counts):
                for key, count in held.items():
                    indices.append(column_of.setdefault((kind, key), len(column_of)))
                    data.append(count)
            indptr.append(len(indices))
    return sparse.csr_matrix((np.log1p(np.array(data)), indices, indptr), shape=(len(indptr) - 1, len(column_of)))


def encoder_rows(smiles: list[str]) -> tuple[sparse.csr_matrix, CountRows]:
    """Fit and transform with the counts computed once, as a run does with its cache."""
    encoder = FingerprintEncoder(min_count=1)
    counted = encoder.counts(smiles)
    assert isinstance(counted.rows, CountRows)
    fitted = encoder.with_columns_of(counted.rows)
    return fitted.weighted(counted.rows)[0], counted.rows


def main() -> None:
    """Run both sides and print molecules per second and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--molecules", type=int, default=20_000)
    options = parser.parse_args()
    lines = Path(options.file).read_text(encoding="utf-8").splitlines() if options.file else starter_smiles()
    smiles = [line.split()[0] for line in lines if line.strip()][: options.molecules]
    print(f"{len(smiles):,} molecules, {available_cores()} cores, kinds: {', '.join(KINDS)}")
    start = time.perf_counter()
    rows, counted = encoder_rows(smiles)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    plain = plain_loop(smiles)
    loop = time.perf_counter() - start
    assert rows.shape == plain.shape and rows.nnz == plain.nnz, "the two sides disagree"
    assert np.isclose(np.log1p(counted.counts).sum(), plain.sum()), "the two sides disagree"
    print(f"plain loop  {loop:7.2f} s  {len(smiles) / loop:8.0f} molecules/s")
    print(f"bridgehead  {ours:7.2f} s  {len(smiles) / ours:8.0f} molecules/s")
    print(f"ratio       {loop / ours:7.2f}")


if __name__ == "__main__":
    main()
