"""What a head is made of, as plain values: shared by the torch heads, their numpy twin and the file that holds both.

No torch here. This module is not about weights or arithmetic.
"""

import math
import operator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bridgehead.errors import ArgumentError, ConfigError

InputNorm = Literal["none", "unit", "standard"]
Norm = Literal["layer", "batch", "rms", "none"]
Residual = Literal["none", "output", "layers"]
ACTIVATIONS = ("gelu", "relu")
NORMS = ("layer", "batch", "rms", "none")
NORM_EPSILON = 1e-5
"""What every norm adds under its square root: torch's default of LayerNorm and BatchNorm, taken for RMSNorm too."""
RESIDUALS = ("none", "output", "layers")
INPUT_NORMS = ("none", "unit", "standard")
STORAGE = ("float32", "float16")
MAX_WIDTH = 65_536
"""Most columns of a layer; a typing error of a few zeros would ask for more memory than there is."""

FORMAT = "bridgehead-heads"
VERSION = "1"


@dataclass(frozen=True)
class HeadConfig:
    """The architecture of one projection head, (n, input_dim) -> (n, embed_dim).

    With h_0 = x, hidden layer k is h_k = drop(norm(act(W_k h_(k-1) + b_k))), and z = W h_K + b over the last of them;
    an empty `hidden` is one linear map.

    `norm` over the units of a row, each with learned gain (and but for "rms" offset) and 1e-5 under the root: "layer"
    (Ba et al. 2016, arXiv:1607.06450), "rms" (root mean square, without centring; Zhang and Sennrich 2019,
    arXiv:1910.07467) or "none"; "batch" is over the rows of a batch (Ioffe and Szegedy 2015, arXiv:1502.03167), in
    evaluation over running averages. True is "layer" and False "none".

    `residual`: "output" adds W_1 x + b_1 to z and needs hidden[0] == embed_dim; "layers" adds h_(k-1) to h_k (He et al.
    2016, arXiv:1512.03385) for every k of 2 or more whose layer is as wide as the one before; a head without such a
    layer has no skip. The first layer has none, so that dense and CSR rows are treated alike. True is "output" and
    False "none".

    `sparse` heads read CSR rows through an embedding bag. `input_norm` comes first: "unit" divides a row by its norm (a
    zero row stays zero), "standard" subtracts the mean and divides by the standard deviation of the training rows
    (dense only; a column that is constant there becomes 0), "none" does neither. `input_dropout` drops entries of the
    input in training, `dropout` those of hidden layers, both in [0, 1). `init_std` is the standard deviation that the
    embedding bag starts from, over sqrt(width of the first layer). Raises `ConfigError`.
    """

    input_dim: int
    embed_dim: int = 256
    hidden: tuple[int, ...] = (512,)
    activation: str = "gelu"
    dropout: float = 0.0
    input_dropout: float = 0.0
    norm: str | bool = "layer"
    residual: str | bool = "none"
    sparse: bool = False
    input_norm: str = "none"
    init_std: float = 1.0

    def __post_init__(self) -> None:
        self._make_plain()
        if self.input_dim < 1 or not all(1 <= width <= MAX_WIDTH for width in self.widths):
            raise ConfigError(
                f"input_dim = {self.input_dim}, hidden = {self.hidden}, embed_dim = {self.embed_dim}; "
                f"expected widths of at least 1 and at most {MAX_WIDTH:,}, the input aside"
            )
        _one_of("activation", self.activation, ACTIVATIONS)
        _one_of("norm", self.norm, NORMS)
        _one_of("residual", self.residual, RESIDUALS)
        _one_of("input_norm", self.input_norm, INPUT_NORMS)
        for name in ("dropout", "input_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}; expected a share in [0, 1)")
        if not 0 <= self.init_std < math.inf:
            raise ConfigError(f"init_std = {self.init_std}; expected a finite standard deviation of 0 or more")
        if self.sparse and self.input_norm == "standard":
            raise ConfigError("input_norm = 'standard' would make CSR rows dense; use 'unit' or 'none' for them")
        if self.residual == "output" and (not self.hidden or self.hidden[0] != self.embed_dim):
            raise ConfigError(
                f"residual needs a first hidden layer as wide as the space to be added to the output, not hidden = "
                f"{self.hidden} with embed_dim = {self.embed_dim}; widen that layer, or take 'layers' or 'none'"
            )

    def _make_plain(self) -> None:
        """Turn numbers of numpy and the older True and False into what JSON holds, in place."""
        try:
            plain: dict[str, Any] = {"hidden": tuple(operator.index(width) for width in self.hidden)}
            plain |= {name: operator.index(getattr(self, name)) for name in ("input_dim", "embed_dim")}
            plain |= {name: float(getattr(self, name)) for name in ("dropout", "input_dropout", "init_std")}
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"input_dim = {self.input_dim!r}, hidden = {self.hidden!r}, embed_dim = {self.embed_dim!r}, dropout = "
                f"{self.dropout!r}, input_dropout = {self.input_dropout!r}, init_std = {self.init_std!r}: {error}; "
                "expected whole widths (hidden a list of them) and numbers"
            ) from error
        plain["sparse"] = bool(self.sparse)
        if isinstance(self.norm, bool):
            plain["norm"] = "layer" if self.norm else "none"
        if isinstance(self.residual, bool):
            plain["residual"] = "output" if self.residual else "none"
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    def skips(self, number: int) -> bool:
        """Say whether a skip leads around hidden layer `number`, counted from 0."""
        return self.residual == "layers" and number > 0 and self.hidden[number] == self.hidden[number - 1]

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths of all layers' outputs, the last one `embed_dim`."""
        return (*self.hidden, self.embed_dim)


