"""One comparison of a filter as a condition of SQL over the table of values.

Each reads one stretch of the table. Whatever the user wrote reaches SQLite as a bound value, never as text of a
statement. How comparisons are joined is in `matching`.
"""

from bridgehead.index.where.values import Scalar, Stored, stored_number, stored_text, stored_truth

KIND_STARTS = {"number": "1", "text": "value >= ''", "truth value": "value >= x''"}
KIND_ENDS = {"number": "value < ''", "text": "value < x''", "truth value": "1"}
"""Where values of a kind lie within a field: SQLite orders numbers below texts and texts below blobs."""

RANGES = ("<", "<=", ">", ">=")

Bound = tuple[int | Stored, ...]


def kind_of(value: Scalar) -> str:
    """Return the kind of a value, a key of `KIND_STARTS`."""
    return "truth value" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def compile_equal(field: int, values: tuple[Scalar, ...]) -> tuple[str, Bound]:
    """Return (condition, bound values) of the records of `field` (its id) whose value is one of `values`."""
    return f"field = ? AND value IN ({', '.join('?' * len(values))})", (field, *map(_stored, values))


def compile_range(field: int, ranges: list[tuple[str, Scalar]]) -> tuple[str, Bound]:
    """Return (condition, bound values) of the records of `field` (its id) within all `ranges`, of one kind of value.

    `ranges`: one or more (sign, value) with a sign of `RANGES`.
    """
    # One condition for each end: SQLite starts from the first that it finds, which need not be the narrowest.
    lower = max((r for r in ranges if r[0] in (">", ">=")), key=lambda r: (_stored(r[1]), r[0] == ">"), default=None)
    upper = min((r for r in ranges if r[0] in ("<", "<=")), key=lambda r: (_stored(r[1]), r[0] == "<="), default=None)
    kind = kind_of(ranges[0][1])
    start = f"value {lower[0]} ?" if lower else KIND_STARTS[kind]
    end = f"value {upper[0]} ?" if upper else KIND_ENDS[kind]
    return f"field = ? AND {start} AND {end}", (field, *(_stored(r[1]) for r in (lower, upper) if r))


def _stored(value: Scalar) -> Stored:
    if isinstance(value, bool):
        return stored_truth(value)
    return stored_text(value) if isinstance(value, str) else stored_number(value)
