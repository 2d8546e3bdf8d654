"""Words of a text for the full-text search, and match expressions that hold nothing of the user's but words.

Index and query go through the same two steps: `texts.normalise` (hyphens, primes, Greek letters, case, full and half
width), then the splitting here. Nothing else reaches FTS5, so quotes, `NOT`, `*` or brackets in a query are words or
nothing, never syntax. Ranking and storage are in `items`.

A text is cut at white space into terms, and a term at all that is neither letter nor digit into parts: `5-HT1A` has the
parts `5`, `ht1a`. A short term of two or three parts is also kept joined (`5ht1a`). So `COX-2` finds `COX-2`, `COX 2`
and `COX2`, and `COX2` or `COX 2` find `COX-2`; likewise `β-blocker`, `beta blocker` and `betablocker`. `2',3'-cAMP` has
the parts `2`, `3`, `camp`, which must stand side by side; `*` has none and finds nothing.

Chinese, Japanese and Korean (and Thai, Lao, Burmese and Khmer) are not written with a space after each word, so they
are found by substring: a run of their characters is indexed as its overlapping pairs and its last character (`抑制剤`:
`抑制`, `制剤`, `剤`), and a run in a query must occur whole: its pairs side by side, wherever they stand; where no item
has all terms, any pair counts. A single character is found wherever it occurs. A run ends where another script begins:
`COX-2抑制剤` is the term `COX-2` and the run `抑制剤`, which need not be neighbours. A middle dot between katakana is
left out: `サリチル酸` finds `アセチル・サリチル酸` and so does `アセチルサリチル酸`.

The points of Hebrew and Arabic do not count; the vowel signs of Indian scripts separate parts and are not told apart.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from bridgehead.texts import normalise

_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_RUN_CHARACTERS = (
    "\u3005-\u3007\u3021-\u3029\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    f"\u3041-\u3096\u3099\u309a\u309d-\u309f{_KATAKANA}\U0001aff0-\U0001b16f"  # Hiragana, Katakana
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff\u3105-\u312f\u31a0-\u31bf"  # Hangul, Bopomofo
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\ua9e0-\ua9ef\uaa60-\uaa7f\u1780-\u17d3\u17dc\u17dd"  # Burmese, Khmer
)
_RUN = re.compile(f"([{_RUN_CHARACTERS}]+)")
_PART = re.compile(r"[^\W_]+")
_KATAKANA_DOT = re.compile(f"(?<=[{_KATAKANA}])-(?=[{_KATAKANA}])")
# Selectors of variants of a character, and the points and stretching of Hebrew and Arabic, which few texts have.
_LEFT_OUT = re.compile(
    "[\ufe00-\ufe0f\U000e0100-\U000e01ef\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc]"
)
_MARK = re.compile(r"\W")
_AROUND = re.compile(r"^[\W_]+|[\W_]+$")
_LATIN_MARKS = re.compile("[\u0300-\u036f]")
_JOINED_PARTS = 3
_JOINED_LENGTH = 16
_MAX_TERMS = 64
_MAX_PARTS = 32


@dataclass(frozen=True)
class _Term:
    """One thing that a query asks for: `parts` side by side or `joined`, or a run as its pairs.

    `written` is the term as it stands in the normalised query.
    """

    parts: tuple[str, ...]
    written: str
    is_run: bool = False
    joined: str = ""


def indexed_words(text: str) -> str:
    """Return the words of `text` as they are indexed: parts in order, the joined form after those of a short term.

    >>> indexed_words("a 5-HT1A agonist")
    'a 5 ht1a 5ht1a agonist'
    >>> indexed_words("COX-2抑制剤")
    'cox 2 cox2 抑制 制剤 剤'
    """
    words: list[str] = []
    for segment, is_run in _segments(normalise(text)):
        if is_run:
            words += [*_pairs(segment), _token(segment[-1])] if len(segment) > 1 else _pairs(segment)
            continue
        parts = _PART.findall(segment)
        words += parts
        if joined := _joined(parts):
            words.append(joined)
    return " ".join(words)


def match_expression(query: str, every_term: bool = True) -> str:
    """Return the FTS5 expression that finds `query`, or "" when it holds no word.

    Each term must occur as a phrase of its parts or joined, each run as a phrase of its pairs; `every_term` asks for
    all of them, otherwise for any, and then for any pair of a run. Only the first 64 distinct terms and the first 32
    parts of a term count.

    >>> match_expression('NOT "COX-2"')
    '"not" AND ("cox 2" OR "cox2")'
    """
    terms = dict.fromkeys(_expression(term) for term in _asked_terms(query, every_term))
    return (" AND " if every_term else " OR ").join(list(terms)[:_MAX_TERMS])


def matched_words(query: str, word_text: str) -> tuple[str, ...]:
    """Return the words of `query` that an item holds, as they are written there, each once, in the query's order.

    `word_text`: the item's words as `indexed_words` gave them. Of a run that does not occur whole, the longest pieces
    of two characters or more that do. Accents do not count. () where the item holds none.

    >>> matched_words("Selective COX-2抑制薬", indexed_words("COX2抑制剤"))
    ('COX-2', '抑制')
    """
    held = _Held(word_text)
    found: dict[str, None] = {}
    asked: set[_Term] = set()
    for chunk in query.split():
        terms = list(islice(_terms(normalise(chunk)), _MAX_TERMS))
        for term in terms:
            if term in asked or len(asked) == _MAX_TERMS:
                continue
            asked.add(term)
            for word in _pieces(term, held) if term.is_run else [term.written] * held.has_term(term):
                found[_as_written(word, chunk, len(terms) == 1 and word == term.written)] = None
    return tuple(found)


def _segments(form: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a normalised text between white space and at the ends of runs, and whether each is a run."""
    form = form if form.isascii() else _LEFT_OUT.sub("", form)
    if form.isascii() or not _RUN.search(form):
        yield from ((chunk, False) for chunk in form.split())
        return
    for chunk in form.split():
        # Split by a group that is kept, every second piece is a run.
        for place, piece in enumerate(_RUN.split(_KATAKANA_DOT.sub("", chunk))):
            if piece:
                yield piece, place % 2 == 1


