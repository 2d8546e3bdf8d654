"""The layout of the package, held by the syntax of its source: who may import whom, and how big a part may grow."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "bridgehead"
MODULES = sorted(PACKAGE.rglob("*.py"))

# What a folder may import from other folders; the single-file modules at the top are open to all.
MAY_IMPORT = {
    "pairs": set(),
    "depict": set(),
    "encode": set(),
    "evaluate": set(),
    "index": set(),
    "align": {"encode"},
    "negatives": {"index"},
    "train": {"pairs", "encode", "align", "negatives", "evaluate"},
    "audits": {"pairs", "evaluate"},
    "report": {"pairs", "evaluate", "audits", "depict"},
    "search": {"pairs", "encode", "align", "index", "evaluate"},
    "runs": {
        "pairs", "encode", "align", "negatives", "train", "evaluate", "audits", "depict", "report", "index", "search",
    },
    "serve": {"runs", "search", "depict"},
    "cli": {"runs", "serve"},
}  # fmt: skip

# Where a heavy library may be imported at all, as folders or modules under the package.
CONFINED = {
    "torch": ["align", "negatives", "train", "runs", "encode/huggingface.py"],
    "transformers": ["encode/huggingface.py"],
    "rdkit": ["molecules.py", "scaffolds.py", "encode", "index", "depict"],
    "fastapi": ["serve"],
}
PARSERS = {"MolFromSmiles", "MolFromSmarts", "MolFromMolBlock", "MolFromInchi", "MolFromMolFile", "SmilesMolSupplier"}
VAGUE = {"utils", "util", "common", "helpers", "manager", "core", "misc"}
MOST_LINES = 380


def imports_of(source: str, package: list[str]) -> Iterator[str]:
    """Yield the full name of all that a module imports, wherever: at its top, in functions, for type checking only.

    `package` are the parts of the package that the module is in. `import_module` with a literal counts as well, and so
    does the name of one of our modules as a text.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # `from package import name` may name a module: both are given, whoever asks looks at the first parts.
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                yield str(node.args[0].value)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"bridgehead(\.\w+)+", str(node.value)):
            # A table of module names is imported by whoever looks something up in it.
            yield node.value


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def imported(path: Path) -> set[str]:
    package = ["bridgehead", *path.relative_to(PACKAGE).parts[:-1]]
    return set(imports_of(path.read_text(encoding="utf-8"), package))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import a.b, c", {"a.b", "c"}),
        ("from ..encode import base", {"bridgehead.encode.base"}),
        ("from . import heads", {"bridgehead.align.heads"}),
        ("def f():\n    from torch import nn", {"torch.nn"}),
        ("if TYPE_CHECKING:\n    import rdkit.Chem", {"rdkit.Chem"}),
        ("KINDS = {'x': ('bridgehead.encode.ngram', 'X')}", {"bridgehead.encode.ngram"}),
        ("import_module('faiss'); importlib.import_module('x.y')", {"faiss", "x.y"}),
    ],
)
def test_imports_are_found_wherever_they_stand(source, found):
    assert set(imports_of(source, ["bridgehead", "align"])) == found


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_a_module_imports_only_what_its_folder_may(path):
    folder = place(path).partition("/")[0]
    if folder == "__init__.py":
        return
    allowed = MAY_IMPORT.get(folder, set()) | {folder}
    for name in imported(path):
        first, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if first == "bridgehead" and (PACKAGE / target).is_dir() and target:
            assert target in allowed, f"{place(path)} imports {name}; {folder} may import {sorted(allowed)}"


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_heavy_libraries_stay_where_they_belong(path):
    for name in imported(path):
        places = CONFINED.get(name.partition(".")[0])
        if places is not None:
            assert any(place(path) == p or place(path).startswith(f"{p}/") for p in places), (
                f"{place(path)} imports {name}; it belongs to {places}"
            )


def test_every_folder_is_a_stage_of_the_design():
    folders = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert folders <= MAY_IMPORT.keys()


def test_the_table_has_no_cycle():
    left = dict(MAY_IMPORT)
    while free := [folder for folder, needs in left.items() if not needs & left.keys()]:
        for folder in free:
            del left[folder]
    assert left == {}


def test_client_imports_errors_and_its_records_only():
    for name, allowed in (("client.py", {"client_answers", "errors"}), ("client_answers.py", {"errors"})):
        assert {one.split(".")[1] for one in imported(PACKAGE / name) if one.startswith("bridgehead.")} <= allowed


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_structures_are_parsed_in_one_place(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert place(path) == "molecules.py" or not named & PARSERS


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_a_module_says_what_it_owns_and_can_be_held_in_the_head(path):
    source = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(source)), f"{place(path)} has no docstring"
    assert len(source.splitlines()) <= MOST_LINES, f"{place(path)} is too long: a concept is missing a name"


def test_names_say_what_a_part_is_about():
    assert not VAGUE & {path.stem for path in PACKAGE.rglob("*")}


def test_every_folder_of_source_is_a_package():
    for path in MODULES:
        assert (path.parent / "__init__.py").exists(), f"{path.parent.name} has no __init__.py"
