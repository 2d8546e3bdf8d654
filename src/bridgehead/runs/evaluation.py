"""The measurements of a run: retrieval on the test part, the untrained baseline and the shuffled-links control.

Everything here is measured with the evaluated heads, which never saw the test part. This module is not about how ranks
become metrics (`evaluate`) or about the controls themselves (`audits`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.align.twin import NumpyHeads
from bridgehead.audits import KnownPairs, ShuffledControl, nearest_neighbour_report, shuffled_control
from bridgehead.evaluate import RetrievalReport, retrieval_report
from bridgehead.links import Links
from bridgehead.runs.config import RunConfig
from bridgehead.runs.encoded import PartRows
from bridgehead.texts import normalise
from bridgehead.vectors import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What was measured on the test part.

    `all` and `unseen` are reports over all queries and over those whose text never occurred in training (None where
    there is none, or where texts themselves are held out, so that none occurred); `baseline` and `baseline_unseen` are
    the untrained nearest-neighbour scorer on the same queries. `z_a`, `z_b` are the projected unit rows.
    """

    all: RetrievalReport
    unseen: RetrievalReport | None
    baseline: RetrievalReport
    baseline_unseen: RetrievalReport | None
    z_a: FloatArray
    z_b: FloatArray
    test: PartRows


def measure(heads: NumpyHeads, train: PartRows, test: PartRows, unseen_b: Any, config: RunConfig) -> Evaluation:
    """Return the evaluation of trained heads. `unseen_b` (n_b of test,) marks texts that no training link carries."""
    z_a, z_b = heads.project_a(test.rows_a), heads.project_b(test.rows_b)
    options = _options(config)
    some = bool(unseen_b.any()) and not unseen_b.all()
    whole = retrieval_report(z_a, z_b, test.links, **options)
    known = KnownPairs(train.rows_a, train.links, train.items_b.tolist(), train.rows_b)
    asked = KnownPairs(test.rows_a, test.links, test.items_b.tolist(), test.rows_b)
    return Evaluation(
        all=whole,
        unseen=retrieval_report(z_a, z_b, test.links, **options, queries_b=unseen_b) if some else None,
        baseline=nearest_neighbour_report(known, asked, **options),
        baseline_unseen=nearest_neighbour_report(known, asked, **options, queries_b=unseen_b) if some else None,
        z_a=z_a,
        z_b=z_b,
        test=test,
    )


def shuffled(
    fit: Callable[[Links, int], NumpyHeads], train: PartRows, test: PartRows, config: RunConfig
) -> ShuffledControl | None:
    """Return the control of training on shuffled links, or None where the config asks for none.

    `fit(links, seed)` trains heads on the training rows with these links at the budget of the evaluated ones.
    """
    if not config.evaluate.shuffled:
        return None
    options = {**_options(config), "n_resamples": 0}

    def evaluate(links: Links, seed: int) -> RetrievalReport:
        heads = fit(links, seed)
        return retrieval_report(heads.project_a(test.rows_a), heads.project_b(test.rows_b), test.links, **options)

    seeds = range(config.evaluate.seed, config.evaluate.seed + config.evaluate.shuffled)
    return shuffled_control(evaluate, train.links, tuple(seeds))


def control_of(stored: dict[str, Any]) -> ShuffledControl:
    """Return the control from its stored form (`ShuffledControl.to_dict`)."""
    return ShuffledControl(
        tuple(stored["seeds"]),
        stored["values"],
        stored["chance"],
        stored["bound"],
        stored["n_links"],
        stored["n_surviving"],
    )


def unseen_texts(texts: Sequence[str], trained: IntArray, asked: IntArray) -> Any:
    """Return the mask (n_b of test,) of texts that, normalised, never occur in training.

    `trained` and `asked` are the numbers of the items of b with a link that trains, and of those in test. Texts whose
    links were left out of training as weak were not seen there.
    """
    seen = {normalise(texts[item]) for item in trained.tolist()}
    return np.array([normalise(texts[item]) not in seen for item in asked.tolist()], dtype=bool)


def _options(config: RunConfig) -> dict[str, Any]:
    return {
        "ks": config.evaluate.ks,
        "names": config.pairs.shown,
        "n_resamples": config.evaluate.n_resamples,
        "seed": config.evaluate.seed,
    }
