"""The guard against the network fails the test that tries, so it is looked at from outside."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def outcome(folder: Path, body: str) -> str:
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_it.py").write_text(f"import socket\ndef test_it(no_network):\n    {body}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False).stdout


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('127.0.0.1', 9))",
        "socket.getaddrinfo('localhost', 80)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    ],
)
def test_an_attempt_to_reach_the_network_fails_the_test(tmp_path, attempt):
    assert "tried to reach" in outcome(tmp_path, attempt)


def test_an_attempt_whose_error_is_caught_fails_the_test_at_its_end(tmp_path):
    body = "import contextlib\n    with contextlib.suppress(Exception): socket.getaddrinfo('localhost', 80)"
    found = outcome(tmp_path, body)
    assert "1 passed, 1 error" in found and "tried to reach the network: ['localhost']" in found


def test_sockets_within_the_machine_stay(tmp_path):
    assert "1 passed" in outcome(tmp_path, "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'")
