"""Two tiny random BERTs under one aligner, and linked items for them, for tests of live training."""

import numpy as np
import torch

from bridgehead.align.dual_encoder import DualEncoderAligner
from bridgehead.train.live.items import LinkedItems, LiveItems

N_WORDS, WIDTH = 40, 16


def bert(n_layers=2, dropout=0.1):
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=N_WORDS,
        hidden_size=WIDTH,
        num_hidden_layers=n_layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=24,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return BertModel(config)


def aligner(dropout=0.1, seed=0, n_layers=2):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = DualEncoderAligner.from_modules(
            bert(n_layers, dropout), bert(n_layers, dropout), WIDTH, WIDTH, 8, pooling="mean"
        )
    for module in (*model.proj_a.modules(), *model.proj_b.modules()):
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    return model


def items(n=24, seed=0):
    """Item i of b is item i of a in other words (each word plus one), so there is something to learn."""
    rng = np.random.default_rng(seed)
    rows = [rng.integers(4, N_WORDS - 1, rng.integers(3, 12)).tolist() for _ in range(n)]
    a, b = (LiveItems.of({"input_ids": side}) for side in (rows, [[word + 1 for word in row] for row in rows]))
    links = [(i, i) for i in range(n)] + [(i, (i + 1) % n) for i in range(0, n, 3)]
    return LinkedItems.of(a, b, links)
