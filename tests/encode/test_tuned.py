"""Encoders whose models were trained: written with their tokenizer, read where they lie, whole or not at all."""

import shutil

import numpy as np
import pytest
import torch

from bridgehead.encode import load_encoder, make_encoder
from bridgehead.encode.pooling import pool
from bridgehead.errors import BridgeheadError, MismatchError
from tiny_models import write_bert, write_other

TEXTS = ["blocks the enzyme", "opens the receptor", "a b c d e f", "the"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("bert"))


def moved(encoder, by=0.1):
    """Return the network of an encoder with every weight moved, and tokenizer and limit."""
    network, tokenizer, limit = encoder.for_training()
    with torch.no_grad():
        for weight in network.parameters():
            weight += by * torch.sign(weight)
    return network, tokenizer, limit


@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5", "distilbert"])
def test_a_tuned_encoder_gives_the_rows_of_the_network_that_was_trained(bert, tmp_path, kind):
    folder = bert if kind == "bert" else write_other(tmp_path / kind, kind)
    first = make_encoder(f"text:hf={folder}", pooling="max", max_tokens=8)
    network, tokenizer, limit = moved(first)
    tuned = first.save_tuned(network, tmp_path / "encoder")
    assert limit == 8
    inputs = tokenizer(TEXTS, return_tensors="pt", padding=True)
    with torch.inference_mode():
        hidden = network(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).last_hidden_state
        expected = pool(hidden, inputs["attention_mask"], "max").numpy()
    for encoder in (tuned, load_encoder(tmp_path / "encoder")):
        np.testing.assert_allclose(encoder.encode(TEXTS).rows, expected, atol=1e-5)
        assert encoder.settings() == first.settings()
        assert encoder.spec == f"text:hf={folder} (tuned)"
    assert np.abs(first.encode(TEXTS).rows - expected).max() > 0.01
    assert tuned.fingerprint() != first.fingerprint()


def test_its_folder_can_be_moved_and_needs_the_first_model_no_more(bert, tmp_path):
    own = shutil.copytree(bert, tmp_path / "own")
    first = make_encoder(f"text:hf={own}")
    tuned = first.save_tuned(moved(first)[0], tmp_path / "encoder")
    rows = tuned.encode(TEXTS).rows
    shutil.rmtree(own)
    (tmp_path / "encoder").rename(tmp_path / "elsewhere")
    again = load_encoder(tmp_path / "elsewhere")
    assert np.array_equal(again.encode(TEXTS).rows, rows) and again.fingerprint() == tuned.fingerprint()
    assert str(tmp_path / "encoder") not in (tmp_path / "elsewhere" / "encoder.json").read_text()


def test_saving_it_elsewhere_takes_the_model_along(bert, tmp_path):
    first = make_encoder(f"text:hf={bert}")
    tuned = first.save_tuned(moved(first)[0], tmp_path / "encoder")
    tuned.save(tmp_path / "copy")
    shutil.rmtree(tmp_path / "encoder")
    assert load_encoder(tmp_path / "copy").fingerprint() == tuned.fingerprint()


def test_an_encoder_trained_again_starts_from_its_own_weights(bert, tmp_path):
    first = make_encoder(f"text:hf={bert}")
    once = first.save_tuned(moved(first)[0], tmp_path / "encoder")
    twice = once.save_tuned(moved(once)[0], tmp_path / "twice")
    network = moved(first)[0]
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.1 * torch.sign(weight)
    other = first.save_tuned(network, tmp_path / "other")
    np.testing.assert_allclose(twice.encode(TEXTS).rows, other.encode(TEXTS).rows, atol=1e-6)


def test_other_weights_in_its_place_are_refused(bert, tmp_path):
    first = make_encoder(f"text:hf={bert}")
    first.save_tuned(moved(first)[0], tmp_path / "encoder")
    shutil.copyfile(bert / "model.safetensors", tmp_path / "encoder" / "model" / "model.safetensors")
    with pytest.raises(MismatchError, match="are not those that"):
        load_encoder(tmp_path / "encoder")


def test_a_write_that_fails_leaves_the_former_encoder(bert, tmp_path, monkeypatch):
    first = make_encoder(f"text:hf={bert}")
    former = first.save_tuned(moved(first)[0], tmp_path / "encoder")
    network = moved(first, by=0.2)[0]

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bridgehead.encode.huggingface.write_model", full)
    with pytest.raises(OSError, match="No space left"):
        first.save_tuned(network, tmp_path / "encoder")
    assert load_encoder(tmp_path / "encoder").fingerprint() == former.fingerprint()
    assert not list((tmp_path / "encoder").glob(".*"))


def test_stopped_between_the_model_and_its_description_nothing_loads(bert, tmp_path, monkeypatch):
    first = make_encoder(f"text:hf={bert}")
    first.save_tuned(moved(first)[0], tmp_path / "encoder")
    monkeypatch.setattr(type(first), "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        first.save_tuned(moved(first, by=0.2)[0], tmp_path / "encoder")
    with pytest.raises(BridgeheadError, match="does not exist"):
        load_encoder(tmp_path / "encoder")
