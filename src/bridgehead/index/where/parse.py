"""Reads a filter as people write it: `ic50_nM < 100 and (species = 'human' or not exists assay)`.

A hand-written tokenizer and recursive descent, linear in the length of the text and bounded in depth; every error says
where, with a caret under the place. `not` binds closer than `and`, `and` closer than `or`; key words are read in any
case. The JSON form is in `json_form`, meaning in `expression`.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from bridgehead.errors import ArgumentError
from bridgehead.index.where.expression import OPERATORS, All, Among, AnyOf, Compare, Exists, Not, Where, why_no_test
from bridgehead.index.where.values import LONGEST_STORED, Scalar
from bridgehead.index.where.written import KEY_WORDS

MAX_LENGTH = 10_000  # characters of a filter
MAX_DEPTH = 50  # brackets and `not` inside each other
MAX_TESTS = 100  # comparisons in one filter

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.+-]))
    | (?P<word>[^\W\d]\w*(?:\.\w+)*)
    | (?P<single>'[^']*(?:''[^']*)*')
    | (?P<double>"[^"]*(?:""[^"]*)*")
    | (?P<back>`[^`]*(?:``[^`]*)*`)
    | (?P<sign>==|!=|<>|<=|>=|[=<>(),])
    )""",
    re.VERBOSE,
)
_SAME_SIGN = {"==": "=", "<>": "!="}
_SHOWN = 60
_NAME_HINT = " (a name of several words goes in double quotes)"
_HINTS = {
    "is": " (missing values: exists field, not exists field)",
    "between": " (write field >= 1 and field <= 2)",
    "like": " (words are searched by the query, not by the filter)",
}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def said(self) -> str:
        return (
            "the end" if self.kind == "end" else self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}..."
        )


