"""`DualEncoderAligner`: two pretrained encoders with projection heads and the contrastive loss, as one module.

Which weights are trained, and at which rates, is said in `layers`. This module is not about tokenising or the training
loop (`train`), nor about rows that were encoded once (`model`).
"""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from bridgehead.align.features import check_inputs
from bridgehead.align.layers import (
    Side,
    after_freezing,
    encoder_groups,
    head_groups,
    sides,
    train_last_layers,
    training_mode,
)
from bridgehead.align.pretrained import WEIGHTS_NAME, Pretrained, load_weights, replacing, write_weights
from bridgehead.encode.hub import ModelFolder, find_model
from bridgehead.encode.huggingface import check_device, load_network, write_model
from bridgehead.encode.pooling import check_pooling, pool
from bridgehead.errors import ArgumentError, RunStateError, ShapeError
from bridgehead.files import disk_errors


class DualEncoderAligner(Pretrained, nn.Module):
    """Two encoders whose pooled hidden states projection heads take into one space, trained by InfoNCE.

    `encoder_a_name` and `encoder_b_name` are folders of Hugging Face models or hub names; these are looked up in the
    hub's cache, and fetched only with `online` (`revision`: one for both, or two). Weights are read from safetensors
    only and code that comes with a model is not run. `projection_dim` is the width of the shared space. `pooling` is
    `cls`, `mean`, `max` or `last`, one for both sides or two; each is right for padding on either side (`cls` is the
    first token that is not padding). `freeze_encoders` trains the heads and the temperature alone; `freeze` and
    `unfreeze` change that later. The loss starts from `initial_temperature`. `device` is where the model is put.

    Modules whose weights are all frozen stay in evaluation mode whatever `train()` says: dropout would make the same
    item another row at each step although nothing there can learn from it, and batch statistics would drift.

    Attributes: `encoder_a`, `encoder_b`, `proj_a`, `proj_b` (`ProjectionHead`), `loss_fn` (`InfoNCELoss`). Heads are
    drawn from torch's current generator, and nothing else is. Raises `InputFileNotFoundError`, `OfflineError` or
    `EncoderError` for an encoder that is not there, `ArgumentError` for a pooling or device that is not.
    """

    def __init__(
        self,
        encoder_a_name: str,
        encoder_b_name: str,
        projection_dim: int = 512,
        freeze_encoders: bool = True,
        *,
        pooling: str | tuple[str, str] = "cls",
        initial_temperature: float = 0.07,
        online: bool = False,
        revision: str | tuple[str | None, str | None] | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__()
        for side, name in (("a", encoder_a_name), ("b", encoder_b_name)):
            if not isinstance(name, str | PathLike):
                raise ArgumentError(
                    f"encoder_{side}_name is a {type(name).__name__}; expected a folder or hub name, or "
                    "DualEncoderAligner.from_modules for modules"
                )
        place = check_device(device)
        revisions = _two(revision)
        folders = [
            find_model(str(name), revision=wanted, online=online)
            for name, wanted in zip((encoder_a_name, encoder_b_name), revisions, strict=True)
        ]
        self.config = {
            "encoder_a_name": str(encoder_a_name),
            "encoder_b_name": str(encoder_b_name),
            "projection_dim": projection_dim,
            "freeze_encoders": freeze_encoders,
            "pooling": _two(pooling),
            "initial_temperature": initial_temperature,
        }
        self._folders: tuple[ModelFolder, ...] | None = tuple(folders)
        widths = (folders[0].hidden_size, folders[1].hidden_size)
        self._assemble(load_network(folders[0]), load_network(folders[1]), widths)
        self.to(place)

    @classmethod
    def from_modules(
        cls,
        encoder_a: nn.Module,
        encoder_b: nn.Module,
        dim_a: int,
        dim_b: int,
        projection_dim: int = 512,
        freeze_encoders: bool = False,
        *,
        pooling: str | tuple[str, str] = "cls",
        initial_temperature: float = 0.07,
    ) -> Self:
        """Return an aligner over any two modules, of `dim_a` and `dim_b` output columns.

        A module returns rows (B, d), hidden states (B, T, d), which are pooled with the input named `attention_mask`,
        or an object with `last_hidden_state` or with `pooler_output` alone. It is called with the inputs by name, or
        with the one tensor that stands for them. What `save_pretrained` keeps are its weights: loading needs the
        modules again.
        """
        for side, encoder in (("a", encoder_a), ("b", encoder_b)):
            if not isinstance(encoder, nn.Module):
                raise ArgumentError(f"encoder_{side} is a {type(encoder).__name__}; expected a torch module")
        model = cls.__new__(cls)
        nn.Module.__init__(model)
        model.config = {
            "dim_a": dim_a,
            "dim_b": dim_b,
            "projection_dim": projection_dim,
            "freeze_encoders": freeze_encoders,
            "pooling": _two(pooling),
            "initial_temperature": initial_temperature,
        }
        model._folders = None
        model._assemble(encoder_a, encoder_b, (dim_a, dim_b))
        return model

    def _assemble(self, encoder_a: nn.Module, encoder_b: nn.Module, widths: tuple[int, int]) -> None:
        from bridgehead.align.infonce_module import InfoNCELoss
        from bridgehead.align.projection_head import ProjectionHead

        self.pooling_a, self.pooling_b = (check_pooling(how) for how in self.config["pooling"])
        self.encoder_a, self.encoder_b = encoder_a, encoder_b
        self.proj_a = ProjectionHead(widths[0], self.config["projection_dim"])
        self.proj_b = ProjectionHead(widths[1], self.config["projection_dim"])
        self.loss_fn = InfoNCELoss(self.config["initial_temperature"])
        # How many of the last layers are trained: None for all of the encoder, 0 for nothing.
        self._trained: dict[str, int | None] = {"a": None, "b": None}
        if self.config["freeze_encoders"]:
            self.freeze()
        self.train()

    def encode_a(self, features: Any = None, /, **inputs: Any) -> torch.Tensor:
        """Return rows of side a, (B, projection_dim), not normalised.

        Inputs come by name, as a tokenizer gives them (`input_ids`, `attention_mask`, ...), or as the one tensor that
        the encoder takes. Raises `ShapeError` and `ArgumentError` for an encoder whose output is not understood.
        """
        return self._rows("a", features, inputs)

    def encode_b(self, features: Any = None, /, **inputs: Any) -> torch.Tensor:
        """As `encode_a`, for side b."""
        return self._rows("b", features, inputs)

    def forward(self, inputs_a: Any, inputs_b: Any, links: Any = None) -> torch.Tensor:
        """Return the loss of a batch, a scalar: `InfoNCELoss` of both sides' rows.

        `inputs_a` and `inputs_b` are mappings of inputs by name, or tensors. `links` says which item of a matches which
        of b (None: item i with item i).
        """
        rows = [
            encode(**inputs) if isinstance(inputs, Mapping) else encode(inputs)
            for encode, inputs in ((self.encode_a, inputs_a), (self.encode_b, inputs_b))
        ]
        loss: torch.Tensor = self.loss_fn(rows[0], rows[1], links=links)
        return loss

    def _rows(self, side: str, features: Any, inputs: dict[str, Any]) -> torch.Tensor:
        encoder: nn.Module = getattr(self, f"encoder_{side}")
        if self._folders is not None:
            check_inputs(side, features, inputs)
        output = encoder(**inputs) if features is None else encoder(features, **inputs)
        how = self.pooling_a if side == "a" else self.pooling_b
        pooled = _pooled(output, inputs.get("attention_mask"), how, f"encoder_{side}")
        head: nn.Module = getattr(self, f"proj_{side}")
        rows: torch.Tensor = head(pooled.to(next(head.parameters()).dtype))
        return rows

    def train(self, mode: bool = True) -> Self:
        """Set training mode; modules whose weights are all frozen stay in evaluation mode."""
        super().train(mode)
        if mode:
            for encoder in (self.encoder_a, self.encoder_b):
                training_mode(encoder)
        return self

    def freeze(self, side: Side | None = None) -> None:
        """Stop training the encoder of `side`, "a" or "b" (None: both). Raises `ArgumentError`."""
        for name in sides(side):
            getattr(self, f"encoder_{name}").requires_grad_(False)
            self._trained[name] = 0
        self.train(self.training)

    def unfreeze(self, side: Side | None = None, last: int | None = None) -> None:
        """Train the encoder of `side` (None: both), or of each only the `last` n transformer layers.

        With `last` all else is frozen but what comes after the layers (final norm, pooler); embeddings stay frozen.
        Layers are the longest list of modules of one class. Raises `ArgumentError` when there are fewer, or none.
        """
        for name in sides(side):
            train_last_layers(getattr(self, f"encoder_{name}"), last, f"encoder_{name}")
            self._trained[name] = last
        self.train(self.training)

    def gradient_checkpointing(self, on: bool = True, side: Side | None = None) -> None:
        """Compute hidden states again in the backward pass instead of keeping them: less memory, about a third slower.

        Raises `ArgumentError` for an encoder that cannot do so.
        """
        for name in sides(side):
            encoder: Any = getattr(self, f"encoder_{name}")
            if not getattr(encoder, "supports_gradient_checkpointing", False):
                raise ArgumentError(f"encoder_{name} ({type(encoder).__name__}) has no gradient checkpointing")
            # Later releases of transformers renamed the methods, and warn at the older names.
            kind = "activation" if hasattr(encoder, "activation_checkpointing_enable") else "gradient"
            if on:
                getattr(encoder, f"{kind}_checkpointing_enable")({"use_reentrant": False})
            else:
                getattr(encoder, f"{kind}_checkpointing_disable")()

    def parameter_groups(
        self,
        learning_rate: float,
        encoder_learning_rate: float | None = None,
        layer_decay: float | None = None,
        weight_decay: float = 0.01,
    ) -> list[dict[str, Any]]:
        """Return the weights that are trained now as groups for a torch optimiser: name, params, lr, weight_decay.

        Heads and temperature get `learning_rate`, encoders `encoder_learning_rate` (None: the same). With `layer_decay`
        in (0, 1] an encoder's last layer and what comes after have that rate, each layer below `layer_decay` times that
        of the layer above it, and embeddings that of one layer more (Clark et al. 2020, ELECTRA, appendix A). Biases,
        norms (all of one dimension) and the temperature do not decay. Raises `ArgumentError`.
        """
        groups = head_groups({"proj_a": self.proj_a, "proj_b": self.proj_b}, self.loss_fn, learning_rate, weight_decay)
        rate = learning_rate if encoder_learning_rate is None else encoder_learning_rate
        for name, encoder in (("encoder_a", self.encoder_a), ("encoder_b", self.encoder_b)):
            groups += encoder_groups(encoder, name, rate, layer_decay, weight_decay)
        return groups

    # Saving: encoders that came from a folder become folders of their own, which any transformers can read.

    def _write_parts(self, folder: Path) -> list[str]:
        if self._folders is None:
            return super()._write_parts(folder)
        own = {key: value for key, value in self.state_dict().items() if not key.startswith("encoder_")}
        with replacing(folder, ("encoder_a", "encoder_b", WEIGHTS_NAME)) as (*beside, weights):
            for name, source, part in zip(("encoder_a", "encoder_b"), self._folders, beside, strict=True):
                with disk_errors(part):
                    write_model(getattr(self, name), source, part)
            write_weights(weights, own)
        files = [path for name in ("encoder_a", "encoder_b") for path in sorted((folder / name).iterdir())]
        return [WEIGHTS_NAME, *(path.relative_to(folder).as_posix() for path in files if path.is_file())]

    def _state_beside_weights(self) -> dict[str, Any]:
        return {"trained": self._trained, "from_modules": self._folders is None}

    @classmethod
    def from_pretrained(
        cls,
        folder_or_name: str | Path,
        *,
        online: bool = False,
        revision: str | None = None,
        encoder_a: nn.Module | None = None,
        encoder_b: nn.Module | None = None,
    ) -> Self:
        """Return the model that `save_pretrained` wrote, in evaluation mode, with the same weights frozen.

        An aligner made `from_modules` needs both modules again, `encoder_a` and `encoder_b`, of the same architecture;
        the saved weights are put into them. All else, errors too, is as for every model of ours; `ArgumentError` says
        that modules are missing or not wanted.
        """
        folder, content = cls._opened(folder_or_name, online=online, revision=revision)
        wants = bool(content.get("from_modules"))
        if wants != (encoder_a is not None) or wants != (encoder_b is not None):
            said = "was saved from modules: give both as" if wants else "holds its encoders; leave out"
            raise ArgumentError(f"{folder} {said} encoder_a= and encoder_b=")
        return cls._restored(folder, content, encoder_a, encoder_b)

    @classmethod
    def _restored(cls, folder: Path, content: dict[str, Any], *modules: Any) -> Self:
        arguments = dict(content["config"])
        with torch.random.fork_rng(devices=[]):
            try:
                if content.get("from_modules"):
                    model = cls.from_modules(*modules, **arguments)
                else:
                    names = {f"encoder_{side}_name": str(folder / f"encoder_{side}") for side in "ab"}
                    model = cls(**{**arguments, **names})
                trained = after_freezing(content["trained"])
            except (TypeError, ValueError, KeyError) as error:
                raise RunStateError(
                    f"{folder} cannot be loaded: {error}; it is damaged: save the model again"
                ) from error
        load_weights(model, folder / WEIGHTS_NAME, () if content.get("from_modules") else ("encoder_a.", "encoder_b."))
        model.freeze()
        for side, last in trained.items():
            if last != 0:
                model.unfreeze(side, last)
        return model.eval()


def _two(value: Any) -> tuple[Any, Any]:
    """Return a pair from one value for both sides, or from two."""
    if isinstance(value, str) or value is None:
        return value, value
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ArgumentError(f"{value!r} came; expected one text for both sides, or two (of a, of b)")
    return value[0], value[1]


def _pooled(output: Any, mask: torch.Tensor | None, how: str, name: str) -> torch.Tensor:
    """Return (B, d) from whatever an encoder returns."""
    hidden = output if isinstance(output, torch.Tensor) else getattr(output, "last_hidden_state", None)
    if hidden is None:
        hidden = getattr(output, "pooler_output", None)
    if not isinstance(hidden, torch.Tensor):
        raise ArgumentError(
            f"{name} returned a {type(output).__name__}; expected a tensor, or an object with last_hidden_state"
        )
    if hidden.ndim == 2:
        return hidden
    if hidden.ndim != 3:
        raise ShapeError(f"{name} returned shape {tuple(hidden.shape)}; expected (B, d) or (B, T, d)")
    pooled: torch.Tensor = pool(hidden, mask, how)
    return pooled
