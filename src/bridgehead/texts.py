"""One form for texts that mean the same characters: what n-grams, duplicate checks and word search all read.

Owns the character level only. It is not about words, stop words or which texts are good descriptions (`pairs`).
"""

import re
import unicodedata

_GREEK_NAMES = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "ο": "omicron", "π": "pi", "ρ": "rho",
    "σ": "sigma", "ς": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
}  # fmt: skip

# Primes are mapped before NFKC, which would turn an acute accent used as a prime into a space and a combining mark.
_PRIMES = dict.fromkeys(map(ord, "\u2018\u2019\u201b\u2032\u2035\u02b9\u02bc\u00b4\u0060\uff07\u055a"), "'")
_PRIMES |= {0x2033: "''", 0x2034: "'''", 0x02BA: "''", 0x2036: "''"}
_QUOTES = dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02"), '"')
_DASHES = dict.fromkeys(
    map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\ufe58\ufe63\uff0d\u00b7\u2027\u30fb"), "-"
)
_ONE_FORM = {**_PRIMES, **_QUOTES, **_DASHES}

_GREEK_RUN = re.compile("[\u0370-\u03ff\u1f00-\u1fff]+")
_MARKED_NAME = re.compile(r"[&.]+(" + "|".join(sorted(set(_GREEK_NAMES.values()))) + r")[;.]+")
_LONGEST_SYMBOL_RUN = 2


def normalise(text: str) -> str:
    """Return `text` in the one form in which texts are compared, counted and searched.

    Unicode NFKC and case folding; primes and apostrophes as `'`; dashes, hyphens and middle dots as `-`; Greek letters
    used as symbols (one or two together: β2, αβ) as their names, which `.beta.` and `&beta;` become too, while
    Greek words stay Greek; control characters as spaces, invisible format characters removed; runs of white space as
    one space, none at the ends. Applying it twice changes nothing. The empty text stays empty.

    >>> normalise("β‐Blocker,  2′,3′-cAMP")
    "beta-blocker, 2',3'-camp"
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_ONE_FORM)).casefold()
        text = unicodedata.normalize("NFKC", text).translate(_ONE_FORM)
        text = "".join(map(_visible, text))
        text = unicodedata.normalize("NFKC", _GREEK_RUN.sub(_name_symbols, text))
    else:
        text = "".join(map(_visible, text)) if not text.isprintable() else text
        text = text.translate(_PRIMES).casefold()
    return " ".join(_MARKED_NAME.sub(r"\1", text).split())


def _visible(character: str) -> str:
    if character.isprintable() or character == " ":
        return character
    category = unicodedata.category(character)
    if category in ("Cf", "Cs"):
        return ""
    return " " if category == "Cc" else character


def _name_symbols(match: re.Match[str]) -> str:
    run = match.group()
    if len(run) > _LONGEST_SYMBOL_RUN:
        return run
    return "".join(_GREEK_NAMES.get(letter, letter) for letter in run)
