"""Items are tokenised once and padded only within a chunk."""

import numpy as np
import pytest
import torch

from bridgehead.errors import ArgumentError, ConfigError, DataError, LinksError, ShapeError
from bridgehead.train.live.items import LinkedItems, LiveItems
from tiny_models import write_tokenizer

ROWS = [[5, 6, 7], [8], [9, 4]]


def test_a_chunk_is_padded_on_the_right_to_its_longest_item():
    items = LiveItems.of({"input_ids": ROWS, "token_type_ids": [[0, 1, 1], [1], [0, 0]]}, {"input_ids": 3})
    found = items.take(np.array([1, 2]))
    assert found["input_ids"].tolist() == [[8, 3], [9, 4]]
    assert found["token_type_ids"].tolist() == [[1, 0], [0, 0]]
    assert found["attention_mask"].tolist() == [[1, 0], [1, 1]]
    assert items.take(np.array([0]))["input_ids"].tolist() == [[5, 6, 7]]
    assert items.lengths.tolist() == [3, 1, 2] and len(items) == 3


def test_chunks_are_cut_from_long_to_short_and_equal_lengths_keep_their_order():
    items = LiveItems.of({"input_ids": [[1], [1, 2], [1], [1, 2, 3], [1, 2]]})
    assert items.by_length(np.arange(5)).tolist() == [3, 1, 4, 0, 2]
    assert items.by_length(np.array([2, 4])).tolist() == [1, 0]


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_tensors_with_a_mask_are_the_same_items(side):
    ids = torch.zeros(3, 4, dtype=torch.long)
    for number, row in enumerate(ROWS):
        ids[number, slice(4 - len(row), 4) if side == "left" else slice(0, len(row))] = torch.tensor(row)
    items = LiveItems.of({"input_ids": ids, "attention_mask": ids != 0})
    assert items.fingerprint() == LiveItems.of({"input_ids": ROWS}).fingerprint()


def test_arrays_without_a_mask_are_a_row_for_each_item_whatever_their_shape():
    pixels = np.arange(3 * 2 * 2, dtype=np.float32).reshape(3, 2, 2)
    items = LiveItems.of({"pixel_values": pixels})
    found = items.take(np.array([2, 0]))
    assert found.keys() == {"pixel_values"} and found["pixel_values"].tolist() == pixels[[2, 0]].tolist()
    assert items.lengths.tolist() == [1, 1, 1]


def test_the_fingerprint_follows_every_input():
    first = LiveItems.of({"input_ids": ROWS})
    others = [
        LiveItems.of({"input_ids": [[5, 6], [7, 8], [9, 4]]}),
        LiveItems.of({"ids": ROWS}),
        LiveItems.of({"input_ids": ROWS}, {"input_ids": 1}),
        LiveItems.of({"input_ids": ROWS, "x": np.zeros((3, 1))}),
    ]
    assert len({first.fingerprint(), *(other.fingerprint() for other in others)}) == 5


class Words:
    """A tokenizer: a number for each word between two special ones."""

    model_max_length, pad_token_id = 6, 2

    def __call__(self, texts, truncation=False, max_length=None, verbose=True):
        longest = max_length - 1 if truncation else None
        ids = [[0, *(len(word) for word in text.split())][:longest] + [1] for text in texts]
        return {"input_ids": ids, "attention_mask": [[1] * len(row) for row in ids]}


def test_texts_are_cut_at_the_limit_and_that_is_said():
    items = LiveItems.tokenised(["a bb ccc", "a " * 9_000], Words(), max_tokens=5)
    assert items.tokens["input_ids"].tolist() == [0, 1, 2, 3, 1, 0, 1, 1, 1, 1]
    assert items.padding == {"input_ids": 2}
    assert items.notes == ["1 of 2 texts have more than 5 tokens and were cut there"]
    assert LiveItems.tokenised(["a bb"], Words(), max_tokens=99).notes == []
    assert len(LiveItems.tokenised([], Words())) == 0


@pytest.mark.parametrize(
    ("inputs", "error", "match"),
    [
        ([1, 2], ArgumentError, "items are a list; expected inputs by name"),
        ({}, ArgumentError, "expected inputs by name"),
        ({"x": [[1], []]}, DataError, r"1 items have no token \(first: \[1\]\)"),
        ({"x": [[1], [2]], "y": [[1], [2, 3]]}, ShapeError, "y has sequences of other lengths than x"),
        ({"x": [[1], [2]], "y": np.zeros((3, 1))}, ShapeError, "expected the same number for every name"),
        ({"x": [["a"]]}, ArgumentError, "x holds dtype .* expected lists of integers"),
        ({"x": np.array(["a"])}, ShapeError, "expected a row for each item"),
        ({"x": [[1]], "attention_mask": [[1]]}, ArgumentError, "attention_mask came as lists; leave it out"),
    ],
)
def test_what_are_no_items_is_refused(inputs, error, match):
    with pytest.raises(error, match=match):
        LiveItems.of(inputs)


