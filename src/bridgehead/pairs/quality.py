"""Which descriptions say too little to learn from: generic ones and too short ones.

English descriptions of compounds are what the rules know; texts of another field or language are only called short or
placeholders. This module is not about dropping anything: a run that was asked to leaves these texts out of training,
never out of test or index.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from bridgehead.texts import normalise

Rule = Literal["", "no words", "placeholder", "short", "generic words", "bare class", "source only", "status only"]
BoolArray = npt.NDArray[np.bool_]

RULES: dict[Rule, str] = {
    "no words": "no letter at all",
    "placeholder": "stands for a missing text (n/a, unknown, no description available)",
    "short": "fewer than three words",
    "generic words": "true of any compound (a chemical compound, an organic molecule)",
    "bare class": "a template and one or two class words (The molecule is a peptide)",
    "source only": "only where it occurs (is a natural product found in ..)",
    "status only": "only its study or legal status (is under investigation in clinical trial ..)",
}
"""What each rule means, in words to print."""

_SHORT: tuple[Rule, ...] = ("no words", "short")
_LEAST_WORDS = 3
_MOST_CLASS_WORDS = 2
# Longer texts say something whatever their words, and a cell of megabytes is not searched by patterns.
_LONGEST_WEAK = 600

_PLACEHOLDER = re.compile(
    r"(?:n/?a|n\.a\.|na|nan|none|null|nil|unknown|undefined|missing|tbd|todo|test|\?+|-+|\.+"
    r"|not (?:available|applicable|known|specified|found)"
    r"|(?:no|without) (?:data|description|text|information|annotation|summary)"
    r"(?: (?:is )?(?:available|found|given))?)\.?"
)
_PROVENANCE = re.compile(r"\((?:[a-z]{2,8},? (?:19|20)\d\d[a-z]?|l\d+|pmid:? ?\d+)\)|\[[\d, -]+\]")
_SENTENCE_END = re.compile(
    r"\.(?<=[a-z\d)\]]\.)(?<!\bvar\.)(?<!\bsp\.)(?<!\bspp\.)(?<!\bsubsp\.)(?<!\bcf\.)(?:\s+|(?=[a-z]{4})|$)"
)
_SUBJECT = re.compile(
    r"^(?:(?:it|this|the|a|an)(?: (?:molecule|compound|substance|chemical|structure|drug|product))?"
    r"|molecule|compound|substance)"
    r"(?:, also known as [^,]{1,80},)?"
    r" (?:is|was|are|has been|belongs to|represents)(?: (?:also|to))?\b"
)
_NAMED_SUBJECT = re.compile(
    r"^[^\s,]+(?: [^\s,]+){0,3}? (?:is|was|has been) (?=an? natural product|under investigation)"
)
# Words that carry no class, effect or structure; the second list is true of any compound.
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the and or of to in is are was be as it its that this which with for by from also one member class group "
        "family type kind belongs known organic inorganic compounds",
    )
)
_GENERIC = frozenset(
    re.findall(
        r"\w+",
        "chemical chemicals compound compounds molecule molecules molecular substance substances material product "
        "products natural synthetic organic inorganic small pure simple drug agent reagent entity structure species "
        "unspecified general common certain novel new known other various metabolite biochemical unnamed research "
        "laboratory use used useful available data entry record",
    )
)
_SOURCE = re.compile(
    r"(?:natural product|metabolite|compound|alkaloid|constituent|chemical)?\s*(?:that (?:is|has been|was) )?"
    r"(?:found in|found|isolated from|produced by|obtained from|extracted from|occurs in|occurring in|present in"
    r"|reported in|has been (?:found|isolated|reported) (?:in|from)|detected in)\b"
)
_SAYS_EFFECT = re.compile(
    r"\b(?:inhibit|activat|agonist|antagonist|block|bind|treat|used (?:as|for|to|in)|role|toxic|cause|effect|deriv"
    r"|anti[a-z-]*(?:al|ic|ory|ive|ant|in|ent)\b|conjugate|substitut|consist|replaced|condensation|acid\b|obtained by)"
)
_STATUS = re.compile(
    r"(?:(?:is|are|was) )?(?:currently )?(?:under investigation in (?:a )?clinical trials?(?: number)? nct\d+\W*"
    r"|(?:a )?dea schedule [iv]+ controlled substance)"
)
_BOILERPLATE = re.compile(r"^(?:substances in the dea schedule|data (?:is|are) available|with data available)")


@dataclass(frozen=True, eq=False)
class TextQuality:
    """What is wrong with each text: `rules` holds its rule or ""; the masks (n,) say which of the two kinds it is.

    `short`: no words, or fewer than three. `generic`: placeholder, generic words, bare class, source only, status only.
    """

    rules: list[Rule]

    @cached_property
    def short(self) -> BoolArray:
        """True where a text is too short, (n,)."""
        return np.array([rule in _SHORT for rule in self.rules], dtype=bool)

    @cached_property
    def generic(self) -> BoolArray:
        """True where a text is generic, (n,)."""
        return self.weak & ~self.short

    @cached_property
    def weak(self) -> BoolArray:
        """True where a text is generic or too short, (n,)."""
        return np.array([bool(rule) for rule in self.rules], dtype=bool)

    @property
    def counts(self) -> dict[str, int]:
        """The number of texts by rule, most frequent first; rules that caught nothing are absent."""
        found = Counter(rule for rule in self.rules if rule)
        return {str(rule): count for rule, count in found.most_common()}


def text_quality(texts: Sequence[str]) -> TextQuality:
    """Return for each text the first of these rules that it falls under, or "".

    - `no words`: no letter (of any script) in it;
    - `placeholder`: the whole text stands for a missing one: n/a, none, unknown, "no description available";
    - `short`: fewer than three words (a Chinese or Japanese character counts as half a word);
    - `generic words`: nothing but words that are true of any compound, "The molecule is an organic compound";
    - `bare class`: one sentence of the template "The molecule is a .." with one or two words of class, "a peptide",
      "a lactam and an azamacrocycle": hundreds of molecules share it;
    - `source only`: sentences that only name an organism, "is a natural product found in Citrus medica with data
      available";
    - `status only`: sentences that only name a clinical trial by number or a legal schedule.

    The last three look at all sentences: one that says more makes the text good. Provenance such as "(NTP, 1992)" is
    set aside first. Order, and equal texts elsewhere in the list, do not matter. No texts give empty masks.
    """
    known: dict[str, Rule] = {}
    return TextQuality([known[text] if text in known else known.setdefault(text, _rule(text)) for text in texts])


def _rule(text: str) -> Rule:
    if len(text) > _LONGEST_WEAK and any(character.isalpha() for character in text[:_LONGEST_WEAK]):
        return "" if _n_words(text[:_LONGEST_WEAK]) >= _LEAST_WORDS else "short"
    plain = normalise(text)
    if _PLACEHOLDER.fullmatch(plain):
        return "placeholder"
    if not any(character.isalpha() for character in plain):
        return "no words"
    if _n_words(plain) < _LEAST_WORDS:
        words = re.findall(r"[^\W\d_]+", plain)
        return "generic words" if all(word in _GENERIC | _FUNCTION_WORDS for word in words) else "short"
    sentences = [part for part in _SENTENCE_END.split(_PROVENANCE.sub(" ", plain)) if part.strip(" .;")]
    rules: set[Rule] = set()
    for sentence in sentences:
        rule = _sentence_rule(sentence.strip(" .;"), alone=len(sentences) == 1)
        if not rule:
            return ""
        rules.add(rule)
    # Where sentences differ in what they lack, the one that says most names the rule.
    order: tuple[Rule, ...] = ("source only", "status only", "bare class", "generic words")
    return next((rule for rule in order if rule in rules), "")


def _n_words(plain: str) -> float:
    without_spaces = len(re.findall(r"[\u3040-\u30ff\u3400-\u9fff]", plain))
    return without_spaces / 2 + len(re.findall(r"[^\W_\u3040-\u30ff\u3400-\u9fff][^\s]*", plain))


def _sentence_rule(sentence: str, alone: bool) -> Rule:
    if _BOILERPLATE.match(sentence):
        return "generic words"
    rest, n_subjects = _SUBJECT.subn("", _NAMED_SUBJECT.sub("it is ", sentence), count=1)
    rest = re.sub(r"^(?:an?|the|one of the) ", "", rest.strip())
    words = [word for word in re.findall(r"[^\W_][\w'()\[\]-]*", rest) if word not in _FUNCTION_WORDS]
    if all(word in _GENERIC for word in words):
        return "generic words"
    if _STATUS.match(rest) and not _says_more_than_status(rest):
        return "status only"
    if _SOURCE.match(rest) and not _SAYS_EFFECT.search(rest):
        return "source only"
    if alone and n_subjects and len(words) <= _MOST_CLASS_WORDS:
        return "bare class"
    return ""


def _says_more_than_status(rest: str) -> bool:
    return len(_STATUS.sub("", rest, count=1).split()) > _LEAST_WORDS
