"""A real run of the small table, and its service in a process of its own: `python served_run.py RUN [LIMITS]`."""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What no answer may hold, whatever was asked: places of this machine and of our source.
NEVER_TOLD = (b"Traceback", b"site-packages", b"src/bridgehead", b"items.sqlite", b".rows.npy", b"Code/GraphMol")


def small_run(folder):
    """Return the folder of a run of all stages."""
    from small_run import config, records, write_table

    from bridgehead import runs

    table = write_table(folder / "pairs.csv", records())
    return runs.run(config(table), folder / "run").folder


@contextmanager
def running(run, log, **limits):
    """Give (process, port) of a service of `run` that listens and logs to the file `log`; it is killed at the end."""
    command = [sys.executable, __file__, str(run), json.dumps(limits)]
    paths = os.pathsep.join([str(HERE), str(HERE.parent / "src")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        try:
            found = re.search(r":(\d+)/", process.stdout.readline())
            assert found, log.read_text()[-2000:]
            yield process, int(found[1])
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def main():
    from bridgehead.serve import serve
    from bridgehead.serve.settings import ServeSettings

    settings = ServeSettings(**json.loads(sys.argv[2]))
    serve(sys.argv[1], port=0, settings=settings, opened=lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