@dataclass(frozen=True)
class HeadsConfig:
    """Two heads into one space and the start of their logit scale; `bounds` None is unbounded.

    Raises `ConfigError` when the two embed_dim differ.
    """

    a: HeadConfig
    b: HeadConfig
    logit_scale: float = 1 / 0.07
    bounds: tuple[float, float] | None = (1.0, 100.0)
    learn_scale: bool = True

    def __post_init__(self) -> None:
        if self.a.embed_dim != self.b.embed_dim:
            raise ConfigError(
                f"head a ends in {self.a.embed_dim} dimensions and head b in {self.b.embed_dim}; both must be the same"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values as JSON holds them; `from_dict` reads them back."""
        plain = asdict(self) | {"logit_scale": float(self.logit_scale), "learn_scale": bool(self.learn_scale)}
        for side in ("a", "b"):
            plain[side]["hidden"] = list(plain[side]["hidden"])
        plain["bounds"] = None if self.bounds is None else [float(bound) for bound in self.bounds]
        return plain

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "HeadsConfig":
        """Read what `to_dict` gave. Raises `ConfigError` when a key is missing or unknown."""
        try:
            plain = dict(content)
            head_a, head_b = HeadConfig(**plain.pop("a")), HeadConfig(**plain.pop("b"))
            if plain.get("bounds") is not None:
                plain["bounds"] = tuple(plain["bounds"])
            return cls(head_a, head_b, **plain)
        except (KeyError, TypeError) as error:
            raise ConfigError(f"the description of the heads is not understood: {error}") from error


def in_float32(number: float) -> bool:
    """Say whether float32 holds `number` in full, neither rounded to zero or infinity nor with fewer digits."""
    return 1.2e-38 <= abs(number) <= 3.4e38


def real_number(name: str, value: Any) -> float:
    """Return `value` as a float, infinite where it is beyond all floats. Raises `ArgumentError` for what is none."""
    try:
        return float("not a number" if isinstance(value, str | bytes) else value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(f"{name} = {value!r:.80}; expected a number") from error


def whole_width(name: str, value: Any) -> int:
    """Return `value` as the width of a layer or of rows, 1 to `MAX_WIDTH`. Raises `ConfigError` that names it."""
    try:
        width = operator.index(value)
    except TypeError:
        width = 0
    if not 1 <= width <= MAX_WIDTH:
        raise ConfigError(f"{name} = {value!r}; expected a whole number of dimensions, 1 to {MAX_WIDTH:,}")
    return width


def _one_of(name: str, value: str | bool, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name} = {value!r}; expected one of {', '.join(allowed)}")
