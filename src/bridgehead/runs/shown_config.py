"""The config as a page may show it to anybody: whole, but for the folders of the machine that its files lie in.

This module is not about the config that a run folder keeps (`folder`), which names its files in full.
"""

import re
from collections.abc import Mapping
from typing import Any

# An absolute path as a whole value, or after the kind of an encoder ("rows:/data/x.parquet", "text:hf=/models/x").
_FOLDERS = re.compile(r"(^|(?<=[:=])|(?<=\+ ))(~?/|[A-Za-z]:[\\/])(?:[^/\\]*[/\\])*(?=[^/\\])")


def shown_config(settings: Any) -> Any:
    """Return settings (nested mappings, lists, values) with each absolute path as the name of its file alone.

    >>> shown_config({"pairs": {"path": "/data/lab/pairs.csv"}, "a": "rows:/data/x.npy"})
    {'pairs': {'path': 'pairs.csv'}, 'a': 'rows:x.npy'}
    """
    if isinstance(settings, Mapping):
        return {key: shown_config(value) for key, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [shown_config(value) for value in settings]
    return _without_folders(settings) if isinstance(settings, str) else settings


def _without_folders(text: str) -> str:
    return " + ".join(_FOLDERS.sub("", part) for part in text.split(" + "))
