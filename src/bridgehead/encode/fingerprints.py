"""`molecule:fingerprints`: counted substructures of RDKit, over the columns that training molecules show.

The hashed counts do not depend on the fit: worker processes compute them, a cache keeps them, refit and index use them.
This module is not about identity (`molecules`) or about learnt representations of molecules.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bridgehead.encode.base import (
    ENCODER_FILE,
    ENCODER_FORMAT,
    Encoder,
    Origin,
    RawRows,
    as_texts,
    check_settings,
    fingerprint_of,
)
from bridgehead.encode.cache import Block, CountRows, Progress, RowCache, cached_rows
from bridgehead.errors import EncoderError, MissingExtraError, StructureError
from bridgehead.files import hash_array, read_json, why_unreadable, write_npy
from bridgehead.molecules import parse
from bridgehead.workers import map_chunks

KINDS = ("morgan", "atom_pairs", "torsions", "maccs")
# The kind stands in the top bits of a feature's id; RDKit's hashes stay well under 2^56.
_KIND_SHIFT = np.uint64(56)
_CHUNK = 256
_VERSION = 1

UintArray = npt.NDArray[np.uint64]


class FingerprintEncoder(Encoder):
    """Counts of Morgan environments, atom pairs, topological torsions and MACCS keys, as CSR rows.

    `kinds` are some of `morgan`, `atom_pairs`, `torsions`, `maccs`; `radius` is that of Morgan; `chirality` tells
    stereoisomers apart (Morgan, pairs, torsions). Columns are the features that at least `min_count` training molecules
    have (2 by default: a feature of one molecule says nothing about another), in order of kind and hash. A count c
    becomes ln(1 + c). The columns of each kind are scaled to length 1/sqrt(number of kinds) in each row, so that the
    hundreds of atom pairs do not drown the dozens of keys, and a row with all kinds has length 1. Items are SMILES;
    those that cannot be parsed are failures. `processes` (default: all cores) does not shape the rows.
    """

    kind: ClassVar[str] = "molecule:fingerprints"
    sparse: ClassVar[bool] = True
    needs_fit: ClassVar[bool] = True

    def __init__(
        self,
        kinds: Sequence[str] = KINDS,
        radius: int = 2,
        chirality: bool = True,
        min_count: int = 2,
        processes: int | None = None,
    ) -> None:
        self.spec = self.kind
        unknown = [name for name in kinds if name not in KINDS]
        if unknown or not kinds or isinstance(kinds, str):
            raise EncoderError(f"{self.kind}: kinds = {kinds!r}; expected some of {', '.join(KINDS)}")
        if not isinstance(radius, int) or radius < 0:
            raise EncoderError(f"{self.kind}: radius = {radius!r}; expected a whole number, 0 or more")
        check_settings(self.kind, min_count=min_count, **({} if processes is None else {"processes": processes}))
        self.kinds = tuple(name for name in KINDS if name in kinds)
        self.radius = radius
        self.chirality = bool(chirality)
        self.min_count = min_count
        self.processes = processes
        self._columns: UintArray | None = None

    @property
    def n_columns(self) -> int:
        """Number of features seen in training."""
        return len(self._fitted())

    @property
    def column_kinds(self) -> list[str]:
        """The kind of each column."""
        return [KINDS[number] for number in (self._fitted() >> _KIND_SHIFT)]

    def settings(self) -> dict[str, Any]:
        return {
            "kinds": list(self.kinds),
            "radius": self.radius,
            "chirality": self.chirality,
            "min_count": self.min_count,
        }

    def fingerprint(self) -> str:
        fitted = None if self._columns is None else hash_array(self._columns)
        return fingerprint_of(self.kind, step=self.step_fingerprint(), settings=self.settings(), fitted=fitted)

    def step_fingerprint(self) -> str:
        """Hash (hex) of what shapes the cached counts: kinds, radius, chirality and RDKit's version."""
        return fingerprint_of(
            "molecule counts",
            version=_VERSION,
            kinds=list(self.kinds),
            radius=self.radius,
            chirality=self.chirality,
            rdkit=_rdkit_version(),
        )

    def counts(self, items: Sequence[str], cache: RowCache | None = None, progress: Progress | None = None) -> Block:
        """Return the hashed counts of `items`, which need no fit, and the reasons of those that cannot be parsed."""

        def compute(smiles: list[str]) -> Iterator[Block]:
            function = partial(count_features, kinds=self.kinds, radius=self.radius, chirality=self.chirality)
            for part, (rows, index, reasons) in map_chunks(function, smiles, chunk=_CHUNK, processes=self.processes):
                late = [(position + part.start, reason) for position, reason in reasons]
                yield Block(rows, index + part.start, np.zeros((len(index), 0), dtype=np.int64), late)

        return cached_rows(cache, self.step_fingerprint(), items, compute, progress)

    def fit(self, items: Sequence[str], cache: RowCache | None = None, progress: Progress | None = None) -> Self:
        """Return an encoder whose columns are the features of these training molecules.

        Molecules that cannot be parsed are left out. Raises `EncoderError` when no feature is left.
        """
        counted = self.counts(as_texts(items), cache, progress).rows
        assert isinstance(counted, CountRows)
        return self.with_columns_of(counted)

    def with_columns_of(self, counted: CountRows) -> Self:
        """Return an encoder whose columns are the features of these counted training molecules; see `fit`."""
        held = np.bincount(counted.codes, minlength=len(counted.table))
        columns = counted.table[held >= self.min_count]
        if not len(columns):
            raise EncoderError(
                f"{self.kind}: no feature is in {self.min_count} or more of {len(counted)} training molecules; "
                "expected SMILES to learn from (or a lower min_count)"
            )
        fitted = type(self)(**self.settings(), processes=self.processes)
        fitted._columns = columns
        return fitted

    def raw_rows(
        self, items: Sequence[str], cache: RowCache | None, progress: Progress | None, origin: Origin
    ) -> RawRows:
        self._fitted()
        block = self.counts(items, cache, progress)
        assert isinstance(block.rows, CountRows)
        rows, share = self.weighted(block.rows)
        return RawRows(rows, block.index, block.reasons, unknown_share=share)

    def weighted(self, counted: CountRows) -> tuple[Any, float | None]:
        """Return the CSR rows of counted molecules, and the share of their features that have no column."""
        columns = self._fitted()
        column_of = np.searchsorted(columns, counted.table)
        known = np.zeros(len(counted.table), dtype=bool)
        inside = column_of < len(columns)
        known[inside] = columns[column_of[inside]] == counted.table[inside]
        keep = known[counted.codes]
        indptr = np.concatenate([[0], np.cumsum(keep)])[counted.offsets]
        column = column_of[counted.codes[keep]].astype(np.int32)
        data = self._block_scaled(counted.counts[keep], column, indptr)
        rows = sparse.csr_matrix((data, column, indptr.astype(np.int32)), shape=(len(counted), len(columns)))
        return rows, 1 - int(keep.sum()) / len(keep) if len(keep) else None

    def _block_scaled(self, counts: Any, column: Any, indptr: Any) -> Any:
        n_rows = len(indptr) - 1
        weights = np.log1p(counts.astype(np.float64))
        kind = (self._fitted() >> _KIND_SHIFT).astype(np.int64)[column]
        block = np.repeat(np.arange(n_rows), np.diff(indptr)) * len(KINDS) + kind
        squares = np.bincount(block, weights=weights**2, minlength=n_rows * len(KINDS))
        return (weights / np.sqrt(len(self.kinds) * squares[block])).astype(np.float32)

    def _fitted(self) -> UintArray:
        if self._columns is None:
            raise EncoderError(f"{self.kind} has no columns yet; call fit(training_smiles) first")
        return self._columns

    def _save_state(self, folder: Path) -> None:
        write_npy(folder / "columns.npy", self._fitted())

    def _state(self) -> dict[str, Any]:
        return {"n_columns": self.n_columns, "columns": hash_array(self._fitted()), "rdkit": _rdkit_version()}

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote; raises `EncoderError` when its files do not belong together."""
        source = Path(folder)
        content = read_json(source / ENCODER_FILE, ENCODER_FORMAT)
        encoder = cls(**content["settings"])
        try:
            encoder._columns = np.load(source / "columns.npy", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            why = why_unreadable(error)
            raise EncoderError(f"{source} cannot be read ({why}); fit and save the encoder again") from error
        if hash_array(encoder._fitted()) != content["state"]["columns"]:
            raise EncoderError(f"{source} holds parts of different encoders; fit and save it again")
        return encoder


def count_features(
    smiles: Sequence[str], kinds: tuple[str, ...], radius: int, chirality: bool
) -> tuple[CountRows, npt.NDArray[np.int64], list[tuple[int, str]]]:
    """Return the counts of each molecule that parses, their positions, and (position, reason) of the others."""
    counters = _counters(kinds, radius, chirality)
    ids: list[int] = []
    counts: list[int] = []
    lengths: list[int] = []
    index: list[int] = []
    reasons: list[tuple[int, str]] = []
    for position, text in enumerate(smiles):
        try:
            molecule = parse(text)
            found = [counter(molecule) for _, counter in counters]
        except (StructureError, RuntimeError, ValueError) as error:
            reasons.append((position, str(error)))
            continue
        for held in found:
            ids.extend(held.keys())
            counts.extend(held.values())
            lengths.append(len(held))
        index.append(position)
    # Arrays are made once a chunk: doing so for each molecule and kind would cost as much as a fingerprint.
    prefixes = np.tile(np.array([prefix for prefix, _ in counters], dtype=np.uint64), len(index))
    features = np.array(ids, dtype=np.uint64) | np.repeat(prefixes, lengths)
    table, codes = np.unique(features, return_inverse=True)
    sizes = np.array(lengths, dtype=np.int64).reshape(len(index), len(counters)).sum(axis=1)
    order = np.lexsort((codes, np.repeat(np.arange(len(index)), sizes)))
    rows = CountRows(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        codes[order].astype(np.uint32),
        np.array(counts, dtype=np.uint32)[order],
        table,
    )
    return rows, np.array(index, dtype=np.int64), reasons


@lru_cache(maxsize=8)
def _counters(
    kinds: tuple[str, ...], radius: int, chirality: bool
) -> tuple[tuple[np.uint64, Callable[[Any], dict[int, int]]], ...]:
    from rdkit.Chem import rdFingerprintGenerator as generators
    from rdkit.Chem import rdMolDescriptors

    made = {
        "morgan": lambda: generators.GetMorganGenerator(radius=radius, includeChirality=chirality),
        "atom_pairs": lambda: generators.GetAtomPairGenerator(includeChirality=chirality),
        "torsions": lambda: generators.GetTopologicalTorsionGenerator(includeChirality=chirality),
    }

    def counted(name: str) -> Callable[[Any], dict[int, int]]:
        if name == "maccs":
            return lambda molecule: dict.fromkeys(rdMolDescriptors.GetMACCSKeysFingerprint(molecule).GetOnBits(), 1)
        generator = made[name]()
        return lambda molecule: generator.GetSparseCountFingerprint(molecule).GetNonzeroElements()

    return tuple((np.uint64(KINDS.index(name)) << _KIND_SHIFT, counted(name)) for name in kinds)


@lru_cache(maxsize=1)
def _rdkit_version() -> str:
    try:
        from rdkit import rdBase
    except ImportError as error:
        raise MissingExtraError("rdkit", "molecules") from error
    return str(rdBase.rdkitVersion)
