"""Words of a text for the full-text search, and match expressions that hold nothing of the user's but words.

Index and query go through the same two steps: `texts.normalise` (hyphens, primes, Greek letters, case), then the
splitting here. Nothing else reaches FTS5, so quotes, `NOT`, `*` or brackets in a query are words or nothing, never
syntax. Ranking and storage are in `store`.

A text is cut at white space into terms, and a term at all that is neither letter nor digit into parts: `5-HT1A` has the
parts `5`, `ht1a`. A short term of two or three parts is also kept joined (`5ht1a`). So `COX-2` finds `COX-2`, `COX 2`
and `COX2`, and `COX2` or `COX 2` find `COX-2`; likewise `β-blocker`, `beta blocker` and `betablocker`. `2',3'-cAMP` has
the parts `2`, `3`, `camp`, which must stand side by side; `*` has none and finds nothing.
"""

import re

from bridgehead.texts import normalise

_PART = re.compile(r"[^\W_]+")
_JOINED_PARTS = 3
_JOINED_LENGTH = 16
_MAX_TERMS = 64
_MAX_PARTS = 32


def indexed_words(text: str) -> str:
    """Return the words of `text` as they are indexed: parts in order, the joined form after those of a short term.

    >>> indexed_words("a 5-HT1A agonist")
    'a 5 ht1a 5ht1a agonist'
    """
    words: list[str] = []
    for parts in _terms(text):
        words.extend(parts)
        if joined := _joined(parts):
            words.append(joined)
    return " ".join(words)


def match_expression(query: str, every_term: bool = True) -> str:
    """Return the FTS5 expression that finds `query`, or "" when it holds no word.

    Each term must occur as a phrase of its parts or joined; `every_term` asks for all terms, otherwise for any. Only
    the first 64 distinct terms and the first 32 parts of a term count.

    >>> match_expression('NOT "COX-2"')
    '"not" AND ("cox 2" OR "cox2")'
    """
    terms = dict.fromkeys(tuple(parts[:_MAX_PARTS]) for parts in _terms(query))
    expressions = [_term_expression(list(parts)) for parts in list(terms)[:_MAX_TERMS]]
    return (" AND " if every_term else " OR ").join(expressions)


def _terms(text: str) -> list[list[str]]:
    return [parts for term in normalise(text).split() if (parts := _PART.findall(term))]


def _joined(parts: list[str]) -> str:
    joined = "".join(parts)
    return joined if 1 < len(parts) <= _JOINED_PARTS and len(joined) <= _JOINED_LENGTH else ""


def _term_expression(parts: list[str]) -> str:
    phrase = f'"{" ".join(parts)}"'
    joined = _joined(parts)
    return f'({phrase} OR "{joined}")' if joined else phrase
