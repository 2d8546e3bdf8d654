"""Leakage by near-duplicate texts: test texts of which training holds almost the same words in the same order.

MinHash signatures propose pairs (Broder, "On the resemblance and containment of documents", 1997) and locality
sensitive hashing finds them without comparing all with all (Leskovec, Rajaraman & Ullman, "Mining of Massive
Datasets", chapter 3); the exact Jaccard index decides, so no pair that is listed is a guess. Needs the extra `audit`.
This module is not about equal texts (`keys`) or rows of texts (`rows`).
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.audits.finding import Finding, Verdict
from bridgehead.audits.given import check_entries
from bridgehead.audits.leakage.keys import members
from bridgehead.audits.listed import namer, worst
from bridgehead.errors import ArgumentError, MissingExtraError
from bridgehead.evaluate.arguments import checked_seed, finite_number, whole_number
from bridgehead.texts import normalise
from bridgehead.vectors import IntArray

WARN_SHARE, FAIL_SHARE = 0.01, 0.1
"""Under 1 % of the test texts cannot move a recall by more than 0.01, less than its interval at any usual size. Above
10 % a figure for texts that training has not seen is no longer one."""

_MISSED = 0.01
_JACCARD = "a Jaccard index above 0, at most 1"
_SIGNATURE_LOOKS, _EXACT_LOOKS = 512, 32
_WORD = re.compile(r"\w+")

Shingles = npt.NDArray[np.uint64]
"""The hashes (64 bits) of a text's runs of words, distinct and ascending."""


def near_duplicate_texts(
    texts: Sequence[str],
    train: Any,
    test: Any,
    *,
    threshold: float = 0.8,
    words: int = 3,
    n_permutations: int = 128,
    seed: int = 1,
    ids: Sequence[str] | None = None,
    side: str = "text",
) -> list[Finding]:
    """Return the share of new test texts that are nearly the same as a training text.

    A text is the set of its runs of `words` words (all its words for a shorter one) in normalised form; two are nearly
    the same when the Jaccard index of their sets, |x & y| / |x | y|, is at least `threshold`. `texts` are all n items
    of one side, `train` and `test` item numbers or boolean masks (n,). Test texts that equal a training text once
    normalised are counted apart: identity is another audit, and whoever reports figures for unseen texts has left them
    out already. So the value is the share, among the other test texts, of those with a near-duplicate. Above 1 % it
    warns, above 10 % it fails.

    Signatures have `n_permutations` hashes, cut into bands so that a pair just at the threshold is missed with a
    probability under 1 % (a nearer one far less); of the candidates of a text the 32 that look nearest by their
    signatures are compared exactly. Texts without any word are left out; when no test text is left there is no finding.
    Texts are hashed as they are, seeded by `seed`: the same texts give the same finding in any order. Cost: about 2 s
    for 15,000 descriptions, and some seconds more where thousands of texts are made from one template.

    Raises `MissingExtraError` without datasketch, `ArgumentError` for a threshold outside (0, 1], words under 1, fewer
    than 16 permutations, parts that are empty or out of range and items that are no texts.
    """
    threshold = finite_number(threshold, "threshold", _JACCARD, above=0)
    if threshold > 1:
        raise ArgumentError(f"threshold = {threshold!r}; expected {_JACCARD}")
    words, n_permutations = whole_number(words, "words", 1), whole_number(n_permutations, "n_permutations", 16)
    seed = checked_seed(seed)
    check_entries(texts, None, "texts")
    known, asked = members(train, len(texts), "training"), members(test, len(texts), "test")
    name = namer(ids, len(texts), "ids")
    plain = {item: _normalised(texts[item], item) for item in np.union1d(known, asked).tolist()}
    first_of: dict[str, int] = {}
    for item in known.tolist():
        first_of.setdefault(plain[item], item)
    new = [item for item in asked.tolist() if plain[item] not in first_of and _WORD.search(plain[item])]
    if not new:
        return []
    known_sets = {item: _shingles(text, words) for text, item in first_of.items() if _WORD.search(text)}
    asked_sets = {item: _shingles(plain[item], words) for item in new}
    found = _Neighbours(known_sets, threshold, n_permutations, seed).of(asked_sets)
    cases = sorted((-index, item, other) for item, (index, other) in found.items() if index >= threshold)
    rows = [(name(item), name(other), round(-index, 3), plain[item], plain[other]) for index, item, other in cases]
    return [_finding(rows, len(new), len(asked), threshold, words, side)]


def _finding(
    rows: list[tuple[str, str, float, str, str]], n_new: int, n_test: int, threshold: float, words: int, side: str
) -> Finding:
    share = len(rows) / n_new
    verdict: Verdict = "pass" if share <= WARN_SHARE else "warn" if share <= FAIL_SHARE else "fail"
    why = (
        f"{len(rows):,} of {n_new:,} test items of {side} that are not in training as they are have {threshold:.0%} or "
        f"more of all runs of {words} words in common with one that is"
    )
    if n_new < n_test:
        why += f" ({n_test - n_new:,} more are in training word for word, or hold no word)"
    if verdict != "pass":
        why += ": figures for unseen texts count what training has all but seen"
    columns = (f"test {side}", f"training {side}", "Jaccard index", "test words", "training words")
    return Finding(
        f"near-duplicate {side} items in test and training",
        share,
        f"at most {WARN_SHARE:g}, above {FAIL_SHARE:g} fails",
        verdict,
        why,
        "leakage",
        listed=worst(columns, rows),
    )


