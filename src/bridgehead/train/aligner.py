"""`Aligner`: the heads with scikit-learn's habits, for those who have rows and want a space.

It is thin over `fit_heads`; it does not import scikit-learn, whose `clone` works on it. This module is not about items
and encoders.
"""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridgehead.align.model import TwoHeads, load_heads, save_heads
from bridgehead.errors import ArgumentError, ConfigError, NotFittedError, RunStateError
from bridgehead.files import read_json, write_json
from bridgehead.train.checkpoint import writing
from bridgehead.train.config import TrainConfig
from bridgehead.train.data import PairData
from bridgehead.train.fit import HEADS_NAME, fit_heads
from bridgehead.train.loop import ProgressCallback
from bridgehead.train.validation import validation_metrics
from bridgehead.vectors import FloatArray

_FORMAT = "bridgehead-aligner"
_NAME = "aligner.json"


class Aligner:
    """Two projection heads that bring rows of two encoders into one space.

    `embed_dim`, `epochs` and `seed` are those of `TrainConfig`; `settings` is a mapping of any of its further fields,
    {"batch_size": 256, "loss": {"name": "sigmoid"}, "negatives": {"bank_size": 4096}}. They are checked in `fit`, which
    raises `ConfigError`.

    After `fit`: `model_` (the torch model), `history_` (a dict per epoch), `best_epoch_`, `notes_`.

    >>> import numpy as np
    >>> rows = np.random.default_rng(0).standard_normal((64, 8))
    >>> aligner = Aligner(embed_dim=8, epochs=2).fit(rows, rows[:, :5])
    >>> aligner.transform_b(rows[:3, :5]).shape
    (3, 8)
    """

    model_: TwoHeads
    history_: list[dict[str, Any]]
    best_epoch_: int
    notes_: list[str]

    def __init__(
        self, embed_dim: int = 256, epochs: int = 30, seed: int = 0, settings: dict[str, Any] | None = None
    ) -> None:
        self.embed_dim = embed_dim
        self.epochs = epochs
        self.seed = seed
        self.settings = settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor by name; `deep` changes nothing, no estimator is nested here."""
        return {name: getattr(self, name) for name in inspect.signature(Aligner).parameters}

    def set_params(self, **params: Any) -> "Aligner":
        """Change arguments of the constructor and return self. Raises `ArgumentError` for an unknown name."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ArgumentError(f"Aligner has no parameter {name!r}; expected one of {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"Aligner({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def config(self) -> TrainConfig:
        """Return the settings as `fit` will use them. Raises `ConfigError`."""
        own = {"embed_dim": self.embed_dim, "epochs": self.epochs, "seed": self.seed}
        given: Any = self.settings if isinstance(self.settings, Mapping) else {}
        for name, value in own.items():
            if name in given and given[name] != value:
                raise ConfigError(
                    f"{name} = {given[name]!r:.80} stands in settings, and {name} = {value!r:.80} is an argument of "
                    "the Aligner; give it as the argument alone"
                )
        return TrainConfig.of(self.settings, **own)

    def fit(
        self,
        rows_a: Any,
        rows_b: Any,
        links: Any = None,
        valid: tuple[Any, Any, Any] | None = None,
        progress: ProgressCallback | None = None,
        classes: tuple[Any, Any] | None = None,
        guide: tuple[Any, Any] | None = None,
    ) -> "Aligner":
        """Train on linked rows and return self; arguments and errors as in `fit_heads`.

        Rows are dense (n, d) arrays, tensors or lists, or CSR. Fitting again starts anew.
        """
        result = fit_heads(
            rows_a, rows_b, links, self.config(), valid=valid, classes=classes, guide=guide, progress=progress
        )
        self.model_, self.history_ = result.model, result.history
        self.best_epoch_, self.notes_ = result.best_epoch, result.notes
        return self

    def transform_a(self, rows: Any) -> FloatArray:
        """Return unit rows (n, embed_dim) float32 for rows of side a.

        Raises `NotFittedError`, `ShapeError` (another width or kind than in `fit`) and `NonFiniteRowsError`.
        """
        return self._fitted().project_a(rows)

    def transform_b(self, rows: Any) -> FloatArray:
        """As `transform_a`, for side b."""
        return self._fitted().project_b(rows)

    def score(self, rows_a: Any, rows_b: Any, links: Any = None) -> float:
        """Return the mean of both directions' MRR in (0, 1]; every row of the other side is a candidate.

        Raises `LinksError` without a link, and what `transform_a` raises.
        """
        return validation_metrics(self._fitted(), PairData.of(rows_a, rows_b, links))["valid_mrr"]

    def save(self, folder: str | Path) -> None:
        """Write `heads.safetensors` and `aligner.json` into `folder`, which is made where it is missing.

        Raises `RunStateError` when they cannot be written.
        """
        model, target, config = self._fitted(), Path(folder), self.config()
        # As checked: numbers of numpy, which fit takes as they are, are nothing that JSON knows.
        params: dict[str, Any] = {
            "embed_dim": config.embed_dim,
            "epochs": config.epochs,
            "seed": config.seed,
            "settings": None,
        }
        if self.settings is not None:
            params["settings"] = TrainConfig.of(self.settings).model_dump(mode="json", exclude_unset=True)
        content = {"params": params, "history": self.history_, "best_epoch": self.best_epoch_}
        with writing("the aligner", target):
            save_heads(model, target / HEADS_NAME, storage=config.storage)
            write_json(target / _NAME, {**content, "notes": self.notes_}, _FORMAT)

    @classmethod
    def load(cls, folder: str | Path) -> "Aligner":
        """Read what `save` wrote. Raises `InputFileNotFoundError`, `FormatVersionError` and `RunStateError`."""
        content = read_json(Path(folder) / _NAME, _FORMAT)
        try:
            aligner = cls(**content["params"])
            aligner.history_, aligner.notes_ = content["history"], content["notes"]
            aligner.best_epoch_ = content["best_epoch"]
        except (KeyError, TypeError) as error:
            raise RunStateError(f"{Path(folder) / _NAME} is damaged ({error}); fit and save again") from error
        aligner.model_ = load_heads(Path(folder) / HEADS_NAME)
        return aligner

    def _fitted(self) -> TwoHeads:
        model: TwoHeads | None = getattr(self, "model_", None)
        if model is None:
            raise NotFittedError("this Aligner has no heads yet; call fit(rows_a, rows_b, links) or Aligner.load first")
        return model
