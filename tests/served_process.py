"""A service of the tiny space in a process of its own, on a free port; `python served_process.py INDEX [LIMITS]`.

Queries that hold "slow" take a second to encode.
"""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent


@contextmanager
def running(index, **limits):
    """Give (process, port) of a service that listens; it is killed at the end where it still runs."""
    command = [sys.executable, __file__, str(index), json.dumps(limits)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent / 'src'}"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, bufsize=1
    )
    try:
        line = process.stdout.readline()
        found = re.search(r":(\d+)/", line)
        assert found, f"{line}{process.stderr.read() if process.poll() is not None else ''}"
        yield process, int(found[1])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def main():
    from bridgehead.serve.answers.holder import SpaceHolder
    from bridgehead.serve.app import make_app
    from bridgehead.serve.log import RequestLog, log_the_server
    from bridgehead.serve.server import run_server
    from bridgehead.serve.settings import ServeSettings
    from bridgehead.serve.wire.listening import address_of, listening_socket
    from served_space import Letters, small_space

    class Slow(Letters):
        def encode(self, items):
            if any("slow" in item for item in items):
                time.sleep(1.0)
            return super().encode(items)

    settings = ServeSettings(**json.loads(sys.argv[2]))
    log = RequestLog(settings.log_queries)
    log_the_server(log)
    listener = listening_socket("127.0.0.1", 0)
    app = make_app(SpaceHolder(small_space(Path(sys.argv[1]), Slow())), settings, log=log)
    run_server(app, listener, settings, lambda: print(address_of(listener, "127.0.0.1"), flush=True))
    print("ended well", flush=True)


if __name__ == "__main__":
    main()