def _terms(form: str) -> Iterator[_Term]:
    """Yield the terms of a normalised text in order."""
    for segment, is_run in _segments(form):
        if is_run:
            yield _Term(tuple(_pairs(segment)), segment, is_run=True)
        elif parts := _PART.findall(segment):
            yield _Term(tuple(parts), _AROUND.sub("", segment), joined=_joined(parts))


def _joined(parts: list[str]) -> str:
    joined = "".join(parts) if 1 < len(parts) <= _JOINED_PARTS else ""
    return joined if len(joined) <= _JOINED_LENGTH else ""


def _pairs(run: str) -> list[str]:
    return [_token(run[n : n + 2]) for n in range(len(run) - 1)] or [_token(run)]


def _token(characters: str) -> str:
    """Return characters of a run as FTS5 takes them for one token: marks, which would cut it, as private characters."""
    if characters.isalpha():
        return characters
    return _MARK.sub(lambda mark: chr(0xE000 + ord(mark.group()) % 0x1000), characters)


def _asked_terms(query: str, every_term: bool) -> Iterator[_Term]:
    for term in _terms(normalise(query)):
        if term.is_run and not every_term and len(term.parts) > 1:
            yield from (_Term((pair,), term.written[n : n + 2], is_run=True) for n, pair in enumerate(term.parts))
        else:
            yield term


def _expression(term: _Term) -> str:
    phrase = f'"{" ".join(term.parts[:_MAX_PARTS])}"'
    if term.is_run:
        # A pair begins with a character wherever it is not the last of its run, and the last is a token itself.
        return f"{phrase} *" if len(term.written) == 1 else phrase
    return f'({phrase} OR "{term.joined}")' if term.joined else phrase


class _Held:
    """The tokens of an item by their places."""

    def __init__(self, word_text: str) -> None:
        self._places: dict[str, set[int]] = {}
        self._first: set[str] = set()
        for place, token in enumerate(map(_without_accents, word_text.split())):
            self._places.setdefault(token, set()).add(place)
            self._first.add(token[0])

    def has_term(self, term: _Term) -> bool:
        if term.is_run and len(term.written) == 1:
            return term.parts[0] in self._first
        return self.has_phrase(term.parts[:_MAX_PARTS]) or bool(term.joined and self.has_phrase((term.joined,)))

    def has_phrase(self, parts: tuple[str, ...]) -> bool:
        places = self._places.get(_without_accents(parts[0]), set())
        for further, part in enumerate(parts[1:], start=1):
            there = self._places.get(_without_accents(part), set())
            places = {place for place in places if place + further in there}
        return bool(places)


def _pieces(term: _Term, held: _Held) -> Iterator[str]:
    """Yield the parts of a run that occur, each as long as it can be; the whole run where it does."""
    if held.has_term(term):
        yield term.written
        return
    start, count = 0, min(len(term.parts), _MAX_TERMS)
    while start < count:
        end = start
        while end < count and held.has_phrase(term.parts[start : end + 1]):
            end += 1
        if end > start:
            yield term.written[start : end + 1]
        start = max(end, start + 1)


def _as_written(word: str, chunk: str, is_all: bool) -> str:
    """Return a normalised word as it stands in the `chunk` of the query, of which it `is_all` but for signs around."""
    folded = chunk.casefold()
    at = folded.find(word) if len(folded) == len(chunk) else -1
    if at >= 0:
        return chunk[at : at + len(word)]
    return _AROUND.sub("", chunk) if is_all else word


def _without_accents(token: str) -> str:
    return token if token.isascii() else unicodedata.normalize(
        "NFC", _LATIN_MARKS.sub("", unicodedata.normalize("NFD", token)))  # fmt: skip
