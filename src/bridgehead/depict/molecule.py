"""A molecule as a small SVG picture.

RDKit lays out and draws; the picture is then written anew from its strokes and letters alone, which makes it about a
sixth of the size and leaves nothing in it but paths and letters. This module is not about reading structures or the
limits on what is read (`bridgehead.molecules`).
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

from bridgehead.errors import ArgumentError, StructureError
from bridgehead.molecules import parse

MAX_DRAWN = 150
"""Heavy atoms; beyond, a picture of this size shows nothing, and the layout would take seconds."""

# On white, RDKit's own colours of these are hard to read: fluorine, sulfur, chlorine.
_DARKER = {9: (0.0, 0.48, 0.48), 16: (0.58, 0.46, 0.0), 17: (0.0, 0.52, 0.0)}
_SVG = "{http://www.w3.org/2000/svg}"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def molecule_svg(smiles: str, max_atoms: int = MAX_DRAWN) -> str:
    """Return the structure of a SMILES as an SVG document on a transparent ground, as wide and high as it needs.

    The document holds only `path`, `ellipse`, `g` and `text` elements without links, styles or scripts, so that it may
    stand inside a page as well as in an image. Salts and mixtures are drawn whole. Lengths are in pixels, a bond about
    20 of them; the same structure text gives the same bytes. Raises `StructureError` when the text is no structure,
    when it has more than `max_atoms` heavy atoms or too long a text, or when it cannot be laid out, and `ArgumentError`
    for a `max_atoms` that is no whole number of at least 1.

    >>> molecule_svg("CCO").startswith('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ')
    True
    """
    if isinstance(max_atoms, bool) or not isinstance(max_atoms, int) or max_atoms < 1:
        raise ArgumentError(f"max_atoms is {max_atoms!r:.80}; expected a whole number of at least 1")
    try:
        molecule = parse(smiles, max_atoms=max_atoms)
    except UnicodeEncodeError as error:
        raise StructureError(f"a structure with half a character, which no SMILES holds ({error.reason})") from error
    if not molecule.GetNumAtoms():
        raise StructureError(f"{smiles!r} has no atom to draw")
    document = ElementTree.fromstring(_drawn(molecule))
    elements = [*_strokes(document.iter(f"{_SVG}path")), *_dots(document), *_letters(document.iter(f"{_SVG}text"))]
    width, height = (_short(document.attrib[side].removesuffix("px")) for side in ("width", "height"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        + "".join(elements)
        + "</svg>"
    )


@lru_cache(maxsize=1)
def _rdkit() -> tuple[Any, Any]:
    # The parse before has said what to install where there is no RDKit.
    from rdkit import rdBase
    from rdkit.Chem.Draw import rdMolDraw2D

    return rdMolDraw2D, rdBase


def _drawn(molecule: Any) -> str:
    draw, base = _rdkit()
    with base.BlockLogs():
        # No size: the canvas fits the molecule. No font file: letters stay letters.
        canvas = draw.MolDraw2DSVG(-1, -1, -1, -1, True)
        options = canvas.drawOptions()
        options.clearBackground = False
        options.padding = 0.03
        options.bondLineWidth = 1.5
        options.scalingFactor = 20
        options.minFontSize = 11
        options.updateAtomPalette(_DARKER)
        try:
            canvas.DrawMolecule(molecule)
        except (RuntimeError, ValueError) as error:
            raise StructureError(f"a structure that cannot be drawn: {error}") from error
        canvas.FinishDrawing()
        return str(canvas.GetDrawingText())


def _strokes(paths: Iterable[ElementTree.Element]) -> Iterator[str]:
    """Yield one path for each way of drawing, with all strokes that are drawn so."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        style = _style(path)
        fill, stroke = style.get("fill", "none"), style.get("stroke", "none")
        look = f'fill="{_colour(fill)}"'
        if stroke != "none":
            look += f' stroke="{_colour(stroke)}" stroke-width="{_short(style["stroke-width"].removesuffix("px"))}"'
        groups.setdefault(look, []).append(_compact(path.attrib["d"]))
    for look, strokes in groups.items():
        yield f'<path {look} stroke-linecap="round" stroke-linejoin="round" d="{"".join(strokes)}"/>'


def _dots(document: ElementTree.Element) -> Iterator[str]:
    """Yield the dots of radicals."""
    for dot in document.iter(f"{_SVG}ellipse"):
        shape = " ".join(f'{name}="{_short(dot.attrib[name])}"' for name in ("cx", "cy", "rx", "ry"))
        yield f'<ellipse {shape} fill="{_colour(_style(dot).get("fill", "#000000"))}"/>'


def _letters(texts: Iterable[ElementTree.Element]) -> Iterator[str]:
    """Yield the letters, those of one colour and size together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for text in texts:
        style = _style(text)
        look = (_colour(style.get("fill", "#000000")), _short(style["font-size"].removesuffix("px")))
        place = f'x="{_short(text.attrib["x"])}" y="{_short(text.attrib["y"])}"'
        groups.setdefault(look, []).append(f"<text {place}>{_escaped(text.text or '')}</text>")
    for (colour, size), letters in groups.items():
        yield f'<g fill="{colour}" font-size="{size}" font-family="sans-serif">{"".join(letters)}</g>'


def _style(element: ElementTree.Element) -> dict[str, str]:
    parts = (part.partition(":") for part in element.attrib.get("style", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in parts if name.strip()}


def _compact(path: str) -> str:
    """Return the commands of a path with one decimal and no space that is not needed."""
    numbers = _NUMBER.sub(lambda found: _short(found[0]), path.replace(",", " "))
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", numbers).strip()


def _short(number: str) -> str:
    return f"{float(number):.1f}".removesuffix(".0")


def _colour(value: str) -> str:
    """Return a colour as three digits where they say the same; anything that is not a colour is black."""
    if value == "none":
        return value
    if re.fullmatch(r"#[0-9A-Fa-f]{6}", value) is None:
        return "#000"
    value = value.lower()
    return f"#{value[1]}{value[3]}{value[5]}" if value[1::2] == value[2::2] else value


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
