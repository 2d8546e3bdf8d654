"""What filters on payload cost: writing the values of synthetic items, and from a filter to the numbers of its items.

Payload has texts that read as numbers (as a table file gives them), numbers, categories, lists, dates and truth values.
Times are of the processor, the best of five, so that other work on the machine counts less. Prints JSON; the exit
status is 1 where an equality or a range takes over the limit (at 200,000 items).
Run: python bench/filters.py [--items 200000]
"""

import argparse
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead.index.where import FIELDS_SCHEMA, field_facts, matching_numbers, parse_where, write_fields

MOST_MS = 20.0
LIMITED = ["species = 'human'", "ic50_nM < 148", "mass >= 100 and mass < 200", "date >= '2010' and date < '2011'"]
FILTERS = [
    *LIMITED,
    "ic50_nM < 1",
    "targets = 'target 5'",
    "species != 'human'",
    "not targets = 'target 5'",
    "approved = true and date >= '2010' and species in ('rat', 'dog')",
]


def payloads(n: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number, payload) of `n` items."""
    rng = np.random.default_rng(0)
    values, families = rng.lognormal(5, 2, n), rng.zipf(1.3, n) % 3000
    kinds, years, approved = rng.integers(0, 4, n), rng.integers(1980, 2025, n), rng.random(n) < 0.3
    for number in range(n):
        family = int(families[number])
        yield (
            number,
            {
                "ic50_nM": f"{values[number]:.2f}",
                "mass": float(values[number]),
                "species": ["human", "rat", "mouse", "dog"][kinds[number]],
                "targets": [f"target {family}", f"target {family * 7 % 3000}"],
                "date": f"{years[number]}-0{1 + number % 9}-11",
                "approved": "true" if approved[number] else "false",
                "statement": [
                    f"Activates receptor number {family} and relieves low mood in rats of sort {number % 10}."
                ],
            },
        )


def best_ms(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the milliseconds of the quickest of five calls, and what it gave."""
    times = []
    for _ in range(5):
        start = time.process_time()
        found = work()
        times.append(time.process_time() - start)
    return round(min(times) * 1000, 2), found


def main() -> int:
    """Measure, print, and say whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=200_000)
    n = parser.parse_args().items
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.sqlite"
        connection = sqlite3.connect(path, isolation_level=None)
        connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")
        connection.executescript(FIELDS_SCHEMA)
        start = time.process_time()
        connection.execute("BEGIN")
        write_fields(connection, 0, payloads(n))
        connection.execute("COMMIT")
        written = {"s": round(time.process_time() - start, 1), "mb": round(path.stat().st_size / 1e6, 1)}
        found = {}
        for text in FILTERS:
            took, numbers = best_ms(lambda text=text: matching_numbers(connection, 0, parse_where(text)))
            found[text] = {"ms": took, "n_found": len(numbers)}
        facts_ms, _ = best_ms(lambda: field_facts(connection, 0))
        connection.close()
    print(json.dumps({"n_items": n, "written": written, "filters": found, "facts_ms": facts_ms}, indent=2))
    return int(n <= 200_000 and max(found[text]["ms"] for text in LIMITED) > MOST_MS)


if __name__ == "__main__":
    sys.exit(main())
