"""Which items have a picture, by the kind of their encoder.

Not about drawing: each kind of picture has a file of its own.
"""

from collections.abc import Callable

from bridgehead.depict.molecule import molecule_svg
from bridgehead.errors import ArgumentError, StructureError

_DRAWN: dict[str, Callable[[str], str]] = {"molecule": molecule_svg}


def has_pictures(kind: str) -> bool:
    """Say whether items of an encoder ("molecule:fingerprints", "text:ngram") can be drawn, a sum if one part can."""
    return _draw(kind) is not None


def picture_of(item: str, kind: str) -> str | None:
    """Return the SVG document of an item, or None where its kind has no picture or this item cannot be drawn.

    `kind` is an encoder's name or its part before the colon ("molecule"); in a sum such as
    "molecule:fingerprints + rows:file.parquet" the first part that can be drawn counts.

    >>> picture_of("CCO", "molecule:fingerprints") is None, picture_of("ethanol", "text:ngram") is None
    (False, True)
    """
    draw = _draw(kind)
    if draw is None:
        return None
    try:
        return draw(item)
    except StructureError:
        # The item stands beside its picture as text: a structure that is too large to draw is still shown.
        return None


def _draw(kind: str) -> Callable[[str], str] | None:
    if not isinstance(kind, str):
        raise ArgumentError(f"kind is a {type(kind).__name__}; expected the name of an encoder, such as 'molecule'")
    heads = (part.partition(":")[0].strip() for part in kind.split("+"))
    return next((_DRAWN[head] for head in heads if head in _DRAWN), None)
