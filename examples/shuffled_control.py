"""Is what a model finds learnt from the pairs? Train again on pairs that are wrong, and look for chance.

    python examples/shuffled_control.py

The control is read twice: over a sound evaluation, and over one with a mistake that makes every figure perfect. A run
trains the control by itself (`[evaluate] shuffled = 1`).
"""

import numpy as np

import bridgehead as bh
from bridgehead.audits import ShuffledControl, shuffled_control
from bridgehead.evaluate import RetrievalReport
from bridgehead.vectors import FloatArray

N_TRAIN, N_TEST = 400, 100


def control_of(rows_a: FloatArray, rows_b: FloatArray, mistaken: bool) -> ShuffledControl:
    """Train on shuffled pairs with two seeds, and measure on the true pairs held out."""
    true_links = bh.Links(np.stack([np.arange(N_TRAIN)] * 2, axis=1), N_TRAIN, N_TRAIN)

    def fit(links: bh.Links, seed: int) -> RetrievalReport:
        aligner = bh.Aligner(embed_dim=16, epochs=4, seed=seed).fit(rows_a[:N_TRAIN], rows_b[:N_TRAIN], links)
        z_a = aligner.transform_a(rows_a[N_TRAIN:])
        # The mistake: the side a is compared with itself, so every item finds its own copy.
        z_b = z_a if mistaken else aligner.transform_b(rows_b[N_TRAIN:])
        return bh.retrieval_report(z_a, z_b, n_resamples=0)

    return shuffled_control(fit, true_links, seeds=(0, 1))


def main() -> None:
    """Print both controls and how to read them."""
    rng = np.random.default_rng(0)
    facts = rng.normal(size=(N_TRAIN + N_TEST, 8))
    rows_a = facts @ rng.normal(size=(8, 60)) + rng.normal(size=(len(facts), 60))
    rows_b = facts @ rng.normal(size=(8, 40)) + rng.normal(size=(len(facts), 40))
    for title, mistaken in (("a sound evaluation", False), ("an evaluation with a mistake", True)):
        control = control_of(rows_a, rows_b, mistaken)
        print(f"{title}: {sorted({finding.verdict for finding in control.findings})}")
        print("\n".join(control.lines()), "\n")
    print("PASS: with wrong pairs nothing is found, so what the real model finds comes from the pairs.")
    print("FAIL: the figures would be as good with wrong pairs; they say nothing until the cause is found.")


if __name__ == "__main__":
    main()
