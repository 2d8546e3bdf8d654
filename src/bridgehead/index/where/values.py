"""Which values an item's payload has for a filter, and how each is stored so that SQLite orders it rightly.

A value is a number, a text or a truth value. Table files know only text, so a text that reads wholly as a plain decimal
number ("12.5", "1e-9") counts as this number too, and "true" or "false" in any case as the truth value; compared with a
text it is the text. Null is no value. Nothing here knows expressions.

Nested mappings are fields by dotted path (`assay.ic50`), each element of a list is a value of its own, deeper than
`MAX_LEVELS` nothing is seen. Texts are compared by code point after Unicode NFC, numbers exactly within 64 bits and as
doubles beyond. A truth value is never a number: `true` is not 1.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from bridgehead.errors import DataError

Scalar = bool | int | float | str
Stored = int | float | str | bytes

MAX_LEVELS = 8
LONGEST_STORED = 100  # characters; of a longer text the first so many and a hash of the whole are stored
_LONG_TEXT_MARK = "\x01#"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?P<fraction>\.[0-9]*)?|(?P<point>\.[0-9]+))(?P<power>[eE][+-]?[0-9]+)?")
_TRUTH = {"true": True, "false": False}


def payload_values(payload: Mapping[str, Any]) -> Iterator[tuple[str, Scalar]]:
    """Yield (field, value) for all values of `payload`, in order, a repeated one as often as it is there.

    Raises `DataError` for NaN and infinity, which are neither equal to nor less than anything.
    """
    for name, value in payload.items():
        yield from _values(field_form(str(name)), value, MAX_LEVELS)


def _values(path: str, value: Any, levels: int) -> Iterator[tuple[str, Scalar]]:
    if isinstance(value, bool | int | str):
        yield path, value
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise DataError(f"field {path!r} of a payload is {value}; expected a finite number, or None for no value")
        yield path, value
    elif levels and isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _values(f"{path}.{field_form(str(name))}", inner, levels - 1)
    elif levels and isinstance(value, list | tuple):
        for inner in value:
            yield from _values(path, inner, levels - 1)


def field_form(name: str) -> str:
    """Return a field's name as it is stored and asked for: Unicode NFC, lone surrogates as question marks."""
    return name if name.isascii() else unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())


def text_form(text: str) -> str:
    """Return the form in which texts are compared: Unicode NFC, lone surrogates as question marks."""
    return field_form(text)


def number_form(number: int | float) -> int | float:
    """Return a number as it is compared: integers of 64 bits as they are, others as the nearest double or infinity."""
    if isinstance(number, float) or -(2**63) <= number < 2**63:
        return number
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def number_of(value: Scalar) -> int | float | None:
    """Return the number that `value` is or, as a text, reads as; None where it is none."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, str):
        return number_form(value)
    match = _NUMBER.fullmatch(value.strip()) if len(value) <= LONGEST_STORED else None
    if match is None:
        return None
    is_whole = not (match["fraction"] or match["point"] or match["power"])
    return number_form(int(match.group()) if is_whole else float(match.group()))


def truth_of(value: Scalar) -> bool | None:
    """Return the truth value that `value` is or, as a text, reads as; None where it is none."""
    return _TRUTH.get(value.lower()) if isinstance(value, str) else value if isinstance(value, bool) else None


def stored_forms(value: Scalar) -> Iterator[Stored]:
    """Yield all under which `value` is found: at most a text and the number or truth value that it reads as.

    SQLite orders any number below any text and any text below any blob, so each kind is one stretch of the index.
    """
    if isinstance(value, str):
        yield stored_text(value)
    if (number := number_of(value)) is not None:
        yield number
    elif (truth := truth_of(value)) is not None:
        yield stored_truth(truth)


def stored_text(text: str) -> str:
    """Return `text` as stored. Those of over `LONGEST_STORED` characters keep their place in the order of the short."""
    form = text_form(text)
    if len(form) <= LONGEST_STORED:
        return form
    digest = hashlib.blake2b(form.encode(), digest_size=16).hexdigest()
    return f"{form[:LONGEST_STORED]}{_LONG_TEXT_MARK}{digest}"


def stored_number(number: int | float) -> int | float:
    """Return a number as stored: as it is compared."""
    return number_form(number)


def stored_truth(truth: bool) -> bytes:
    """Return a truth value as stored: a blob, so that it is neither number nor text."""
    return b"\x01" if truth else b"\x00"
