"""An HTML page taken apart: its elements, their attributes and the words that are shown."""

import html
import re
from html.parser import HTMLParser

HOSTILE = "<img src=x onerror=alert(1)>'\"&{{ 7 * 7 }}</style></title><script>alert(1)</script>"
VOID = {"meta", "img", "br"}


class Elements(HTMLParser):
    """Collects the elements of a page, their attributes and the text, and checks that every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text += data


def words(page: str) -> str:
    return re.sub(r"\s+", " ", Elements(page).text)


def cells(page: str) -> str:
    """Return the words of a page with a blank between elements, so that cells of a table do not run together."""
    shown = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]*>", " ", shown))
    return re.sub(r"\s+", " ", text)
