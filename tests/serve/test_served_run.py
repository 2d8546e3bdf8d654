"""A run that is served by the command while its items and its heads change."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from small_run import config, write_table
from small_run import records as table

from bridgehead import runs
from bridgehead.client import Client

AMINE = "an amine that takes a proton"
QUICK = {"evaluate": {"shuffled": 0}, "index": {"evaluated": False}}


class Asking:
    """A client in a thread of its own that asks again and again and keeps what was not answered."""

    def __init__(self, url):
        self.client = Client(url, retries=0)
        self.faults, self.answered = [], 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def _ask(self):
        while not self._ended.is_set():
            try:
                found = self.client.search(AMINE, k=3, of="molecule")
                self.client.item(found.hits[0].id)
                self.client.similar(found.hits[0].id, k=2)
                self.answered += 1
                time.sleep(0.01)
            except Exception as error:
                self.faults.append(error)
        # A thread's connection is its own.
        self.client.close()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._ended.set()
        self._thread.join(20)


def exchanges(url):
    import urllib.request

    with urllib.request.urlopen(f"{url}metrics") as page:
        line = next(one for one in page.read().decode().splitlines() if one.startswith("bridgehead_space_exchanges_t"))
    return float(line.split()[1])


@pytest.mark.slow
def test_items_and_heads_change_under_a_service_without_an_error_to_anybody(tmp_path):
    pairs = write_table(tmp_path / "pairs.csv", table())
    run = runs.run(config(pairs, train={"epochs": 1}, **QUICK), tmp_path / "run").folder
    # Nobody reads the log: it holds nobody up.
    process = subprocess.Popen(
        [sys.executable, "-m", "bridgehead.cli", "serve", str(run), "--port", "0", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        url = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["url"]
        client = Client(url)
        about = client.about()
        assert about.report == "/report" and about.measured["rows"] and "before refit" in about.measured["text"]
        before = client.search(AMINE, k=3, of="molecule")
        with Asking(url) as asking:
            runs.run(config(pairs, train={"epochs": 1, "seed": 5}, **QUICK), run)
            waited = time.monotonic()
            while exchanges(url) < 1:
                assert time.monotonic() - waited < 30
                time.sleep(0.1)
            answered = asking.answered
            while asking.answered < answered + 5:
                time.sleep(0.05)
                assert time.monotonic() - waited < 60
        assert not asking.faults, asking.faults[:3]
        after = client.search(AMINE, k=3, of="molecule")
        assert [hit.score for hit in after.hits] != [hit.score for hit in before.hits]
        client.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()
