"""A process that has everything imported and forks writers on demand, which work until they are killed.

It reads lines {"folder", "mode", "seed", "calls"} and writes what its writers do: `begin CALL` before each call,
`done SECONDS` after it returned, and `ended` when the writer is no more.
"""

import json
import os
import sys
import time

import faiss  # noqa: F401
import numpy as np

from bridgehead.index import IndexWriter, VectorPlan
from written_items import side_of

MODES = {"put": [1, 0, 0], "delete": [0.2, 0.8, 0], "compact": [0.3, 0.1, 0.6], "mixed": [0.5, 0.3, 0.2]}
N_IDS = 400


def say(*parts):
    os.write(1, (" ".join(parts) + "\n").encode())


def call(rng, mode):
    """Return a random call: ["put", {id: version}], ["delete", [id]] or ["compact", kind of vectors]."""
    kind = str(rng.choice(["put", "delete", "compact"], p=MODES[mode]))
    if kind == "compact":
        return [kind, str(rng.choice(["flat", "ivf-sq8"]))]
    ids = [f"i{number}" for number in rng.choice(N_IDS, int(rng.integers(1, 25)), replace=False)]
    return [kind, ids if kind == "delete" else {one: int(rng.integers(1, 1000)) for one in ids}]


def do(writer, kind, what):
    if kind == "put":
        writer.put("b", side_of(what))
    elif kind == "delete":
        writer.delete("b", what)
    else:
        writer.compact(plan=VectorPlan(kind=what, recall_floor=0.0))


def work(folder, mode, seed, calls):
    rng = np.random.default_rng(seed)
    left = calls
    while left:
        # With mixed calls each has a writer of its own, so that kills also meet opening and closing.
        with IndexWriter(folder) as writer:
            if left == calls:
                say("begins")
            for _ in range(1 if mode == "mixed" else left):
                kind, what = call(rng, mode)
                say("begin", json.dumps([kind, what]))
                started = time.monotonic()
                do(writer, kind, what)
                say("done", str(time.monotonic() - started))
                left -= 1


def main():
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                work(**json.loads(line))
                os._exit(0)
            except BaseException as error:
                say("failed", repr(error))
                os._exit(1)
        say("pid", str(pid))
        os.waitpid(pid, 0)
        say("ended")


if __name__ == "__main__":
    main()
