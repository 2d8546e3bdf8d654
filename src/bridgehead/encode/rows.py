"""`rows:<file>`: rows that somebody else computed, joined to items by id or by record number.

Pictures, spectra and any model that runs elsewhere enter this way. Not about computing anything.
"""

import zipfile
import zlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from bridgehead.encode.base import ENCODER_FILE, ENCODER_FORMAT, Encoder, Origin, RawRows, fingerprint_of
from bridgehead.encode.cache import Progress, RowCache
from bridgehead.errors import (
    ArgumentError,
    DataError,
    DuplicateIdError,
    EncoderError,
    InputFileNotFoundError,
    MismatchError,
    ShapeError,
)
from bridgehead.files import hash_file, read_json
from bridgehead.vectors import FloatArray, IntArray

_SUFFIXES = (".npy", ".npz", ".parquet")


class RowsEncoder(Encoder):
    """Looks the row of each item up in a file; dense float32.

    `.npz` holds an array of ids and one of rows (n, d), named `ids` and `rows`, or the only text or integer vector and
    the only matrix there. `.parquet` holds an id column (`id_column`; default: `id`, else the only text column) and
    one column of lists or several of numbers. Both are joined by id: an item without a row is a failure, rows that no
    item asked for are counted in the report. A bare `.npy` (n, d) is joined by record number, row i for record i of
    the file of pairs as given, and refused when the numbers of rows and records differ. Rows with NaN or infinity are
    failures. Nothing in the file is executed: object arrays are refused.
    """

    kind: ClassVar[str] = "rows"

    def __init__(self, file: str, id_column: str | None = None) -> None:
        self.spec = f"rows:{file}"
        self.path = Path(file).expanduser()
        self.id_column = id_column
        if not self.path.is_file():
            raise InputFileNotFoundError(f"{file} does not exist; expected a file of rows ({', '.join(_SUFFIXES)})")
        if self.path.suffix not in _SUFFIXES:
            raise EncoderError(f"{file}: rows are read from {', '.join(_SUFFIXES)}")

    @property
    def n_columns(self) -> int:
        """Width of the rows in the file."""
        return int(self._content[1].shape[1])

    def settings(self) -> dict[str, Any]:
        return {"id_column": self.id_column}

    def fingerprint(self) -> str:
        return fingerprint_of(self.kind, file=self._file_hash, id_column=self.id_column)

    def raw_rows(
        self, items: Sequence[str], cache: RowCache | None, progress: Progress | None, origin: Origin
    ) -> RawRows:
        ids, rows = self._content
        if ids is None:
            return self._by_record(rows, len(items), origin)
        row_of = {name: row for row, name in enumerate(ids)}
        wanted = items if origin.ids is None else origin.ids
        found = [(position, row_of[name]) for position, name in enumerate(wanted) if name in row_of]
        index = np.array([position for position, _ in found], dtype=np.int64)
        taken = np.array([row for _, row in found], dtype=np.int64)
        reasons = [
            (i, f"no row with id {name!r} in {self.path}") for i, name in enumerate(wanted) if name not in row_of
        ]
        surplus = len(ids) - len(set(taken.tolist()))
        notes = [f"{len(reasons)} of {len(wanted)} items have no row in {self.path}"] if reasons else []
        notes += [f"{surplus} of {len(ids)} rows in {self.path} belong to no item"] if surplus else []
        return RawRows(rows[taken], index, reasons, notes=notes)

    def _by_record(self, rows: FloatArray, n_items: int, origin: Origin) -> RawRows:
        if origin.records is None or origin.n_records is None:
            raise ArgumentError(
                f"{self.path} has no ids, so its rows are found by record number; pass records= and n_records=, or a "
                ".npz or .parquet file with ids"
            )
        if origin.n_records != len(rows):
            raise ShapeError(
                f"{self.path} has {len(rows)} rows and the file of pairs {origin.n_records} records; a bare .npy is "
                "joined by row number and needs equal counts: use .npz or .parquet with ids"
            )
        records: IntArray = origin.records
        if n_items and (records.min() < 0 or records.max() >= len(rows)):
            raise ArgumentError(f"records run from {records.min()} to {records.max()}; expected 0 to {len(rows) - 1}")
        return RawRows(rows[records], np.arange(n_items, dtype=np.int64))

    @cached_property
    def _file_hash(self) -> str:
        return hash_file(self.path)

    @cached_property
    def _content(self) -> tuple[list[str] | None, FloatArray]:
        ids: list[str] | None
        try:
            if self.path.suffix == ".parquet":
                ids, rows = _read_parquet(self.path, self.id_column)
            else:
                ids, rows = _read_numpy(self.path)
        except (OSError, EOFError) as error:
            raise DataError(f"{self.path} cannot be read: {error}") from error
        if ids is not None:
            _check_ids(self.path, ids, rows)
        return ids, np.asarray(rows, dtype=np.float32)

    def _state(self) -> dict[str, Any]:
        return {"file": str(self.path), "hash": self._file_hash, "n_columns": self.n_columns}

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote; the rows stay in their file.

        Raises `MismatchError` when that file is another one now.
        """
        content = read_json(Path(folder) / ENCODER_FILE, ENCODER_FORMAT)
        encoder = cls(content["state"]["file"], **content["settings"])
        if encoder._file_hash != content["state"]["hash"]:
            raise MismatchError(f"{encoder.path} has changed since {folder} was written; encode and train again")
        return encoder


def _check_ids(path: Path, ids: list[str], rows: Any) -> None:
    if len(ids) != len(rows):
        raise ShapeError(f"{path} has {len(ids)} ids and {len(rows)} rows; expected one id for each row")
    if len(set(ids)) != len(ids):
        seen: set[str] = set()
        twice = sorted({name for name in ids if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
        raise DuplicateIdError(f"{path}: {len(twice)} ids occur more than once ({', '.join(twice[:10])})")


def _read_numpy(path: Path) -> tuple[list[str] | None, Any]:
    arrays: dict[str, Any] = {}
    try:
        with open(path, "rb") as opened:
            loaded = np.load(opened, allow_pickle=False)
            if isinstance(loaded, np.ndarray) != (path.suffix == ".npy"):
                raise DataError(f"{path} cannot be read: its content is not what the name's ending says")
            if isinstance(loaded, np.ndarray):
                return None, _matrix(path, loaded)
            arrays = {name: loaded[name] for name in loaded.files}
    except (zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}; it is damaged") from error
    except (DataError, ShapeError):
        raise
    except ValueError as error:
        raise DataError(
            f"{path} cannot be read without running code ({error}); expected plain arrays of numbers and text"
        ) from error
    vectors = [name for name, array in arrays.items() if array.ndim == 1 and array.dtype.kind in "UiuS"]
    matrices = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "fiu"]
    ids = "ids" if "ids" in arrays else vectors[0] if len(vectors) == 1 else None
    rows = "rows" if "rows" in arrays else matrices[0] if len(matrices) == 1 else None
    if ids is None or rows is None:
        shapes = ", ".join(f"{name} {array.dtype}{array.shape}" for name, array in arrays.items()) or "nothing"
        raise DataError(f"{path} holds {shapes}; expected an array `ids` (n,) and an array `rows` (n, d)")
    names = arrays[ids]
    texts = [name.decode() for name in names] if names.dtype.kind == "S" else [str(name) for name in names]
    return texts, _matrix(path, arrays[rows])


def _matrix(path: Path, array: Any) -> Any:
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise ShapeError(f"{path} has rows of dtype {array.dtype} and shape {array.shape}; expected numbers (n, d)")
    return array


def _read_parquet(path: Path, id_column: str | None) -> tuple[list[str], Any]:
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path} cannot be read as parquet: {error}") from error
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    found = id_column or ("id" if "id" in frame.columns else texts[0] if len(texts) == 1 else None)
    if found is None or found not in frame.columns:
        raise DataError(f"{path} has the columns {', '.join(frame.columns)}; name the one with ids: id_column=")
    ids = frame[found].cast(pl.String)
    if ids.null_count():
        raise DataError(f"{path}: {ids.null_count()} rows have no {found}; every row needs an id")
    rest = frame.drop(found)
    lists = [name for name, dtype in rest.schema.items() if isinstance(dtype, pl.List | pl.Array)]
    numbers = [name for name, dtype in rest.schema.items() if dtype.is_numeric()]
    if len(lists) == 1:
        return ids.to_list(), _stacked(path, rest[lists[0]])
    if lists or not numbers:
        raise DataError(f"{path} has {len(lists)} list columns and {len(numbers)} of numbers; expected one list column")
    return ids.to_list(), rest.select(pl.col(numbers).cast(pl.Float32).fill_null(float("nan"))).to_numpy()


def _stacked(path: Path, column: Any) -> Any:
    import polars as pl

    lists = column.cast(pl.List(pl.Float32))
    widths = lists.list.len().drop_nulls().unique().to_list()
    if len(widths) != 1 or not widths[0]:
        raise ShapeError(f"{path}: rows of {sorted(widths)[:10]} numbers; expected the same number in each")
    # A missing list or a missing number in it is a row that cannot be used, like NaN.
    rows = np.full((len(lists), widths[0]), np.nan, dtype=np.float32)
    present = lists.is_not_null().to_numpy()
    flat = lists.drop_nulls().explode().fill_null(float("nan")).to_numpy()
    rows[present] = flat.reshape(-1, widths[0])
    return rows
