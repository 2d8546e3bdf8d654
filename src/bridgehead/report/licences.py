"""What the names of licences say about combining the parts of a run: data, encoders, and the heads made from them.

A reading of names, not of texts, and no legal advice: it finds the combinations that are known to need a look, and says
what to look at. Within one source nothing is compared: who published it has combined it. Sources: the terms of the
licences, the list of SPDX (spdx.org/licenses) for names, creativecommons.org/share-your-work/licensing-considerations/
compatible-licenses for what ShareAlike goes with, gnu.org/licenses/license-list for the GNU licences.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Literal

from bridgehead.errors import ArgumentError

Family = Literal["free", "weak", "sharealike", "odbl", "gpl", "limited", "noncommercial", "noderivatives", "unknown"]

_UNKNOWN = frozenset(["", "other", "unknown", "none", "noassertion", "custom", "proprietary", "unlicensed", "n-a"])
# Which names belong to which family, by how they begin once written in one way; the first that fits counts.
_FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"cc-by-(nc|sa-nc).*|.*non-?commercial.*|.*research-only.*|.*academic-(use|only).*", "noncommercial"),
    (r"cc-by-nd.*", "noderivatives"),
    (r"cc-by-sa.*|gfdl.*", "sharealike"),
    (r"odbl.*|odc-odbl.*", "odbl"),
    (r"agpl.*|gpl.*|gnu-gpl.*|gnu-agpl.*|.*gnu-general-public.*|.*gnu-affero.*", "gpl"),
    (r"lgpl.*|mpl.*|epl.*|cddl.*|eupl.*", "weak"),
    (r".*openrail.*|.*-rail.*|rail.*|llama.*|gemma.*|.*apple-.*|deepfloyd.*|.*community-license.*", "limited"),
    (r"mit(-.*)?|apache.*|asl-2.*|bsd.*|0bsd|isc.*|zlib|unlicense|cc0.*|cc-by(-\d.*)?|pddl.*|odc-by.*|odc-pddl.*"
     r"|public-domain|psf.*|python-2.*|ofl.*|wtfpl|ncsa|ecl-2.*|artistic-2.*|afl-3.*|bsl-1.*|cdla-permissive.*"
     r"|ogl.*|etalab.*|ms-pl|postgresql|hpnd", "free"),
)  # fmt: skip
_NEEDS_SAME = ("sharealike", "odbl", "gpl")
_OR = re.compile(r" OR |\|")
_AND = re.compile(r" AND |[,;&/]")
_TOKEN = re.compile(r"[()|,;&/]| OR | AND ")
# Expressions of the world are far smaller; beyond, what is read stays bounded.
_LONGEST, _DEEPEST, _MOST_WAYS = 2000, 20, 32
_MOST_COMBINATIONS, _MOST_STARTS, _ROUNDS = 512, 8, 5


@dataclass(frozen=True)
class LicenceNote:
    """A sentence about one licence or about two that meet; `warns` where they may not go together or one is missing."""

    text: str
    warns: bool = True


@dataclass(frozen=True)
class _Licence:
    name: str
    written: str
    family: Family


_Way = tuple[str, tuple[_Licence, ...]]


def combine(licences: Sequence[tuple[str, str]]) -> list[LicenceNote]:
    """Return what to look at before passing on what was made from these (source, licence), warnings first.

    A licence is an SPDX expression or a name as people write it ("CC BY-SA 4.0", "apache-2.0"); AND means that all
    hold, OR that one may be chosen, and of choices the one with the fewest warnings counts. An empty or unknown name is
    a warning by itself. Every sentence says "may": nothing here decides. The result does not depend on the order of
    the sources, except for the order of the sentences.

    >>> [note.text for note in combine([("table", "CC-BY-SA-4.0"), ("encoder", "Apache-2.0")])][0][:45]
    'table (CC-BY-SA-4.0) asks that what is made f'
    >>> combine([("code", "MIT"), ("encoder", "Apache-2.0")])
    []
    """
    choices = [_worth_a_look(source, licence) for source, licence in dict.fromkeys(_checked(licences))]
    ways = math.prod(len(choice) for choice in choices)
    found = [_notes(chosen) for chosen in product(*choices)] if ways <= _MOST_COMBINATIONS else _one_by_one(choices)
    fewest = min(found, key=_warnings)
    return sorted(fewest, key=lambda note: not note.warns)


def _checked(licences: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    pairs: list[Any] = list(licences) if isinstance(licences, list | tuple) else [licences]
    for pair in pairs:
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        if not is_pair:
            raise ArgumentError(f"licences hold {pair!r:.80}; expected pairs of texts, (source, licence)")
    return [(source, licence) for source, licence in pairs]


def _worth_a_look(source: str, licence: str) -> list[_Way]:
    """Return the ways to read a licence that the others can make a difference for.

    Where one of the choices asks for nothing of anybody, it is the one to take.
    """
    ways = list({tuple(parts): None for parts in _choices(licence)})
    easy = [way for way in ways if all(x.family == "free" and not x.written.startswith("apache") for x in way)]
    return [(source, way) for way in (easy[:1] or ways)]


def _one_by_one(choices: Sequence[Sequence[_Way]]) -> list[list[LicenceNote]]:
    """Return the notes of a few combinations, where there are too many to look at each.

    Each starts with one way wherever a source has it; then the sources in turn take the way that has the fewest
    warnings beside the others, until none changes.
    """
    order = sorted(range(len(choices)), key=lambda i: [(s, _written(way)) for s, way in choices[i]])
    starts = sorted({_written(way) for choice in choices for _, way in choice})[:_MOST_STARTS]
    found = []
    for start in starts:
        chosen = [min(choice, key=lambda own: _written(own[1]) != start) for choice in choices]
        for _ in range(_ROUNDS):
            before = list(chosen)
            for i in order:
                others = chosen[:i] + chosen[i + 1 :]
                chosen[i] = min(choices[i], key=lambda way: _warnings(_notes([way, *others], first_only=True)))
            if chosen == before:
                break
        found.append(_notes(chosen))
    return found


def _written(way: Sequence[_Licence]) -> tuple[str, ...]:
    return tuple(licence.written for licence in way)


def _warnings(notes: Sequence[LicenceNote]) -> int:
    return sum(note.warns for note in notes)


def _notes(sources: Sequence[_Way], first_only: bool = False) -> list[LicenceNote]:
    """Return the notes on these sources, or those that the first of them has a part in."""
    looked = sources[:1] if first_only else sources
    alone = [_alone(source, licence) for source, parts in looked for licence in parts]
    pairs = [
        _together(first, one, second, other)
        for (first, ones), (second, others) in (
            ((sources[0], other) for other in sources[1:]) if first_only else combinations(sources, 2)
        )
        for one in ones
        for other in others
    ]
    return list(dict.fromkeys(note for note in [*alone, *pairs] if note is not None))


def _alone(source: str, licence: _Licence) -> LicenceNote | None:
    shown = f"{source} ({licence.name})"
    if licence.family == "unknown":
        said = f"says {licence.name!r}, which is not a licence known here" if licence.name else "states no licence"
        return LicenceNote(f"{source} {said}: without one, what is made from it may not be passed on.")
    if licence.family == "noncommercial":
        return LicenceNote(f"{shown} may not be used commercially, and what is made from it may not either.")
    if licence.family == "noderivatives":
        return LicenceNote(f"{shown} may not be passed on changed; rows and heads made from it may count as changed.")
    if licence.family == "limited":
        return LicenceNote(f"{shown} limits what it may be used for; the limits may have to go along.", warns=False)
    if licence.family in _NEEDS_SAME:
        text = f"{shown} asks that what is made from it and passed on be under the same terms."
        return LicenceNote(text, warns=False)
    return None


def _together(first: str, one: _Licence, second: str, other: _Licence) -> LicenceNote | None:
    """Return what is to be said of two licences of two sources; nothing about those that stand alone in a warning."""
    shown = f"{first} ({one.name}) and {second} ({other.name})"
    families = {one.family, other.family}
    for same in _NEEDS_SAME:
        if same in families and families & {"noncommercial", "noderivatives", "limited"}:
            return LicenceNote(
                f"{shown} may not combine: the one asks for the same terms, the other adds limits that these forbid."
            )
    if families <= set(_NEEDS_SAME):
        if len(families) == 1 and _agree(one, other):
            return None
        if families == {"sharealike", "gpl"} and _one_way(one, other):
            text = f"{shown} go together one way: the result may be passed on under the GNU licence alone."
            return LicenceNote(text, warns=False)
        return LicenceNote(f"{shown} may not combine: each asks that what is made from it be under its own terms.")
    if (
        families == {"gpl", "free"}
        and _gpl_2_only(one, other)
        and any(x.written.startswith("apache") for x in (one, other))
    ):
        return LicenceNote(f"{shown} may not combine: the terms on patents are a limit that GPL 2 does not allow.")
    return None


def _agree(one: _Licence, other: _Licence) -> bool:
    """Say whether two licences of one family that asks for the same terms may meet, by their versions."""
    if one.family == "odbl":
        return True
    if one.family == "sharealike":
        # A later version of CC BY-SA may be chosen for what is made from an earlier one, from 2.0 on.
        return one.written.startswith("cc") and other.written.startswith("cc")
    versions = {_version(one), _version(other)}
    later = all("later" in x.written or x.written.endswith("+") for x in (one, other) if _version(x) == 2)
    return len(versions) == 1 or later


def _one_way(one: _Licence, other: _Licence) -> bool:
    """Say whether this is CC BY-SA 4.0 with GPL 3, which Creative Commons declared compatible one way in 2015."""
    ours = one if one.family == "sharealike" else other
    theirs = other if ours is one else one
    return "4" in ours.written and (_version(theirs) == 3 or "later" in theirs.written or theirs.written.endswith("+"))


def _gpl_2_only(one: _Licence, other: _Licence) -> bool:
    gpl = one if one.family == "gpl" else other
    return _version(gpl) == 2 and "later" not in gpl.written and not gpl.written.endswith("+")


def _version(licence: _Licence) -> int:
    found = re.search(r"\d", licence.written)
    return int(found[0]) if found else 0


def _choices(licence: str) -> list[list[_Licence]]:
    """Return the ways in which a licence can be read: each a list of licences that hold together."""
    text = " ".join(licence[:_LONGEST].split())
    return [[_licence(name) for name in dict.fromkeys(way)] for way in _ways(text)]


def _ways(text: str, depth: int = 0) -> list[list[str]]:
    """Return the ways to read an expression, each the names that hold together; parentheses as SPDX has them."""
    if text.startswith("(") and text.endswith(")") and len(_split(text, None)) == 1 and depth < _DEEPEST:
        return _ways(text[1:-1].strip(), depth + 1)
    if len(parts := _split(text, _OR)) > 1:
        return [way for part in parts for way in _ways(part, depth + 1)][:_MOST_WAYS]
    if len(parts := _split(text, _AND)) > 1:
        ways: list[list[str]] = [[]]
        for part in parts:
            ways = [[*way, *more] for way in ways for more in _ways(part, depth + 1)][:_MOST_WAYS]
        return ways
    # An exception ("WITH ...") only widens what is allowed. People put short forms into parentheses.
    return [[" ".join(re.sub(r"[()]", " ", re.sub(r" WITH .*", "", text)).split())]]


def _split(text: str, at: re.Pattern[str] | None) -> list[str]:
    """Return the parts of a text between the operators `at` outside parentheses; for None, between their groups.

    Parentheses that are not in pairs count for nothing.
    """
    paired = text.count("(") == text.count(")")
    depth, start, parts = 0, 0, []
    for token in _TOKEN.finditer(text):
        if token[0] in "()":
            depth += (1 if token[0] == "(" else -1) if paired else 0
            if at is None and depth == 0 and token.end() < len(text):
                return [text[: token.end()], text[token.end() :]]
        elif depth == 0 and at is not None and at.fullmatch(token[0]):
            parts.append(text[start : token.start()])
            start = token.end()
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip(" ()")] or [""]


def _licence(name: str) -> _Licence:
    written = re.sub(r"[\s_]+", "-", name.strip().lower())
    written = re.sub(r"^(the|licen[cs]e:?)-|-licen[cs]e$", "", written)
    written = re.sub(r"^cc-(by.*|0.*)$", lambda found: "cc0" if found[1][0] == "0" else f"cc-{found[1]}", written)
    if written in _UNKNOWN:
        return _Licence(name, written, "unknown")
    families = (family for pattern, family in _FAMILIES if re.fullmatch(pattern, written))
    return _Licence(name, written, next(families, "unknown"))
