"""How long `import bridgehead` takes in a fresh process: the best of five, which other work hardly moves.

Prints JSON; the exit status is 1 when the limit is passed. Run: python bench/import_time.py
"""

import json
import subprocess
import sys

LIMIT_SECONDS = 0.4
RUNS = 5
SCRIPT = "import time; start = time.perf_counter(); import bridgehead; print(time.perf_counter() - start)"


def main() -> int:
    """Measure, print, and say whether the limit was kept."""
    seconds = [
        float(subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout)
        for _ in range(RUNS)
    ]
    print(json.dumps({"import_seconds": round(min(seconds), 4), "limit": LIMIT_SECONDS, "runs": RUNS}))
    return int(min(seconds) > LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
