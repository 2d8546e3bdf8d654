"""Names in texts: a molecule that its own description names is found by reading the name, not by understanding.

`name_shortcut` ranks by names or formulas of items of a that stand in texts of b, and `mask_names` takes them out, so
that the drop can be measured (`drop`). This module is not about words in general (`word_overlap`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from bridgehead.audits.finding import Finding
from bridgehead.audits.given import check_entries, check_kind, check_texts
from bridgehead.audits.leakage.keys import keys_of
from bridgehead.audits.listed import namer, worst
from bridgehead.audits.shortcuts.judged import memberships, products, shortcut_findings
from bridgehead.audits.shortcuts.word_overlap import words_of
from bridgehead.errors import ArgumentError
from bridgehead.links import Links

_SHORTEST = 3
"""Signs that a name must have: shorter ones ("C", "I2", "NO") are words of other meanings in most texts."""

_WORD = re.compile(r"\w+")

Name = tuple[str, ...]


def name_shortcut(
    names_a: Sequence[Any],
    texts_b: Sequence[str],
    links: Links,
    *,
    what: str = "names",
    ids_a: Sequence[str] | None = None,
    ids_b: Sequence[str] | None = None,
    **options: Any,
) -> list[Finding]:
    """Return `shortcut_findings` of ranking by names of items of a that stand in texts of b.

    `names_a` (n_a entries) are what an item of a may be called: a text, several in a tuple, list or set, or None; names
    or formulas, as `what` says. A name stands in a text where its words (normalised runs of letters and digits, so
    hyphens and primes do not matter) stand there in a row; names under 3 signs do not count. score(a, b) is the sum
    over the names of a in b of ln((1 + n_b) / (1 + df)), df the number of texts that hold the name: one in every text
    tells nothing.

    `why` of the first finding says how many linked texts name their own item, and its listing shows them. `options` are
    those of `shortcut_findings`. Raises `ShapeError` for lists of other lengths and `ArgumentError` for what is no
    text. Cost: about 2 s for 10,000 texts.
    """
    check_kind(Links, links=links)
    names = _given(names_a, links.n_a)
    found = _found_in(texts_b, names, links.n_b)
    held_a, held_b = memberships(names, found)
    df = np.asarray(held_b.sum(axis=0)).ravel()
    weighted_a, weighted_b = (
        sparse.csr_array(held @ sparse.diags_array(np.log((1 + links.n_b) / (1 + df)))) for held in (held_a, held_b)
    )
    forth, *rest = shortcut_findings(
        f"{what} in the text",
        lambda rows: products(weighted_a[rows], held_b),
        lambda rows: products(weighted_b[rows], held_a),
        links,
        **options,
    )
    shown = options.get("names", ("a", "b"))
    name_a, name_b = namer(ids_a, links.n_a, "ids_a"), namer(ids_b, links.n_b, "ids_b")
    cases = _naming(names, found, links)
    n_naming, n_texts = len({b for _, b, _ in cases}), len(np.unique(links.expanded().pairs[:, 1]))
    forth = replace(
        forth,
        why=f"{forth.why}; {n_naming:,} of {n_texts:,} linked {shown[1]} items hold {what} of their own {shown[0]}",
        listed=worst((*shown, what), [(name_a(a), name_b(b), name) for a, b, name in cases]),
    )
    return [forth, *rest]


def mask_names(
    texts_b: Sequence[str], names_a: Sequence[Any], links: Links | None = None, mask: str = "it"
) -> tuple[list[str], int]:
    """Return the texts with the names of the items that they are linked to replaced by `mask`, and how many changed.

    Names are as in `name_shortcut`; the longest name at a place is taken out, the rest of the text stays as it is.
    `links` (default: row i with row i) say whose names are taken out of which text. A text without a link stays. Raises
    `ShapeError` for lists of other lengths, `LinksError` as `Links.of`, `ArgumentError` for what is no text.

    >>> mask_names(["Aspirin (acetyl-salicylic acid) is a drug."], [("aspirin", "acetylsalicylic acid")])
    (['it (acetyl-salicylic acid) is a drug.'], 1)
    """
    check_texts(texts_b, None, "texts_b")
    check_entries(names_a, None, "names_a")
    if not isinstance(mask, str):
        raise ArgumentError(f"mask = {mask!r:.80}; expected a text")
    truth = Links.of(links, len(names_a), len(texts_b))
    names = _given(names_a, truth.n_a)
    own: list[set[Name]] = [set() for _ in texts_b]
    for a, b in truth.expanded().pairs.tolist():
        own[b].update(names[a])
    masked = [_without(text, known, mask) if known else text for text, known in zip(texts_b, own, strict=True)]
    return masked, sum(before != after for before, after in zip(texts_b, masked, strict=True))


def _given(names: Sequence[Any], n: int) -> list[dict[Name, None]]:
    """Return the names of each item as tuples of words, those that are too short left out."""
    check_entries(names, n, "names_a")
    found = []
    for entry in names:
        own: dict[Name, None] = {}
        for name in keys_of(entry):
            words = tuple(words_of(name))
            if sum(map(len, words)) >= _SHORTEST:
                own[words] = None
        found.append(own)
    return found


def _found_in(texts: Sequence[str], names: Sequence[dict[Name, None]], n: int) -> list[dict[Name, None]]:
    """Return for each text the names, of all items, that stand in it."""
    check_entries(texts, n, "texts_b")
    lexicon = _Lexicon(name for own in names for name in own)
    found = []
    for text in texts:
        words = words_of(text)
        found.append(dict.fromkeys(tuple(words[start:stop]) for start, stop in lexicon.places(words)))
    return found


class _Lexicon:
    """Names to look for, by their first word."""

    def __init__(self, names: Iterable[Name]) -> None:
        self._names = set(names)
        lengths: dict[str, set[int]] = {}
        for name in self._names:
            lengths.setdefault(name[0], set()).add(len(name))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def places(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield (first word, end) of every run of words that is a name, by start and then the longest first."""
        for start, word in enumerate(words):
            for length in self._lengths.get(word, ()):
                if tuple(words[start : start + length]) in self._names:
                    yield start, start + length


def _naming(
    names: Sequence[dict[Name, None]], found: Sequence[dict[Name, None]], links: Links
) -> list[tuple[int, int, str]]:
    """Return (row of a, row of b, name) of each match whose text holds a name of its own item, the longest name."""
    cases = []
    for a, b in links.expanded().pairs.tolist():
        if own := [name for name in found[b] if name in names[a]]:
            cases.append((a, b, max((" ".join(name) for name in own), key=lambda name: (len(name), name))))
    return cases


def _without(text: str, names: set[Name], mask: str) -> str:
    """Return the text with each longest run of words that is one of the names replaced by `mask`."""
    spans = [(word, at.start(), at.end()) for at in _WORD.finditer(text) for word in words_of(at.group())]
    pieces, done, last = [], 0, 0
    for start, stop in _Lexicon(names).places([word for word, _, _ in spans]):
        if start >= done:
            pieces += [text[last : spans[start][1]], mask]
            done, last = stop, spans[stop - 1][2]
    return "".join([*pieces, text[last:]])
