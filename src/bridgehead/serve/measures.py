"""What the service counts and times, in Prometheus's format.

Labels are routes, statuses, sides and names of our own, so that no client can make their number grow. Not about the
log (`log`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Name -> side -> value.
Facts = Callable[[], Mapping[str, Mapping[str, float]]]
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Measures:
    """The metrics of one service, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self.registry)
        kept = self.registry
        self._requests = Counter("bridgehead_requests", "Requests answered.", ["route", "status"], registry=kept)
        self._seconds = _seconds("request", "from a request to the end of its answer", kept, ["route"])
        self.batch = Histogram(
            "bridgehead_batch_size", "Queries that were answered together.", buckets=_SIZES, registry=kept
        )
        self.encode = _seconds("encode", "of encoding a batch", kept)
        self.answer = _seconds("answer", "of answering a batch, encoding included", kept)
        self.sandbox = Counter(
            "bridgehead_sandbox_limits", "Structures that were refused at a limit of the sandbox.", registry=kept
        )
        self.exchanges = Counter(
            "bridgehead_space_exchanges", "Times that a space with new heads took over.", registry=kept
        )
        self._by_route: dict[tuple[str, int], Any] = {}

    def told(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        found = self._by_route.get((route, status))
        if found is None:
            found = (self._requests.labels(route, str(status)), self._seconds.labels(route))
            self._by_route[route, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def watch(self, lanes: Mapping[str, Callable[[], float]], facts: Facts) -> None:
        """Show what is asked for whenever metrics are read: lengths of queues, and facts of the index."""
        waiting = Gauge("bridgehead_queue_length", "Requests that wait.", ["lane"], registry=self.registry)
        for name, length in lanes.items():
            waiting.labels(name).set_function(length)
        self.registry.register(_FactsCollector(facts))

    def page(self) -> bytes:
        """Return all of them as text."""
        return generate_latest(self.registry)


def _seconds(name: str, of: str, registry: CollectorRegistry, labels: Sequence[str] = ()) -> Histogram:
    return Histogram(f"bridgehead_{name}_seconds", f"Seconds {of}.", labels, buckets=_SECONDS, registry=registry)


class _FactsCollector(Collector):
    """Facts that are read when they are asked for."""

    def __init__(self, read: Facts) -> None:
        self._read = read

    def collect(self) -> list[Metric]:
        found: list[Metric] = []
        for name, values in self._read().items():
            family = GaugeMetricFamily(f"bridgehead_{name}", name.replace("_", " "), labels=["side"])
            for label, value in values.items():
                family.add_metric([label], value)
            found.append(family)
        return found


class TimedEncoder:
    """An encoder whose time is observed; everything else of it is as it was."""

    def __init__(self, encoder: Any, observe: Callable[[float], None]) -> None:
        self._encoder, self._observe = encoder, observe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, items: Any) -> Any:
        """Encode raw items."""
        start = time.perf_counter()
        try:
            return self._encoder.encode(items)
        finally:
            self._observe(time.perf_counter() - start)
