"""A small run that is served to a browser, and a browser page that keeps all that goes wrong on it."""

import io
import shutil
import threading
import time
from contextlib import contextmanager
from urllib.parse import quote

import pytest
import uvicorn
from small_run import config, records, write_table

from bridgehead import runs
from bridgehead.search import open_space
from bridgehead.serve.answers.holder import SpaceHolder
from bridgehead.serve.app import make_app
from bridgehead.serve.log import RequestLog

HOSTILE = "<img src=x onerror=\"document.title='broken in'\"><script>document.title='broken in'</script>"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--disable-extensions", "--disable-dev-shm-usage"]  # fmt: skip
AMINE = "an amine that takes a proton"


def write_small_run(folder):
    """Return a finished run of 128 molecules with payload to filter by, one of them with markup in all it holds."""
    rows = [[*row, "true" if at % 3 == 0 else "false", str(10 + at), "alkyl" if at % 2 else "aryl"]
            for at, row in enumerate(records())]  # fmt: skip
    rows.append(["hostile", "OCCCCCCCO", f"smells of {HOSTILE}", HOSTILE, "false", "5", HOSTILE])
    header = ["id", "smiles", "text", "name", "approved", "ic50_nM", "kind"]
    settings = config(
        write_table(folder / "pairs.csv", rows, header),
        name="Small molecules",
        train={"epochs": 2},
        evaluate={"shuffled": 0},
        index={"evaluated": False},
        examples=[{"query": AMINE, "of": "molecule"}, {"query": "CC(=O)Oc1ccccc1C(=O)O"}],
    )
    return runs.run(settings, folder / "run").folder


def listening(run, **options):
    """Serve a run on a free port of this machine; gives the address."""
    return listening_to(SpaceHolder(open_space(run), run), **options)


@contextmanager
def listening_to(holder, **options):
    """Serve the space of a holder on a free port of this machine; gives the address."""
    app = make_app(holder, log=RequestLog(stream=io.StringIO()), **options)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def chromium():
    """Give a browser; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright to drive a browser")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page at `home` that keeps errors of the console, errors of scripts and requests to anywhere else."""

    def __init__(self, browser, home, *, width=1400, height=900, scheme="light", **further):
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", **further
        )
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.home, self.problems, self.elsewhere = home, [], []
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.problems.append(said.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", self._requested)

    def _requested(self, request):
        if not request.url.startswith((f"{self.home}/", "data:")):
            self.elsewhere.append(request.url)

    def open(self, address="", ready="#results-title"):
        """Open an address of the page and wait until it shows what it is about."""
        self.page.goto(f"{self.home}/{address}")
        if ready:
            self.page.locator(ready).first.wait_for()
        return self.page

    def search(self, query, **state):
        """Open the address of a search."""
        further = "".join(f"&{name}={quote(str(value))}" for name, value in state.items())
        return self.open(f"?q={quote(query)}{further}")

    def refuse(self, path, status, body='{"error": {"type": "Busy", "message": "too many wait"}}', **headers):
        """Let the service answer requests to `path` with `status`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.page.route(f"**/{path}", lambda route: route.fulfill(
            status=status, body=body, headers=named, content_type="application/json"))  # fmt: skip

    def forget_refusals(self):
        """Forget that the browser itself writes refused requests into the console."""
        self.problems = [one for one in self.problems if not one.startswith("Failed to load resource")]

    @property
    def is_too_wide(self):
        """Whether one has to scroll sideways."""
        return self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")

    def close(self):
        """Close it; all that went wrong is an error of the test."""
        self.context.close()
        assert not self.problems, self.problems
        assert not self.elsewhere, self.elsewhere
