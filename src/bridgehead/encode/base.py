"""What an encoder is: raw items in, rows out, with everything that went wrong listed.

Owns the protocol, its results and the registry that makes an encoder of a spec such as `molecule:fingerprints`. It is
not about training heads on rows (`align`) or about files of pairs (`pairs`).
"""

import hashlib
import importlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from bridgehead.encode.cache import RowCache
from bridgehead.errors import BridgeheadError, DuplicateIdError, EncoderError, ShapeError
from bridgehead.files import hash_json, read_json, write_json
from bridgehead.vectors import IntArray, non_finite_rows

Progress = Callable[[int, int], None]

ENCODER_FORMAT = "bridgehead-encoder"
ENCODER_FILE = "encoder.json"
_SHOWN = 200

# kind -> (module, class, what follows the kind in a spec)
_KINDS = {
    "text:ngram": ("bridgehead.encode.ngram", "NgramEncoder", None),
    "text:hf": ("bridgehead.encode.huggingface", "HuggingFaceEncoder", "name or folder"),
    "molecule:fingerprints": ("bridgehead.encode.fingerprints", "FingerprintEncoder", None),
    "rows": ("bridgehead.encode.rows", "RowsEncoder", "file"),
}
_PLUS = re.compile(r"\s+\+\s+")


@dataclass(frozen=True)
class Failure:
    """An item without a row: its position in the input, its id, the item (cut to 200 characters) and why."""

    index: int
    id: str
    item: str
    reason: str


@dataclass(frozen=True)
class EncodeReport:
    """What happened to the items on their way to rows.

    `n_truncated` items were cut before encoding (`truncated_ids`). `unknown_share` is the share in [0, 1] of tokens,
    words or features that the encoder does not know, None where it has no such notion. `empty_ids` have a zero row.
    `identical_groups` lists the ids of different items whose rows are equal (zero rows apart).
    """

    n_items: int = 0
    n_rows: int = 0
    n_truncated: int = 0
    truncated_ids: list[str] = field(default_factory=list)
    unknown_share: float | None = None
    empty_ids: list[str] = field(default_factory=list)
    identical_groups: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows of the items that have one.

    `rows` is (n_ok, d) float32, dense or CSR with sorted indices; row k has id `ids[k]` and belongs to the item at
    position `index[k]` of the input, ascending. `failures` lists the other items.
    """

    rows: Any
    ids: list[str]
    index: IntArray
    failures: list[Failure]
    report: EncodeReport


@dataclass(frozen=True, eq=False)
class Origin:
    """Where items come from, for encoders that look rows up instead of computing them.

    `ids` (n,) are the user's ids, `records` (n,) the record in the file that each item is of, `n_records` the number
    of records there.
    """

    ids: Sequence[str] | None = None
    records: IntArray | None = None
    n_records: int | None = None


@dataclass(frozen=True, eq=False)
class RawRows:
    """What an encoder computes before ids and checks come in: rows of the items at `index`, and reasons for others."""

    rows: Any
    index: IntArray
    reasons: list[tuple[int, str]] = field(default_factory=list)
    truncated: list[int] = field(default_factory=list)
    unknown_share: float | None = None
    notes: list[str] = field(default_factory=list)


class Encoder(ABC):
    """Turns raw items into rows. Equal items get equal rows, whatever else is in the call.

    An encoder that `needs_fit` learns a vocabulary or columns with `fit`, which returns a fitted encoder and leaves
    this one as it is; others return themselves. `sparse` says whether rows are CSR.
    """

    kind: ClassVar[str]
    sparse: ClassVar[bool] = False
    needs_fit: ClassVar[bool] = False
    spec: str

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Width of the rows; raises `EncoderError` before `fit` where one is needed."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Settings as plain JSON values: what `make_encoder(spec, **settings)` takes."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Hash (hex) of all that shapes the rows: kind, settings, weights, vocabulary, library versions."""

    @abstractmethod
    def raw_rows(
        self, items: Sequence[str], cache: RowCache | None, progress: Progress | None, origin: Origin
    ) -> RawRows:
        """Compute the rows of `items`; `encode` adds ids, checks and the report."""

    def fit(self, items: Sequence[str], cache: RowCache | None = None, progress: Progress | None = None) -> Self:
        """Return an encoder fitted on TRAINING items; a pretrained one returns itself."""
        return self

    def encode(
        self,
        items: Sequence[str],
        ids: Sequence[str] | None = None,
        cache: RowCache | None = None,
        progress: Progress | None = None,
        records: Sequence[int] | None = None,
        n_records: int | None = None,
    ) -> Encoded:
        """Return the rows of `items`, with ids (default: the position as text), failures and a report.

        No items give (0, d) rows. Items without a usable row (cannot be read, NaN, infinity) are failures and shift no
        other; items of which the encoder knows nothing keep a zero row and are listed in `report.empty_ids`. `cache`
        keeps what is expensive on disk. `progress(done, total)` is called now and then. `records` (the record of each
        item in the file of pairs) and `n_records` (how many records that has) are for `rows:` with a bare .npy. Raises
        `ShapeError` when there is not one id or record per item and `DuplicateIdError` when ids are not unique.
        """
        items = as_texts(items)
        names = _as_ids(ids, len(items))
        origin = Origin(None if ids is None else names, _as_records(records, len(items)), n_records)
        raw = self.raw_rows(items, cache, progress, origin)
        return _assembled(raw, items, names)

    def save(self, folder: str | Path) -> None:
        """Write the encoder into `folder` as JSON and .npy files, atomically, `encoder.json` last."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        self._save_state(target)
        body = {"kind": self.kind, "spec": self.spec, "settings": self.settings(), "state": self._state()}
        write_json(target / ENCODER_FILE, body, ENCODER_FORMAT)

    def _state(self) -> dict[str, Any]:
        return {}

    def _save_state(self, folder: Path) -> None:
        """Write what was fitted beside `encoder.json`; nothing for encoders that learn nothing."""
        return

    @classmethod
    @abstractmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote."""


