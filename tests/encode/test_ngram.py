"""text:ngram against scikit-learn, and at its edges."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from bridgehead.encode import load_encoder, make_encoder
from bridgehead.encode.ngram import NgramEncoder
from bridgehead.errors import EncoderError
from bridgehead.texts import normalise

TEXTS = [
    "Inhibits cyclooxygenase and reduces inflammation, pain and fever.",
    "Blocks β2-adrenoceptors; a β-blocker that lowers blood pressure.",
    "Blocks beta-adrenoceptors in the heart.",
    "5-HT1A receptor agonist: a a a 2',3'-cAMP",
    "阿司匹林 🧪",
    "N,N-dimethyltryptamine",
]


def sklearn_rows(train: list[str], texts: list[str]) -> tuple[sparse.csr_matrix, list[str]]:
    options = {"sublinear_tf": True, "lowercase": False, "preprocessor": normalise}
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+", **options)
    characters = TfidfVectorizer(ngram_range=(3, 5), analyzer="char_wb", **options)
    blocks = [vectoriser.fit(train).transform(texts) for vectoriser in (words, characters)]
    names = ["w:" + name for name in words.get_feature_names_out()]
    names += ["c:" + name for name in characters.get_feature_names_out()]
    return sparse.hstack(blocks, format="csr") / np.sqrt(2), names


def test_rows_are_those_of_scikit_learn() -> None:
    encoder = NgramEncoder(max_columns=100_000).fit(TEXTS)
    queries = [*TEXTS, "reduces blood pressure in unknown ways", "cyclooxygenase"]
    expected, names = sklearn_rows(TEXTS, queries)
    assert encoder.vocabulary == names
    rows = encoder.encode(queries).rows
    assert rows.dtype == np.float32 and rows.has_sorted_indices
    np.testing.assert_allclose(rows.toarray(), expected.toarray(), atol=1e-6)


def test_a_row_has_length_one() -> None:
    rows = NgramEncoder().fit(TEXTS).encode(TEXTS).rows
    np.testing.assert_allclose(np.sqrt(rows.multiply(rows).sum(axis=1)), 1, atol=1e-6)


def test_columns_are_the_most_frequent_and_ties_are_alphabetical() -> None:
    encoder = NgramEncoder(word_range=(1, 1), char_range=(9, 9), max_columns=3).fit(["b a z", "b q a", "c q"])
    # In two texts each: a, b, q as words and as padded pieces; characters sort before words in the tie.
    assert encoder.vocabulary == ["c: a ", "c: b ", "c: q "]
    words = NgramEncoder(word_range=(1, 1), char_range=(9, 9), max_columns=5).fit(["b a z", "b q a", "c q"])
    assert words.vocabulary == ["w:a", "w:b", "c: a ", "c: b ", "c: q "]


def test_the_order_of_training_texts_does_not_matter() -> None:
    assert NgramEncoder().fit(TEXTS).fingerprint() == NgramEncoder().fit(TEXTS[::-1]).fingerprint()


def test_greek_letters_and_their_names_give_one_row() -> None:
    rows = NgramEncoder().fit(TEXTS).encode(["β-blocker", "beta‐Blocker", "BETA-blocker"]).rows.toarray()
    assert rows.any() and (rows == rows[0]).all()


def test_a_text_of_which_nothing_is_known_keeps_a_zero_row_and_is_listed() -> None:
    encoder = NgramEncoder().fit(["inhibits an enzyme"])
    encoded = encoder.encode(["Ασπιρίνη", "", " ", "阿司匹林", "🧪", "inhibits"], ids=list("abcdef"))
    assert encoded.rows.shape == (6, encoder.n_columns) and encoded.failures == []
    assert encoded.report.empty_ids == list("abcde")
    assert encoded.report.unknown_share == pytest.approx(2 / 3)


def test_rows_do_not_depend_on_batch_order_or_repeats() -> None:
    encoder = NgramEncoder().fit(TEXTS)
    alone = sparse.vstack([encoder.encode([text]).rows for text in TEXTS]).toarray()
    order = [3, 1, 1, 5, 0, 2, 4, 3]
    assert np.array_equal(encoder.encode([TEXTS[i] for i in order]).rows.toarray(), alone[order])


def test_no_items_give_no_rows() -> None:
    encoder = NgramEncoder().fit(TEXTS)
    assert encoder.encode([]).rows.shape == (0, encoder.n_columns)


def test_ten_megabytes_in_one_text_are_cut_and_counted() -> None:
    encoded = NgramEncoder().fit(TEXTS).encode(["pressure " * 1_200_000, "pressure"], ids=["long", "short"])
    assert encoded.report.truncated_ids == ["long"] and encoded.report.n_truncated == 1


def test_before_the_fit_nothing_is_encoded() -> None:
    with pytest.raises(EncoderError, match=r"call fit\(training_texts\) first"):
        make_encoder("text:ngram").encode(["a"])


@pytest.mark.parametrize("texts", [[], ["", " "], ["\0"]])
def test_training_texts_without_a_word_are_refused(texts: list[str]) -> None:
    with pytest.raises(EncoderError, match="hold no word"):
        NgramEncoder().fit(texts)


@pytest.mark.parametrize(
    "settings", [{"word_range": (2, 1)}, {"char_range": (0, 3)}, {"max_columns": 0}, {"max_characters": True}]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(EncoderError, match=next(iter(settings))):
        make_encoder("text:ngram", **settings)


def test_fit_leaves_the_unfitted_encoder_as_it_was() -> None:
    unfitted = NgramEncoder(max_columns=50)
    fitted = unfitted.fit(TEXTS)
    assert fitted.n_columns == 50 and fitted.settings() == unfitted.settings()
    with pytest.raises(EncoderError):
        _ = unfitted.n_columns


def test_saved_and_loaded_gives_the_same_rows_and_fingerprint(tmp_path: Path) -> None:
    encoder = NgramEncoder().fit([*TEXTS, "lone \ud800 surrogate"])
    encoder.save(tmp_path)
    loaded = load_encoder(tmp_path)
    assert loaded.fingerprint() == encoder.fingerprint()
    assert (loaded.encode(TEXTS).rows != encoder.encode(TEXTS).rows).nnz == 0


def test_parts_of_different_encoders_are_refused(tmp_path: Path) -> None:
    NgramEncoder().fit(TEXTS).save(tmp_path)
    NgramEncoder().fit(TEXTS[:2]).save(tmp_path / "other")
    (tmp_path / "idf.npy").write_bytes((tmp_path / "other" / "idf.npy").read_bytes())
    with pytest.raises(EncoderError, match="parts of different encoders"):
        load_encoder(tmp_path)


def test_a_query_loads_neither_torch_nor_scikit_learn_nor_rdkit(tmp_path: Path) -> None:
    NgramEncoder().fit(TEXTS).save(tmp_path)
    code = (
        "import sys\nfrom bridgehead.encode import load_encoder\n"
        "heavy = {'torch', 'sklearn', 'transformers', 'rdkit'}\nassert not heavy & set(sys.modules)\n"
        f"assert load_encoder({str(tmp_path)!r}).encode(['beta blocker']).rows.nnz\n"
        "assert not heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
