"""What HTTP costs: the service under load on one core, beside the bare loop of `space.search` on that core.

Queries are statements of the packaged table through `text:ngram`. The load generator (wrk) runs on the first core; the
service, and before and after it the bare loop, on the second. Measured: throughput with 32 clients as a share of the
loop's, the median that one client waits longer than the loop takes, errors and tail with 32 clients, and how memory
grows between two numbers of requests. Prints JSON; the exit status is 1 when a limit is passed.
Run: python bench/serve.py [--run RUN] [--seconds 60] [--memory 20000 200000]
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LEAST_SHARE = 0.5
MOST_ADDED_MS = 2.0
MOST_TAIL = 10.0
MOST_GROWTH = 0.05
CLIENTS = 32
K = 10
# What is built where no run is given.
N_ITEMS, EMBED_DIM, NOISE = 50_000, 256, 1.5
# wrk calls `request` for each request and `done` at the end; what it measures comes out as one line of JSON.
SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local at = 0
wrk.method, wrk.headers["Content-Type"] = "POST", "application/json"
function request() at = at %% #bodies + 1 return wrk.format(nil, nil, nil, bodies[at]) end
function done(summary, latency)
  local e = summary.errors
  local form = '{"requests": %%d, "seconds": %%f, "p50_ms": %%f, "p99_ms": %%f, "max_ms": %%f, "errors": %%d}\\n'
  io.write(string.format(form,
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def queries() -> list[str]:
    """Return what people ask in words: the first words of the packaged statements, each once."""
    from bridgehead.pairs.starter_data import read_starter_frame

    statements = [text for texts in read_starter_frame()["statement"].to_list() for text in texts]
    return sorted({" ".join(text.rstrip(".").split()[:8]) for text in statements if len(text.split()) > 2})


def opened(run: Path) -> Any:
    """Open the space of a run, or of a folder that this script has built."""
    from bridgehead.search import open_space, open_space_of

    return open_space(run) if (run / "config.toml").is_file() else open_space_of(run, run / "index")


def bare_loop(run: Path, of: str, seconds: float) -> None:
    """Print milliseconds of each search in a row, for `seconds`."""
    taken = []
    with opened(run) as space:
        asked = queries()
        for query in asked[:50]:
            space.search(query, k=K, of=of)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            space.search(asked[len(taken) % len(asked)], k=K, of=of)
            taken.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({"per_second": 1e3 * len(taken) / sum(taken), "median_ms": statistics.median(taken)}))


def serve(run: Path) -> None:
    """Serve until SIGTERM; prints the address first."""
    from bridgehead.serve.answers.holder import SpaceHolder
    from bridgehead.serve.app import make_app
    from bridgehead.serve.server import run_server
    from bridgehead.serve.settings import ServeSettings
    from bridgehead.serve.wire.listening import address_of, listening_socket

    settings = ServeSettings()
    listener = listening_socket("127.0.0.1", 0)
    app = make_app(SpaceHolder(opened(run)), settings)
    run_server(app, listener, settings, lambda: print(address_of(listener, "127.0.0.1"), flush=True))


def on_core(core: int, *command: str) -> list[str]:
    """Return a command that runs on one core."""
    return ["taskset", "-c", str(core), *command]


def this_script(*arguments: str) -> list[str]:
    """Return the command of this script on the core of the service."""
    return on_core(cores()[-1], sys.executable, __file__, *arguments)


def cores() -> list[int]:
    """Return the cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


def measured_loop(run: Path, of: str, seconds: float) -> dict[str, float]:
    """Return the figures of the bare loop in a process of its own."""
    command = this_script("--bare", str(run), "--of", of, "--seconds", str(seconds))
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=single_threaded())
    found: dict[str, float] = json.loads(done.stdout)
    return found


def single_threaded() -> dict[str, str]:
    """Return an environment in which libraries use one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@contextlib.contextmanager
def service(run: Path) -> Iterator[tuple[str, int]]:
    """Give (address, process id) of the service on its core."""
    process = subprocess.Popen(
        this_script("--serve", str(run)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=single_threaded(),
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, "the service did not end well"
    finally:
        process.kill()
        process.wait()


def load(url: str, script: Path, clients: int, seconds: float) -> dict[str, float]:
    """Return what wrk says of `clients` at once for `seconds`."""
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds:g}s", "--timeout", "15s", "-s", str(script), f"{url}search"]
    done = subprocess.run(on_core(cores()[0], *command), stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB, files that are mapped aside."""
    status = Path(f"/proc/{pid}/status").read_text()
    kib = re.search(r"RssAnon:\s+(\d+) kB", status)
    assert kib is not None
    return int(kib[1]) / 1024


def answered(url: str) -> int:
    """Return how many searches the service has answered."""
    with urllib.request.urlopen(f"{url}metrics") as response:
        page = response.read().decode()
    return sum(round(float(n)) for n in re.findall(r'bridgehead_requests_total\{route="/search".*?\} (\S+)', page))