def test_what_are_no_texts_or_have_no_limit_is_refused():
    unlimited = Words()
    unlimited.model_max_length = int(1e30)
    with pytest.raises(ArgumentError, match="the tokenizer states no longest length"):
        LiveItems.tokenised(["a"], unlimited)
    assert len(LiveItems.tokenised(["a"], unlimited, max_tokens=3)) == 1
    with pytest.raises(ArgumentError, match="item 1 is a NoneType; expected texts"):
        LiveItems.tokenised(["a", None], Words())


@pytest.mark.parametrize(
    ("links", "match"),
    [
        ([], "there is no link among the training items"),
        ([(0, 1), (1, 1)], "side b has one item in 2 links"),
        ([(a, b) for a in range(2) for b in range(2)], "every item of a is linked with every item of b"),
    ],
)
def test_links_with_nothing_to_tell_apart_are_refused(links, match):
    items = LiveItems.of({"x": ROWS})
    with pytest.raises(LinksError, match=match):
        LinkedItems.of(items, items, links).check_trainable()


def test_links_are_part_of_the_fingerprint():
    items = LiveItems.of({"x": ROWS})
    assert LinkedItems.of(items, items).fingerprint() != LinkedItems.of(items, items, [(0, 1)]).fingerprint()


def test_items_alone_and_with_tokens_dropped_keep_every_input_together():
    items = LiveItems.of({"input_ids": ROWS, "kind": [[1, 2, 3], [4], [5, 6]]})
    few = items.of_rows(np.array([2, 0, 2]))
    assert few.tokens["input_ids"].tolist() == [9, 4, 5, 6, 7, 9, 4] and few.starts.tolist() == [0, 2, 5, 7]
    many = LiveItems(items.tokens, items.starts, {}, special=(8, 9)).of_rows(np.repeat([0, 1, 2], 400))
    dropped = many.with_tokens_dropped(0.5, torch.Generator().manual_seed(0))
    pairs = {(5, 1), (6, 2), (7, 3), (8, 4), (9, 5), (4, 6)}
    assert set(zip(dropped.tokens["input_ids"].tolist(), dropped.tokens["kind"].tolist(), strict=True)) == pairs
    counts = np.bincount(dropped.tokens["input_ids"], minlength=10)
    # Of three tokens each stays with 1/2 + 1/2^3 / 3 (one of them always), of a single ordinary one it always does.
    assert counts[[8, 9, 4]].tolist() == [400, 400, 400]
    assert counts[[5, 6, 7]].sum() / 1200 == pytest.approx(1 / 2 + 1 / 24, abs=0.04)
    assert items.with_tokens_dropped(0.0, torch.Generator()) is items


def test_smiles_are_written_anew_by_epoch_and_tokenised_again():
    pytest.importorskip("rdkit")

    class Letters(Words):
        model_max_length = 50

        def __call__(self, texts, **_options):
            return {"input_ids": [[0, *map(ord, text), 1] for text in texts]}

    items = LiveItems.tokenised(["CCOC(=O)c1ccccc1", "not a structure"], Letters())
    first, again, other = (items.rewritten(3, epoch) for epoch in (0, 0, 2))
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()
    assert first.of_rows(np.array([1])).fingerprint() == items.of_rows(np.array([1])).fingerprint()
    with pytest.raises(ConfigError, match="random_smiles needs the SMILES"):
        LiveItems.of({"x": ROWS}).rewritten(0, 0)


def test_a_limit_that_leaves_no_word_beside_the_tokenizers_own_tokens_is_refused(tmp_path):
    from transformers import AutoTokenizer

    write_tokenizer(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    # With 1 it cuts nothing at all, with 2 every text is the same.
    for limit in (1, 2):
        with pytest.raises(
            ArgumentError, match=rf"cut to {limit} tokens, and the tokenizer adds 2 of its own.*least 3"
        ):
            LiveItems.tokenised(["blocks the enzyme"], tokenizer, limit)
    assert len(LiveItems.tokenised(["blocks the enzyme"], tokenizer, 3).tokens["input_ids"]) == 3
