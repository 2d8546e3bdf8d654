"""The page over a space that no run stands behind: nothing measured, no report, no names of partners, odd ids."""

import pytest

import served_space
from bridgehead.serve.answers.holder import SpaceHolder
from served_page import Visit, listening_to

pytestmark = pytest.mark.slow


@pytest.fixture
def bare(browser, tmp_path):
    space = served_space.small_space(served_space.write_index(tmp_path / "index"))
    with listening_to(SpaceHolder(space)) as home:
        visit = Visit(browser, home)
        yield visit
        visit.close()


def test_it_says_what_it_knows_and_no_more(bare):
    page = bare.open()
    assert "6 items" in page.locator("#results").inner_text()
    assert "recall@10" not in page.locator("body").inner_text()
    page.get_by_role("link", name="About", exact=True).first.click()
    page.locator("#view-about table").first.wait_for()
    assert "Nothing was measured" in page.locator("#view-about").inner_text()
    assert page.get_by_role("link", name="Report").count() == 0


def test_ids_with_slashes_percent_signs_and_marks_lead_to_their_own_item(bare):
    page = bare.search("ccc nnn ooo", of="molecule")
    assert page.locator(".card").count() == len(served_space.IDS)
    shown = {card.locator(".id").inner_text() if card.locator(".id").count() else "": card
             for card in page.locator(".card").all()}  # fmt: skip
    for number, name in ((1, "ethylamine"), (2, "peroxide"), (4, "my own")):
        card = shown[served_space.IDS[number]]
        card.locator("img").scroll_into_view_if_needed()
        page.wait_for_function("(alt) => document.querySelector(`img[alt='${alt}']`).naturalWidth > 0",
                               arg=f"Structure of {name}")  # fmt: skip
    page.get_by_role("article", name="ethylamine").get_by_role("link", name="Similar").click()
    page.get_by_text("the query itself").wait_for()
    assert page.get_by_role("article").filter(has_text="the query itself").locator(".id").inner_text() == "m/1"


def test_texts_that_are_markup_or_of_one_sign_are_hits_as_others(bare):
    page = bare.search("CCN", of="text")
    assert "<script>alert(1)</script>" in page.locator(".card h3").all_inner_texts()
    page.locator(".card").first.press("Enter")
    page.locator(".card").first.locator(".panel.texts .gallery li").first.wait_for()
    assert "No molecule is paired with it" in page.locator(".card").first.inner_text()
