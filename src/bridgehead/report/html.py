"""The HTML report: one file that needs nothing else, makes no request and runs no script.

Every text of the content is escaped by the templates; the only markup that is passed through is that of our own
figures. Pictures of items enter as images in data URIs, in which nothing runs. Not about what is measured, or about
what is drawn where (`page`).
"""

import base64
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import bridgehead
from bridgehead.depict import shown_text
from bridgehead.files import write_text
from bridgehead.report import page, wording
from bridgehead.report.content import ReportContent

PICTURE_BYTES = 1_800_000
"""All pictures of items together, as they stand in the file; with it a report stays under three megabytes."""
_LARGEST_PICTURE = 60_000
_TEXT = 240
# Of a text that is shown whole, such as the config; megabytes in one field are no text to read.
_LONGEST = 20_000
# Characters that no page may hold: controls but for tabs and line ends, and halves of characters.
_GONE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Pictures:
    """Turns pictures into data URIs until there is no room left; the rest is counted and left out."""

    def __init__(self, room: int = PICTURE_BYTES) -> None:
        self.room = room
        self.left_out = 0

    def uri(self, svg: str) -> str:
        """Return the picture as a data URI, or "" when it is too large by itself or there is no room for it."""
        uri = picture_uri(svg)
        if len(uri) > min(self.room, _LARGEST_PICTURE):
            self.left_out += 1
            return ""
        self.room -= len(uri)
        return uri


def write_report(path: str | Path, content: ReportContent) -> None:
    """Write `content` as one self-contained HTML file, atomically."""
    write_text(path, render_report(content))


def render_report(content: ReportContent) -> str:
    """Return the HTML text of the report."""
    pictures = Pictures()
    environment = page_environment(pictures)
    return environment.get_template("report.html.j2").render(
        content=content, style=Markup(page_style(environment)), pictures=pictures, version=bridgehead.__version__,
        **page.view_of(content),
    )  # fmt: skip


def page_environment(pictures: Pictures | None = None) -> Environment:
    """Return the environment of the templates of this folder: everything escaped, unknown names refused."""
    environment = Environment(
        loader=PackageLoader("bridgehead.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "number": wording.number,
        "count": wording.count,
        "label": wording.measure_label,
        "explained": wording.measure_explained,
        "interval": wording.interval,
        "is_share": wording.is_share,
        "signed": wording.signed,
        "chance": wording.chance,
        "figure": wording.figure,
        "times": wording.times,
        "seconds": wording.seconds,
        "memory": wording.memory,
        "opening": wording.opening,
        "cell": wording.cell,
        "text": lambda text: shown_text(str(text), _TEXT),
        "groups": page.groups_by,
        "candidates": wording.candidates,
        "slice_measures": page.slice_measures,
        "picture": (pictures or Pictures()).uri,
    }
    environment.filters.update(filters)
    return environment


def _printable(value: Any) -> Any:
    """Return what a template prints: texts without characters that no page may hold and of bounded length."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = _GONE.sub("", value[: 2 * _LONGEST])
    return text if len(value) <= _LONGEST else text[:_LONGEST] + "…"


def page_style(environment: Environment) -> str:
    """Return the style sheet that every page of this folder has."""
    style, _, _ = environment.loader.get_source(environment, "report.css")  # type: ignore[union-attr]
    return style


def picture_uri(svg: str) -> str:
    """Return an SVG document as a data URI for an `<img>`: there, scripts and requests inside it are dead."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode("utf-8", "replace")).decode("ascii")
