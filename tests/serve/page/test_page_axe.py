"""axe-core finds no serious fault on any state of the page, in light and in dark."""

import pytest

from served_page import AMINE

pytestmark = pytest.mark.slow

CLASSIFY = "?tab=classify&labels=an+amine%0Aa+thiol&items=CCN%0Abad"


def everything_open(page):
    page.locator(".card").first.focus()
    page.keyboard.press("Enter")
    page.locator(".panel.explain dl").first.wait_for()
    page.locator(".panel.texts .scored li, .panel.texts .gallery li").first.wait_for()


STATES = {
    "start": ("", "#results-title", None),
    "hits": (f"?q={AMINE}", ".card", everything_open),
    "texts": ("?q=Aspirin", ".card", everything_open),
    "filtered": (f"?q={AMINE}&filter=approved+%3D+true&sub=CN&distinct=1&mode=hybrid&page=2", ".active .chip", None),
    "no hits": (f"?q={AMINE}&filter=ic50_nM+%3E+900", ".empty", None),
    "refused": (f"?q={AMINE}&filter=nonsense", ".fault", None),
    "classify": ("?tab=classify", "#classify-labels", None),
    "classified": (CLASSIFY, ".answers", None),
    "about": ("?tab=about", "#view-about table", None),
    "keys": ("", "#results-title", lambda page: page.click("#show-keys")),
    "structure": (f"?q={AMINE}", ".card", lambda page: page.locator("button.plate").first.click()),
}

NARROW = ("hits", "texts", "classified", "about")


def faults(page, axe, only=None):
    options = {"resultTypes": ["violations"], **({"runOnly": {"type": "rule", "values": only}} if only else {})}
    found = axe.run(page, options=options).response["violations"]
    return [
        (one["id"], one["impact"], node["html"][:160], node["failureSummary"][:300])
        for one in found if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]  # fmt: skip


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 1400), ("light", 360)])
def test_no_state_has_a_serious_or_critical_fault(visit, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    one = visit(scheme=scheme, width=width)
    # The dark page has the same elements in other colours.
    only = ["color-contrast", "link-in-text-block"] if scheme == "dark" else None
    for name, (address, ready, act) in STATES.items():
        if width < 600 and name not in NARROW:
            continue
        page = one.open(address, ready)
        if act is not None:
            act(page)
        assert not faults(page, axe, only), name
    for path, status, shown in (("search", 503, ".fault.busy"), ("search", 401, ".fault.token")):
        one.refuse(path, status, Retry_After="60")
        page = one.open(f"?q={AMINE}", shown)
        assert not faults(page, axe, only), shown
        page.unroute(f"**/{path}")
    page.route("**/search", lambda route: None)
    page = one.open(f"?q={AMINE}", ".skeleton")
    assert not faults(page, axe, only), "skeleton"
    one.forget_refusals()
