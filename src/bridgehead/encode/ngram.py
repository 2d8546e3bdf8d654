"""`text:ngram`: words and pieces of words, weighted by tf-idf, over a vocabulary of training texts.

Needs neither torch nor scikit-learn, so a query costs well under a millisecond after a light import; the numbers are
those of scikit-learn's `TfidfVectorizer` (a test compares them). It is not about meaning beyond shared characters: that
is what `text:hf=` is for.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from bridgehead.encode.base import (
    ENCODER_FILE,
    ENCODER_FORMAT,
    Encoder,
    Origin,
    RawRows,
    as_texts,
    check_settings,
    fingerprint_of,
)
from bridgehead.encode.cache import Progress, RowCache
from bridgehead.errors import EncoderError
from bridgehead.files import hash_array, hash_texts, read_json, why_unreadable, write_npy, write_text
from bridgehead.texts import normalise
from bridgehead.vectors import FloatArray

_WORD = re.compile(r"\w+")
_REPORT_EVERY = 512
_VERSION = 1


class NgramEncoder(Encoder):
    """Word n-grams and character n-grams within words, log counts times idf, as CSR rows of length 1.

    Texts are brought into one form first (`bridgehead.texts.normalise`). Word n-grams run over the `\\w+` words of the
    text, `word_range` = (1, 2) by default; character n-grams over each white-space separated piece padded with a space
    at both ends, `char_range` = (3, 5). A count c weighs (1 + ln c) idf with idf = ln((1 + n) / (1 + df)) + 1 over the
    n training texts. The columns are the `max_columns` n-grams that most training texts hold, equal counts in
    alphabetical order; those of words come first. Words and characters are scaled to length sqrt(1/2) each, so that
    neither drowns the other, and a text with both has a row of length 1. Text beyond `max_characters` is not read and
    counted as truncated. A text without a known n-gram keeps a zero row.
    """

    kind: ClassVar[str] = "text:ngram"
    sparse: ClassVar[bool] = True
    needs_fit: ClassVar[bool] = True

    def __init__(
        self,
        word_range: Sequence[int] = (1, 2),
        char_range: Sequence[int] = (3, 5),
        max_columns: int = 32_768,
        max_characters: int = 20_000,
    ) -> None:
        self.spec = self.kind
        self.word_range = _checked_range("word_range", word_range)
        self.char_range = _checked_range("char_range", char_range)
        check_settings(self.kind, max_columns=max_columns, max_characters=max_characters)
        self.max_columns = max_columns
        self.max_characters = max_characters
        self._vocabulary: list[str] | None = None
        self._column_of: dict[str, int] = {}
        self._idf: FloatArray = np.zeros(0)
        self._n_words = 0

    @property
    def n_columns(self) -> int:
        """Number of n-grams in the vocabulary."""
        return len(self._fitted())

    @property
    def vocabulary(self) -> list[str]:
        """The n-gram of each column, `w:` before those of words and `c:` before those of characters."""
        return list(self._fitted())

    def settings(self) -> dict[str, Any]:
        return {
            "word_range": list(self.word_range),
            "char_range": list(self.char_range),
            "max_columns": self.max_columns,
            "max_characters": self.max_characters,
        }

    def fingerprint(self) -> str:
        vocabulary = self._vocabulary
        fitted = None if vocabulary is None else [hash_texts(vocabulary), hash_array(self._idf)]
        return fingerprint_of(self.kind, version=_VERSION, settings=self.settings(), fitted=fitted)

    def fit(self, items: Sequence[str], cache: RowCache | None = None, progress: Progress | None = None) -> Self:
        """Return an encoder with the vocabulary of these training texts.

        Raises `EncoderError` when they hold no word at all.
        """
        held: Counter[str] = Counter()
        analyser = self._analyser()
        for position, item in enumerate(as_texts(items)):
            held.update(set(analyser.analyse(item)[1]))
            _tell(progress, position + 1, len(items))
        if not held:
            raise EncoderError(f"{self.kind}: {len(items)} training texts hold no word; expected text to learn from")
        kept = sorted(held.items(), key=lambda entry: (-entry[1], entry[0]))[: self.max_columns]
        # "c:" sorts before "w:"; words come first in the columns.
        kept.sort(key=lambda entry: (entry[0][0] != "w", entry[0]))
        fitted = type(self)(**self.settings())
        counts = np.array([count for _, count in kept], dtype=np.float64)
        fitted._set([gram for gram, _ in kept], np.log((1 + len(items)) / (1 + counts)) + 1)
        return fitted

    def raw_rows(
        self, items: Sequence[str], cache: RowCache | None, progress: Progress | None, origin: Origin
    ) -> RawRows:
        self._fitted()
        distinct = list(dict.fromkeys(items))
        analyser = self._analyser()
        columns: list[int] = []
        counts: list[int] = []
        indptr = np.zeros(len(distinct) + 1, dtype=np.int64)
        n_words = n_unknown = 0
        for position, item in enumerate(distinct):
            words, grams = analyser.analyse(item)
            held = Counter(map(self._column_of.get, grams))
            known = sorted((column, count) for column, count in held.items() if column is not None)
            columns += [column for column, _ in known]
            counts += [count for _, count in known]
            indptr[position + 1] = len(columns)
            n_words += len(words)
            n_unknown += sum("w:" + word not in self._column_of for word in words)
            _tell(progress, position + 1, len(distinct))
        column = np.array(columns, dtype=np.int32)
        weights = (1 + np.log(np.array(counts, dtype=np.float64))) * self._idf[column]
        rows = sparse.csr_matrix(
            (self._block_scaled(weights, column, indptr), column, indptr.astype(np.int32)),
            shape=(len(distinct), self.n_columns),
        )
        if len(distinct) != len(items):
            number = {item: position for position, item in enumerate(distinct)}
            rows = rows[[number[item] for item in items]]
        return RawRows(
            rows,
            np.arange(len(items), dtype=np.int64),
            truncated=[position for position, item in enumerate(items) if len(item) > self.max_characters],
            unknown_share=n_unknown / n_words if n_words else None,
        )

    def _block_scaled(self, weights: FloatArray, column: Any, indptr: Any) -> FloatArray:
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        block = 2 * row + (column >= self._n_words)
        squares = np.bincount(block, weights=weights**2, minlength=2 * (len(indptr) - 1))
        return np.asarray(weights / np.sqrt(2 * squares[block]), dtype=np.float32)

    def _analyser(self) -> "_Analyser":
        return _Analyser(self.word_range, self.char_range, self.max_characters)

    def _set(self, vocabulary: list[str], idf: FloatArray) -> None:
        self._vocabulary = vocabulary
        self._idf = idf
        self._column_of = {gram: column for column, gram in enumerate(vocabulary)}
        self._n_words = sum(gram.startswith("w:") for gram in vocabulary)

    def _fitted(self) -> list[str]:
        if self._vocabulary is None:
            raise EncoderError(f"{self.kind} has no vocabulary yet; call fit(training_texts) first")
        return self._vocabulary

    def _save_state(self, folder: Path) -> None:
        write_text(folder / "vocabulary.json", json.dumps(self._fitted(), ensure_ascii=True))
        write_npy(folder / "idf.npy", self._idf)

    def _state(self) -> dict[str, Any]:
        return {"n_columns": self.n_columns, "fingerprint": self.fingerprint()}

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote; raises `EncoderError` when its files do not belong together."""
        source = Path(folder)
        content = read_json(source / ENCODER_FILE, ENCODER_FORMAT)
        encoder = cls(**content["settings"])
        try:
            vocabulary = json.loads((source / "vocabulary.json").read_text(encoding="utf-8"))
            encoder._set(vocabulary, np.load(source / "idf.npy", allow_pickle=False))
        except (OSError, ValueError, EOFError) as error:
            why = why_unreadable(error)
            raise EncoderError(f"{source} cannot be read ({why}); fit and save the encoder again") from error
        if encoder.fingerprint() != content["state"]["fingerprint"]:
            raise EncoderError(f"{source} holds parts of different encoders or versions; fit and save it again")
        return encoder


