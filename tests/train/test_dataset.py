"""Pairs of molecule and text as tokens of fixed length."""

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from bridgehead.errors import ArgumentError, DataError
from bridgehead.train.dataset import MoleculeTextDataset
from tiny_models import write_tokenizer

PAIRS = [("C C O", "blocks the enzyme"), ("C N", "opens the receptor")]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from transformers import AutoTokenizer

    folder: Path = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return AutoTokenizer.from_pretrained(folder)


def letters(text: str, *, return_tensors: str, padding: Any, max_length: int = 0, truncation: bool) -> dict[str, Any]:
    """A tokenizer that is a function: a number for each letter."""
    assert return_tensors == "pt"
    ids = [ord(letter) for letter in text][: max_length if truncation else None]
    length = max_length if padding == "max_length" else len(ids)
    blank = [0] * (length - len(ids))
    return {"input_ids": torch.tensor([ids + blank]), "attention_mask": torch.tensor([[1] * len(ids) + blank])}


def test_an_item_is_two_dicts_of_fixed_length_without_a_batch_dimension(tokenizer: Any) -> None:
    large = copy.deepcopy(tokenizer)
    large.model_max_length = 512
    data = MoleculeTextDataset(PAIRS, large, large)
    inputs_a, inputs_b = data[1]
    assert len(data) == 2 and inputs_a["input_ids"].shape == (128,) and inputs_b["attention_mask"].shape == (256,)
    assert tokenizer.decode(inputs_b["input_ids"], skip_special_tokens=True) == "opens the receptor"
    batch_a, batch_b = next(iter(DataLoader(data, batch_size=2)))
    assert batch_a["input_ids"].shape == (2, 128) and batch_b["input_ids"].shape == (2, 256)
    assert data.n_truncated == (0, 0)


def test_lengths_end_where_the_model_has_no_more_positions(tokenizer: Any) -> None:
    limit = tokenizer.model_max_length
    assert limit < 128
    inputs_a, inputs_b = MoleculeTextDataset(PAIRS, tokenizer, tokenizer)[1]
    assert inputs_a["input_ids"].shape == inputs_b["input_ids"].shape == (limit,)


def test_lengths_are_settings_and_any_callable_is_a_tokenizer() -> None:
    data = MoleculeTextDataset([("CCO", "abc"), ("N", "d")], letters, letters, max_length_a=4, max_length_b=3)
    assert data[0][0]["input_ids"].tolist() == [67, 67, 79, 0] and data[0][1]["input_ids"].tolist() == [97, 98, 99]


def test_texts_that_are_cut_are_said_once_and_counted(tokenizer: Any) -> None:
    pairs = [("C C O", "the"), ("C C C C C C", "the"), ("C", "a b c d e f g h"), ("C C C C C C C", "a b c d e f g")]
    data = MoleculeTextDataset(pairs, tokenizer, tokenizer, max_length_a=6, max_length_b=8)
    with pytest.warns(UserWarning, match=r"text a of pair 1 has 8 tokens and is cut to 6, .* max_length_a raises"):
        data[0], data[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inputs_a, inputs_b = data[2][0], data[2][1]
    assert data.n_truncated == (2, 2)
    # The closing token stays.
    assert inputs_b["input_ids"][-1] == tokenizer.sep_token_id and inputs_a["attention_mask"].sum() == 3


def test_a_text_that_just_fits_is_not_said_to_be_cut(tokenizer: Any) -> None:
    data = MoleculeTextDataset([("C C C C", "the")], tokenizer, tokenizer, max_length_a=6)
    assert data[0][0]["attention_mask"].all() and data.n_truncated == (0, 0)


def test_pairs_that_are_not_two_texts_are_refused(tokenizer: Any) -> None:
    for pair in (("C",), ("C", None), "CO", ("C", "text", "more")):
        with pytest.raises(DataError, match=r"pair 1 is .*; expected two texts"):
            MoleculeTextDataset([PAIRS[0], pair], tokenizer, tokenizer)  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="max_length_b = 0; expected a number of tokens"):
        MoleculeTextDataset(PAIRS, tokenizer, tokenizer, max_length_b=0)
