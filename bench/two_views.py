"""How long `bridgehead study two-views` takes, from the start of Python to the page, and whether its table is right.

Each repeat is a fresh process that writes into a folder of its own. Prints JSON: the median and the spread of the
seconds, what the parts took, and how far the furthest mean is from the published one. The exit status is 1 when the
median is over the limit or a mean is further than 0.005 off.
Run: python bench/two_views.py [--all] [--repeats N]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

MOST_SECONDS = 30.0
"""For the main table, on two cores; with --all it is printed beside, and not held."""


def once(everything: bool) -> tuple[float, dict[str, Any]]:
    """Run the command once; return the seconds and its record."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bridgehead.cli", "study", "two-views", "--json", "--out", folder]
        command += ["--all"] if everything else []
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return time.perf_counter() - started, json.loads(done.stdout)


def main() -> int:
    """Measure, print, and say whether the limits were kept."""
    parser = argparse.ArgumentParser(description="The two-view study from the command line.")
    parser.add_argument("--all", action="store_true", help="the exercises too")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    found = [once(given.all) for _ in range(max(1, given.repeats))]
    seconds, record = [taken for taken, _ in found], found[-1][1]
    furthest = max(map(abs, record["difference"].values()))
    median = statistics.median(seconds)
    result = {
        "all": given.all,
        "repeats": len(found),
        "cores": len(os.sched_getaffinity(0)),
        "seconds": round(median, 2),
        "spread": [round(min(seconds), 2), round(max(seconds), 2)],
        "seconds_of_parts": record["seconds"],
        "furthest_from_published": round(furthest, 5),
        "all_within_0.005": record["all_within"],
        "limit_seconds": None if given.all else MOST_SECONDS,
    }
    print(json.dumps(result))
    return int(not record["all_within"] or (not given.all and median > MOST_SECONDS))


if __name__ == "__main__":
    sys.exit(main())
