"""How the server begins; how it ends is held by tests of a process of its own."""

import contextlib
import io

import pytest

from bridgehead.serve.answers.holder import SpaceHolder
from bridgehead.serve.answers.service import Service
from bridgehead.serve.app import make_app
from bridgehead.serve.log import RequestLog
from bridgehead.serve.server import run_server
from bridgehead.serve.settings import ServeSettings
from bridgehead.serve.wire.listening import listening_socket
from served_space import small_space


def test_a_service_that_cannot_start_says_why_and_not_that_it_listens(small_index, monkeypatch):
    async def start(self):
        raise OSError("no room for another process")

    monkeypatch.setattr(Service, "start", start)
    said = []
    with (
        contextlib.closing(small_space(small_index)) as space,
        contextlib.closing(listening_socket("127.0.0.1", 0)) as free,
    ):
        app = make_app(SpaceHolder(space), log=RequestLog(stream=io.StringIO()))
        with pytest.raises(OSError, match="no room for another process"):
            run_server(app, free, ServeSettings(), lambda: said.append("listens"))
    assert said == []
