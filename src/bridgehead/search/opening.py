"""Opening the space of a run folder, and the checks that its parts belong together.

An index stores the fingerprint of the model that made its rows: the hash of both encoders' fingerprints and of the
heads' file. It carries that model itself (attachment "model"), so that an index and its model take another's place in
one step, and canaries, items that each encoder must encode as it did on the day of the build. All are made here, for
who builds an index, and compared here. Searching itself is in `space`.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bridgehead.encode import Encoder, load_encoder
from bridgehead.encode.canary import Canary, canary_rows, check_canary
from bridgehead.errors import ArgumentError, BridgeheadError, InputFileNotFoundError, MismatchError
from bridgehead.files import hash_file, hash_json, sync_folder
from bridgehead.index import Index, open_index
from bridgehead.search.space import Space

HEADS_FILE = "heads.safetensors"
MODEL = "model"
ENCODERS = "encoders"
_CANARY = "canary-{side}"
_FOLDERS = {"refit": ("refit", "index"), "evaluated": ("", "index-evaluated")}


class OpenedSpace(Space):
    """A space that knows the folders it was opened from.

    `model_note` is "" or says that the run has since got other heads than those of the index.
    """

    model_note: str = ""

    def __init__(self, model: Path, folder: Path, index: Index, *parts: Any) -> None:
        super().__init__(index, *parts)
        self._from = (model, folder)

    def __enter__(self) -> "OpenedSpace":
        return self

    def reopened(self) -> "OpenedSpace | None":
        """Return the space of the build of another model that has taken the place of this one's, None where none has.

        This space goes on answering from its own build until it is closed. Cheap enough to be asked before every
        query. Raises as `open_space`.
        """
        return open_space_of(*self._from) if self.index.superseded else None


def open_space(run: str | Path, heads: str = "refit") -> OpenedSpace:
    """Open the space of a run folder for searching.

    `heads`: "refit" (trained on all pairs: `<run>/index`) or "evaluated" (never saw the test items:
    `<run>/index-evaluated`). The model is the one that the index carries; where the run has got other heads since,
    `model_note` says so. Needs no write permission and, for n-grams and fingerprints, no torch.

    Raises `ArgumentError` (heads), `InputFileNotFoundError` (run, heads or index are not there), `MismatchError` (index
    and model do not belong together), `FormatVersionError` and `RunStateError`.
    """
    model, index = space_folders(run, heads)
    if not Path(run).is_dir():
        raise InputFileNotFoundError(f"there is no run folder {run}")
    if not index.is_dir() and not (model / HEADS_FILE).is_file():
        stage = "refit" if heads == "refit" else "train"
        raise InputFileNotFoundError(f"{model / HEADS_FILE} does not exist; run the stage {stage} of {run} first")
    return open_space_of(model, index)


def space_folders(run: str | Path, heads: str) -> tuple[Path, Path]:
    """Return the folders of the model and of the index of a run's heads; raises `ArgumentError` for unknown heads."""
    if heads not in _FOLDERS:
        raise ArgumentError(f"heads = {heads!r}; expected 'refit' or 'evaluated'")
    model, index = _FOLDERS[heads]
    return Path(run) / model, Path(run) / index


def open_space_of(model: str | Path, index: str | Path) -> OpenedSpace:
    """Open a space from a folder of an index and, where that carries none, one of a model.

    A folder of a model holds `encoders/a`, `encoders/b` and `heads.safetensors`. Raises as `open_space`.
    """
    own, place = Path(model), Path(index)
    while True:
        opened = open_index(place)
        folder = opened.attached(MODEL) or own
        try:
            return _space_of(own, place, opened, folder)
        except BaseException as error:
            # A build that takes this one's place removes its files, which may be while they are read here.
            replaced = opened.superseded or not folder.is_dir()
            opened.close()
            if not (replaced and isinstance(error, BridgeheadError | OSError)):
                raise


def _space_of(own: Path, index: Path, opened: Index, folder: Path) -> OpenedSpace:
    from bridgehead.align.twin import NumpyHeads

    encoders = load_model(folder, opened.model)
    for side, encoder in encoders.items():
        if (stored := opened.attached(_CANARY.format(side=side))) is not None:
            check_canary(encoder, Canary.load(stored))
    heads = NumpyHeads.load(folder / HEADS_FILE)
    space = OpenedSpace(own, index, opened, encoders["a"], encoders["b"], heads)
    if not same_model(folder, own):
        space.model_note = (
            "the run has another model now than the one that its index was built with, which searches on until the "
            "index is built again"
        )
    return space


