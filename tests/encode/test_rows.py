"""rows:<file>: joined by id or by record number, and refused where that cannot be right."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bridgehead.encode import load_encoder, make_encoder
from bridgehead.errors import (
    ArgumentError,
    DataError,
    DuplicateIdError,
    EncoderError,
    InputFileNotFoundError,
    MismatchError,
    ShapeError,
)

IDS = ["a", "00123", "NA"]
ROWS = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)


def npz(path: Path, **arrays: object) -> str:
    np.savez(path, **{name: np.array(array) for name, array in arrays.items()})
    return f"rows:{path}"


def parquet(path: Path, frame: pl.DataFrame) -> str:
    frame.write_parquet(path)
    return f"rows:{path}"


@pytest.fixture(params=["npz", "npz, other names", "list column", "array column", "columns of numbers"])
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    ids = pl.Series("id", IDS)
    match request.param:
        case "npz":
            return npz(tmp_path / "rows.npz", ids=IDS, rows=ROWS, further=[1.0, 2.0])
        case "npz, other names":
            return npz(tmp_path / "rows.npz", names=IDS, vectors=ROWS.astype(np.float64))
        case "list column":
            return parquet(tmp_path / "rows.parquet", pl.DataFrame([ids, pl.Series("v", ROWS.tolist())]))
        case "array column":
            column = pl.Series("v", ROWS.tolist(), dtype=pl.Array(pl.Float32, 2))
            return parquet(tmp_path / "rows.parquet", pl.DataFrame([ids, column]))
        case _:
            return parquet(tmp_path / "rows.parquet", pl.DataFrame({"id": IDS, "x": [1, 3, 5], "y": [2.0, 4.0, 6.0]}))


def test_rows_are_joined_by_id_with_missing_and_surplus_counted(spec: str) -> None:
    encoder = make_encoder(spec)
    encoded = encoder.encode(["item 1", "item 2", "item 3"], ids=["NA", "absent", "00123"])
    assert encoded.rows.tolist() == [[5, 6], [3, 4]] and encoded.rows.dtype == np.float32
    assert encoded.ids == ["NA", "00123"] and encoded.index.tolist() == [0, 2] and encoder.n_columns == 2
    assert [(f.index, f.id, f.item) for f in encoded.failures] == [(1, "absent", "item 2")]
    assert any("1 of 3 items have no row" in note for note in encoded.report.notes)
    assert any("1 of 3 rows" in note and "belong to no item" in note for note in encoded.report.notes)


def test_without_ids_the_items_are_the_ids(spec: str) -> None:
    assert make_encoder(spec).encode(["00123", "a"]).rows.tolist() == [[3, 4], [1, 2]]
    assert make_encoder(spec).encode([]).rows.shape == (0, 2)


def test_a_bare_npy_is_joined_by_record_number(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    encoder = make_encoder(f"rows:{tmp_path / 'rows.npy'}")
    encoded = encoder.encode(["x", "y", "z"], records=[2, 0, 2], n_records=3)
    assert encoded.rows.tolist() == [[5, 6], [1, 2], [5, 6]]
    with pytest.raises(ShapeError, match=r"3 rows and the file of pairs 4 records"):
        encoder.encode(["x"], records=[0], n_records=4)
    with pytest.raises(ArgumentError, match="pass records="):
        encoder.encode(["x"], ids=["a"])
    with pytest.raises(ArgumentError, match="from 0 to 3; expected 0 to 2"):
        encoder.encode(["x", "y"], records=[0, 3], n_records=3)
    with pytest.raises(ShapeError, match="expected one number each"):
        encoder.encode(["x"], records=[0, 1], n_records=3)


def test_rows_with_nan_or_infinity_are_failures_and_shift_no_other(tmp_path: Path) -> None:
    rows = [[1, 2], [np.nan, 0], [3, 4], [0, np.inf], [0, 0]]
    encoded = make_encoder(npz(tmp_path / "rows.npz", ids=list("abcde"), rows=rows)).encode(list("abcde"))
    assert encoded.rows.tolist() == [[1, 2], [3, 4], [0, 0]] and encoded.ids == list("02 4".replace(" ", ""))
    assert [(f.index, f.reason) for f in encoded.failures] == [
        (1, "the row holds NaN or infinity"),
        (3, "the row holds NaN or infinity"),
    ]
    assert encoded.report.empty_ids == ["4"]


def test_missing_values_in_parquet_are_failures(tmp_path: Path) -> None:
    lists = pl.DataFrame({"id": list("abc"), "v": [[1.0, 2.0], None, [3.0, None]]})
    numbers = pl.DataFrame({"id": list("abc"), "x": [1.0, None, 3.0], "y": [2, 2, None]})
    for number, frame in enumerate((lists, numbers)):
        encoded = make_encoder(parquet(tmp_path / f"{number}.parquet", frame)).encode(list("abc"))
        assert encoded.rows.tolist() == [[1, 2]] and len(encoded.failures) == 2


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (Path("trap-was-sprung"),))  # type: ignore[return-value]


@pytest.mark.parametrize("name", ["rows.npy", "rows.npz"])
def test_object_arrays_are_refused_and_nothing_runs(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    array = np.array([[Trap()]], dtype=object)
    if name.endswith("npy"):
        np.save(name, array, allow_pickle=True)
    else:
        np.savez(name, ids=np.array(["a"]), rows=array)
    with pytest.raises(DataError, match="without running code"):
        make_encoder(f"rows:{name}").encode(["a"], records=[0], n_records=1)
    assert not Path("trap-was-sprung").exists()


@pytest.mark.parametrize("name", ["rows.npy", "rows.npz", "rows.parquet"])
@pytest.mark.parametrize("content", [b"", b"noise", b"PK\x03\x04 cut"])
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        make_encoder(f"rows:{tmp_path / name}").encode(["a"])


def test_ids_must_be_unique_and_as_many_as_rows(tmp_path: Path) -> None:
    with pytest.raises(DuplicateIdError, match=r"1 ids occur more than once \(a\)"):
        make_encoder(npz(tmp_path / "1.npz", ids=["a", "a", "b"], rows=ROWS)).encode(["a"])
    with pytest.raises(ShapeError, match="2 ids and 3 rows"):
        make_encoder(npz(tmp_path / "2.npz", ids=["a", "b"], rows=ROWS)).encode(["a"])


def test_a_file_whose_arrays_cannot_be_told_apart_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected an array `ids`"):
        make_encoder(npz(tmp_path / "1.npz", x=ROWS, y=ROWS, names=IDS)).encode(["a"])
    with pytest.raises(ShapeError, match=r"expected numbers \(n, d\)"):
        make_encoder(npz(tmp_path / "2.npz", ids=IDS, rows=[1.0, 2.0, 3.0])).encode(["a"])
    frame = pl.DataFrame({"p": IDS, "q": IDS, "x": [1, 2, 3]})
    with pytest.raises(DataError, match="id_column="):
        make_encoder(parquet(tmp_path / "3.parquet", frame)).encode(["a"])
    assert make_encoder(f"rows:{tmp_path / '3.parquet'}", id_column="q").encode(["a"]).rows.tolist() == [[1]]
    ragged = pl.DataFrame({"id": ["a", "b"], "v": [[1.0], [1.0, 2.0]]})
    with pytest.raises(ShapeError, match="same number in each"):
        make_encoder(parquet(tmp_path / "4.parquet", ragged)).encode(["a"])


def test_a_missing_file_and_an_unknown_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileNotFoundError, match="does not exist"):
        make_encoder(f"rows:{tmp_path / 'absent.npz'}")
    (tmp_path / "rows.pt").write_bytes(b"")
    with pytest.raises(EncoderError, match=r"rows are read from .npy, .npz, .parquet"):
        make_encoder(f"rows:{tmp_path / 'rows.pt'}")


def test_a_changed_file_is_noticed_on_opening(tmp_path: Path) -> None:
    spec = npz(tmp_path / "rows.npz", ids=IDS, rows=ROWS)
    encoder = make_encoder(spec)
    encoder.save(tmp_path / "saved")
    assert load_encoder(tmp_path / "saved").fingerprint() == encoder.fingerprint()
    npz(tmp_path / "rows.npz", ids=IDS, rows=ROWS + 1)
    assert make_encoder(spec).fingerprint() != encoder.fingerprint()
    with pytest.raises(MismatchError, match="has changed since"):
        load_encoder(tmp_path / "saved")
