"""How field names, values and key words are written in the text form of a filter. Reading them is in `parse`."""

import re

from bridgehead.index.where.values import Scalar

KEY_WORDS = frozenset({"and", "or", "not", "in", "exists", "true", "false", "null"})
BARE_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


def written_field(name: str) -> str:
    """Return a field's name as it can be written: bare where that is possible, else in double quotes."""
    if BARE_NAME.fullmatch(name) and name.lower() not in KEY_WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def written_value(value: Scalar) -> str:
    """Return a value as it can be written: texts in single quotes, a quote inside doubled."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
