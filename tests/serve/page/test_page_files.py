"""What the page consists of: a fixed list of plain files, nothing inline, nothing from elsewhere."""

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bridgehead.errors import InputFileNotFoundError
from bridgehead.serve.page import PAGE_FILES, page_file

FOLDER = Path(page_file.__wrapped__.__code__.co_filename).parent
SOURCE = {name: page_file(name)[0].decode() for name in PAGE_FILES}
SCRIPTS = [name for name in PAGE_FILES if name.endswith(".js")]
MOST_LINES = 380


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.inline = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        if self.found and self.found[-1][0] in ("script", "style") and data.strip():
            self.inline.append(data)


TAGS = Tags(SOURCE["index.html"])


def test_the_files_are_those_of_the_folder_and_each_has_its_media_type():
    lying = {path.name for path in FOLDER.iterdir() if path.suffix not in (".py", ".pyc") and path.is_file()}
    assert lying == set(PAGE_FILES) and len(PAGE_FILES) == len(lying)
    assert {name.rpartition(".")[2]: page_file(name)[1].partition(";")[0] for name in PAGE_FILES} == {
        "html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["", "../__init__.py", "__init__.py", "index.html/", "INDEX.HTML", "/etc/passwd", "page.js\x00"]
)
def test_no_other_name_finds_a_file(name):
    with pytest.raises(InputFileNotFoundError, match="the page has no file"):
        page_file(name)


def test_the_page_has_no_inline_script_style_or_handler():
    assert not TAGS.inline
    assert not [
        (tag, name) for tag, attributes in TAGS.found for name in attributes if name.startswith("on") or name == "style"
    ]
    assert "javascript:" not in SOURCE["index.html"]


def test_all_that_the_page_loads_is_one_of_its_files():
    loaded = [
        attributes.get("src") or attributes.get("href")
        for tag, attributes in TAGS.found
        if tag in ("script", "link", "img")
    ]
    assert loaded and all(name.startswith("static/") and name.removeprefix("static/") in PAGE_FILES for name in loaded)
    for name in SCRIPTS:
        # "./state.js" or import("./service.js"): modules are found beside the one that asks.
        for target in re.findall(r"""(?:from|import)\s*\(?\s*["']([^"']+)["']""", SOURCE[name]):
            assert target.startswith("./") and target[2:] in PAGE_FILES, f"{name} imports {target}"


@pytest.mark.parametrize("name", PAGE_FILES)
def test_no_file_names_an_address_elsewhere(name):
    without_names = SOURCE[name].replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z0-9-]+\.[a-z]", without_names), "no request leaves the machine"
    assert "@import" not in SOURCE[name] and "url(" not in SOURCE[name]


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_elements_from_text_or_runs_text(name):
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
        "srcdoc =",
    ):
        assert way not in SOURCE[name], f"{name} uses {way}"
    assert "fetch(" not in SOURCE[name] or name == "service.js"


@pytest.mark.parametrize("name", [name for name in PAGE_FILES if name.endswith((".js", ".css"))])
def test_a_file_says_what_it_owns_and_can_be_held_in_the_head(name):
    assert SOURCE[name].startswith("/* ")
    assert len(SOURCE[name].splitlines()) <= MOST_LINES


def test_what_a_label_or_a_description_points_to_is_there():
    ids = {attributes["id"] for _, attributes in TAGS.found if "id" in attributes}
    assert {attributes["for"] for _, attributes in TAGS.found if "for" in attributes} <= ids
    assert {name for script in SCRIPTS for name in re.findall(r'byId\("([a-z-]+)"\)', SOURCE[script])} <= ids | {
        # Made by scripts.
        "where", "filters-title", "results-title", "classified", "classify-of", "sub", "near",
    }  # fmt: skip


def test_the_files_are_in_the_package_that_is_built():
    root = FOLDER.parents[3]
    ignored = subprocess.run(
        ["git", "-C", root, "check-ignore", *(FOLDER / name for name in PAGE_FILES)], capture_output=True
    )
    assert ignored.stdout == b"", "the build leaves out what git ignores"
    assert 'packages = ["src/bridgehead"]' in (root / "pyproject.toml").read_text(encoding="utf-8")