def load_model(folder: Path, fingerprint: str) -> dict[str, Encoder]:
    """Return side -> encoder of the model in `folder`.

    Raises `InputFileNotFoundError` where there are no heads, and `MismatchError` where the model's fingerprint is not
    the one given: that of an index, which was then built with another model, or whose own was changed.
    """
    if not (folder / HEADS_FILE).is_file():
        raise InputFileNotFoundError(f"{folder / HEADS_FILE} does not exist; train or refit the run first")
    encoders = {side: load_encoder(folder / ENCODERS / side) for side in ("a", "b")}
    found = model_fingerprint(encoders["a"], encoders["b"], folder / HEADS_FILE)
    if found != fingerprint:
        raise MismatchError(
            f"the index was built with another model (fingerprint {fingerprint[:12]}) than the one in {folder} "
            f"({found[:12]}): its rows and new queries do not belong together; build the index again"
        )
    return encoders


def same_model(folder: Path, other: Path) -> bool:
    """Say whether two folders hold the same model file by file; true where `other` holds no whole one."""
    if folder == other or not (other / HEADS_FILE).is_file():
        return True
    ours, theirs = _files(folder), _files(other)
    return ours.keys() == theirs.keys() and all(_same(ours[name], theirs[name]) for name in ours)


def model_attachment(folder: str | Path) -> dict[str, Callable[[Path], object]]:
    """Return the `attachments` of `build_index` by which an index carries the model in `folder`.

    Files are hard links where the file system has them, else copies. Whoever writes a model puts new files in the place
    of old ones, so a link keeps what it was made of; a file that was written over is found by its fingerprint.
    """

    def write(target: Path) -> None:
        for name, source in _files(Path(folder)).items():
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            _link(source, place)
            sync_folder(place.parent)

    return {MODEL: write}


def model_fingerprint(encoder_a: Encoder, encoder_b: Encoder, heads: str | Path) -> str:
    """Return the hash (hex) of all that turns an item into a row of the space: what `build_index` is given."""
    return hash_json({"a": encoder_a.fingerprint(), "b": encoder_b.fingerprint(), "heads": hash_file(heads)})


def canary_attachments(
    encoder_a: Encoder, items_a: Sequence[str], encoder_b: Encoder, items_b: Sequence[str]
) -> dict[str, Callable[[Path], object]]:
    """Return the `attachments` of `build_index` by which `open_space` sees that the encoders are still the same.

    An encoder that finds rows in a file by id or record gets none: its fingerprint holds the file's hash.
    """
    return {
        _CANARY.format(side=side): canary_rows(encoder, items).save
        for side, encoder, items in (("a", encoder_a, items_a), ("b", encoder_b, items_b))
        if "rows:" not in encoder.spec and len(items)
    }


def item_kind(encoder: Encoder) -> str:
    """Return the kind of item that an encoder reads, from its spec: "molecule", "text", or "rows" for any.

    >>> from bridgehead.encode import make_encoder
    >>> item_kind(make_encoder("text:ngram"))
    'text'
    """
    kinds = [part.split(":")[0] for part in encoder.spec.split(" + ")]
    return next((kind for kind in kinds if kind != "rows"), "rows")


def _files(folder: Path) -> dict[str, Path]:
    """Return relative name -> path of the files of a model; what a killed writer left does not count."""
    found = [folder / HEADS_FILE, *_files_below(folder / ENCODERS / "a"), *_files_below(folder / ENCODERS / "b")]
    return {path.relative_to(folder).as_posix(): path for path in found}


def _files_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") and part.endswith(".part") for part in parts):
            yield path


def _same(one: Path, other: Path) -> bool:
    if one.samefile(other):
        return True
    return one.stat().st_size == other.stat().st_size and hash_file(one) == hash_file(other)


def _link(source: Path, place: Path) -> None:
    try:
        os.link(source, place)
    except OSError:
        # Another file system, or one without hard links; permissions may forbid it too.
        shutil.copyfile(source, place)
        with open(place, "rb") as copied:
            os.fsync(copied.fileno())
