"""A sync that is killed at any instant has lost nothing that it wrote; the next one ends as if it had never been."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from small_run import write_table

from bridgehead import runs
from bridgehead.index import open_index
from bridgehead.runs.folder import RunFolder

# Everything is loaded once; each line that comes is a run and a file, synced in blocks of four by a child of its own.
PROGRAM = """
import os, sys
import faiss, polars, torch, rdkit.Chem.rdFingerprintGenerator, sklearn.feature_extraction.text
from bridgehead import runs
from bridgehead.encode import fingerprints, ngram
from bridgehead.runs.syncing import applying, stage
applying._BLOCK = 4
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        runs.sync(*line.split(), delete_missing=True)
        os._exit(0)
    print(child, flush=True)
    # Until it is asked for its end, a child that has ended keeps its number, so that no other is killed.
    sys.stdin.readline()
    print(os.waitpid(child, 0)[1], flush=True)
"""
OLD = [[f"S{n}", "C" * (n + 9) + "O", f"an alcohol of {n + 9}", f"old {n}"] for n in range(12)]
# Four are gone, four changed, the others are new: over ten per cent of growth, so that a compaction is at the end.
NEW = [*OLD[4:8], *([i, f"{smiles}C", text, name] for i, smiles, text, name in OLD[8:]),
       *([f"S{n}", "N" + "C" * (n - 10), "an amine", f"new {n}"] for n in range(20, 52))]  # fmt: skip


@pytest.fixture(scope="module")
def synced(finished, tmp_path_factory):
    """A run, both indexes of which hold `OLD`, and the file of `NEW`."""
    folder = tmp_path_factory.mktemp("synced")
    shutil.copytree(finished.folder.parent, folder / "copy")
    run = RunFolder(folder / "copy" / "run", finished.config)
    runs.sync(run, write_table(folder / "old.csv", OLD))
    write_table(folder / "new.csv", NEW)
    return run


def content(folder):
    """Return heads -> id -> all that an index holds of its items, whatever their numbers."""
    found = {}
    for name in ("index", "index-evaluated"):
        with open_index(folder / name, thorough=True) as opened, opened.state() as state:
            items = [item for side in "ab" for item in state.items(side, state.numbers(side).tolist())]
            found[name] = {
                (item.side, item.id): (item.item, item.names, str(sorted(item.payload.items())), item.key, item.entity,
                                       item.origin, state.row(item.side, item.number).tobytes())
                for item in items
            }  # fmt: skip
    return found


@contextlib.contextmanager
def syncing():
    """Give a function that syncs in a process, kills that after so many seconds, and says how it ended and when."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None and server.stdin is not None and server.stdout.readline() == "ready\n"

        def sync(run, file, seconds=None):
            server.stdin.write(f"{run.folder} {file}\n")
            server.stdin.flush()
            child, started = int(server.stdout.readline()), time.monotonic()
            if seconds is not None:
                time.sleep(seconds)
                os.kill(child, signal.SIGKILL)
            server.stdin.write("and?\n")
            server.stdin.flush()
            status = int(server.stdout.readline())
            return status, time.monotonic() - started

        yield sync
        server.stdin.close()


def copy_of(run, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(run.folder.parent, target)
    return RunFolder(target / "run", run.config)


@pytest.mark.slow
def test_killed_twenty_times_it_ends_in_the_same_state(synced, tmp_path):
    file = synced.folder.parent.parent / "new.csv"
    whole, killed = (copy_of(synced, tmp_path / name) for name in ("whole", "killed"))
    rng, kills, halves = np.random.default_rng(0), 0, 0
    with syncing() as sync:
        status, length = sync(whole, file)
        expected, before = content(whole.folder), content(synced.folder)
        assert status == 0
        for round_ in range(20):
            if round_ % 4 == 0:
                # From the beginning again, so that kills fall into all of it and not only into what is left.
                killed = copy_of(synced, tmp_path / "killed")
            status, _ = sync(killed, file, float(rng.uniform(0, 0.5)) * length)
            kills += status == signal.SIGKILL
            now = content(killed.folder)
            halves += now not in (expected, before)
            for name, items in now.items():
                assert items.items() <= {*before[name].items(), *expected[name].items()}
            if round_ % 4 == 3:
                runs.sync(killed, file, delete_missing=True)
                assert content(killed.folder) == expected
                assert not runs.sync(killed, file, delete_missing=True).indexes[0].wrote
    assert kills >= 10 and halves >= 1


class Stopped(BaseException):
    """Stands for the end of the process."""


def test_stopped_after_each_block_it_goes_on_where_it_stood(synced, tmp_path, monkeypatch):
    from bridgehead.index import IndexWriter
    from bridgehead.runs.syncing import applying

    file = synced.folder.parent.parent / "new.csv"
    monkeypatch.setattr(applying, "_BLOCK", 10)
    whole = copy_of(synced, tmp_path / "whole")
    runs.sync(whole, file, delete_missing=True)
    killed = copy_of(synced, tmp_path / "killed")
    put, stops, written = IndexWriter.put, 0, []

    def put_and_stop(self, side, items):
        done = put(self, side, items)
        written.extend(items.ids)
        raise Stopped(done)

    while stops < 20:
        with monkeypatch.context() as patch:
            patch.setattr(IndexWriter, "put", put_and_stop)
            try:
                runs.sync(killed, file, delete_missing=True)
                break
            except Stopped:
                stops += 1
    # Four blocks of each index, none of them encoded or written twice.
    assert stops == 8 and sorted(written) == sorted([row[0] for row in NEW[4:]] * 2)
    assert content(killed.folder) == content(whole.folder)