def make_encoder(spec: str, **settings: Any) -> Encoder:
    """Make an encoder of its spec.

    `text:ngram`, `text:hf=<name or folder>`, `molecule:fingerprints`, `rows:<file>`, and `x + y` (with spaces around
    the plus) for the columns of both. Settings are those of the encoder; for `x + y` pass `parts=[{...}, {...}]`.
    Raises `EncoderError` naming the known kinds or settings.

    >>> encoder = make_encoder("text:ngram", word_range=(1, 1), char_range=(3, 3)).fit(["a beta blocker", "an agonist"])
    >>> encoder.encode(["blocker of what"], ids=["q1"]).rows.shape == (1, encoder.n_columns)
    True
    """
    if not isinstance(spec, str):
        raise EncoderError(f"the spec is a {type(spec).__name__} ({spec!r:.80}); expected text such as 'text:ngram'")
    parts = _PLUS.split(spec.strip())
    if len(parts) > 1:
        from bridgehead.encode.concat import ConcatEncoder

        joined: Encoder = _made(spec, ConcatEncoder.of_specs, parts, **settings)
        return joined
    kind, argument = _split_spec(parts[0])
    module, name, wanted = _KINDS[kind]
    encoder_class = getattr(importlib.import_module(module), name)
    arguments = [argument] if wanted is not None else []
    known = list(inspect.signature(encoder_class).parameters)[len(arguments) :]
    if not set(settings) <= set(known):
        unknown = ", ".join(sorted(set(settings) - set(known)))
        raise EncoderError(f"{spec} has no setting {unknown}; it has {', '.join(known)}")
    encoder: Encoder = _made(spec, encoder_class, *arguments, **settings)
    return encoder


def _made(spec: str, make: Callable[..., Encoder], *arguments: Any, **settings: Any) -> Encoder:
    try:
        return make(*arguments, **settings)
    except TypeError as error:
        raise EncoderError(f"{spec}: settings {settings!r:.200} are not of the types expected: {error}") from error


def load_encoder(folder: str | Path) -> Encoder:
    """Read an encoder that `save` wrote; raises `EncoderError` for an unknown kind or an edited description."""
    kind = read_json(Path(folder) / ENCODER_FILE, ENCODER_FORMAT).get("kind")
    if kind == "concat":
        module, name = "bridgehead.encode.concat", "ConcatEncoder"
    elif isinstance(kind, str) and kind in _KINDS:
        module, name, _ = _KINDS[kind]
    else:
        raise EncoderError(f"{folder} holds an encoder of kind {kind!r}; known: {', '.join(_KINDS)}, concat")
    try:
        encoder: Encoder = getattr(importlib.import_module(module), name).load(folder)
    except BridgeheadError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise EncoderError(f"{folder} was edited or is damaged ({error!r}); fit and save the encoder again") from error
    return encoder


def check_settings(kind: str, **positive: int) -> None:
    """Raise `EncoderError` for a setting that must be a whole number of at least 1 and is not."""
    for name, value in positive.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise EncoderError(f"{kind}: {name} = {value!r}; expected a whole number, at least 1")


