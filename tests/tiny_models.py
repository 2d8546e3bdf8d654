"""Random transformer models of a few thousand weights with a word-piece tokenizer, written as folders of their own."""

from pathlib import Path
from typing import Any

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"CNO=()1", *"abcdefghij", "blocks", "opens", "the", "enzyme", "receptor"]
N_POSITIONS = 64


def write_bert(folder: Path, *, seed: int = 0, width: int = 16, n_layers: int = 2, dropout: float = 0.1) -> Path:
    """Write a BERT of `n_layers` layers and its tokenizer."""
    import torch
    from transformers import BertConfig, BertModel

    write_tokenizer(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(WORDS),
            hidden_size=width,
            num_hidden_layers=n_layers,
            num_attention_heads=2,
            intermediate_size=2 * width,
            max_position_embeddings=N_POSITIONS,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            # Wide enough that tokens tell rows apart, as in a trained model.
            initializer_range=0.5,
        )
        BertModel(config).save_pretrained(folder)
    return folder


def write_other(folder: Path, kind: str) -> Path:
    """Write a tiny model of another architecture: gpt2, t5, distilbert or modernbert."""
    import torch
    import transformers as t

    write_tokenizer(folder)
    n = len(WORDS)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = {
            "gpt2": lambda: t.GPT2Model(t.GPT2Config(vocab_size=n, n_positions=64, n_embd=16, n_layer=3, n_head=2)),
            "t5": lambda: t.T5Model(
                t.T5Config(
                    vocab_size=n, d_model=16, d_kv=8, d_ff=32, num_layers=3, num_heads=2, decoder_start_token_id=0
                )
            ),
            "distilbert": lambda: t.DistilBertModel(
                t.DistilBertConfig(
                    vocab_size=n, dim=16, hidden_dim=32, n_layers=3, n_heads=2, max_position_embeddings=64
                )
            ),
        }[kind]()
        model.save_pretrained(folder)
    return folder


def write_tokenizer(folder: Path) -> None:
    """Write the tokenizer that all of them share."""
    from transformers import BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=N_POSITIONS).save_pretrained(folder)
