"""Opening the space of a run folder, and the checks that its parts belong together.

The index stores the fingerprint of the model that made its rows: the hash of both encoders' fingerprints and of the
heads' file. It also stores canaries, items that each encoder must encode as it did on the day of the build. Both are
made here, for who builds an index, and compared here. Searching itself is in `space`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from bridgehead.encode import Encoder, load_encoder
from bridgehead.encode.canary import Canary, canary_rows, check_canary
from bridgehead.errors import ArgumentError, InputFileNotFoundError
from bridgehead.files import hash_file, hash_json
from bridgehead.index import open_index
from bridgehead.search.space import Space

HEADS_FILE = "heads.safetensors"
_CANARY = "canary-{side}"
_FOLDERS = {"refit": ("refit", "index"), "evaluated": ("", "index-evaluated")}


def open_space(run: str | Path, heads: str = "refit") -> Space:
    """Open the space of a run folder for searching.

    `heads`: "refit" (trained on all pairs: `<run>/refit`, `<run>/index`) or "evaluated" (never saw the test items:
    `<run>`, `<run>/index-evaluated`). Needs no write permission and, for n-grams and fingerprints, no torch.

    Raises `ArgumentError` (heads), `InputFileNotFoundError` (run, heads or index are not there), `MismatchError` (index
    and model do not belong together), `FormatVersionError` and `RunStateError`.
    """
    if heads not in _FOLDERS:
        raise ArgumentError(f"heads = {heads!r}; expected 'refit' or 'evaluated'")
    model, index = (Path(run) / part for part in _FOLDERS[heads])
    if not Path(run).is_dir():
        raise InputFileNotFoundError(f"there is no run folder {run}")
    if not (model / HEADS_FILE).is_file():
        stage = "refit" if heads == "refit" else "train"
        raise InputFileNotFoundError(f"{model / HEADS_FILE} does not exist; run the stage {stage} of {run} first")
    return open_space_of(model, index)


def open_space_of(model: str | Path, index: str | Path) -> Space:
    """Open a space from a folder of a model (`encoders/a`, `encoders/b`, `heads.safetensors`) and one of an index.

    Raises as `open_space`.
    """
    from bridgehead.align.twin import NumpyHeads

    folder = Path(model)
    encoders = {side: load_encoder(folder / "encoders" / side) for side in ("a", "b")}
    opened = open_index(index, model_fingerprint(encoders["a"], encoders["b"], folder / HEADS_FILE))
    try:
        for side, encoder in encoders.items():
            if (stored := opened.attached(_CANARY.format(side=side))) is not None:
                check_canary(encoder, Canary.load(stored))
        return Space(opened, encoders["a"], encoders["b"], NumpyHeads.load(folder / HEADS_FILE))
    except BaseException:
        opened.close()
        raise


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
