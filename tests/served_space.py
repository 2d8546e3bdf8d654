"""A tiny space whose encoders count letters, and clients of a service of it."""

import io
import json
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
from fastapi.testclient import TestClient

from bridgehead.index import IndexSide, build_index, open_index
from bridgehead.search import Space
from bridgehead.serve.answers.holder import SpaceHolder
from bridgehead.serve.app import make_app
from bridgehead.serve.log import RequestLog
from bridgehead.serve.settings import ServeSettings

HOME = "http://127.0.0.1"
SMILES = ["CCO", "CCN", "OO", "NN", "CC(=O)Oc1ccccc1C(=O)O", "CCCO"]
TEXTS = ["ccc", "ooo", "nnn and zzz", "<script>alert(1)</script>", "词"]
IDS = ["m0", "m/1", "m%2F2", "../m\n3\n", "m 4?&#é", "5"]


class Letters:
    """The row of a text: how often c, n and o occur. Waits where `gate` is set, and fails as `fault` says."""

    spec = "text:letters"

    def __init__(self):
        self.batches = []
        self.gate = None
        self.fault = None

    def encode(self, items):
        self.batches.append(len(items))
        if self.gate is not None:
            assert self.gate.wait(30)
        if self.fault is not None and any("boom" in item for item in items):
            raise self.fault
        rows = [[item.lower().count(letter) for letter in "cno"] for item in items]
        return SimpleNamespace(rows=np.array(rows, dtype=np.float32).reshape(-1, 3), failures=[])

    @contextmanager
    def held(self):
        """Let nothing be encoded while the block runs."""
        self.gate = threading.Event()
        try:
            yield self.gate
        finally:
            self.gate.set()
            self.gate = None


class Biased:
    """Heads that, like trained ones, do not map zero to zero."""

    def project_a(self, rows):
        return np.asarray(rows) + 1e-3

    project_b = project_a


def write_index(folder):
    encode = Letters().encode
    molecules = IndexSide(
        "molecule",
        encode(SMILES).rows,
        SMILES,
        IDS,
        kind="molecule",
        names=[["ethanol", "alcohol"], ["ethylamine"], ["peroxide"], ["hydrazine"], ["aspirin"], ["propanol"]],
        payload=[{"mass": 46.1, "tags": ["solvent"]}, {"mass": 45.1}, {}, {}, {"name": "my own"}, {"mass": 60.1}],
    )
    texts = IndexSide("text", encode(TEXTS).rows, TEXTS, ["t0", "t1", "t2", "t3", "5"], kind="text")
    build_index(folder, {"a": molecules, "b": texts}, "model")
    return folder


def small_space(folder, encoder=None):
    return Space(open_index(folder), Letters(), encoder or Letters(), Biased())


def served(space, settings=None, run=None, heads="refit", **options):
    """Return a client of the application over `space`; use it as a context manager."""
    options.setdefault("log", RequestLog(stream=io.StringIO()))
    app = make_app(SpaceHolder(space, run, heads), settings or ServeSettings(), **options)
    return TestClient(app, base_url=HOME, raise_server_exceptions=False)


def error_of(response):
    """Return the error of a response, which must have the one form of all errors."""
    content = json.loads(response.content)
    assert set(content) == {"error"} and set(content["error"]) == {"type", "message"}, content
    assert content["error"]["type"] and content["error"]["message"]
    return content["error"]
