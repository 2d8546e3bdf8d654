"""`MoleculeTextDataset`: pairs of molecule and description as tokens of a fixed length, for a torch `DataLoader`.

This module is not about reading tables of pairs (`pairs`) or about training (`alignment`).
"""

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch.utils.data import Dataset

from bridgehead.errors import ArgumentError, DataError

Tokens = dict[str, torch.Tensor]


class MoleculeTextDataset(Dataset[tuple[Tokens, Tokens]]):
    """Item i is the pair i as two dicts of tensors without a batch dimension, ready to be stacked.

    `pairs` are (SMILES, description) texts. `tokenizer_a` and `tokenizer_b` are called as tokenizers of Hugging Face
    are: `tokenizer(text, return_tensors="pt", padding="max_length", max_length=..., truncation=True)` gives a mapping
    of tensors (1, max_length). `max_length_a` and `max_length_b` are numbers of tokens, lowered to what a tokenizer
    says its model takes (`model_max_length`); what is longer is cut by the tokenizer, which keeps its closing token.
    The first cut text that is read gives a warning (`UserWarning`), and
    `n_truncated` counts them all. Raises `DataError`, naming the pair, unless all pairs are two texts.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[str, str]],
        tokenizer_a: Any,
        tokenizer_b: Any,
        *,
        max_length_a: int = 128,
        max_length_b: int = 256,
    ) -> None:
        for side, length in (("a", max_length_a), ("b", max_length_b)):
            if isinstance(length, bool) or not isinstance(length, int) or length < 1:
                raise ArgumentError(f"max_length_{side} = {length!r}; expected a number of tokens, at least 1")
        for number, pair in enumerate(pairs):
            if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
                raise DataError(f"pair {number} is {pair!r}; expected two texts (SMILES, description)")
        self.pairs = pairs
        self.tok_a, self.tok_b = tokenizer_a, tokenizer_b
        # A model has no position beyond what its tokenizer says it takes.
        self.max_length_a = min(max_length_a, getattr(tokenizer_a, "model_max_length", max_length_a))
        self.max_length_b = min(max_length_b, getattr(tokenizer_b, "model_max_length", max_length_b))
        self._warned = False

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> tuple[Tokens, Tokens]:
        first, second = self.pairs[index]
        tokens = (
            _tokens(self.tok_a, first, self.max_length_a),
            _tokens(self.tok_b, second, self.max_length_b),
        )
        if not self._warned:
            self._warn_if_cut(index, tokens)
        return tokens

    @cached_property
    def n_truncated(self) -> tuple[int, int]:
        """How many texts of a and of b are longer than their limit; all are tokenised when it is first read."""
        return (
            sum(_n_tokens(self.tok_a, pair[0]) > self.max_length_a for pair in self.pairs),
            sum(_n_tokens(self.tok_b, pair[1]) > self.max_length_b for pair in self.pairs),
        )

    def _warn_if_cut(self, index: int, tokens: tuple[Tokens, Tokens]) -> None:
        """Warn, once, when a text of this pair does not fit."""
        sides = (("a", self.tok_a, self.max_length_a), ("b", self.tok_b, self.max_length_b))
        for number, (side, tokenizer, limit) in enumerate(sides):
            # Only what fills its length can have been cut, so that most texts are tokenised once.
            if not _is_full(tokens[number]):
                continue
            needed = _n_tokens(tokenizer, self.pairs[index][number])
            if needed > limit:
                self._warned = True
                warnings.warn(
                    f"text {side} of pair {index} has {needed} tokens and is cut to {limit}, and others may be: "
                    f"n_truncated counts them, max_length_{side} raises the limit",
                    UserWarning,
                    stacklevel=3,
                )
                return


def _tokens(tokenizer: Any, text: str, limit: int) -> Tokens:
    found = tokenizer(text, return_tensors="pt", padding="max_length", max_length=limit, truncation=True)
    return {name: value.squeeze(0) for name, value in found.items()}


def _n_tokens(tokenizer: Any, text: str) -> int:
    """Return how many tokens the whole text has, special ones included."""
    found = tokenizer(text, return_tensors="pt", padding=False, truncation=False, **_quiet(tokenizer))
    return int(next(iter(found.values())).shape[-1])


def _quiet(tokenizer: Any) -> dict[str, Any]:
    # Tokenizers of Hugging Face warn of texts beyond the model's length, which here are only counted.
    return {"verbose": False} if hasattr(tokenizer, "model_max_length") else {}


def _is_full(tokens: Tokens) -> bool:
    mask = tokens.get("attention_mask")
    return mask is None or bool(mask.all())
