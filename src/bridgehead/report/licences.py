"""What the names of licences say about combining the parts of a run: data, encoders, and the heads made from them.

A reading of names, not of texts, and no legal advice: it finds the combinations that are known to need a look, and says
what to look at. Within one source nothing is compared: who published it has combined it. Sources: the terms of the
licences, the list of SPDX (spdx.org/licenses) for names, creativecommons.org/share-your-work/licensing-considerations/
compatible-licenses for what ShareAlike goes with, gnu.org/licenses/license-list for the GNU licences.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

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
    choices = [[(source, parts) for parts in _choices(licence)] for source, licence in dict.fromkeys(licences)]
    found = [_notes(chosen) for chosen in product(*choices)] if choices else [[]]
    fewest = min(found, key=lambda notes: sum(note.warns for note in notes))
    return sorted(fewest, key=lambda note: not note.warns)


def _notes(sources: Sequence[tuple[str, Sequence[_Licence]]]) -> list[LicenceNote]:
    alone = [_alone(source, licence) for source, parts in sources for licence in parts]
    pairs = [
        _together(first, one, second, other)
        for (first, ones), (second, others) in combinations(sources, 2)
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
    text = re.sub(r"[()]", " ", licence)
    ways = [way for way in re.split(r"\s+OR\s+|\s*\|\s*", text) if way.strip()] or [""]
    # An exception ("WITH ...") only widens what is allowed.
    names = [re.split(r"\s+AND\s+|\s*[,;&/]\s*", way) for way in ways]
    return [[_licence(re.sub(r"\s+WITH\s+.*", "", name).strip()) for name in dict.fromkeys(way)] for way in names]


def _licence(name: str) -> _Licence:
    written = re.sub(r"[\s_]+", "-", name.strip().lower())
    written = re.sub(r"^(the|licen[cs]e:?)-|-licen[cs]e$", "", written)
    written = re.sub(r"^cc-(by.*|0.*)$", lambda found: "cc0" if found[1][0] == "0" else f"cc-{found[1]}", written)
    if written in _UNKNOWN:
        return _Licence(name, written, "unknown")
    families = (family for pattern, family in _FAMILIES if re.fullmatch(pattern, written))
    return _Licence(name, written, next(families, "unknown"))