def fingerprint_of(kind: str, **parts: Any) -> str:
    """Return the hash (hex) of a kind and what shapes its rows, given as JSON values."""
    return hash_json({"kind": kind, **parts})


def _split_spec(spec: str) -> tuple[str, str]:
    known = ", ".join(
        f"{k}{'' if w is None else ('=' if ':' in k else ':') + f'<{w}>'}" for k, (_, _, w) in _KINDS.items()
    )
    if spec.startswith("rows:"):
        kind, argument = "rows", spec[len("rows:") :]
    else:
        kind, _, argument = spec.partition("=")
    if kind not in _KINDS:
        raise EncoderError(f"{spec!r} is no encoder; known: {known}, and 'x + y'")
    if (_KINDS[kind][2] is not None) != bool(argument):
        raise EncoderError(f"{spec!r} does not fit; expected one of {known}")
    return kind, argument


def as_texts(items: Any) -> Sequence[str]:
    """Return `items`; raises `EncoderError` unless they are a list of texts."""
    if isinstance(items, str) or not hasattr(items, "__len__"):
        what = "one text" if isinstance(items, str) else f"a {type(items).__name__}"
        raise EncoderError(f"items is {what} ({items!r:.40}); expected a list of texts: [item]")
    for position, item in enumerate(items):
        if not isinstance(item, str):
            raise EncoderError(f"item {position} is a {type(item).__name__} ({item!r}); expected text")
    return items  # type: ignore[no-any-return]


def _as_ids(ids: Sequence[str] | None, n_items: int) -> list[str]:
    if ids is None:
        return [str(position) for position in range(n_items)]
    names = [str(name) for name in ids]
    if len(names) != n_items:
        raise ShapeError(f"{len(names)} ids for {n_items} items; expected one each")
    if len(set(names)) != n_items:
        seen: set[str] = set()
        twice = sorted({name for name in names if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
        raise DuplicateIdError(f"{len(twice)} ids occur more than once ({', '.join(twice[:10])}); ids must be unique")
    return names


def _as_records(records: Sequence[int] | None, n_items: int) -> IntArray | None:
    if records is None:
        return None
    numbers = np.asarray(records, dtype=np.int64)
    if numbers.shape != (n_items,):
        raise ShapeError(f"records has shape {numbers.shape} for {n_items} items; expected one number each")
    return numbers


def _assembled(raw: RawRows, items: Sequence[str], ids: list[str]) -> Encoded:
    rows, index, reasons = raw.rows, raw.index, list(raw.reasons)
    bad = non_finite_rows(rows)
    if bad.size:
        reasons += [(int(index[row]), "the row holds NaN or infinity") for row in bad]
        good = np.setdiff1d(np.arange(len(index)), bad)
        rows, index = rows[good], index[good]
    names = [ids[position] for position in index]
    zero = _zero_rows(rows)
    report = EncodeReport(
        n_items=len(items),
        n_rows=len(index),
        n_truncated=len(raw.truncated),
        truncated_ids=[ids[position] for position in raw.truncated],
        unknown_share=raw.unknown_share,
        empty_ids=[names[row] for row in np.flatnonzero(zero)],
        identical_groups=_identical_groups(rows, [items[position] for position in index], names, zero),
        notes=list(raw.notes),
    )
    failures = [Failure(i, ids[i], items[i][:_SHOWN], reason) for i, reason in sorted(reasons)]
    return Encoded(rows, names, index, failures, report)


def _zero_rows(rows: Any) -> Any:
    if sparse.issparse(rows):
        filled = np.concatenate([[0], np.cumsum(rows.data != 0)])[rows.indptr]
        return np.diff(filled) == 0
    return ~rows.any(axis=1)


def _identical_groups(rows: Any, items: Sequence[str], ids: list[str], zero: Any) -> list[list[str]]:
    groups: dict[bytes, dict[str, str]] = {}
    for position, (item, name) in enumerate(zip(items, ids, strict=True)):
        if zero[position]:
            continue
        if sparse.issparse(rows):
            entries = slice(rows.indptr[position], rows.indptr[position + 1])
            content = rows.indices[entries].tobytes() + rows.data[entries].tobytes()
        else:
            content = rows[position].tobytes()
        groups.setdefault(hashlib.blake2b(content, digest_size=16).digest(), {}).setdefault(item, name)
    return [list(members.values()) for members in groups.values() if len(members) > 1]
