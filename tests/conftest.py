"""What tests of every folder may ask for."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data that is not in the repository: BRIDGEHEAD_DATA, or ../shared/data beside it."""
    folder = Path(os.environ.get("BRIDGEHEAD_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"needs the data folder {folder}; name another one in BRIDGEHEAD_DATA")
    return folder


class NetworkForbidden(RuntimeError):
    """Something tried to reach the network in a test that forbids it."""


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forbid network connections and name look-ups in this process and in what it forks.

    An attempt raises `NetworkForbidden`, and fails the test at its end even where the attempt's error was caught.
    Sockets between processes of this machine stay.
    """
    attempts: list[str] = []
    connect, connect_ex, sendto = socket.socket.connect, socket.socket.connect_ex, socket.socket.sendto

    def forbid(what: Any) -> None:
        attempts.append(str(what))
        raise NetworkForbidden(f"tried to reach {what}")

    def guarded(original: Any) -> Any:
        def call(self: socket.socket, *arguments: Any) -> Any:
            if self.family != socket.AF_UNIX:
                forbid(arguments[-1])
            return original(self, *arguments)

        return call

    monkeypatch.setattr(socket.socket, "connect", guarded(connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded(connect_ex))
    monkeypatch.setattr(socket.socket, "sendto", guarded(sendto))
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_args, **_kwargs: forbid(host))
    monkeypatch.setattr(socket, "gethostbyname", forbid)
    yield
    assert not attempts, f"tried to reach the network: {attempts}"
