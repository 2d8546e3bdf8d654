"""What a head is made of, as plain values: shared by the torch heads, their numpy twin and the file that holds both.

No torch here. This module is not about weights or arithmetic.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from bridgehead.errors import ConfigError

InputNorm = Literal["none", "unit", "standard"]
ACTIVATIONS = ("gelu", "relu")
INPUT_NORMS = ("none", "unit", "standard")
STORAGE = ("float32", "float16")
MAX_WIDTH = 65_536
"""Most columns of a layer; a typing error of a few zeros would ask for more memory than there is."""

FORMAT = "bridgehead-heads"
VERSION = "1"


@dataclass(frozen=True)
class HeadConfig:
    """The architecture of one projection head, (n, input_dim) -> (n, embed_dim).

    z = W_k ... norm(act(W_1 x + b_1)) ... + b_k with one activation, then LayerNorm (`norm`), then dropout after each
    layer of `hidden`; an empty `hidden` is one linear map. `residual` adds the first layer's output before activation
    to z and needs hidden[0] == embed_dim. `sparse` heads read CSR rows through an embedding bag. `input_norm` comes
    first: "unit" divides a row by its norm (a zero row stays zero), "standard" subtracts the mean and divides by the
    standard deviation of the training rows (dense only; a column that is constant there becomes 0), "none" does
    neither. `input_dropout` drops entries of the input in training, `dropout` those of hidden layers, both in [0, 1).
    `init_std` is the standard deviation that the embedding bag starts from, over sqrt(width of the first layer).
    Raises `ConfigError`.
    """

    input_dim: int
    embed_dim: int = 256
    hidden: tuple[int, ...] = (512,)
    activation: str = "gelu"
    dropout: float = 0.0
    input_dropout: float = 0.0
    norm: bool = True
    residual: bool = False
    sparse: bool = False
    input_norm: str = "none"
    init_std: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(int(width) for width in self.hidden))
        if self.input_dim < 1 or not all(1 <= width <= MAX_WIDTH for width in self.widths):
            raise ConfigError(
                f"input_dim = {self.input_dim}, hidden = {self.hidden}, embed_dim = {self.embed_dim}; "
                f"expected widths of at least 1 and at most {MAX_WIDTH:,}, the input aside"
            )
        _one_of("activation", self.activation, ACTIVATIONS)
        _one_of("input_norm", self.input_norm, INPUT_NORMS)
        for name in ("dropout", "input_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)}; expected a share in [0, 1)")
        if self.sparse and self.input_norm == "standard":
            raise ConfigError("input_norm = 'standard' would make CSR rows dense; use 'unit' or 'none' for them")
        if self.residual and (not self.hidden or self.hidden[0] != self.embed_dim):
            raise ConfigError(
                f"residual needs a first hidden layer as wide as the space, not hidden = {self.hidden} with "
                f"embed_dim = {self.embed_dim}"
            )

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
        """Return plain values for JSON; `from_dict` reads them back."""
        return asdict(self)

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


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name} = {value!r}; expected one of {', '.join(allowed)}")