def memory(url: str, pid: int, script: Path, points: tuple[int, int]) -> dict[str, float]:
    """Return resident MiB when the service has answered as many requests as each of `points`, and the growth."""
    found = []
    for point in points:
        while answered(url) < point:
            load(url, script, CLIENTS, 5)
        found.append(resident_mib(pid))
    return {"requests": answered(url), "first_mib": found[0], "last_mib": found[1], "growth": found[1] / found[0] - 1}


def report(run: Path, of: str, seconds: float, points: tuple[int, int]) -> dict[str, Any]:
    """Return all figures, and under `passed` whether each limit holds."""
    with tempfile.TemporaryDirectory() as name:
        bodies, script = Path(name) / "bodies", Path(name) / "load.lua"
        bodies.write_text("\n".join(json.dumps({"q": query, "k": K, "of": of}) for query in queries()) + "\n")
        script.write_text(SCRIPT % bodies)
        before = measured_loop(run, of, seconds / 4)
        with service(run) as (url, pid):
            load(url, script, 1, 3)
            one = load(url, script, 1, seconds / 4)
            many = load(url, script, CLIENTS, seconds)
            grown = memory(url, pid, script, points) if points[1] else None
        after = measured_loop(run, of, seconds / 4)
    bare = {name: (before[name] + after[name]) / 2 for name in before}
    share = many["requests"] / many["seconds"] / bare["per_second"]
    added, tail = one["p50_ms"] - bare["median_ms"], many["p99_ms"] / many["p50_ms"]
    passed = {
        "share": share >= LEAST_SHARE,
        "added_ms": added <= MOST_ADDED_MS,
        "errors": many["errors"] + one["errors"] == 0,
        "tail": tail <= MOST_TAIL,
        **({} if grown is None else {"growth": grown["growth"] < MOST_GROWTH}),
    }
    return {
        "bare_loop": bare, "one_client": one, "many_clients": {"clients": CLIENTS, **many}, "share": round(share, 3),
        "added_ms": round(added, 3), "tail": round(tail, 2), "memory": grown, "passed": passed,
        "load_average": os.getloadavg()[0],
    }  # fmt: skip


def main() -> int:
    """Measure, print, and say whether the limits hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, help="a run folder that is indexed; by default a small one is built")
    parser.add_argument("--of", default="molecule", help="the side to find")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long 32 clients ask")
    parser.add_argument("--memory", type=int, nargs=2, default=(20_000, 200_000), help="requests; 0 0 leaves it out")
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare is not None:
        bare_loop(given.bare, given.of, given.seconds)
        return 0
    if given.serve is not None:
        serve(given.serve)
        return 0
    if shutil.which("wrk") is None or len(cores()) < 2:
        print("needs wrk and two cores", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        run = given.run if given.run is not None else built(Path(name))
        found = report(run, given.of, given.seconds, tuple(given.memory))
    print(json.dumps(found, indent=1))
    return 0 if all(found["passed"].values()) else 1


def built(folder: Path) -> Path:
    """Return a folder with a model (untrained heads) and an index of `N_ITEMS` noisy copies of what texts become."""
    import numpy as np
    import torch

    from bridgehead.align import HeadConfig, HeadsConfig, NumpyHeads, TwoHeads, save_heads
    from bridgehead.encode import make_encoder
    from bridgehead.index import IndexSide, build_index
    from bridgehead.search import model_fingerprint

    texts = queries()
    encoders = {
        "a": make_encoder("molecule:fingerprints", min_count=1, processes=1).fit(["CCO", "c1ccccc1"]),
        "b": make_encoder("text:ngram").fit(texts),
    }
    for side, encoder in encoders.items():
        encoder.save(folder / "encoders" / side)
    torch.manual_seed(0)
    heads = [HeadConfig(encoder.n_columns, EMBED_DIM, sparse=True) for encoder in encoders.values()]
    save_heads(TwoHeads(HeadsConfig(*heads)), folder / "heads.safetensors")
    rows = NumpyHeads.load(folder / "heads.safetensors").project_b(encoders["b"].encode(texts).rows)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((N_ITEMS, EMBED_DIM)).astype(np.float32) / np.sqrt(EMBED_DIM)
    copies = rows[rng.integers(0, len(rows), N_ITEMS)] + NOISE * noise
    ids = [f"m{number}" for number in range(N_ITEMS)]
    sides = {
        "a": IndexSide("molecule", copies, ["C"] * N_ITEMS, ids, "molecule", [[f"compound {id}"] for id in ids]),
        "b": IndexSide("text", rows, texts, [f"t{number}" for number in range(len(texts))]),
    }
    model = model_fingerprint(encoders["a"], encoders["b"], folder / "heads.safetensors")
    build_index(folder / "index", sides, model, {"a": rows})
    return folder


if __name__ == "__main__":
    sys.exit(main())
