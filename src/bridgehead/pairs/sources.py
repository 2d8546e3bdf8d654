"""From what the user names to UTF-8 bytes: files, globs, `.gz`, and the encoding of text.

This module is not about what the bytes mean: `delimited` and `structured` read csv, tsv, jsonl and parquet from them.
"""

import glob
import gzip
import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bridgehead.errors import ArgumentError, DataError, DecodeError, InputFileNotFoundError

_LOOKED_AT = 4096
PathsLike = str | Path | Sequence[str | Path]
Format = Literal["csv", "tsv", "txt", "jsonl", "parquet"]

_FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "txt",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_NO_TEXT: tuple[tuple[bytes, bytes, str], ...] = (
    (b"\x89PNG", b"", "a PNG image"),
    (b"\xff\xd8\xff", b"", "a JPEG image"),
    (b"PK\x03\x04", b"", "an Excel workbook or another zip archive"),
    (b"\xd0\xcf\x11\xe0", b"", "an old Excel workbook"),
    (b"\x1f\x8b", b"", "gzip"),
    (b"\xfd7zXZ", b"", "xz"),
    (b"(\xb5/\xfd", b"", "zstd"),
    (b"%PDF-", b"", "a PDF"),
    (b"SQLite format 3\0", b"", "an SQLite database"),
    (b"PAR1", b"PAR1", "parquet"),
)
"""How files that are no text begin and end, and what they are."""
BOM = b"\xef\xbb\xbf"
"""The byte-order mark of UTF-8."""


@dataclass(frozen=True)
class Source:
    """A file that was read: its `path` as the user named it, and the SHA-256 (hex) of its bytes on disk."""

    path: str
    sha256: str


def find_files(path: PathsLike) -> list[Path]:
    """Return the files that `path` names: one file, a glob (sorted by name), or a list of either in its order.

    A name that exists is a file or folder even when it holds `*`, `?` or `[`. Raises `InputFileNotFoundError` when a
    name or pattern matches nothing or is a folder, and `ArgumentError` for an empty list.
    """
    if isinstance(path, str | Path):
        return _find(str(path))
    if not isinstance(path, Sequence) or not all(isinstance(part, str | Path) for part in path):
        raise ArgumentError(f"path = {path!r:.200}; expected the path of a file of pairs, a glob, or a list of them")
    found = [file for part in path for file in _find(str(part))]
    if not found:
        raise ArgumentError("an empty list of files; expected at least one file of pairs")
    return found


def _find(name: str) -> list[Path]:
    source = Path(name).expanduser()
    if source.is_file():
        return [source]
    if source.is_dir():
        raise InputFileNotFoundError(f"{name} is a folder; name a file in it, or a pattern such as {name}/*.csv")
    found = sorted(Path(match) for match in glob.glob(_pattern(source), recursive=True) if Path(match).is_file())
    if not found:
        what = "matches no file" if glob.has_magic(name) else "does not exist"
        raise InputFileNotFoundError(f"{name} {what}; expected a file of pairs ({', '.join(_FORMATS)}, also with .gz)")
    return found


def _pattern(path: Path) -> str:
    """Return the pattern of a path: folders that exist under the name as it stands are themselves."""
    known = Path(path.anchor)
    parts = [path.anchor] if path.anchor else []
    for part in path.relative_to(path.anchor).parts:
        parts.append(glob.escape(part) if (known / part).is_dir() else part)
        known /= part
    return str(Path(*parts))


def format_of(path: Path) -> Format:
    """Return the format that the name of a file says, with `.gz` set aside; raises `ArgumentError`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in _FORMATS:
        raise ArgumentError(
            f"{path}: a file of kind {suffix!r}; expected {', '.join(_FORMATS)}, also with .gz: export or convert it "
            "to one of these"
        )
    return _FORMATS[suffix]


def read_bytes(path: Path) -> tuple[bytes, Source]:
    """Return the content of a file, unpacked when its name ends in `.gz`, and its `Source`.

    Raises `DataError` when a `.gz` is damaged or cut off.
    """
    raw = path.read_bytes()
    source = Source(str(path), hashlib.sha256(raw).hexdigest())
    if path.suffix.lower() != ".gz":
        return raw, source
    try:
        return gzip.decompress(raw), source
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} is not a whole gzip file ({error}); fetch or compress it again, or rename it without .gz"
        ) from error


def to_utf8(data: bytes, encoding: str, path: Path) -> bytes:
    """Return text in `encoding` as UTF-8 without a byte-order mark.

    Raises `DecodeError` with the byte offset, the line and the option to pass, `ArgumentError` when there is no such
    encoding, and `DataError` for a known kind of file that is no text.
    """
    if what := next((what for start, end, what in _NO_TEXT if data.startswith(start) and data.endswith(end)), None):
        raise DataError(f"{path} holds {what}, not text; name it as what it is, or export it as csv")
    try:
        text = data.decode(encoding)
    except (LookupError, TypeError) as error:
        raise ArgumentError(
            f"encoding = {encoding!r} is not known; expected one such as 'utf-8', 'latin-1', 'cp1252', 'utf-16'"
        ) from error
    except UnicodeError as error:
        raise DecodeError(_decode_message(data, encoding, path, error)) from error
    if text.startswith("\ufeff"):
        return text[1:].encode("utf-8")
    if wide := _utf_16_without_mark(text.encode("utf-8")[:_LOOKED_AT]):
        raise DecodeError(f"{path}: every other byte is NUL, as in UTF-16; pass encoding={wide!r}")
    is_utf8 = encoding.lower().replace("_", "-") in ("utf-8", "utf8", "ascii", "utf-8-sig")
    return data.removeprefix(BOM) if is_utf8 else text.encode("utf-8")


def _utf_16_without_mark(data: bytes) -> str | None:
    """Return the UTF-16 that bytes of mostly Latin text are in: every second byte is NUL, and the others are not."""
    evens, odds = data[0::2], data[1::2]
    if len(odds) >= 4:
        for name, nul, full in (("utf-16-le", odds, evens), ("utf-16-be", evens, odds)):
            if nul.count(0) > 0.7 * len(nul) and full.count(0) < 0.1 * len(full):
                return name
    return None


def _decode_message(data: bytes, encoding: str, path: Path, error: UnicodeError) -> str:
    offset = error.start if isinstance(error, UnicodeDecodeError) else 0
    line = data.count(b"\n", 0, offset) + 1
    place = "in the header" if line == 1 else f"record {line - 2} when each line is one and the first is 0"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        advice = "the file begins like UTF-16: pass encoding='utf-16'"
    elif wide := _utf_16_without_mark(data[:_LOOKED_AT]):
        advice = f"every other byte is NUL, as in UTF-16: pass encoding={wide!r}"
    else:
        advice = "pass the encoding it was written in, for example encoding='latin-1' or encoding='cp1252'"
    shown = f"0x{data[offset]:02x} " if offset < len(data) else ""
    return f"{path}: byte {shown}at offset {offset}, line {line} ({place}), is not {encoding} text; {advice}"
