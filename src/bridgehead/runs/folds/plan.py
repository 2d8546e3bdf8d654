"""Whether a run is cross-validated and how often it is trained for that: what its config asks for, and the default.

This module is not about doing it (`cross_validation`).
"""

from dataclasses import dataclass, replace
from typing import Any

from bridgehead.errors import ConfigError
from bridgehead.files import hash_json
from bridgehead.runs.config import RunConfig
from bridgehead.runs.folder import RunFolder

FEW_ENTITIES = 3000
"""Below so many entities a run is cross-validated unless its config says otherwise: its test part alone says little."""

FOLDS = 5
# A fold of fewer than four entities ranks next to nothing.
LEAST_UNITS = 4 * FOLDS


@dataclass(frozen=True)
class FoldPlan:
    """How much is trained: `n_folds` x `n_repeats` x `n_seeds` models; `asked` where the config names the folds."""

    n_folds: int
    n_repeats: int
    n_seeds: int
    asked: bool


def plan_of(work: Any) -> FoldPlan | None:
    """Return what is to be trained, None where cross-validation is not due. Raises `ConfigError` for one fold."""
    evaluate, asked = work.run.config.evaluate, work.run.config.evaluate.folds is not None
    _check_folds(evaluate.folds)
    if asked:
        return FoldPlan(evaluate.folds, evaluate.repeats, evaluate.seeds, True) if evaluate.folds else None
    n = sum(work.prepared.split.n_entities.values())
    if n >= FEW_ENTITIES or n < LEAST_UNITS:
        return None
    if work.run.config.live is not None:
        n_models = FOLDS * evaluate.repeats * evaluate.seeds
        work.progress(
            "evaluate",
            f"no cross-validation: encoders are trained, and it would train them {n_models} times more; ask for it "
            f"with evaluate.folds = {FOLDS}",
            None,
            None,
        )
        return None
    return FoldPlan(FOLDS, evaluate.repeats, evaluate.seeds, False)


def _check_folds(folds: int | None) -> None:
    if folds == 1:
        raise ConfigError("evaluate.folds = 1; expected 2 or more, or 0 for no cross-validation")


def with_folds(
    run: RunFolder, folds: int | None = None, repeats: int | None = None, seeds: int | None = None
) -> RunFolder:
    """Return the run with these settings of cross-validation in its config, those that are None as they were.

    What then writes into the folder leaves them in its `config.toml`. Raises `ConfigError` for one fold: said before
    anything is trained.
    """
    _check_folds(folds)
    given = {"folds": folds, "repeats": repeats, "seeds": seeds}
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        return run
    evaluate = run.config.evaluate.model_copy(update=changes)
    return replace(run, config=run.config.model_copy(update={"evaluate": evaluate}))


def settings_of(config: RunConfig) -> str:
    """Return the hash of the settings that shape every training of a cross-validation, the data apart."""
    encode = config.encode.model_dump(mode="json", include={"a", "b", "settings_a", "settings_b"})
    live = None if config.live is None else config.live.model_dump(mode="json")
    return hash_json([config.train.fingerprint(), encode, live])
