"""The measurements of a run: retrieval on the test part, both baselines and the shuffled-links control.

Everything here is measured with the evaluated heads, or with maps of the training part's rows and links, and neither
saw the test part. This module is not about how ranks become metrics (`evaluate`), about the controls themselves
(`audits`) or about fitting (`align`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.align.closed_form import fit_closed_form
from bridgehead.align.twin import NumpyHeads
from bridgehead.audits import KnownPairs, ShuffledControl, nearest_neighbour_report, shuffled_control
from bridgehead.errors import BridgeheadError
from bridgehead.evaluate import RetrievalReport, retrieval_report
from bridgehead.links import Links
from bridgehead.runs.config import RunConfig
from bridgehead.runs.encoded import PartRows
from bridgehead.runs.pools import Asked
from bridgehead.texts import normalise
from bridgehead.vectors import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What was measured on the test part.

    `all` and `unseen` are reports over all queries and over those whose text never occurred in training (None where
    there is none, or where texts themselves are held out, so that none occurred). `z_a`, `z_b` are the projected unit
    rows of `asked`.
    """

    all: RetrievalReport
    unseen: RetrievalReport | None
    z_a: FloatArray
    z_b: FloatArray
    asked: Asked


@dataclass(frozen=True, eq=False)
class Untrained:
    """What the untrained nearest-neighbour scorer reaches on the queries of an `Evaluation`, all and unseen."""

    all: RetrievalReport
    unseen: RetrievalReport | None


