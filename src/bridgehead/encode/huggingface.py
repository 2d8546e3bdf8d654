"""`text:hf=<name or folder>`: rows of a pretrained text model, read from disk and run on frozen weights.

Finding the model and its fingerprint is in `hub`, pooling in `pooling`. This module is the only one of the folder that
loads torch and transformers, when the first text is encoded. It is not about training the model: who does that takes
the network from `load_network` or `HuggingFaceEncoder.for_training`, and `save_tuned` makes an encoder of the result.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from bridgehead.encode.base import (
    ENCODER_FILE,
    ENCODER_FORMAT,
    Encoder,
    Origin,
    RawRows,
    check_settings,
    fingerprint_of,
)
from bridgehead.encode.cache import Block, Progress, RowCache, cached_rows
from bridgehead.encode.hub import SHAPING, ModelFolder, find_model
from bridgehead.encode.pooling import POOLINGS, pool
from bridgehead.errors import ArgumentError, EncoderError, MismatchError, MissingExtraError
from bridgehead.files import disk_errors, read_json, sync_folder
from bridgehead.vectors import FloatArray, IntArray

_VERSION = 1
_BATCHES_PER_BLOCK = 16
# A text is cut here before tokenising, so that a cell of megabytes costs nothing; no tokenizer makes longer tokens.
_CHARACTERS_PER_TOKEN = 100
MODEL_FOLDER = "model"
"""Where a tuned model lies, inside the folder of its encoder."""
_OFFLINE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


class HuggingFaceEncoder(Encoder):
    """Hidden states of the last layer, pooled to one row a text: dense float32, not scaled to unit length.

    `pooling` is `mean` (over all tokens of the text, special ones included, padding left out; what sentence encoders
    are trained with), `cls` (the first token), `max` (the largest value of each column) or `last` (the last token, what
    decoders are trained with; a closing special token survives the cutting of long texts). Texts longer than
    `max_tokens` (default: the model's own limit) are cut, counted and listed. `unknown_share` is the share of tokens
    that the tokenizer does not know. A text without any token keeps a zero row. Texts are sorted by length and padded
    only to the longest of their batch; the order of the input is restored, and a text's row does not depend on its
    batch beyond float32 rounding (cosine at least 1 - 1e-5). Nothing is fetched unless `online`; code that comes with a
    model is never run, and weights are read from safetensors only.
    """

    kind: ClassVar[str] = "text:hf"

    def __init__(
        self,
        model: str,
        pooling: str = "mean",
        max_tokens: int | None = None,
        batch_size: int = 32,
        device: str = "cpu",
        revision: str | None = None,
        online: bool = False,
    ) -> None:
        self.spec = f"{self.kind}={model}"
        if pooling not in POOLINGS:
            raise EncoderError(f"{self.spec}: pooling = {pooling!r}; expected one of {', '.join(POOLINGS)}")
        check_settings(self.spec, batch_size=batch_size, **({} if max_tokens is None else {"max_tokens": max_tokens}))
        self.model = model
        self.pooling = pooling
        self.max_tokens = max_tokens
        self.batch_size = batch_size
        self.device = device
        self.revision = revision
        self.folder: ModelFolder = find_model(model, revision=revision, online=online)
        self._network: _Network | None = None
        self._tuned = False

    @property
    def n_columns(self) -> int:
        """Width of the model's hidden states."""
        return self.folder.hidden_size

    def settings(self) -> dict[str, Any]:
        return {
            "pooling": self.pooling,
            "max_tokens": self.max_tokens,
            "batch_size": self.batch_size,
            "device": self.device,
            "revision": self.revision,
        }

    def fingerprint(self) -> str:
        # Batch size, device and the place of the folder do not shape the rows; its content does.
        return fingerprint_of(
            self.kind,
            version=_VERSION,
            weights=self.folder.content_hash,
            pooling=self.pooling,
            max_tokens=self.max_tokens,
            libraries=self.folder.libraries,
        )

    def raw_rows(
        self, items: Sequence[str], cache: RowCache | None, progress: Progress | None, origin: Origin
    ) -> RawRows:
        if not items:
            return RawRows(np.zeros((0, self.n_columns), np.float32), np.zeros(0, np.int64))
        block = cached_rows(cache, self.fingerprint(), items, self._compute, progress)
        assert isinstance(block.rows, np.ndarray)
        n_tokens, n_unknown, truncated = block.stats.T
        return RawRows(
            block.rows,
            block.index,
            block.reasons,
            truncated=[int(position) for position in block.index[truncated > 0]],
            unknown_share=float(n_unknown.sum() / n_tokens.sum()) if n_tokens.sum() else None,
            notes=self.folder.notes,
        )

    def _compute(self, texts: list[str]) -> Iterator[Block]:
        if self._network is None:
            self._network = _Network(self.folder, self.pooling, self.max_tokens, self.device)
        tokens, stats = self._network.tokenise(texts)
        order = np.argsort([-len(ids) for ids in tokens], kind="stable")
        step = self.batch_size * _BATCHES_PER_BLOCK
        for start in range(0, len(order), step):
            index = order[start : start + step]
            batches = [index[at : at + self.batch_size] for at in range(0, len(index), self.batch_size)]
            rows = np.concatenate([self._network.rows([tokens[i] for i in batch]) for batch in batches])
            rows[stats[index, 0] == 0] = 0
            yield Block(rows, index.astype(np.int64), stats[index])

    def for_training(self) -> tuple[Any, Any, int]:
        """Return a network of its own (float32, on the CPU), its tokenizer, and the tokens that a text is cut to.

        Raises as encoding does: `EncoderError`, `MissingExtraError`.
        """
        found = _Network(self.folder, self.pooling, self.max_tokens, "cpu")
        return found.network, found.tokenizer, found.max_tokens

    def save_tuned(self, network: Any, folder: str | Path) -> "HuggingFaceEncoder":
        """Write what training made of the network of `for_training` into `folder`, and return the encoder of it.

        Settings are those of this encoder. The model lies in `<folder>/model`, as any transformers can read it, and
        the folder may be moved. A kill leaves the former encoder or none that loads. Raises `OSError` (a full disk).
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        beside, place = target / f".{MODEL_FOLDER}.part", target / MODEL_FOLDER
        shutil.rmtree(beside, ignore_errors=True)
        try:
            with disk_errors(beside):
                write_model(network, self.folder, beside)
            # The description of a former model does not outlive it.
            (target / ENCODER_FILE).unlink(missing_ok=True)
            if place.exists():
                shutil.rmtree(place)
            beside.rename(place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        sync_folder(target)
        tuned = type(self)(str(place), **{**self.settings(), "revision": None})
        tuned._tuned, tuned.spec = True, f"{self.spec} (tuned)"
        tuned.save(target)
        return tuned

    def _state(self) -> dict[str, Any]:
        # A tuned model lies beside the description and moves with it.
        place = {"model": MODEL_FOLDER, "tuned": True} if self._tuned else {"model": self.model}
        return {**place, "weights": self.folder.content_hash, "libraries": self.folder.libraries}

    def _save_state(self, folder: Path) -> None:
        if self._tuned and not (folder / MODEL_FOLDER).is_dir():
            shutil.copytree(self.folder.path, folder / MODEL_FOLDER)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote; the model itself stays where it is. A tuned model lies in `folder`.

        Raises `MismatchError` when the model there is another one now.
        """
        content = read_json(Path(folder) / ENCODER_FILE, ENCODER_FORMAT)
        name, tuned = content["state"]["model"], bool(content["state"].get("tuned"))
        encoder = cls(str(Path(folder) / name) if tuned else name, **content["settings"])
        if tuned:
            encoder._tuned, encoder.spec = True, content["spec"]
        if encoder.folder.content_hash != content["state"]["weights"]:
            raise MismatchError(
                f"{encoder.spec}: the weights or tokenizer at {encoder.folder.path} are not those that {folder} was "
                "made with; put the former ones back, or encode and train again"
            )
        return encoder


class _Network:
    """The tokenizer and the model in memory, in evaluation mode."""

    def __init__(self, folder: ModelFolder, pooling: str, max_tokens: int | None, device: str) -> None:
        try:
            import torch
            import transformers
        except ImportError as error:
            raise MissingExtraError("transformers", "hub") from error
        self._torch = torch
        self.pooling = pooling
        self.device = check_device(device)
        self.network = load_network(folder).to(self.device)
        with _quiet(transformers):
            try:
                self.tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder.path), **_OFFLINE)
            except (OSError, ValueError, KeyError, ImportError) as error:
                raise EncoderError(f"{folder.path} cannot be loaded as a text model (tokenizer): {error}") from error
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.unk_token
        self.tokenizer.padding_side = "right"
        limit = _token_limit(self.tokenizer, self.network.config)
        if max_tokens is not None and max_tokens > limit:
            raise EncoderError(f"max_tokens = {max_tokens}; {folder.path} takes at most {limit}")
        self.max_tokens = max_tokens or limit

    def tokenise(self, texts: list[str]) -> tuple[list[list[int]], IntArray]:
        """Return the token ids of each text, cut to the limit, and (n tokens, n unknown, 1 when cut) of each."""
        special = set(self.tokenizer.all_special_ids) - {self.tokenizer.unk_token_id}
        limit = self.max_tokens * _CHARACTERS_PER_TOKEN
        whole: list[list[int]] = self.tokenizer([text[:limit] for text in texts], verbose=False)["input_ids"]
        stats = np.zeros((len(texts), 3), dtype=np.int64)
        for position, ids in enumerate(whole):
            if len(ids) > self.max_tokens or len(texts[position]) > limit:
                # The tokenizer itself cuts, so that the closing special token stays.
                text = texts[position][:limit]
                ids = self.tokenizer(text, truncation=True, max_length=self.max_tokens, verbose=False)["input_ids"]
                whole[position] = ids
                stats[position, 2] = 1
            stats[position, 0] = sum(token not in special for token in ids)
            stats[position, 1] = sum(token == self.tokenizer.unk_token_id for token in ids)
        return whole, stats

    def rows(self, tokens: list[list[int]]) -> FloatArray:
        """Return the pooled rows of one batch, float32."""
        torch = self._torch
        if not any(tokens):
            return np.zeros((len(tokens), int(self.network.config.hidden_size)), dtype=np.float32)
        longest = max(map(len, tokens))
        padding = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([own + [padding] * (longest - len(own)) for own in tokens], device=self.device)
        mask = torch.tensor([[1] * len(own) + [0] * (longest - len(own)) for own in tokens], device=self.device)
        with torch.inference_mode():
            pooled = pool(self.network(input_ids=ids, attention_mask=mask).last_hidden_state, mask, self.pooling)
        return np.asarray(pooled.cpu().numpy(), dtype=np.float32)


