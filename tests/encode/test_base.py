"""Specs, the checks that all encoders share, concatenation, and canary items."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bridgehead.encode import Encoder, load_encoder, make_encoder
from bridgehead.encode.canary import Canary, canary_rows, check_canary
from bridgehead.encode.concat import ConcatEncoder
from bridgehead.errors import DuplicateIdError, EncoderError, MismatchError, RunStateError, ShapeError

TEXTS = ["blocks the receptor", "inhibits the enzyme", "opens the channel"]


@pytest.fixture
def ngram() -> Encoder:
    return make_encoder("text:ngram").fit(TEXTS)


def rows_file(path: Path, ids: list[str], rows: object) -> str:
    np.savez(path, ids=np.array(ids), rows=np.array(rows, dtype=np.float32))
    return f"rows:{path}"


@pytest.mark.parametrize("spec", ["text:bert", "", "rows:", "text:hf", "text:ngram=x", "molecule", "a + text:ngram"])
def test_a_spec_that_names_no_encoder_is_refused_with_those_there_are(spec: str) -> None:
    with pytest.raises(EncoderError, match="molecule:fingerprints"):
        make_encoder(spec)


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(EncoderError, match="no setting max_colums; it has word_range"):
        make_encoder("text:ngram", max_colums=3)


def test_items_must_be_a_list_of_texts(ngram: Encoder) -> None:
    with pytest.raises(EncoderError, match=r"expected a list of texts: \[item\]"):
        ngram.encode("one text")
    with pytest.raises(EncoderError, match="item 1 is a float"):
        ngram.encode(["a", float("nan")])  # type: ignore[list-item]


@pytest.mark.parametrize("kind", ["text:ngram", "molecule:fingerprints", "text:ngram + molecule:fingerprints"])
@pytest.mark.parametrize(
    ("items", "said"), [("CCO", "one text"), (["CCO", 2], "item 1 is a int"), (None, "a NoneType")]
)
def test_items_to_learn_from_are_a_list_of_texts_too(kind: str, items: Any, said: str) -> None:
    with pytest.raises(EncoderError, match=said):
        make_encoder(kind).fit(items)


@pytest.mark.parametrize("spec", [None, 3, ["text:ngram"]])
def test_a_spec_is_text(spec: Any) -> None:
    with pytest.raises(EncoderError, match="expected text such as 'text:ngram'"):
        make_encoder(spec)


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        ("text:ngram", {"word_range": 5}),
        ("text:ngram", {"char_range": None}),
        ("molecule:fingerprints", {"kinds": 3}),
        ("molecule:fingerprints", {"kinds": [["morgan"]]}),
        ("text:ngram + text:ngram", {"parts": 3}),
        ("text:ngram + text:ngram", {"parts": [{}, 3]}),
        ("text:ngram + text:ngram", {"parts": [{}, {"x": 3}]}),
    ],
)
def test_a_setting_of_another_type_is_an_error_of_the_settings(spec: str, settings: dict[str, Any]) -> None:
    with pytest.raises(EncoderError):
        make_encoder(spec, **settings)


def test_there_is_one_unique_id_for_each_item(ngram: Encoder) -> None:
    with pytest.raises(ShapeError, match="2 ids for 3 items"):
        ngram.encode(TEXTS, ids=["a", "b"])
    with pytest.raises(DuplicateIdError, match=r"\(a\)"):
        ngram.encode(TEXTS, ids=["a", "b", "a"])


def test_different_items_with_identical_rows_are_grouped_and_equal_items_are_not(ngram: Encoder) -> None:
    items = ["Opens the channel", "opens the channel", "blocks", "blocks", "阿", "司"]
    report = ngram.encode(items, ids=list("abcdef")).report
    assert report.identical_groups == [["a", "b"]]
    assert report.to_dict()["n_rows"] == 6


def test_concatenated_rows_are_the_rows_of_the_parts_side_by_side(tmp_path: Path) -> None:
    first = rows_file(tmp_path / "1.npz", ["x", "y", "z"], [[1, 2], [3, 4], [5, 6]])
    second = rows_file(tmp_path / "2.npz", ["z", "x", "y"], [[7], [8], [9]])
    both = make_encoder(f"{first} + {second}")
    encoded = both.encode(["x", "y", "z"])
    assert encoded.rows.tolist() == [[1, 2, 8], [3, 4, 9], [5, 6, 7]]
    assert encoded.rows.dtype == np.float32 and not both.sparse and both.n_columns == 3


def test_concatenation_with_a_sparse_part_is_sparse_and_failures_are_joined(tmp_path: Path) -> None:
    known = rows_file(tmp_path / "rows.npz", TEXTS[:2] + ["nan"], [[1, 2], [3, 4], [np.nan, 0]])
    encoder = make_encoder(f"text:ngram + {known}", parts=[{"max_columns": 20}, {}]).fit(TEXTS)
    encoded = encoder.encode([TEXTS[2], TEXTS[1], "nan", TEXTS[0]])
    assert sparse.issparse(encoded.rows) and encoded.rows.has_sorted_indices and encoded.rows.dtype == np.float32
    assert encoded.ids == ["1", "3"] and encoded.index.tolist() == [1, 3]
    assert encoded.rows[:, -2:].toarray().tolist() == [[3, 4], [1, 2]]
    expected = make_encoder("text:ngram", max_columns=20).fit(TEXTS).encode([TEXTS[1], TEXTS[0]]).rows
    assert (encoded.rows[:, :-2] != expected).nnz == 0
    assert [failure.id for failure in encoded.failures] == ["0", "2"]
    assert "no row with id" in encoded.failures[0].reason and "NaN" in encoded.failures[1].reason


def test_concatenation_is_saved_and_loaded(tmp_path: Path) -> None:
    encoder = make_encoder("text:ngram + text:ngram", parts=[{"max_columns": 9}, {"word_range": [1, 1]}]).fit(TEXTS)
    encoder.save(tmp_path)
    loaded = load_encoder(tmp_path)
    assert isinstance(loaded, ConcatEncoder) and loaded.fingerprint() == encoder.fingerprint()
    assert (loaded.encode(TEXTS).rows != encoder.encode(TEXTS).rows).nnz == 0
    assert encoder.encode([]).rows.shape == (0, encoder.n_columns)


def test_settings_of_a_concatenation_say_which_part_they_are_for() -> None:
    with pytest.raises(EncoderError, match="which part"):
        make_encoder("text:ngram + text:ngram", max_columns=3)
    with pytest.raises(EncoderError, match="1 settings for 2 parts"):
        make_encoder("text:ngram + text:ngram", parts=[{}])


def test_canary_items_pass_on_the_same_encoder_and_after_the_disk(tmp_path: Path, ngram: Encoder) -> None:
    canary = canary_rows(ngram, [f"{text} {n}" for text in TEXTS for n in range(50)])
    assert len(canary.items) == 32
    canary.save(tmp_path)
    check_canary(ngram, Canary.load(tmp_path))


def test_canary_items_refuse_another_encoder(tmp_path: Path, ngram: Encoder) -> None:
    canary = canary_rows(ngram, TEXTS)
    with pytest.raises(MismatchError, match="another encoder"):
        check_canary(make_encoder("text:ngram", max_columns=9).fit(TEXTS), canary)
    changed = canary.rows.copy()
    changed.data[0] += 1e-6
    with pytest.raises(MismatchError, match=r"1 of 3 canary items .*blocks"):
        check_canary(ngram, Canary(canary.items, changed))


def test_dense_canary_rows_may_differ_by_rounding_only(tmp_path: Path) -> None:
    spec = rows_file(tmp_path / "rows.npz", ["x", "y"], [[1, 2], [0, 0]])
    canary = canary_rows(make_encoder(spec), ["x", "y"])
    check_canary(make_encoder(spec), Canary(canary.items, canary.rows * np.float32(1 + 1e-6)))
    with pytest.raises(MismatchError, match="1 of 2 canary items"):
        check_canary(make_encoder(spec), Canary(canary.items, canary.rows + np.float32([[0, 0.1], [0, 0]])))


@pytest.mark.parametrize("kind", ["text:ngram", "molecule:fingerprints"])
@pytest.mark.parametrize(
    "damage", [b"", b"\x80\x04K\x01.", b"\x93NUMPY\x01\x00", None], ids=["empty", "pickle", "cut", "gone"]
)
def test_an_array_of_an_encoder_that_is_damaged_is_said(tmp_path: Path, kind: str, damage: bytes | None) -> None:
    make_encoder(kind).fit(["CCO", "CCN", "CCOC"]).save(tmp_path)
    (array,) = tmp_path.glob("*.npy")
    array.unlink() if damage is None else array.write_bytes(damage)
    with pytest.raises(EncoderError, match=r"cannot be read \((?!.*pickle).*; fit and save"):
        load_encoder(tmp_path)


@pytest.mark.parametrize(
    "change", [{"state": None}, {"state": {}}, {"settings": {"foo": 1}}, {"settings": 3}, {"kind": []}]
)
@pytest.mark.parametrize("kind", ["text:ngram", "molecule:fingerprints"])
def test_an_encoder_whose_description_was_edited_is_refused(tmp_path: Path, kind: str, change: dict[str, Any]) -> None:
    make_encoder(kind).fit(["CCO", "CCN", "CCOC"]).save(tmp_path)
    content = json.loads((tmp_path / "encoder.json").read_text())
    (tmp_path / "encoder.json").write_text(json.dumps({**content, **change}))
    with pytest.raises(EncoderError):
        load_encoder(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no more", b"\x80\x04K\x01."])
def test_canary_rows_that_are_damaged_are_said(tmp_path: Path, ngram: Encoder, damage: bytes) -> None:
    canary_rows(ngram, TEXTS).save(tmp_path)
    (tmp_path / "canary.npz").write_bytes(damage)
    with pytest.raises(RunStateError, match=r"canary\.npz is damaged \((?!.*pickle).*; build the index again"):
        Canary.load(tmp_path)


def test_a_canary_with_one_changed_byte_is_said(tmp_path: Path, ngram: Encoder) -> None:
    canary_rows(ngram, TEXTS).save(tmp_path)
    stored = bytearray((tmp_path / "canary.npz").read_bytes())
    for place in range(0, len(stored), 7):
        changed = stored.copy()
        changed[place] ^= 0xFF
        (tmp_path / "canary.npz").write_bytes(changed)
        with contextlib.suppress(RunStateError):
            Canary.load(tmp_path)


def test_an_encoder_of_unknown_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "encoder.json").write_text('{"format": "bridgehead-encoder", "version": 1, "kind": "os:system"}')
    with pytest.raises(EncoderError, match="os:system"):
        load_encoder(tmp_path)


def test_importing_the_folder_loads_nothing_heavy() -> None:
    code = "import sys, bridgehead.encode\nassert not {'torch', 'transformers', 'rdkit', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
