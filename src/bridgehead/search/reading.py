"""How a query is understood: the user's id, a name, an InChIKey, a structure, or words.

The order is fixed, the first that fits wins, and the reading says in a sentence what it was and how to ask for another.
Encoding and searching are in `space`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bridgehead import molecules
from bridgehead.errors import ArgumentError, StructureError
from bridgehead.index import Index, IndexState, Item

READINGS = ("id", "name", "inchikey", "smiles", "text")
MAX_QUERY_LENGTH = 10_000
_SHOWN = 80
_LETTERS_OF_ATOMS = re.compile(r"(?:Br|Cl|[BCNOPSFIbcnops])+")


@dataclass(frozen=True)
class Reading:
    """What a query is.

    `kind`: one of "id", "name", "inchikey", "smiles", "text". `value`: the query without white space at its ends.
    `side`: "a" or "b", the side that the query is on; None for words that no side's encoder reads. `item`: the indexed
    item that it names, None for a structure, for words, and for an InChIKey that is not in the index. `explanation`: a
    sentence for the user.
    """

    kind: str
    value: str
    side: str | None
    item: Item | None
    explanation: str


def read_query(
    text: str, index: Index | IndexState, kinds: Mapping[str, str], read_as: str | None = None, of: str | None = None
) -> Reading:
    """Return how `text` is read, in this order: id, exact name or synonym (normalised), InChIKey, SMILES, words.

    `kinds`: side -> kind of its items ("molecule", "text", ...). A SMILES is one only with a bond, ring, bracket or at
    least five atoms, and only where a side holds molecules: `CO` and `NO` are words first, and `read_as="smiles"` takes
    any. `read_as` is one of `READINGS` and leaves the others out. `of` ("a" or "b") is the side that will be searched:
    words are read by the other side's encoder where both sides are texts.

    Raises `ArgumentError` for an empty query, one over 10,000 characters, an unknown `read_as`, or a forced reading
    that does not fit, and `StructureError` for `read_as="smiles"` with what is no structure.
    """
    value = checked_text(text)
    if read_as is None:
        for attempt in (_as_id, _as_name, _as_inchikey, _as_smiles):
            reading = attempt(value, index, kinds)
            if reading is not None:
                return reading
        return _as_text(value, kinds, of)
    if read_as not in READINGS:
        raise ArgumentError(
            f"read_as = {read_as!r}; expected one of {', '.join(READINGS)}, or None for the usual order"
        )
    if read_as == "text":
        return _as_text(value, kinds, of)
    if read_as == "smiles":
        return _as_given_smiles(value, kinds)
    attempts: dict[str, Callable[[str, Index | IndexState, Mapping[str, str]], Reading | None]] = {
        "id": _as_id,
        "name": _as_name,
        "inchikey": _as_inchikey,
    }
    forced = attempts[read_as](value, index, kinds)
    if forced is None:
        what = {"id": "no item has the id", "name": "no item has the name", "inchikey": "this is no InChIKey:"}[read_as]
        raise ArgumentError(f"{what} {_short(value)!r}; leave read_as out for the usual order, or pass read_as='text'")
    return forced


def other_readings(
    reading: Reading, index: Index | IndexState, kinds: Mapping[str, str], forced: bool
) -> tuple[str, ...]:
    """Return the further ways, of `READINGS`, in which the text of a reading could be read in this index.

    `forced` says that the reading was asked for; otherwise those before it in the usual order were tried already.
    """
    value = reading.value
    fits: dict[str, Callable[[], object]] = {
        "id": lambda: index.by_id(value),
        "name": lambda: index.by_name(value),
        "inchikey": lambda: molecules.is_inchikey(value.upper()) and index.by_key(value.upper()),
        "smiles": lambda: _side_of("molecule", kinds) is not None and _parses(value),
        "text": lambda: True,
    }
    tried = READINGS[: READINGS.index(reading.kind)] if not forced else ()
    left = [kind for kind in READINGS if kind != reading.kind and (kind not in tried or kind == "smiles")]
    return tuple(kind for kind in left if fits[kind]())


def _parses(value: str) -> bool:
    """Say whether a text is a structure, be it as short as `CO`."""
    if molecules.reads_as_smiles(value):
        return True
    if len(value) > _SHOWN or _LETTERS_OF_ATOMS.fullmatch(value) is None:
        return False
    try:
        molecules.parse(value)
    except StructureError:
        return False
    return True


def checked_text(text: str) -> str:
    """Return a query without white space at its ends; raises `ArgumentError` for an empty or overlong one."""
    if not isinstance(text, str):
        raise ArgumentError(f"the query is a {type(text).__name__}; expected text")
    # Lone surrogates are no characters: nothing below could store or parse them.
    value = text.encode("utf-8", "replace").decode().strip()
    if not value:
        raise ArgumentError("the query is empty; expected an id, a name, an InChIKey, a SMILES or words")
    if len(value) > MAX_QUERY_LENGTH:
        raise ArgumentError(
            f"the query has {len(value):,} characters; at most {MAX_QUERY_LENGTH:,} are read: search with a part of it"
        )
    return value


def _as_id(value: str, index: Index | IndexState, kinds: Mapping[str, str]) -> Reading | None:
    found = index.by_id(value)
    if not found:
        return None
    said = f"read as the id of {_named(found[0], index)}"
    if len(found) > 1:
        said += f"; {index.sides[found[1].side].name} has an item of this id too"
    return Reading("id", value, found[0].side, found[0], f"{said}; {_other_way()}")


def _as_name(value: str, index: Index | IndexState, kinds: Mapping[str, str]) -> Reading | None:
    found = index.by_name(value)
    if not found:
        return None
    said = f"read as the name {_short(value)} (id {found[0].id})"
    if len(found) > 1:
        others = ", ".join(item.id for item in found[1:4])
        said += f"; {len(found)} items carry it, further ids: {others}{', ...' if len(found) > 4 else ''}"
    return Reading("name", value, found[0].side, found[0], f"{said}; {_other_way()}")


def _as_inchikey(value: str, index: Index | IndexState, kinds: Mapping[str, str]) -> Reading | None:
    key = value.upper()
    if not molecules.is_inchikey(key):
        return None
    found = index.by_key(key)
    if not found:
        side = _side_of("molecule", kinds)
        return Reading("inchikey", key, side, None, f"read as an InChIKey, and no item here has it; {_other_way()}")
    return Reading(
        "inchikey", key, found[0].side, found[0], f"read as the InChIKey of {_named(found[0], index)}; {_other_way()}"
    )


def _as_smiles(value: str, index: Index | IndexState, kinds: Mapping[str, str]) -> Reading | None:
    side = _side_of("molecule", kinds)
    if side is None or not molecules.reads_as_smiles(value):
        return None
    return Reading("smiles", value, side, None, f"read as the structure {_short(value)}; {_other_way()}")


def _as_given_smiles(value: str, kinds: Mapping[str, str]) -> Reading:
    side = _side_of("molecule", kinds)
    if side is None:
        raise ArgumentError("read_as = 'smiles', and no side of this space holds molecules")
    molecules.parse(value)
    return Reading("smiles", value, side, None, f"read as the structure {_short(value)}, as asked for")


def _as_text(value: str, kinds: Mapping[str, str], of: str | None) -> Reading:
    side = _side_of("text", kinds, avoid=of)
    said = "read as words"
    if _side_of("molecule", kinds) is not None:
        if value.startswith("InChI="):
            said += "; an InChI is not read: search with its InChIKey or SMILES"
        elif why := molecules.why_no_smiles(value):
            said += f"; as a structure, {why}"
    return Reading("text", value, side, None, said)


def _side_of(kind: str, kinds: Mapping[str, str], avoid: str | None = None) -> str | None:
    sides = [side for side in sorted(kinds) if kinds[side] == kind]
    return next((side for side in sides if side != avoid), sides[0] if sides else None)


def _named(item: Item, index: Index | IndexState) -> str:
    name = item.names[0] if item.names else item.item
    return f"the {index.sides[item.side].name} {_short(name)} (id {item.id})"


def _other_way() -> str:
    return "pass read_as='text' to search for the words"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
