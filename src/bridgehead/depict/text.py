"""A text as it can be shown: one paragraph of bounded length, free of characters that would disturb the page.

Not about escaping for HTML or Markdown, which belongs to whoever writes them out.
"""

import re
import unicodedata

from bridgehead.errors import ArgumentError

ELLIPSIS = "…"
# Controls, lone surrogates and code points without a character; of the format characters, those of writing direction
# can make a text read as another one, and the joiners alone are part of how some scripts are written.
_GONE = frozenset(["Cc", "Cf", "Cs", "Cn", "Co"])
_JOINERS = "\u200c\u200d"
_MARKS_IN_A_ROW = re.compile(r"([\u0300-\u036f\u0489\u20d0-\u20ff]{4})[\u0300-\u036f\u0489\u20d0-\u20ff]+")


def shown_text(text: str, most: int = 300) -> str:
    """Return `text` as one line of at most `most` characters, cut at a word where one ends near, with "…" at the cut.

    White space of any kind becomes one blank, control and unassigned characters, lone surrogates, marks of writing
    direction and the fifth and later accents on one letter are taken out. An empty text stays empty. Raises
    `ArgumentError` when `text` is no text or `most` is under 1.

    >>> shown_text("inhibits\\tcyclooxygenase-2 \\n in vitro", most=28)
    'inhibits cyclooxygenase-2…'
    """
    if not isinstance(text, str):
        raise ArgumentError(f"a text of type {type(text).__name__}; expected str")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ArgumentError(f"most is {most!r:.80}; expected at least 1 character, a whole number")
    # More is never shown: a text of megabytes is not looked through.
    cut = len(text) > 8 * most + 1000
    head = text[: 8 * most + 1000]
    clean = "".join(" " if c.isspace() else c for c in head if c.isspace() or _is_shown(c))
    clean = _MARKS_IN_A_ROW.sub(r"\1", " ".join(clean.split()))
    if len(clean) <= most and not cut:
        return clean
    kept = clean[: most - 1]
    at = kept.rfind(" ")
    if at > 2 * most // 3 and clean[most - 1 : most] not in ("", " "):
        kept = kept[:at]
    return kept.rstrip(" ,;.") + ELLIPSIS


def _is_shown(character: str) -> bool:
    return character in _JOINERS or unicodedata.category(character) not in _GONE
