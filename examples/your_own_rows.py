"""Align rows that you made yourself, and measure how well the two sides find each other on pairs held out.

    python examples/your_own_rows.py

The rows here are two noisy views of the same facts; yours come from any two encoders. No file is read or written.
"""

import numpy as np

import bridgehead as bh

N_PAIRS, N_HELD_OUT = 900, 150


def main() -> None:
    """Make rows, train on the first pairs, measure on the last."""
    rng = np.random.default_rng(0)
    facts = rng.normal(size=(N_PAIRS, 8))
    spectra = facts @ rng.normal(size=(8, 60)) + 2 * rng.normal(size=(N_PAIRS, 60))
    molecules = facts @ rng.normal(size=(8, 40)) + 2 * rng.normal(size=(N_PAIRS, 40))

    # Row i belongs to row i. Where several rows belong to one, pass links=bh.Links(...) or an (n, 2) array of pairs.
    train, held_out = slice(None, -N_HELD_OUT), slice(-N_HELD_OUT, None)
    aligner = bh.Aligner(embed_dim=32, epochs=10, seed=0).fit(spectra[train], molecules[train])

    z_spectra = aligner.transform_a(spectra[held_out])
    z_molecules = aligner.transform_b(molecules[held_out])
    report = bh.retrieval_report(z_spectra, z_molecules, names=("spectrum", "molecule"))
    print("\n".join(report.lines()))

    recall, chance = report.a_to_b.recall[10], report.a_to_b.chance_recall[10]
    low, high = report.a_to_b.interval["recall@10"]
    print(f"\nspectrum to molecule, recall@10: {recall:.2f} ({low:.2f} to {high:.2f}); chance {chance:.2f}")


if __name__ == "__main__":
    main()
