"""The search page: plain HTML, CSS and JavaScript modules that the service hands out as they lie here, nothing built.

It owns which files there are and of which media type. What the page asks of the service is in its modules; answering is
`bridgehead.serve`'s part.
"""

from functools import lru_cache
from importlib.resources import files

from bridgehead.errors import InputFileNotFoundError

_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

PAGE_FILES = (
    "index.html",
    "style.css",
    "cards.css",
    "icon.svg",
    "theme.js",
    "page.js",
    "state.js",
    "service.js",
    "elements.js",
    "bars.js",
    "tables.js",
    "facts.js",
    "conditions.js",
    "searching.js",
    "reading.js",
    "filters.js",
    "facets.js",
    "results.js",
    "card.js",
    "items.js",
    "panels.js",
    "faults.js",
    "dialogs.js",
    "keys.js",
    "classify.js",
    "classified.js",
    "about.js",
)
"""Every file of the page: "index.html" is the page itself, the others are asked for as `static/{name}`."""


@lru_cache(maxsize=len(PAGE_FILES))
def page_file(name: str) -> tuple[bytes, str]:
    """Return the bytes and the media type of a file of the page.

    `name` is one of `PAGE_FILES`; nothing else is looked for, so a name that climbs out of the folder finds nothing.
    Raises `InputFileNotFoundError` for any other name.

    >>> page_file("index.html")[1]
    'text/html; charset=utf-8'
    """
    if name not in PAGE_FILES:
        raise InputFileNotFoundError(f"the page has no file {name!r:.80}; expected one of {', '.join(PAGE_FILES)}")
    return files(__name__).joinpath(name).read_bytes(), _MEDIA_TYPES[name.rpartition(".")[2]]
