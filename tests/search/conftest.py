"""Spaces that many tests of searching share; none changes them."""

from types import SimpleNamespace

import pytest

from bridgehead.encode import make_encoder
from bridgehead.index import IndexSide, build_index, open_index
from bridgehead.search import Space
from lettered_space import lettered_space

NOUNS = ["kinase", "opioid receptor", "sodium channel", "bacterial wall", "cyclooxygenase", "beta receptor", "virus"]
VERBS = ["inhibits the", "activates the", "blocks the", "opens the", "binds to the", "is a substrate of the"]


@pytest.fixture(scope="session")
def lettered(tmp_path_factory):
    with lettered_space(tmp_path_factory.mktemp("lettered")) as space:
        yield space


@pytest.fixture(scope="session")
def ngrams(tmp_path_factory):
    """A space of texts on both sides with real encoders and heads that have a hidden layer, not trained.

    `space`, and the `texts` of its items.
    """
    import torch

    from bridgehead.align import HeadConfig, HeadsConfig, NumpyHeads, TwoHeads, save_heads

    folder = tmp_path_factory.mktemp("ngrams")
    texts = [f"{verb} {noun} {number}" for number in range(4) for verb in VERBS for noun in NOUNS]
    encoder = make_encoder("text:ngram").fit(texts)
    torch.manual_seed(0)
    head = HeadConfig(encoder.n_columns, 64, (96,), sparse=True)
    save_heads(TwoHeads(HeadsConfig(head, head)), folder / "heads.safetensors")
    heads = NumpyHeads.load(folder / "heads.safetensors")
    rows = encoder.encode(texts).rows
    sides = {
        "a": IndexSide("left", heads.project_a(rows), texts, [f"l{i}" for i in range(len(texts))]),
        "b": IndexSide("right", heads.project_b(rows), texts, [f"r{i}" for i in range(len(texts))]),
    }
    build_index(folder / "index", sides, "model")
    with Space(open_index(folder / "index"), encoder, encoder, heads) as space:
        yield SimpleNamespace(space=space, texts=texts, folder=folder)
