"""The evaluation contract of a run (`contract.json`): what its figures are about, so that others can be compared.

Seven questions that a reader of retrieval figures must ask, each answered by the program where it knows and by the
config where only its author can; and hashes of split, truth, pool, encoders and heads. Figures of two runs may be set
side by side when the `measurement` of both is the same; the `model` is what differs then. This module is not about
comparing (`comparing`) or showing (`reporting`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bridgehead.errors import InputFileNotFoundError, RunStateError
from bridgehead.files import hash_json, hash_texts, read_json, write_json
from bridgehead.runs.folder import RunFolder

CONTRACT_FILE = "contract.json"
FORMAT = "bridgehead-contract"

TIES = "expected value over the random orders of candidates whose float64 cosines differ by at most 1e-12"
_QUESTIONS = {
    "unit": "What is one pair?",
    "crossing": "What can stand on both sides of the split?",
    "match": "When is a candidate right?",
    "pool": "Which candidates are ranked?",
    "direction": "Which direction is measured?",
    "shortcuts": "Which shortcuts were looked for?",
    "decisions": "On which part of the data was what decided?",
}


def write_contract(run: RunFolder) -> dict[str, Any]:
    """Write `contract.json` from the records of the run, which must be evaluated, and return its content.

    `questions` are entries with `key`, `question`, `known` (what the program says), `said` (what the config says) and
    `source`: "config" where its author answered, "program" where what the program knows answers it, else "missing".
    A file that says just this already is left as it is.
    """
    measurement = run.record("evaluate")["measurement"]
    content = {
        "questions": _questions(run),
        "measurement": measurement,
        "measurement_hash": hash_json(measurement),
        "model": _model(run),
    }
    try:
        same = read_json(run.path(CONTRACT_FILE), FORMAT) == content
    except (InputFileNotFoundError, RunStateError):
        same = False
    if not same:
        write_json(run.path(CONTRACT_FILE), content, FORMAT)
    return content


def read_contract(run: RunFolder) -> dict[str, Any]:
    """Return the contract of an evaluated run; raises `RunStateError` where there is none, or a damaged one."""
    again = f"run: bridgehead evaluate {run.folder}"
    try:
        contract = read_json(run.path(CONTRACT_FILE), FORMAT)
    except InputFileNotFoundError as error:
        raise RunStateError(f"{run.folder} has no {CONTRACT_FILE} yet; {again}") from error
    if not all(isinstance(contract.get(name), dict) for name in ("measurement", "model")):
        raise RunStateError(
            f"{run.path(CONTRACT_FILE)} does not say what was measured, and with which model; it is damaged; {again}"
        )
    return contract


def measurement_of(run: RunFolder) -> dict[str, Any]:
    """Return what defines the measurement of a run: two runs with the same entries measured the same thing."""
    return dict(read_contract(run)["measurement"])


def measured_on(work: Any) -> dict[str, Any]:
    """Return what defines the measurement that `work` makes, for its record."""
    config, table = work.run.config, work.prepared.table
    asked = work.asked
    test = work.part("test")
    pairs = [
        f"{table.a.items[a]}\0{table.b.items[b]}"
        for a, b in zip(test.items_a[test.links.pairs[:, 0]], test.items_b[test.links.pairs[:, 1]], strict=True)
    ]
    trained = work.prepared.train[2].pairs
    train = [
        f"{table.a.items[work.prepared.train[0][a]]}\0{table.b.items[work.prepared.train[1][b]]}"
        for a, b in trained.tolist()
    ]
    return {
        # Sorted, so that the order of the records in a file is not part of what was measured.
        "truth": hash_texts(sorted(pairs)),
        "training links": hash_texts(sorted(train)),
        "held out": config.split.hold_out,
        "entities": _entity_level(config),
        "pool": asked.facts["hash"],
        "candidate lists": asked.facts["lists"],
        "queries": hash_json([_asking(asked.queries_a, asked.ids_a), _asking(asked.queries_b, asked.ids_b)]),
        "number of candidates": [asked.facts["n_a"], asked.facts["n_b"]],
        "ks": list(config.evaluate.ks),
        "ties": TIES,
        "items": "distinct raw values",
        "precision": "float32 screens, float64 decides",
    }


def _asking(mask: Any, ids: list[str]) -> int:
    return len(ids) if mask is None else int(np.count_nonzero(mask))


def _entity_level(config: Any) -> str:
    if config.pairs.entity is not None:
        return f"column {config.pairs.entity}"
    return str(config.split.identity) if "molecule" in (config.pairs.kind_a, config.pairs.kind_b) else "raw value"


def _model(run: RunFolder) -> dict[str, Any]:
    trained = run.record("train")
    encoders = trained["encoders"]
    return {
        "encoders": {side: encoders[side]["encoder"] for side in ("a", "b")},
        "encoder fingerprints": {side: encoders[side]["fingerprint"] for side in ("a", "b")},
        "heads": trained["heads"],
        "training": run.config.train.fingerprint(),
        "epoch": trained["best_epoch"],
    }


def _questions(run: RunFolder) -> list[dict[str, str]]:
    said = run.config.contract
    known = _known(run)
    found = []
    for key, question in _QUESTIONS.items():
        own = getattr(said, key).strip()
        # Whether a crossing is harmless, or a pool hard, no program can know: there it says what it sees, and asks.
        source = "config" if own else ("program" if key in ("direction", "decisions") else "missing")
        found.append({"key": key, "question": question, "known": known[key], "said": own, "source": source})
    return found


def _known(run: RunFolder) -> dict[str, str]:
    config = run.config
    a, b = config.pairs.shown
    checked, record = run.record("check"), run.record("evaluate")
    counts = checked["check"]
    held = {"a": a, "b": b, "both": f"{a} and {b}"}[checked["split"]["hold_out"]]
    groups = ", ".join(config.pairs.group)
    measured = record["all"]
    return {
        "unit": (
            f"a record that joins a {a} and a {b}; {counts['n_links']:,} links between {counts['a']['n_items']:,} {a} "
            f"and {counts['b']['n_items']:,} {b} items, equal raw values being one item"
        ),
        "crossing": (
            f"entities of {held} ({_entity_level(config)}) never"
            + (f", nor groups ({groups})" if groups else "")
            + f"; {_unseen(record, b)}"
        ),
        "match": f"the {a} and the {b} stand in one record of the test part; nothing else counts as right",
        "pool": (
            f"{measured['a_to_b.n_candidates']:,.0f} {b} and {measured['b_to_a.n_candidates']:,.0f} {a} items: those "
            "of the test part" + "".join(f"; {line}" for line in record["pool"]["how"])
        ),
        "direction": (
            f"both: {measured['a_to_b.n_queries']:,.0f} {a} items ask for {b}, "
            f"{measured['b_to_a.n_queries']:,.0f} {b} items ask for {a}"
        ),
        "shortcuts": _looked_for(run, record),
        "decisions": (
            f"weights and epoch by the training and validation parts (split seed {checked['split']['seed']}, training "
            f"seed {config.train.seed}, one run); the test part was read by the evaluation alone, which chooses nothing"
        ),
    }


def _unseen(record: Mapping[str, Any], b: str) -> str:
    unseen = record["unseen_text"]
    n = record["all"]["b_to_a.n_queries"]
    if unseen is None:
        return f"whether the {b} items of the test part occur in training too is all or none of them"
    return f"{n - unseen['b_to_a.n_queries']:,.0f} of {n:,.0f} {b} queries have a text that training has seen"


def _looked_for(run: RunFolder, record: Mapping[str, Any]) -> str:
    parts = []
    if record["shuffled"] is not None:
        n = len(record["shuffled"]["seeds"])
        parts.append(f"training on shuffled links ({n} {'run' if n == 1 else 'runs'})")
    try:
        audits = run.record("audit")
    except RunStateError:
        audits = {"findings": []}
    looked = [f["name"] for f in audits["findings"] if f["group"] in ("shortcuts", "controls")]
    # A claim is named for what was looked at, then for the direction and the metric.
    names = dict.fromkeys(name.partition(":")[0].partition(",")[0] for name in looked)
    names.pop("shuffled links", None)
    parts += list(names)
    return ", ".join(parts) or "none yet: bridgehead audit looks for them"
