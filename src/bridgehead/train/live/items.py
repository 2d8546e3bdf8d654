"""Items as encoders take them: tokenised once, kept without padding, padded only as far as a chunk needs; and links.

This module is not about the encoders, nor about texts before they are tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from bridgehead.errors import ArgumentError, ConfigError, DataError, LinksError, ShapeError
from bridgehead.files import hash_array, hash_texts
from bridgehead.links import Links
from bridgehead.train.augment import kept_tokens, smiles_of_epoch
from bridgehead.vectors import IntArray, to_numpy

_MASK = "attention_mask"
# Where nobody set a limit, a tokenizer states a number beyond any length.
_NO_LIMIT = 10**9
# A text is cut here before it is tokenised, so that a cell of megabytes costs nothing; no token is longer.
_CHARACTERS_PER_TOKEN = 100


@dataclass(frozen=True, eq=False)
class Texts:
    """Where tokens come from, for items that are tokenised again: texts, tokenizer and limit."""

    texts: list[str]
    tokenizer: Any
    max_tokens: int | None


@dataclass(frozen=True, eq=False)
class LiveItems:
    """The inputs of n items by name.

    `tokens` are sequences of integers: all items' one after the other, item i at `starts[i]` to `starts[i + 1]`, the
    same for every name. `arrays` are inputs of one shape for all items, item i their row i. `padding` is what fills a
    shorter sequence (0 where nothing is said). `special` are tokens that augmentation leaves alone, `source` what
    texts the tokens are of, None for tokens that came as such. `notes` are sentences for the user.
    """

    tokens: dict[str, IntArray]
    starts: IntArray | None
    arrays: dict[str, np.ndarray[Any, Any]]
    padding: dict[str, int] = field(default_factory=dict)
    special: tuple[int, ...] = ()
    source: Texts | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def tokenised(cls, texts: Sequence[str], tokenizer: Any, max_tokens: int | None = None) -> "LiveItems":
        """Return the tokens of texts, each cut to `max_tokens` (None: what the tokenizer says).

        `tokenizer` is one of transformers', or anything called the same way. Texts that were cut are counted in
        `notes`. Raises `DataError` for a text without a token and `ArgumentError` for what are no texts, or when
        neither `max_tokens` nor the tokenizer says how much the model takes.
        """
        texts = list(texts)
        wrong = next((position for position, text in enumerate(texts) if not isinstance(text, str)), None)
        if wrong is not None:
            raise ArgumentError(f"item {wrong} is a {type(texts[wrong]).__name__}; expected texts")
        limit = int(min(max_tokens or _NO_LIMIT, tokenizer.model_max_length))
        if limit >= _NO_LIMIT:
            raise ArgumentError("the tokenizer states no longest length; say what the model takes: live.max_tokens")
        own = getattr(tokenizer, "num_special_tokens_to_add", lambda: 0)()
        if limit <= own:
            # A tokenizer that cannot keep its own tokens cuts nothing, or leaves every text without a word.
            raise ArgumentError(
                f"texts would be cut to {limit} tokens, and the tokenizer adds {own} of its own to each; expected "
                f"max_tokens of at least {own + 1}"
            )
        tokens, cut = _tokenised(texts, tokenizer, limit) if texts else ({"input_ids": []}, 0)
        items = replace(
            cls.of(tokens, {"input_ids": int(tokenizer.pad_token_id or 0)}),
            special=tuple(getattr(tokenizer, "all_special_ids", ())),
            source=Texts(texts, tokenizer, max_tokens),
        )
        if cut:
            items.notes.append(f"{cut} of {len(texts)} texts have more than {limit} tokens and were cut there")
        return items

    @classmethod
    def of(cls, inputs: Any, padding: Mapping[str, int] | None = None) -> "LiveItems":
        """Return inputs by name as items.

        A list of lists of integers is sequences, as many as there are items. An array or tensor has one row for each
        item, of any further shape; where `attention_mask` (n, T) is among them, integer arrays of its shape are
        sequences, and what it masks is padding that is left out. Raises `ShapeError`, `DataError` (an item without
        tokens) and `ArgumentError`.
        """
        if isinstance(inputs, LiveItems):
            return inputs
        if not isinstance(inputs, Mapping) or not inputs:
            raise ArgumentError(f"items are a {type(inputs).__name__}; expected inputs by name, such as input_ids")
        ragged = {name: value for name, value in inputs.items() if isinstance(value, list | tuple)}
        arrays = {name: to_numpy(value) for name, value in inputs.items() if name not in ragged}
        if _MASK in ragged:
            raise ArgumentError("attention_mask came as lists; leave it out: lists hold no padding")
        mask = arrays.pop(_MASK, None)
        if mask is not None:
            real = np.asarray(mask) != 0
            own = [name for name, value in arrays.items() if value.shape == real.shape and value.dtype.kind in "iu"]
            ragged |= {
                name: [row[keep] for row, keep in zip(value, real, strict=True)]
                for name in own
                for value in [arrays.pop(name)]
            }
        return cls._checked(ragged, arrays, dict(padding or {}))

    @classmethod
    def _checked(
        cls, ragged: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]], padding: dict[str, int]
    ) -> "LiveItems":
        for name, array in arrays.items():
            if array.ndim == 0 or array.dtype.kind not in "iufb":
                raise ShapeError(
                    f"{name} has shape {array.shape} and dtype {array.dtype}; expected a row for each item"
                )
        sizes = {name: len(value) for name, value in (*ragged.items(), *arrays.items())}
        if len(set(sizes.values())) != 1:
            raise ShapeError(f"inputs have {sizes} items; expected the same number for every name")
        lengths = [np.array([len(row) for row in rows], dtype=np.int64) for rows in ragged.values()]
        for name, own in zip(ragged, lengths, strict=True):
            if not np.array_equal(own, lengths[0]):
                raise ShapeError(f"{name} has sequences of other lengths than {next(iter(ragged))}; expected the same")
        if not lengths:
            return cls({}, None, arrays, padding)
        if (empty := np.flatnonzero(lengths[0] == 0)).size:
            raise DataError(f"{empty.size} items have no token (first: {empty[:10].tolist()}); leave them out")
        starts = _starts(lengths[0])
        tokens = {name: _joined(name, rows) for name, rows in ragged.items()}
        return cls(tokens, starts, arrays, padding)

    def __len__(self) -> int:
        if self.starts is not None:
            return len(self.starts) - 1
        return len(next(iter(self.arrays.values())))

    @property
    def lengths(self) -> IntArray:
        """Tokens of each item, (n,); 1 where items are no sequences."""
        return np.ones(len(self), np.int64) if self.starts is None else np.diff(self.starts)

    def by_length(self, rows: IntArray) -> IntArray:
        """Return the order (positions in `rows`) from long to short; chunks of it need little padding."""
        return np.argsort(-self.lengths[rows], kind="stable").astype(np.int64)

    def take(self, rows: IntArray, device: torch.device | str = "cpu") -> dict[str, torch.Tensor]:
        """Return the inputs of these items, padded on the right to the longest of them, with `attention_mask`.

        Sequences are (len(rows), T) int64, the mask too (1 for tokens); there is none without sequences.
        """
        found = {name: torch.from_numpy(array[rows]).to(device) for name, array in self.arrays.items()}
        if self.starts is None:
            return found
        lengths = self.lengths[rows]
        places = np.arange(int(lengths.max(initial=1)))
        real = places < lengths[:, None]
        at = np.where(real, self.starts[rows][:, None] + places, 0)
        for name, flat in self.tokens.items():
            padded = np.where(real, flat[at] if len(flat) else 0, self.padding.get(name, 0))
            found[name] = torch.from_numpy(padded).to(device)
        found[_MASK] = torch.from_numpy(real.astype(np.int64)).to(device)
        return found

    def of_rows(self, rows: IntArray) -> "LiveItems":
        """Return these items alone, in this order."""
        arrays = {name: array[rows] for name, array in self.arrays.items()}
        if self.starts is None:
            return replace(self, arrays=arrays)
        lengths = self.lengths[rows]
        starts = _starts(lengths)
        at = np.repeat(self.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return replace(
            self, tokens={name: flat[at] for name, flat in self.tokens.items()}, starts=starts, arrays=arrays
        )

    def with_tokens_dropped(self, share: float, generator: torch.Generator) -> "LiveItems":
        """Return the items with each token left out with probability `share`, special ones aside (`kept_tokens`)."""
        if self.starts is None or share == 0:
            return self
        leading = self.tokens.get("input_ids", next(iter(self.tokens.values())))
        keep = kept_tokens(leading, self.starts, self.special, share, generator)
        lengths = np.add.reduceat(keep, self.starts[:-1], dtype=np.int64) if len(self) else self.lengths
        return replace(self, tokens={name: flat[keep] for name, flat in self.tokens.items()}, starts=_starts(lengths))

    def rewritten(self, seed: int, epoch: int) -> "LiveItems":
        """Return the items with each SMILES written in another random way. Raises `ConfigError` for tokens alone."""
        if self.source is None:
            raise ConfigError("augment.random_smiles needs the SMILES and their tokenizer, and tokens came; pass texts")
        texts = smiles_of_epoch(self.source.texts, seed, epoch)
        return LiveItems.tokenised(texts, self.source.tokenizer, self.source.max_tokens)

    def fingerprint(self) -> str:
        """Return a hash of all inputs."""
        parts = {} if self.starts is None else {**self.tokens, "": self.starts}
        named = sorted({**parts, **self.arrays}.items())
        return hash_texts(
            [str(sorted(self.padding.items()))] + [f"{name} {hash_array(array)}" for name, array in named]
        )


def _tokenised(texts: list[str], tokenizer: Any, limit: int) -> tuple[dict[str, list[Any]], int]:
    """Return inputs by name, without the mask, and how many texts were cut to `limit` tokens."""
    characters = limit * _CHARACTERS_PER_TOKEN
    found = {name: list(rows) for name, rows in tokenizer([text[:characters] for text in texts], verbose=False).items()}
    found.pop(_MASK, None)
    lengths = [len(row) for row in next(iter(found.values()))]
    long = [i for i, text in enumerate(texts) if lengths[i] > limit or len(text) > characters]
    if long:
        # The tokenizer itself cuts, so that the closing special token stays.
        few = [texts[i][:characters] for i in long]
        again = tokenizer(few, truncation=True, max_length=limit, verbose=False)
        for name, rows in found.items():
            for i, row in zip(long, again[name], strict=True):
                rows[i] = row
    return found, len(long)


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _joined(name: str, rows: Sequence[Any]) -> IntArray:
    """Return all sequences as one array. Raises `ArgumentError` unless they hold integers."""
    parts = [np.asarray(row) for row in rows]
    flat = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    if flat.ndim != 1 or flat.dtype.kind not in "iu":
        raise ArgumentError(f"{name} holds dtype {flat.dtype} in {flat.ndim} dimensions; expected lists of integers")
    return flat.astype(np.int64)


@dataclass(frozen=True, eq=False)
class LinkedItems:
    """Items of both sides and the links between them."""

    a: LiveItems
    b: LiveItems
    links: Links

    @classmethod
    def of(cls, items_a: Any, items_b: Any, links: Any = None) -> "LinkedItems":
        """Check and convert, as `LiveItems.of` and `Links.of` do. Raises what they raise."""
        a, b = LiveItems.of(items_a), LiveItems.of(items_b)
        return cls(a, b, Links.of(links, len(a), len(b)))

    def check_trainable(self) -> None:
        """Raise `LinksError` unless there are links, two items on each side, and some pair that does not match."""
        pairs = self.links.expanded().pairs
        if len(pairs) == 0:
            raise LinksError("there is no link among the training items; expected pairs to train on")
        sizes = [len(np.unique(pairs[:, column])) for column in (0, 1)]
        if min(sizes) < 2:
            raise LinksError(
                f"side {'ab'[int(np.argmin(sizes))]} has one item in {len(pairs)} links; expected at least 2 on each "
                "side: with one candidate there is nothing to tell it from"
            )
        if len(pairs) == sizes[0] * sizes[1]:
            raise LinksError(
                "every item of a is linked with every item of b; expected some pairs of items that do not match"
            )

    def fingerprint(self) -> str:
        """Return a hash of all items and links."""
        groups = ["" if own is None else hash_array(own) for own in (self.links.groups_a, self.links.groups_b)]
        return hash_texts([self.a.fingerprint(), self.b.fingerprint(), hash_array(self.links.pairs), *groups])
