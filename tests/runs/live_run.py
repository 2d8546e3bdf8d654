"""Settings of a run that trains a tiny BERT beside fingerprints, and its weights, for tests of live runs."""

import torch
from safetensors.torch import load_file
from small_run import config

LIVE = {"stages": [{"group": "encoder_b.last_1", "from_epoch": 0}, {"group": "encoder_b", "from_epoch": 1}],
        "mini_batch": 8, "encoder_learning_rate": 1e-3}  # fmt: skip


def live_config(table, bert, **sections):
    """Return the config of a live run; `sections` change it, `live` as a whole."""
    given = {
        "encode": {"b": f"text:hf={bert}", "settings_b": {"pooling": "cls", "max_tokens": 12}},
        "live": LIVE,
        "train": {"epochs": 2, "checkpoint_seconds": 0},
        "evaluate": {"n_resamples": 0, "shuffled": 0},
        "split": {"test": []},
    }
    for name, changes in sections.items():
        mixed = name != "live" and isinstance(changes, dict) and name in given
        given[name] = {**given[name], **changes} if mixed else changes
    return config(table, **given)


def weights(folder):
    return load_file(folder / "model.safetensors")


def changed(left, right):
    """Return the names of the weights that differ."""
    assert left.keys() == right.keys()
    return {name for name in left if not torch.equal(left[name], right[name])}
