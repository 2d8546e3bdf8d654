"""All limits of the service in one place, each with what it is for.

The page `docs/service.md` shows this table and a test holds them together. Not about where the service listens.
"""

from dataclasses import Field, dataclass, field, fields
from typing import Any

from bridgehead.errors import ConfigError

# What the interface promises, in its OpenAPI too, and no setting changes.
MAX_K = 1000
MAX_OFFSET = 10_000
MAX_TEXT = 10_000
MAX_ID = 2000
MAX_ITEMS = 1000
MAX_LABELS = 1000
MAX_TEMPLATES = 100
MAX_PROMPTS = 5000
PROMISED: tuple[tuple[str, int, str], ...] = (
    ("k", MAX_K, "hits of one answer"),
    ("offset", MAX_OFFSET, "hits left out before the first"),
    ("text", MAX_TEXT, "characters of a query, a filter, a pattern, an item, a label or a template"),
    ("id", MAX_ID, "characters of an id in an address"),
    ("items", MAX_ITEMS, "items of one `/classify` or `/encode`"),
    ("labels", MAX_LABELS, "labels of one `/classify`, and synonyms of one label"),
    ("templates", MAX_TEMPLATES, "templates of one `/classify`"),
    ("prompts", MAX_PROMPTS, "templates times labels and synonyms of one `/classify`"),
)
"""(name, most, of what): the limits of the interface."""


def _limit(default: Any, says: str, least: float | None = 0) -> Any:
    return field(default=default, metadata={"says": says, "least": least})


@dataclass(frozen=True)
class ServeSettings:
    """Limits of the service; `explained()` says what each is for. Raises `ConfigError` for values out of range."""

    max_body_bytes: int = _limit(1_000_000, "most bytes of a request's body, counted while it streams in", 1000)
    read_seconds: float = _limit(
        10.0,
        "seconds that a request may take to come in, and a client take nothing of its answer; then 408, or the "
        "connection is closed",
    )
    max_batch: int = _limit(32, "most waiting queries that are encoded and searched together", 1)
    queue: int = _limit(256, "most requests that wait for the space; further ones get 503 with Retry-After", 1)
    slow_queue: int = _limit(16, "most /classify, /encode and substructure requests that wait beside the others", 1)
    time_limit: float = _limit(10.0, "seconds until a request is answered with 504; what nobody waits for is dropped")
    retry_after: int = _limit(1, "seconds after which a refused client should try again (Retry-After)", 1)
    drain_seconds: float = _limit(0.5, "seconds after SIGTERM during which requests are taken and /ready says 503")
    shutdown_seconds: float = _limit(15.0, "most seconds that requests under way may take after that")
    keep_alive: int = _limit(30, "seconds that an idle connection is kept", 1)
    max_connections: int = _limit(1000, "most connections at once; further ones get a bare 503", 1)
    pictures: int = _limit(2000, "most pictures that are kept drawn")
    vetted: int = _limit(10_000, "most texts of which it is kept that they are harmless as structures")
    sandbox_processes: int = _limit(1, "processes that read untrusted structures", 1)
    sandbox_queue: int = _limit(64, "most structures that wait to be read there; further ones get 503")
    sandbox_seconds: float = _limit(2.0, "seconds that reading one structure may take")
    sandbox_mib: int = _limit(1024, "memory in MiB that reading one structure may take", 64)
    look_seconds: float = _limit(1.0, "seconds between looks for an index with new heads, which is then opened beside")
    log_queries: bool = _limit(False, "whether queries stand in the log", None)

    def __post_init__(self) -> None:
        for one in fields(self):
            _check(one, getattr(self, one.name))

    @classmethod
    def explained(cls) -> list[tuple[str, Any, str]]:
        """Return (name, default, what it is for) of each setting."""
        return [(one.name, one.default, str(one.metadata["says"])) for one in fields(cls)]


def _check(one: "Field[Any]", value: Any) -> None:
    least = one.metadata["least"]
    if least is None:
        good = isinstance(value, bool)
        expected = "true or false"
    else:
        whole = isinstance(one.default, int)
        good = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        good = good and least <= value < float("inf")
        expected = f"a {'whole ' if whole else ''}number of at least {least}"
    if not good:
        raise ConfigError(f"the setting {one.name} of the service is {value!r:.80}; expected {expected}")
