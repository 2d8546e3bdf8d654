"""Take the pictures of the search page that the documentation shows, from a finished demo run.

    bridgehead demo --folder runs/demo
    python scripts/take_screenshots.py runs/demo

Serves the run on a free port of this machine, drives Chromium over it and writes `docs/images/page-*.png`. Needs the
test extra (playwright) and an installed Chromium.
"""

import argparse
import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
FREQUENT = 48
ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
DRUGS = [ASPIRIN, "CN1CCC23C4C1CC5=C2C(=C(C=C5)O)OC3C(C=C4)O", "CC(C)NCC(COc1cccc2c1cccc2)O"]
LABELS = ["cyclooxygenase inhibitor | NSAID", "opioid receptor agonist", "beta blocker that lowers blood pressure"]


def open_first_hit(page: Any) -> None:
    page.locator(".card").first.focus()
    page.keyboard.press("Enter")
    page.locator(".panel.explain dl").first.wait_for()
    page.locator(".panel.texts li").last.wait_for()


@dataclass(frozen=True)
class Shot:
    """One picture: the state in the address, what shows that it is there, size and colours, what is done before."""

    name: str
    state: dict[str, Any]
    ready: str
    width: int = 1400
    height: int = 900
    scheme: str = "light"
    act: Callable[[Any], None] | None = None


SHOTS = (
    Shot("start", {}, ".start", height=700),
    Shot("hits", {"q": "inhibits cyclooxygenase and reduces inflammation"}, ".card", height=1000),
    Shot("filtered", {"q": "lowers blood pressure", "filter": "approved = true", "sub": "S(=O)(=O)N"}, ".card"),
    Shot(
        "why",
        {"q": "beta blocker that lowers blood pressure", "of": "molecule"},
        ".card",
        height=1250,
        act=open_first_hit,
    ),
    Shot("texts-dark", {"q": ASPIRIN}, ".card", scheme="dark"),
    Shot(
        "classify", {"tab": "classify", "labels": "\n".join(LABELS), "items": "\n".join(DRUGS)}, ".answers", height=1000
    ),
    Shot("narrow", {"q": "kills the parasite that causes malaria"}, ".card", width=360, height=1000),
    Shot(
        "narrow-dark", {"q": "kills the parasite that causes malaria"}, ".card", width=360, height=1000, scheme="dark"
    ),
)


@contextmanager
def served(run: Path) -> Iterator[str]:
    """Serve a run with the command that users type; gives the address."""
    command = [sys.executable, "-m", "bridgehead.cli", "serve", str(run), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout or ():
                start = line.find("http://")
                if start >= 0:
                    yield line[start:].split('"')[0].split()[0].rstrip("/")
                    return
            raise SystemExit(f"{run} cannot be served; see above")
        finally:
            process.terminate()
            process.communicate()


def taken(browser: Any, home: str, shot: Shot) -> bytes:
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"{home}/?{urlencode(shot.state)}")
    page.locator(shot.ready).first.wait_for()
    if shot.act is not None:
        shot.act(page)
    page.wait_for_load_state("networkidle")
    picture = page.screenshot()
    context.close()
    return bytes(picture)


def small(picture: bytes) -> bytes:
    """Return the picture as a PNG of 256 colours: the most frequent ones as they are, rare ones (a red atom) nearly."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    colours, place, counts = np.unique(
        np.asarray(image).reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    frequent = colours[np.argsort(-counts, kind="stable")[:FREQUENT]]
    spread = image.quantize(256 - FREQUENT, method=Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = np.concatenate([frequent, np.array(spread, dtype=np.uint8).reshape(-1, 3)])[:256]
    # Pillow's own mapping to a palette is approximate and tints the ground.
    apart = ((colours[:, None, :].astype(np.int64) - palette) ** 2).sum(axis=2)
    indexed = Image.fromarray(apart.argmin(axis=1)[place].astype(np.uint8).reshape(image.height, image.width), "P")
    indexed.putpalette(palette.tobytes())
    out = io.BytesIO()
    indexed.save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a finished demo run")
    run = parser.parse_args().run
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("needs Chromium: apt-get install chromium")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with served(run) as home, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        for shot in SHOTS:
            picture = small(taken(browser, home, shot))
            (IMAGES / f"page-{shot.name}.png").write_bytes(picture)
            print(f"page-{shot.name}.png  {len(picture) / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