@dataclass(frozen=True, eq=False)
class ClosedFormEvaluation:
    """What two linear maps without any training reach on the same queries and pool as the trained heads.

    `method` is that of the config, `embed_dim` the dimensions of the space that was found, and `notes` sentences on
    what differs from what was asked for. `all` and `unseen` are as in `Evaluation`. Where nothing could be fitted all
    three are None, and the notes say why.
    """

    method: str
    embed_dim: int | None
    notes: tuple[str, ...]
    all: RetrievalReport | None
    unseen: RetrievalReport | None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe entries: `method`, `embed_dim`, `notes`, and the figures over all queries where there are
        any, with keys as in `RetrievalReport.to_dict`."""
        figures = {} if self.all is None else self.all.to_dict()
        return {"method": self.method, "embed_dim": self.embed_dim, "notes": list(self.notes), **figures}


def measure(
    heads: NumpyHeads, asked: Asked, entities: tuple[list[str], list[str]], unseen_b: Any, config: RunConfig
) -> Evaluation:
    """Return the evaluation of trained heads on the queries and candidates of `asked`.

    `entities` are the labels of its rows, and `unseen_b` marks rows of b whose text no training link carries.
    """
    z_a, z_b = heads.project_a(asked.part.rows_a), heads.project_b(asked.part.rows_b)
    whole = retrieval_report(z_a, z_b, asked.part.links, **_options(config, asked, entities))
    return Evaluation(all=whole, unseen=_of_unseen(whole, unseen_b), z_a=z_a, z_b=z_b, asked=asked)


def untrained(
    train: PartRows, asked: Asked, entities: tuple[list[str], list[str]], unseen_b: Any, config: RunConfig
) -> Untrained:
    """Return what looking up the most similar training items reaches on the same queries and candidates.

    `train` and `asked` have rows from before any training; the rest is as in `measure`.
    """
    known, asking = (KnownPairs(part.rows_a, part.links, _keys(part), part.rows_b) for part in (train, asked.part))
    whole = nearest_neighbour_report(known, asking, **_options(config, asked, entities))
    return Untrained(whole, _of_unseen(whole, unseen_b))


def _keys(part: PartRows) -> list[int]:
    """Return what says which texts of two parts are the same; a candidate that is not in the table is like no other."""
    numbers = part.items_b
    return [int(key) for key in np.where(numbers >= 0, numbers, -1 - np.arange(len(numbers)))]


def _of_unseen(whole: RetrievalReport, unseen_b: Any) -> RetrievalReport | None:
    """Return the report of the queries of b with unseen texts, None where none or all of them are."""
    mask = unseen_b[whole.b_to_a.queries]
    if not mask.any() or mask.all():
        return None
    return RetrievalReport(whole.a_to_b, whole.b_to_a.subset(mask), whole.names)


def closed_form(
    train: PartRows, asked: Asked, entities: tuple[list[str], list[str]], unseen_b: Any, config: RunConfig
) -> ClosedFormEvaluation | None:
    """Return what the closed form of the config reaches, or None where it names none.

    It is fitted on the rows and links that training starts from, into a space as wide as that of the heads; `asked`
    has rows from before any training, the rest is as in `measure`. What cannot be fitted, or has no room in memory, is
    a note and no error: a run goes on without it.
    """
    method = config.evaluate.closed_form
    if method == "none":
        return None
    options: dict[str, Any] = {"method": method, "embed_dim": config.train.embed_dim, "seed": 0}
    try:
        found = fit_closed_form(train.rows_a, train.rows_b, train.links, **options, input_norm=config.train.input_norm)
        z_a, z_b = found.transform_a(asked.part.rows_a), found.transform_b(asked.part.rows_b)
    except (BridgeheadError, np.linalg.LinAlgError, MemoryError) as error:
        why = str(error) or "there is not enough memory for it"
        return ClosedFormEvaluation(method, None, (f"not fitted: {why}",), None, None)
    whole = retrieval_report(z_a, z_b, asked.part.links, **_options(config, asked, entities))
    return ClosedFormEvaluation(method, found.embed_dim, found.notes, whole, _of_unseen(whole, unseen_b))


def shuffled(
    fit: Callable[[Links, int], Any],
    train: PartRows,
    asked: Asked,
    entities: tuple[list[str], list[str]],
    config: RunConfig,
) -> ShuffledControl | None:
    """Return the control of training on shuffled links, or None where the config asks for none.

    `fit(links, seed)` trains on the training rows with these links at the budget of the evaluated heads, and returns
    what projects the rows of `asked` (`project_a`, `project_b`).
    """
    if not config.evaluate.shuffled:
        return None
    options = {**_options(config, asked, entities), "n_resamples": 0}

    def evaluate(links: Links, seed: int) -> RetrievalReport:
        heads = fit(links, seed)
        return retrieval_report(
            heads.project_a(asked.part.rows_a), heads.project_b(asked.part.rows_b), asked.part.links, **options
        )

    seeds = range(config.evaluate.seed, config.evaluate.seed + config.evaluate.shuffled)
    # One seed has no spread: a difference paired by seed needs the true links trained at the same budget too.
    return shuffled_control(evaluate, train.links, tuple(seeds), paired=len(seeds) > 1)


def control_of(stored: dict[str, Any]) -> ShuffledControl:
    """Return the control from its stored form (`ShuffledControl.to_dict`)."""
    return ShuffledControl.of(stored)


def unseen_texts(texts: Sequence[str], trained: IntArray, asked: IntArray) -> Any:
    """Return the mask (n_b of test,) of texts that, normalised, never occur in training.

    `trained` and `asked` are the numbers of the items of b with a link that trains, and of those in test. Texts whose
    links were left out of training as weak were not seen there.
    """
    seen = {normalise(texts[item]) for item in trained.tolist()}
    return np.array([normalise(texts[item]) not in seen for item in asked.tolist()], dtype=bool)


def _options(config: RunConfig, asked: Asked, entities: tuple[list[str], list[str]]) -> dict[str, Any]:
    return {
        "ks": config.evaluate.ks,
        "names": config.pairs.shown,
        "n_resamples": config.evaluate.n_resamples,
        "seed": config.evaluate.seed,
        "entities_a": entities[0],
        "entities_b": entities[1],
        "queries_a": asked.queries_a,
        "queries_b": asked.queries_b,
        **({} if asked.candidates is None else {"candidates": asked.candidates}),
    }