def _normalised(text: Any, item: int) -> str:
    if not isinstance(text, str):
        raise ArgumentError(f"item {item} is a {type(text).__name__}; expected texts")
    return normalise(text)


def _shingles(plain: str, words: int) -> Shingles:
    tokens = _WORD.findall(plain)
    runs = range(max(1, len(tokens) - words + 1))
    hashes = {
        int.from_bytes(blake2b(" ".join(tokens[start : start + words]).encode(), digest_size=8).digest(), "little")
        for start in runs
    }
    return np.array(sorted(hashes), dtype=np.uint64)


def _jaccard(left: Shingles, right: Shingles) -> float:
    common = len(np.intersect1d(left, right, assume_unique=True))
    return common / (len(left) + len(right) - common)


class _Neighbours:
    """The distinct shingle sets of training texts, searched by bands of their signatures."""

    def __init__(self, sets: dict[int, Shingles], threshold: float, n_permutations: int, seed: int) -> None:
        distinct: dict[bytes, int] = {}
        for item in sorted(sets):
            distinct.setdefault(sets[item].tobytes(), item)
        # In an order of their own, so that which candidates are looked at does not depend on the order of the texts.
        self._items = [distinct[key] for key in sorted(distinct)]
        self._sets = [sets[item] for item in self._items]
        self._seed, self._n_permutations = seed, n_permutations
        n_bands, width = _bands(threshold, n_permutations)
        self._bands = [slice(start, start + width) for start in range(0, n_bands * width, width)]
        self._signatures = _signatures(self._sets, n_permutations, seed)
        self._buckets = [_buckets(self._signatures[:, band]) for band in self._bands]

    def of(self, sets: dict[int, Shingles]) -> dict[int, tuple[float, int]]:
        """Return item -> (highest Jaccard index with a training text, that text), where there is any candidate."""
        signatures = _signatures(list(sets.values()), self._n_permutations, self._seed)
        found = {}
        for (item, own), signature in zip(sets.items(), signatures, strict=True):
            candidates = self._candidates(signature)
            if len(candidates):
                exact = [_jaccard(own, self._sets[number]) for number in candidates.tolist()]
                best = int(np.argmax(exact))
                found[item] = exact[best], self._items[candidates[best]]
        return found

    def _candidates(self, signature: IntArray) -> IntArray:
        """Return the texts that agree in a band: of many, those that agree in most bands and then in most hashes."""
        nothing = np.zeros(0, dtype=np.int64)
        hits = [
            bucket.get(signature[band].tobytes(), nothing)
            for bucket, band in zip(self._buckets, self._bands, strict=True)
        ]
        # How many bands agree, by counting: sorting the hits would take most of the time where there are many.
        counts = np.bincount(np.concatenate(hits), minlength=1)
        candidates = np.flatnonzero(counts)
        agreeing = counts[candidates]
        if len(candidates) > _SIGNATURE_LOOKS:
            candidates = candidates[np.argsort(-agreeing, kind="stable")[:_SIGNATURE_LOOKS]]
        if len(candidates) > _EXACT_LOOKS:
            alike = (self._signatures[candidates] == signature).sum(axis=1)
            candidates = candidates[np.lexsort((candidates, -alike))[:_EXACT_LOOKS]]
        return candidates


def _signatures(sets: Sequence[Shingles], n_permutations: int, seed: int) -> IntArray:
    """Return the MinHash signatures, (n, n_permutations)."""
    try:
        minhash = import_module("datasketch").MinHash
    except ImportError as error:
        raise MissingExtraError("datasketch", "audit") from error
    options = {"num_perm": n_permutations, "seed": seed % 2**32, "hashfunc": _low_bits}
    made = minhash.bulk([one.tolist() for one in sets], **options)
    return np.array([one.hashvalues for one in made], dtype=np.int64).reshape(len(made), n_permutations)


def _buckets(band: IntArray) -> dict[bytes, IntArray]:
    """Return the rows of each distinct band of signatures, ascending."""
    found: dict[bytes, list[int]] = {}
    for row, values in enumerate(band):
        found.setdefault(values.tobytes(), []).append(row)
    return {key: np.array(rows, dtype=np.int64) for key, rows in found.items()}


def _bands(threshold: float, n_permutations: int) -> tuple[int, int]:
    """Return (bands, rows in a band): the most rows with which a pair at the threshold is missed in under 1 %.

    A pair with Jaccard index s agrees in a band of r rows with probability s^r, and is missed by all b bands with
    probability (1 - s^r)^b. One row a band is the most that can be done for a low threshold.
    """
    for rows in range(n_permutations, 1, -1):
        bands = n_permutations // rows
        if (1 - threshold**rows) ** bands <= _MISSED:
            return bands, rows
    return n_permutations, 1


def _low_bits(value: int) -> int:
    """Return 32 bits of what is a hash already: signatures take no more."""
    return value & 0xFFFFFFFF
