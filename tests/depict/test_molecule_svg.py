import re
from xml.etree import ElementTree

import pytest

from bridgehead.depict import MAX_DRAWN, has_pictures, molecule_svg, picture_of
from bridgehead.errors import ArgumentError, StructureError

pytest.importorskip("rdkit")

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
SVG = "{http://www.w3.org/2000/svg}"
# Cases that a layout may stumble over: salts, radicals, isotopes, dative bonds, wild cards, stereo, cages, spirals.
ODD = {
    "salt": "[Na+].[O-]C(=O)C",
    "radicals": "[CH3].[O][O]",
    "isotope": "[999C]",
    "dative": "[NH3]->[Pt](Cl)(Cl)<-[NH3]",
    "wild card": "[*:1]~[#6]",
    "stereo": "C/C=C/[C@H](F)[C@@H](N)O",
    "cubane": "C12C3C4C1C5C2C3C45",
    "spiro rings": "C1CC1" * 40,
    "many parts": ".".join(["[Na+]"] * MAX_DRAWN),
    "deep branches": "C(" * 70 + "C" + ")C" * 70,
    "one atom": "O",
    "atom maps": "[CH3:1][OH:2]",
}


def elements(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter())


def test_a_structure_becomes_a_document_of_strokes_and_letters_alone():
    found = elements(molecule_svg(ASPIRIN))
    assert {element.tag.removeprefix(SVG) for element in found} <= {"svg", "g", "path", "text", "ellipse"}
    letters = "".join(element.text or "" for element in found if element.tag == f"{SVG}text")
    assert sorted(letters) == sorted("OOOOH")


@pytest.mark.parametrize("smiles", ODD.values(), ids=ODD)
def test_odd_structures_are_drawn_without_anything_that_runs_or_loads(smiles):
    svg = molecule_svg(smiles)
    for element in elements(svg):
        assert element.tag.removeprefix(SVG) in {"svg", "g", "path", "text", "ellipse"}
        assert not any(name.startswith("on") or name in ("href", "style", "class") for name in element.attrib)
    assert "url(" not in svg
    assert len(svg) < 40_000


def test_strokes_of_one_look_are_one_path():
    # Fifteen half bonds of carbon in one colour and width.
    svg = molecule_svg("CCCCCCCC")
    assert svg.count("<path") == 1
    assert len(svg) < 600


def test_every_stroke_lies_on_the_canvas():
    for smiles in (ASPIRIN, ODD["spiro rings"], ODD["many parts"]):
        root = ElementTree.fromstring(molecule_svg(smiles))
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
        for path in root.iter(f"{SVG}path"):
            numbers = [float(n) for n in re.findall(r"-?[0-9.]+", path.attrib["d"])]
            assert all(-1 <= x <= width + 1 for x in numbers[::2])
            assert all(-1 <= y <= height + 1 for y in numbers[1::2])


def test_the_same_structure_is_drawn_the_same_again():
    assert molecule_svg(ASPIRIN) == molecule_svg(ASPIRIN)


def test_what_is_too_large_to_see_is_refused():
    assert molecule_svg("C" * MAX_DRAWN)
    with pytest.raises(StructureError, match="151 atoms; at most 150"):
        molecule_svg("C" * (MAX_DRAWN + 1))
    with pytest.raises(StructureError, match="at most 2"):
        molecule_svg("CCC", max_atoms=2)


@pytest.mark.parametrize("text", ["", " ", "no structure", "C1CC", "C\0C", "<svg onload=alert(1)>", None, 7])
def test_what_is_no_structure_is_refused(text):
    with pytest.raises(StructureError, match=r"structure|valid SMILES|white space"):
        molecule_svg(text)


def test_nothing_is_printed(capfd):
    molecule_svg(ASPIRIN)
    with pytest.raises(StructureError):
        molecule_svg("C1CC")
    assert capfd.readouterr() == ("", "")


def test_the_kind_of_the_encoder_says_what_has_a_picture():
    assert picture_of(ASPIRIN, "molecule:fingerprints") == molecule_svg(ASPIRIN)
    assert picture_of(ASPIRIN, "molecule") == molecule_svg(ASPIRIN)
    assert picture_of(ASPIRIN, "rows:file.parquet + molecule:fingerprints") == molecule_svg(ASPIRIN)
    assert picture_of(ASPIRIN, "text:ngram") is None
    assert has_pictures("molecule:fingerprints")
    assert not has_pictures("rows:molecule")
    assert not has_pictures("")


def test_an_item_that_cannot_be_drawn_has_no_picture():
    assert picture_of("C1CC", "molecule") is None
    assert picture_of("C" * 200, "molecule") is None


def test_half_a_character_is_no_structure():
    with pytest.raises(StructureError, match="half a character"):
        molecule_svg("C\ud800")
    assert picture_of("C\ud800", "molecule") is None


@pytest.mark.parametrize("most", [None, True, 0, 2.5, "150"])
def test_a_number_of_atoms_that_is_none_is_refused(most):
    with pytest.raises(ArgumentError, match="max_atoms is"):
        molecule_svg("CCO", most)


@pytest.mark.parametrize("kind", [None, 3, ["molecule"]])
def test_a_kind_that_is_no_name_of_an_encoder_is_refused(kind):
    with pytest.raises(ArgumentError, match="kind is a"):
        picture_of("CCO", kind)