def parse_where(text: str) -> Where:
    """Return the filter that `text` says.

    Grammar: `field op value` with `=`, `!=`, `<`, `<=`, `>`, `>=`; `field in (value, ...)`, `field not in (...)`;
    `exists field`; `and`, `or`, `not`, brackets. A field is a word (letters, digits, `_`, dots between) or anything in
    double or back quotes; a value a number, `true`, `false`, `null` or a text in single or double quotes; a quote
    inside is doubled. `field = null` is `not exists field` and `field != null` is `exists field`.

    Raises `ArgumentError` with the place, also for a filter beyond 10,000 characters, 50 levels or 100 comparisons.
    """
    if not isinstance(text, str):
        raise ArgumentError(f'the filter is a {type(text).__name__}; expected text such as "ic50_nM < 100"')
    if len(text) > MAX_LENGTH:
        raise ArgumentError(f"the filter has {len(text):,} characters; at most {MAX_LENGTH:,} are read")
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenise()
        self._next = 0
        self._tests = 0

    def whole(self) -> Where:
        if self._peek().kind == "end":
            self._fail('the filter is empty; expected something like "ic50_nM < 100"', self._peek())
        found = self._either(0)
        if self._peek().kind != "end":
            self._fail(
                f"found {self._peek().said} after a whole comparison; expected and, or, or the end", self._peek()
            )
        return found

    def _tokenise(self) -> list[_Token]:
        tokens, at, end = [], 0, len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                start = at + len(self._text[at:]) - len(self._text[at:].lstrip())
                self._fail_at(self._why_no_token(start), start)
            kind = str(match.lastgroup)
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            at = match.end()
        tokens.append(_Token("end", "", end))
        return tokens

    def _why_no_token(self, at: int) -> str:
        character = self._text[at]
        if character in "'\"`":
            return f"the quote {character} is not closed"
        if meant := {"&": "and", "|": "or", "!": "not", "~": "not"}.get(character):
            return f"{character!r} has no meaning here; write {meant}"
        if at and self._text[at - 1].isalnum() and not character.isalnum():
            return f"{character!r} cannot be part of a bare name; a name with other characters goes in double quotes"
        if character.isdigit() or character in "+-.":
            return "this is no number; a text or a date goes in single quotes"
        return f"{character!r} has no meaning here"

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _is_word(self, word: str) -> bool:
        token = self._peek()
        return token.kind == "word" and token.text.lower() == word

    def _take_word(self, word: str) -> bool:
        found = self._is_word(word)
        if found:
            self._take()
        return found

    def _either(self, depth: int) -> Where:
        parts = [self._both(depth)]
        while self._take_word("or"):
            parts.append(self._both(depth))
        return AnyOf(tuple(parts)) if len(parts) > 1 else parts[0]

    def _both(self, depth: int) -> Where:
        parts = [self._single(depth)]
        while self._take_word("and"):
            parts.append(self._single(depth))
        return All(tuple(parts)) if len(parts) > 1 else parts[0]

    def _single(self, depth: int) -> Where:
        token = self._peek()
        if depth > MAX_DEPTH:
            self._fail(f"more than {MAX_DEPTH} levels of brackets and not; write it flatter", token)
        if self._take_word("not"):
            return Not(self._single(depth + 1))
        if token.text == "(" and token.kind == "sign":
            self._take()
            found = self._either(depth + 1)
            self._expect(")", "and, or, or a closing bracket")
            return found
        self._tests += 1
        if self._tests > MAX_TESTS:
            self._fail(f"more than {MAX_TESTS} comparisons; use in (...) for many values of one field", token)
        if self._take_word("exists"):
            return Exists(self._field())
        return self._comparison(self._field())

    def _field(self) -> str:
        token = self._take()
        if token.kind in ("double", "back"):
            return _unquoted(token.text)
        if token.kind == "word" and token.text.lower() not in KEY_WORDS:
            return token.text
        quoted = '"' + _unquoted(token.text) + '"' if token.kind == "single" else ""
        hint = f": {quoted}" if quoted and len(quoted) <= _SHOWN else ""
        self._fail(
            f"found {token.said}; expected the name of a field, in double quotes unless it is one word{hint}", token
        )

    def _comparison(self, field: str) -> Where:
        token = self._take()
        word = token.text.lower() if token.kind == "word" else ""
        if word == "in":
            return Among(field, self._values())
        if word == "not":
            if not self._take_word("in"):
                self._fail(f"found {self._peek().said} after not; expected in", self._peek())
            return Among(field, self._values(), negated=True)
        op = _SAME_SIGN.get(token.text, token.text)
        if token.kind != "sign" or op not in OPERATORS:
            expected = f"expected one of {', '.join(OPERATORS)}, in, not in"
            self._fail(
                f"found {token.said} after the field {field[:_SHOWN]}; {expected}{_HINTS.get(word, _NAME_HINT)}", token
            )
        return self._compared(field, op)

    def _compared(self, field: str, op: str) -> Where:
        token = self._peek()
        value = self._value()
        if value is None:
            if op not in ("=", "!="):
                self._fail(f"null has no order; use = null or != null, not {op}", token)
            return Not(Exists(field)) if op == "=" else Exists(field)
        if why := why_no_test(op, value):
            self._fail(why, token)
        return Compare(field, op, value)

    def _values(self) -> tuple[Scalar, ...]:
        self._expect("(", "an opening bracket after in")
        found: list[Scalar] = []
        while True:
            token = self._peek()
            value = self._value()
            if value is None:
                self._fail("null cannot be in a list; use exists", token)
            found.append(value)
            if self._peek().text != ",":
                break
            self._take()
        closing = self._peek()
        self._expect(")", "a comma or a closing bracket")
        if why := why_no_test("in", *found):
            self._fail(why, closing)
        return tuple(found)

    def _value(self) -> Scalar | None:
        token = self._take()
        if token.kind in ("single", "double"):
            return _unquoted(token.text)
        if token.kind == "number":
            return _number(token.text)
        word = token.text.lower() if token.kind == "word" else ""
        if word in ("true", "false", "null"):
            return None if word == "null" else word == "true"
        hint = f"; a text goes in quotes: '{token.text}'" if token.kind == "word" else ""
        self._fail(f"found {token.said}; expected a number, a text in quotes, true, false or null{hint}", token)

    def _expect(self, sign: str, what: str) -> None:
        token = self._take()
        if token.kind != "sign" or token.text != sign:
            self._fail(f"found {token.said}; expected {what}", token)

    def _fail(self, what: str, token: _Token) -> NoReturn:
        self._fail_at(what, token.at)

    def _fail_at(self, what: str, at: int) -> NoReturn:
        raise ArgumentError(f"in the filter, at character {at + 1}: {what}\n{_pointed(self._text, at)}")


def _pointed(text: str, at: int) -> str:
    """Return the part of `text` around character `at` in one line, and under it a caret at that place."""
    start = max(0, at - _SHOWN)
    shown = "".join(c if c.isprintable() else " " for c in text[start : at + _SHOWN // 2])
    return f"  {shown}\n  {' ' * (at - start)}^"


def _unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


def _number(text: str) -> int | float:
    # An integer of thousands of digits would take long to read, and counts as a double anyway.
    is_whole = text.lstrip("+-").isdigit() and len(text) <= LONGEST_STORED
    return int(text) if is_whole else float(text)
