"""Writers that are killed at any instant: what was acknowledged is there, and nothing else."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import bridgehead
import killed_writer
from bridgehead.index import IndexWriter, build_index, open_index
from written_items import assert_holds, side_of

KILLS = 50
ENDLESS = 100_000


class Forge:
    """The process that forks writers, and what they say."""

    def __init__(self):
        paths = [str(Path(killed_writer.__file__).parent), str(Path(bridgehead.__file__).parent.parent)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen([sys.executable, killed_writer.__file__], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        self.said = queue.Queue()
        self.early = []
        self.reader = threading.Thread(target=self.listen)
        self.reader.start()

    def listen(self):
        for line in self.process.stdout:
            self.said.put(line.rstrip("\n"))

    def heard(self):
        word, _, rest = self.said.get(timeout=120).partition(" ")
        assert word != "failed", rest
        return word, rest

    def begun(self, **order):
        """Let a writer begin and return its pid."""
        print(json.dumps(order), file=self.process.stdin, flush=True)
        told = {}
        while not {"pid", "begins"} <= told.keys():
            word, rest = self.heard()
            if word in ("begin", "done"):
                self.early.append((word, rest))
            told[word] = rest
        return int(told["pid"])

    def rest(self):
        """Return the calls that were acknowledged with their seconds, and the one that was not, once it has ended."""
        done, begun = [], None
        while (heard := self.early.pop(0) if self.early else self.heard())[0] != "ended":
            if heard[0] == "begin":
                begun = json.loads(heard[1])
            elif heard[0] == "done":
                done.append((*begun, float(heard[1])))
                begun = None
        return done, begun

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.reader.join()
        self.process.stdout.close()


@pytest.fixture
def forge():
    made = Forge()
    yield made
    made.close()


def after(versions, kind, what):
    if kind == "put":
        return {**versions, **what}
    return {one: version for one, version in versions.items() if kind != "delete" or one not in what}


def held(state):
    return {item.id: item.payload["version"] for item in state.items("b", state.numbers("b"))}


@pytest.mark.slow
def test_killed_at_random_instants_an_index_holds_what_was_acknowledged_and_nothing_else(tmp_path, forge):
    versions = {f"i{number}": 1 for number in range(300)}
    build_index(tmp_path, {"b": side_of(versions)}, "m")
    rng = np.random.default_rng(0)
    spans, hit, opened, most = {}, Counter(), [], 299
    with open_index(tmp_path) as reader:
        for mode in killed_writer.MODES:
            forge.begun(folder=str(tmp_path), mode=mode, seed=1, calls=10)
            done, _ = forge.rest()
            for kind, what, _ in done:
                versions = after(versions, kind, what)
            # Long enough for a few calls on this machine, and a writer works on without end: each kill meets work.
            spans[mode] = 3 * sum(seconds for *_, seconds in done) / len(done)
        numbers = {item.id: item.number for item in reader.items("b", reader.numbers("b"))}
        for kill in range(KILLS):
            mode = list(killed_writer.MODES)[kill % len(killed_writer.MODES)]
            pid = forge.begun(folder=str(tmp_path), mode=mode, seed=100 + kill, calls=ENDLESS)
            time.sleep(float(rng.uniform(0, spans[mode])))
            os.kill(pid, signal.SIGKILL)
            done, begun = forge.rest()
            touched = {
                one for kind, what, *_ in (*done, *([begun] if begun else ())) if kind != "compact" for one in what
            }
            for kind, what, _ in done:
                versions = after(versions, kind, what)
            started = time.monotonic()
            fresh = open_index(tmp_path)
            with fresh, fresh.state() as state:
                state.search("b", np.ones((1, 16)), 1)
                opened.append(time.monotonic() - started)
                whole = versions
                if begun is not None:
                    hit[begun[0]] += 1
                    whole = after(versions, *begun)
                    versions = whole if held(state) == whole else versions
                assert_holds(state, versions)
                now = {item.id: item.number for item in state.items("b", state.numbers("b"))}
            assert all(now[one] == numbers[one] for one in now if one not in touched)
            assert all(now[one] == numbers.get(one) or now[one] > most for one in now)
            numbers, most = now, max([most, *now.values()])
            with reader.state() as state:
                assert_holds(state, versions)
    print(f"{KILLS} kills: within {dict(hit)}; opened after at most {max(opened):.2f} s")
    assert max(opened) < 5
    assert sum(hit.values()) >= KILLS // 2 and set(hit) == {"put", "delete", "compact"}
    with IndexWriter(tmp_path) as writer:
        writer.compact()
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1
    with open_index(tmp_path, thorough=True) as index, index.state() as state:
        # While somebody reads, SQLite leaves a change at the end of its log that nobody was told of; once nobody does,
        # the next one to open the file may find it there, whole, until a writer has come.
        assert_holds(state, whole if held(state) == whole else versions)
