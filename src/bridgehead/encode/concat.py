"""`x + y`: the columns of several encoders side by side.

Not about weighting them: each encoder scales its own rows, and heads learn the rest.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from bridgehead.encode.base import (
    ENCODER_FILE,
    ENCODER_FORMAT,
    Encoder,
    Origin,
    RawRows,
    fingerprint_of,
    load_encoder,
    make_encoder,
)
from bridgehead.encode.cache import Progress, RowCache
from bridgehead.errors import EncoderError
from bridgehead.files import read_json
from bridgehead.vectors import non_finite_rows


class ConcatEncoder(Encoder):
    """Rows of every part, one after the other; CSR when any part is sparse, dense otherwise.

    An item that fails in one part fails; its reason names the part.
    """

    kind: ClassVar[str] = "concat"

    def __init__(self, parts: Sequence[Encoder]) -> None:
        if len(parts) < 2:
            raise EncoderError(f"concatenation of {len(parts)} encoders; expected at least two")
        self.parts = list(parts)
        self.spec = " + ".join(part.spec for part in self.parts)

    @classmethod
    def of_specs(cls, specs: Sequence[str], parts: Sequence[dict[str, Any]] | None = None, **settings: Any) -> Self:
        """Make each part of its spec; `parts` gives the settings of each, in order.

        Raises `EncoderError` for settings that do not say which part they are for, or when their number differs.
        """
        if settings:
            raise EncoderError(
                f"{' + '.join(specs)}: settings {', '.join(settings)} do not say which part they are for; "
                "pass parts=[{...}, {...}], one for each"
            )
        if parts is not None and len(parts) != len(specs):
            raise EncoderError(f"{len(parts)} settings for {len(specs)} parts; expected one each")
        given = parts if parts is not None else [{}] * len(specs)
        return cls([make_encoder(spec, **own) for spec, own in zip(specs, given, strict=True)])

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether any part is sparse."""
        return any(part.sparse for part in self.parts)

    @property
    def needs_fit(self) -> bool:  # type: ignore[override]
        """Whether any part needs a fit."""
        return any(part.needs_fit for part in self.parts)

    @property
    def n_columns(self) -> int:
        """Sum of the widths of the parts."""
        return sum(part.n_columns for part in self.parts)

    def settings(self) -> dict[str, Any]:
        return {"parts": [part.settings() for part in self.parts]}

    def fingerprint(self) -> str:
        return fingerprint_of(self.kind, parts=[part.fingerprint() for part in self.parts])

    def fit(self, items: Sequence[str], cache: RowCache | None = None, progress: Progress | None = None) -> Self:
        """Return a concatenation of fitted parts."""
        return type(self)([part.fit(items, cache, progress) for part in self.parts])

    def raw_rows(
        self, items: Sequence[str], cache: RowCache | None, progress: Progress | None, origin: Origin
    ) -> RawRows:
        # Only `rows:` reads the origin; the other parts take and ignore it.
        found = [part.raw_rows(items, cache, progress, origin) for part in self.parts]
        reasons: dict[int, str] = {}
        for part, raw in zip(self.parts, found, strict=True):
            bad = [(int(raw.index[row]), "the row holds NaN or infinity") for row in non_finite_rows(raw.rows)]
            for position, reason in [*raw.reasons, *bad]:
                reasons.setdefault(position, f"{part.spec}: {reason}")
        index = np.array([position for position in range(len(items)) if position not in reasons], dtype=np.int64)
        blocks = [raw.rows[np.searchsorted(raw.index, index)] for raw in found]
        rows = sparse.hstack(blocks, format="csr", dtype=np.float32) if self.sparse else np.hstack(blocks)
        if self.sparse:
            rows = sparse.csr_matrix(rows)
            rows.sort_indices()
        shares = [raw.unknown_share for raw in found if raw.unknown_share is not None]
        named = list(zip(self.parts, found, strict=True))
        return RawRows(
            rows,
            index,
            sorted(reasons.items()),
            truncated=sorted({position for raw in found for position in raw.truncated}),
            unknown_share=max(shares) if shares else None,
            notes=[f"{part.spec}: {note}" for part, raw in named for note in raw.notes],
        )

    def save(self, folder: str | Path) -> None:
        """Write each part into a folder of its own (`part-0`, `part-1`, ...), then `encoder.json`."""
        for number, part in enumerate(self.parts):
            part.save(Path(folder) / f"part-{number}")
        super().save(folder)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote."""
        content = read_json(Path(folder) / ENCODER_FILE, ENCODER_FORMAT)
        n_parts = len(content["settings"]["parts"])
        return cls([load_encoder(Path(folder) / f"part-{number}") for number in range(n_parts)])