class _Analyser:
    """Cuts texts into n-grams; remembers the pieces it met, because texts share most of their words."""

    def __init__(self, word_range: tuple[int, int], char_range: tuple[int, int], max_characters: int) -> None:
        self.word_range = word_range
        self.char_range = char_range
        self.max_characters = max_characters
        self._pieces: dict[str, list[str]] = {}

    def analyse(self, item: str) -> tuple[list[str], list[str]]:
        """Return the words of a text, and its n-grams with `w:` or `c:` before them."""
        text = normalise(item[: self.max_characters])
        words = _WORD.findall(text)
        low, high = self.word_range
        grams = [
            "w:" + " ".join(words[start : start + size])
            for size in range(low, high + 1)
            for start in range(len(words) - size + 1)
        ]
        for piece in text.split():
            if piece not in self._pieces:
                self._pieces[piece] = self._of_characters(f" {piece} ")
            grams += self._pieces[piece]
        return words, grams

    def _of_characters(self, padded: str) -> list[str]:
        grams = []
        low, high = self.char_range
        for size in range(low, high + 1):
            # A piece shorter than the n-gram counts once, as itself.
            grams += ["c:" + padded[start : start + size] for start in range(max(1, len(padded) - size + 1))]
            if len(padded) <= size:
                break
        return grams


def _checked_range(name: str, values: Sequence[int]) -> tuple[int, int]:
    pair = tuple(values)
    if len(pair) != 2 or not all(isinstance(value, int) for value in pair) or not 1 <= pair[0] <= pair[1]:
        raise EncoderError(f"text:ngram: {name} = {values!r}; expected two whole numbers (shortest, longest) from 1")
    return pair[0], pair[1]


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None and (done % _REPORT_EVERY == 0 or done == total):
        progress(done, total)