def load_network(folder: ModelFolder) -> Any:
    """Return the model of a folder as a torch module, float32, on the CPU, in evaluation mode; of two halves the first.

    Its output has `last_hidden_state` (B, T, d). Weights come from safetensors only, code that lies beside them is not
    run, nothing is fetched, and torch's random state is left alone. Raises `EncoderError` and `MissingExtraError`.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtraError("transformers", "hub") from error
    # What a folder lacks (the pooler of a language model) is drawn at random, though no hidden state depends on it.
    with _quiet(transformers), torch.random.fork_rng(devices=[]):
        try:
            model = transformers.AutoModel.from_pretrained(
                str(folder.path), use_safetensors=True, dtype=torch.float32, **_OFFLINE
            )
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise EncoderError(f"{folder.path} cannot be loaded as a text model: {error}") from error
    return (model.get_encoder() if model.config.is_encoder_decoder else model).eval()


def write_model(network: Any, source: ModelFolder, folder: Path) -> None:
    """Write a network that `load_network` gave for `source` as a model of its own, with the tokenizer, made durable.

    Of a model of two halves both are written, the second as it was. Any transformers can read the folder, which must
    not be there yet.
    """
    import transformers

    if source.is_encoder_decoder:
        # The file of a model names the weights of both halves.
        with _quiet(transformers):
            whole = transformers.AutoModel.from_pretrained(str(source.path), use_safetensors=True, **_OFFLINE).float()
        whole.get_encoder().load_state_dict(network.state_dict())
        network = whole
    folder.mkdir()
    with _quiet(transformers):
        network.save_pretrained(str(folder))
    for file in (file for pattern in SHAPING if pattern != "config.json" for file in source.path.glob(pattern)):
        if file.is_file():
            shutil.copyfile(file, folder / file.name)
    for file in folder.iterdir():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
    sync_folder(folder)


def check_device(device: Any) -> Any:
    """Return `device` as torch's, if this machine has it. Raises `ArgumentError` where it lacks it."""
    import torch

    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ArgumentError(f"device = {device!r} ({error}); expected 'cpu', 'cuda', 'cuda:0' or 'mps'") from error
    counts = {"cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if (wanted.index or 0) >= counts.get(wanted.type, 1):
        raise ArgumentError(
            f"device = {device!r}, but torch {torch.__version__} finds {counts[wanted.type]} such devices here; use "
            "device = 'cpu', or a machine (and a build of torch) with one"
        )
    return wanted


def _token_limit(tokenizer: Any, config: Any) -> int:
    """Return how many tokens fit: the smaller of what tokenizer and position table say."""
    limits = [int(tokenizer.model_max_length)]
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        # RoBERTa and its kin number positions from the padding id on.
        shifted = any(name in str(config.model_type) for name in ("roberta", "camembert", "mpnet", "longformer"))
        limits.append(positions - (int(config.pad_token_id or 0) + 1 if shifted else 0))
    return min(limits)


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep loading bars and notes about unused weights off the terminal."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
