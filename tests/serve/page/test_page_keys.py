"""The page without a mouse."""

import pytest

from served_page import AMINE

pytestmark = pytest.mark.slow


def focused(page):
    return page.evaluate(
        "document.activeElement.closest('.card')?.querySelector('.rank')?.textContent ?? document.activeElement.id"
    )


def test_from_the_first_key_to_a_similar_molecule_by_keyboard_alone(desk):
    page = desk.open()
    assert focused(page) == "q"
    page.keyboard.type(AMINE)
    page.keyboard.press("Enter")
    page.locator(".card").first.wait_for()
    assert focused(page) == "q"
    page.keyboard.press("ArrowDown")
    assert focused(page) == "1"
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    assert focused(page) == "3"
    page.keyboard.press("k")
    assert focused(page) == "2"
    page.keyboard.press("Enter")
    panels = page.locator(".card").nth(1).locator(".panel")
    page.locator(".card").nth(1).locator(".panel.explain .word").first.wait_for()
    assert [panels.nth(at).is_visible() for at in range(3)] == [True] * 3
    page.keyboard.press("Escape")
    assert [panels.nth(at).is_visible() for at in range(3)] == [False] * 3
    assert focused(page) == "2"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "BUTTON"
    page.keyboard.press("Escape")
    assert focused(page) == "2"
    page.keyboard.press("s")
    page.get_by_text("the query itself").wait_for()
    page.keyboard.press("/")
    assert focused(page) == "q"


def test_pages_filters_and_the_box_are_a_key_away(desk):
    page = desk.search(AMINE)
    page.locator("body").press("n")
    page.get_by_role("heading", name="Hits 11 to 20").wait_for()
    page.keyboard.press("p")
    page.get_by_role("heading", name="Hits 1 to 10").wait_for()
    page.keyboard.press("f")
    assert focused(page) == "where"
    page.keyboard.type("n?/")
    assert page.get_by_label("Condition").input_value() == "n?/", "while one types, keys are letters"
    page.locator(".card").first.focus()
    page.keyboard.press("Escape")
    assert focused(page) == "q"


def test_the_keys_are_listed_and_those_of_one_sign_can_be_turned_off(desk):
    page = desk.search(AMINE)
    page.locator(".card").first.focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    dialog.wait_for()
    dialog.get_by_role("switch").uncheck()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert focused(page) == "1", "closing gives the focus back"
    page.keyboard.press("j")
    assert focused(page) == "1"
    page.keyboard.press("ArrowDown")
    assert focused(page) == "2"
    page.locator("#show-keys").press("Enter")
    page.get_by_role("switch", name="Keys of a single").check()
    page.keyboard.press("Escape")
    page.locator("body").press("/")
    assert focused(page) == "q"


def test_all_of_it_is_reached_by_the_tab_key_and_the_first_stop_leads_to_the_results(desk):
    page = desk.search(AMINE)
    page.locator("body").press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert focused(page) == "results-title"
    seen = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.innerText?.trim() || document.activeElement.id"))
    assert {"Copy link", "Similar", "Why?", "All fields", "Copy SMILES"} <= seen


def test_the_theme_is_switched_and_kept(visit):
    one = visit(scheme="dark")
    page = one.open()
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Theme: system").press("Enter")
    assert page.evaluate(ground) != dark
    page.reload()
    page.get_by_role("button", name="Theme: light").wait_for()
    assert page.evaluate(ground) != dark
    page.get_by_role("button", name="Theme: light").click()
    page.get_by_role("button", name="Theme: dark").wait_for()
    assert page.evaluate(ground) == dark
