"""The page when something is missing or wrong: no hits, a refusal, a busy or silent service, a token, a slow answer."""

import json

import pytest

from served_page import AMINE, Visit, listening

pytestmark = pytest.mark.slow


def test_no_hits_say_why_and_what_can_be_done(desk):
    page = desk.search(AMINE, filter="ic50_nM > 1000")
    page.get_by_text("No molecule passes the filters.").wait_for()
    page.get_by_role("button", name="Without the filters").click()
    page.locator(".card").first.wait_for()
    page.goto(f"{desk.home}/?q=amine&page=900")
    page.get_by_text("There are no hits on this page.").wait_for()
    page.get_by_role("button", name="Back to the first page").click()
    page.locator(".card").first.wait_for()


def test_a_query_that_is_refused_is_told_with_the_reason(desk):
    page = desk.open("?q=no+structure&as=smiles", ".fault")
    assert page.get_by_role("alert").locator("h2").inner_text() == "This query cannot be answered"
    assert "no structure" in page.locator(".fault .message").inner_text()
    assert page.locator("#q").input_value() == "no structure"
    page.goto(f"{desk.home}/?q=nobody&as=name")
    page.locator(".fault .message", has_text="No item has the name 'nobody'").wait_for()
    assert "read_as" not in page.locator(".fault").inner_text()
    page.get_by_role("button", name="Read it as words").click()
    page.wait_for_url("**as=text**")
    page.locator("#results-title").wait_for()
    page.locator("#q").fill(AMINE)
    page.locator("#q").press("Enter")
    page.locator(".card").first.wait_for()
    assert page.locator(".fault").count() == 0
    desk.forget_refusals()


def test_a_filter_in_the_address_that_is_wrong_is_told_in_its_place(desk):
    page = desk.open(f"?q={AMINE}&filter=nonsense", ".fault")
    assert page.locator(".fault h2").inner_text() == "The filter is not understood"
    assert "in the filter" in page.locator("#filter-problem").inner_text()
    page.get_by_role("button", name="Without the filters").click()
    page.locator(".card").first.wait_for()
    page.goto(f"{desk.home}/?q={AMINE}&filter=colour %3D 'red'")
    page.locator("#filter-problem", has_text="colour").wait_for()
    desk.forget_refusals()


def test_a_service_that_cannot_be_reached_keeps_what_was_typed_and_is_asked_again(desk):
    page = desk.open()
    page.route("**/search", lambda route: route.abort())
    page.locator("#q").fill(AMINE)
    page.locator("#q").press("Enter")
    page.get_by_role("alert").get_by_text("The service cannot be reached").wait_for()
    assert page.locator("#q").input_value() == AMINE
    page.unroute("**/search")
    page.get_by_role("button", name="Try again").click()
    page.locator(".card").first.wait_for()
    desk.forget_refusals()


def test_a_busy_service_is_asked_again_by_itself_after_the_time_it_names(desk):
    page = desk.open()
    desk.refuse("search", 503, Retry_After="1")
    page.locator("#q").fill(AMINE)
    page.locator("#q").press("Enter")
    page.get_by_text("asked again by itself in 1 s").wait_for()
    assert "Too many wait." in page.locator(".fault").inner_text()
    page.unroute("**/search")
    page.locator(".card").first.wait_for()
    desk.forget_refusals()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [(504, None, "This took too long"), (500, "<html>proxy</html>", "status 500"), (200, "no JSON", "is not JSON")],
)
def test_other_faults_are_told_in_words(desk, status, body, said):
    page = desk.open()
    desk.refuse("search", status, **({} if body is None else {"body": body}))
    page.locator("#q").fill(AMINE)
    page.locator("#q").press("Enter")
    page.get_by_role("alert").wait_for()
    assert said in page.locator(".fault").inner_text()
    desk.forget_refusals()


def test_without_knowing_what_is_served_the_page_says_so_and_tries_again(desk):
    desk.refuse("about", 500)
    page = desk.open("", ".fault")
    page.unroute("**/about")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("heading", name="Search 129 molecule").wait_for()
    desk.forget_refusals()


def test_a_slow_answer_shows_a_skeleton_and_never_comes_over_a_later_one(desk):
    page = desk.search(AMINE)
    held = []

    def slow(route):
        if "slowly" in route.request.post_data:
            held.append(route)
        else:
            route.continue_()

    page.route("**/search", slow)
    page.locator("#q").fill("slowly")
    page.locator("#q").press("Enter")
    page.locator(".skeleton").wait_for()
    assert page.locator("#results").get_attribute("aria-busy") == "true"
    page.locator("#q").fill("carries a thiol that smells")
    page.locator("#q").press("Enter")
    page.locator(".card").first.wait_for()
    first = page.locator(".card h3").all_inner_texts()
    assert len(held) == 1 and held[0].request.failure, "the request before is cancelled"
    page.wait_for_timeout(100)
    assert page.locator(".card h3").all_inner_texts() == first
    page.locator("#q").fill("slowly again")
    page.locator("#q").press("Enter")
    page.locator(".skeleton").wait_for()
    page.keyboard.press("Escape")
    page.locator(".skeleton").wait_for(state="detached")
    assert page.locator("#results").get_attribute("aria-busy") is None


def test_what_happens_is_told_to_those_who_do_not_see_it(desk):
    page = desk.search(AMINE)
    said = page.get_by_role("status")
    assert said.inner_text() == "Read as words. 10 hits, 1 to 10, of 129 molecule items"
    page.locator("#q").fill("qqqq zzzz")
    page.get_by_label("Words", exact=True).check()
    page.get_by_role("heading", name="No hits").wait_for()
    page.wait_for_function("() => document.querySelector('#said').textContent.endsWith('No hits')")


def test_a_token_is_asked_for_and_kept_for_the_tab_alone(visit):
    one = visit()
    page = one.page
    refused = json.dumps({"error": {"type": "Unauthorized", "message": "this service demands its token"}})

    def guarded(route):
        if route.request.headers.get("authorization") == "Bearer of-the-bench":
            route.continue_()
        else:
            route.fulfill(status=401, content_type="application/json", body=refused)

    for path in ("about", "search", "depict/**"):
        page.route(f"**/{path}", guarded)
    one.open(f"?q={AMINE}", ".fault.token")
    page.get_by_label("Token").fill("wrong")
    page.get_by_label("Token").press("Enter")
    page.wait_for_timeout(100)
    page.get_by_label("Token").fill("of-the-bench")
    page.get_by_role("button", name="Use it").click()
    page.locator(".card").first.wait_for()
    page.wait_for_function("() => document.querySelector('.card img').naturalWidth > 0")
    assert page.locator(".card img").first.get_attribute("src").startswith("data:image/svg+xml")
    assert page.evaluate("[JSON.stringify({...localStorage}), document.cookie].join().includes('bench')") is False
    page.reload()
    page.locator(".card").first.wait_for()
    page.goto(f"{one.home}/?tab=about")
    page.get_by_role("button", name="Forget it").click()
    page.locator(".fault.token").wait_for()
    one.forget_refusals()


def test_a_service_with_a_token_is_used_with_the_password_that_the_browser_asks_for(browser, small_page_run):
    with listening(small_page_run, token="a-token-of-the-bench") as home:
        credentials = {"username": "any", "password": "a-token-of-the-bench"}
        one = Visit(browser, home, http_credentials=credentials)
        one.search(AMINE)
        one.page.wait_for_function("() => document.querySelector('.card img').naturalWidth > 0")
        one.close()
