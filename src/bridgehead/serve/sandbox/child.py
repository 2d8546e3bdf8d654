"""The process of a sandbox: it limits itself, then does one task after another until its pipe ends.

Not about who calls it or what happens when it hangs (`pool`).
"""

import contextlib
import ctypes
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any

from bridgehead.errors import BridgeheadError

_PR_SET_PDEATHSIG = 1


def serve_tasks(pipe: Connection, seconds: float, memory_mib: int) -> None:
    """Answer tasks from `pipe` until it ends: JSON `[name, arguments]` in, `{"result"}` or `{"error", "message"}` out.

    Each may take `seconds` of processor time (some less), then the process ends by SIGPROF; the process may take
    `memory_mib` MiB above what it has at the start, where the system can limit that (Linux). It ends with the process
    that started it.
    """
    _die_with_parent()
    # Imported here where the server of the processes was started for something else, and has not done it.
    import bridgehead.serve.sandbox.warmed  # noqa: F401

    _say_nothing()
    _limit_space(memory_mib)
    with contextlib.suppress(EOFError, OSError):
        pipe.send_bytes(b"ready")
        while True:
            name, arguments = json.loads(pipe.recv_bytes())
            answer = _answer(name, arguments, seconds)
            pipe.send_bytes(json.dumps(answer).encode())
            if answer.get("error") == "memory":
                # What is left of the memory may be in pieces.
                return


def _answer(name: str, arguments: Any, seconds: float) -> dict[str, Any]:
    from bridgehead.serve.sandbox.tasks import MOST_SECONDS, ONE_BY_ONE, TASKS

    within = partial(_within, min(seconds, MOST_SECONDS.get(name, seconds)), TASKS[name])
    try:
        if name in ONE_BY_ONE:
            return {"result": [within(one) for one in arguments[0]]}
        return {"result": within(*arguments)}
    except MemoryError:
        return {"error": "memory", "message": ""}
    except BridgeheadError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except Exception as error:
        # A fault that none of ours foresaw: RDKit's own texts name places of its source, and stay here.
        return {"error": "fault", "message": type(error).__name__}


def _within(seconds: float, task: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `task` gives; at the end of its processor time a signal ends the process, in compiled code too."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return task(*arguments)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _die_with_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(OSError, AttributeError, TypeError):
        # The parent is the fork server, and it goes on as long as anybody holds this pipe. Held here, a process that
        # hangs would keep its own parent alive after the service was killed, until its processor time is over.
        os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]


def _say_nothing() -> None:
    """Let nothing that libraries print about a structure reach the log of the service."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _limit_space(memory_mib: int) -> None:
    """Allow `memory_mib` MiB more than now, no file and no core dump."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/statm") as written:
            mapped = int(written.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        most = mapped + memory_mib * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
