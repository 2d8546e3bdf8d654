"""How the rows of a side shall be indexed, and the record of how they are.

Owns the choice of a kind from rows, memory and recall floor. Measuring is in `tuning`, building in `writing`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridgehead.errors import ArgumentError

KINDS = ("flat", "ivf-sq8", "ivf-pq", "hnsw")
FLAT_BELOW = 50_000
HNSW_LINKS = 32
_PQ_COLUMNS = 4
_GIB = 1 << 30


@dataclass(frozen=True)
class VectorPlan:
    """What is asked of the vectors of a side.

    `kind`: "flat" (exact, 4 bytes a number), "ivf-sq8" (1 byte a number), "ivf-pq" (an eighth of that or less),
    "hnsw" (a graph over 1 byte a number: fast, slow to build) or "auto". `memory_gib`: memory that the vectors of a
    side may take while they are searched, in GiB; None is as much as it needs. `recall_floor`: least recall@10 against
    exact search, a share in [0, 1], for the queries of each modality. `flat_below`: with "auto", a side of fewer rows
    is flat where memory allows. "auto" never takes "hnsw", whose build takes about twenty times as long.

    Raises `ArgumentError`.
    """

    kind: str = "auto"
    memory_gib: float | None = None
    recall_floor: float = 0.98
    flat_below: int = FLAT_BELOW

    def __post_init__(self) -> None:
        if self.kind not in ("auto", *KINDS):
            raise ArgumentError(f"kind = {self.kind!r}; expected 'auto' or one of {', '.join(KINDS)}")
        if not 0 <= self.recall_floor <= 1:
            raise ArgumentError(f"recall_floor = {self.recall_floor}; expected a share in [0, 1]")
        if self.memory_gib is not None and not self.memory_gib > 0:
            raise ArgumentError(f"memory_gib = {self.memory_gib}; expected a size in GiB above 0, or none")

    def chosen(self, n: int, dim: int) -> str:
        """Return the kind for `n` rows of `dim` columns.

        Raises `ArgumentError` when the kind that is named, or any with "auto", takes more than `memory_gib`.
        """
        usual = ("flat", "ivf-sq8", "ivf-pq") if n < self.flat_below else ("ivf-sq8", "ivf-pq")
        wanted = usual if self.kind == "auto" else (self.kind,)
        for kind in wanted:
            if self.memory_gib is None or memory_bytes(kind, n, dim) <= self.memory_gib * _GIB:
                return kind
        least = memory_bytes(wanted[-1], n, dim) / _GIB
        raise ArgumentError(
            f"{n:,} rows x {dim} take {least:.3f} GiB as {wanted[-1]}, and memory_gib = {self.memory_gib}: give more "
            + ("memory" if wanted[-1] == "ivf-pq" else "memory or take kind = 'ivf-pq', the smallest")
        )


def memory_bytes(kind: str, n: int, dim: int) -> int:
    """Return about how many bytes the vectors of `n` rows x `dim` take while they are searched."""
    lists = 4 * n_lists(n) * dim
    each = {
        "flat": 4 * dim,
        "ivf-sq8": dim + 8,
        "ivf-pq": pq_parts(dim) + 8,
        # Links to both sides of level 0 and a share for the levels above.
        "hnsw": dim + 4 * (2 * HNSW_LINKS + 2) + 16,
    }[kind]
    return n * each + (lists if kind.startswith("ivf") else 0)


def n_lists(n: int) -> int:
    """Return the number of lists of an IVF index over `n` rows: four times the root, at least one."""
    return max(1, min(int(4 * n**0.5), n))


def pq_parts(dim: int) -> int:
    """Return into how many parts of one byte each a row of `dim` columns is cut: the divisor next to dim / 4."""
    return max(part for part in range(1, max(1, dim // _PQ_COLUMNS) + 1) if dim % part == 0)


@dataclass(frozen=True)
class VectorFacts:
    """How the rows of a side are indexed and how well that finds what exact search finds.

    `method`: one of `KINDS`. `n_lists`, `nprobe`: of an IVF index, `ef` of a graph, else None. `candidates`: how many
    rows FAISS proposes for a first page. `recall`: recall@10 against exact search in [0, 1], as measured with queries
    of the "other side" and of the "own side" (items of the side, which may not count themselves); 1.0 when flat.
    `n_queries`: how many queries each was measured with; 0 when flat.
    """

    method: str
    n_rows: int
    dim: int
    n_lists: int | None = None
    nprobe: int | None = None
    ef: int | None = None
    candidates: int = 128
    recall: Mapping[str, float] = field(default_factory=dict)
    n_queries: Mapping[str, int] = field(default_factory=dict)

    def line(self, name: str) -> str:
        """Return one line to print, for the side shown as `name`."""
        shape = f"{name}: {self.n_rows:,} rows x {self.dim}"
        if self.method == "flat":
            return f"{shape}, flat (exact)"
        effort = f"graph of {HNSW_LINKS} links, ef {self.ef}"
        if self.n_lists is not None:
            effort = f"{self.n_lists} lists, nprobe {self.nprobe}"
        measured = ", ".join(
            f"{value:.4f} over {self.n_queries.get(kind, 0)} queries ({kind})" for kind, value in self.recall.items()
        )
        return f"{shape}, {self.method}, {effort}, {self.candidates} candidates, recall@10 {measured or 'not measured'}"
