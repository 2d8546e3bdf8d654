"""Classification on the page: labels and items in, bars and what they hang on out."""

import pytest

pytestmark = pytest.mark.slow

LABELS = "an amine that takes a proton | a basic nitrogen\na thiol that smells\na lasting fluorine"
ITEMS = "CCCN\nCCCS\nno structure"


def classified(desk, **fields):
    page = desk.open("?tab=classify", "#classify-labels")
    page.get_by_label("Labels", exact=True).fill(LABELS)
    page.get_by_label("Items").fill(ITEMS)
    if fields:
        page.get_by_text("Wording, threshold, side").click()
    for name, value in fields.items():
        page.locator(f"#classify-{name}").fill(value)
    page.get_by_role("button", name="Classify", exact=True).click()
    page.locator(".answers").wait_for()
    return page


def test_items_are_put_to_labels_with_bars_that_add_up_and_the_warning(desk):
    page = classified(desk)
    first = page.locator(".answers li").first
    shares = [float(text.rstrip("\u00a0%")) for text in first.locator("td.strong").all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=0.2) and shares == sorted(shares, reverse=True)
    widths = [float(bar.get_attribute("width")) for bar in first.locator(".bar .value").all()]
    assert widths == pytest.approx(shares, abs=0.06)
    said = page.locator("#classified").inner_text()
    assert "among these labels alone and no probabilities" in said
    assert "Not read" in said and "no structure" in said
    assert "With other candidates" in said and "without" in said
    assert "another template" in said, "what is not known of the wording is said"


def test_synonyms_templates_and_a_threshold_reach_the_service(desk):
    asked = []
    desk.page.on("request", lambda request: request.url.endswith("/classify") and asked.append(request.post_data_json))
    page = classified(desk, templates="{}\nit has {}", below="0.999")
    assert asked[0]["synonyms"] == {"an amine that takes a proton": ["a basic nitrogen"]}
    assert asked[0]["templates"] == ["{}", "it has {}"] and asked[0]["abstain_below"] == 0.999
    assert page.locator(".answers h3.none").first.inner_text().startswith("None of these")


def test_a_classification_has_an_address_and_outlives_a_look_elsewhere(desk, visit):
    page = classified(desk)
    answers = page.locator(".answers h3").all_inner_texts()
    other = visit()
    other.open(page.url.removeprefix(desk.home + "/"), ".answers")
    assert other.page.locator(".answers h3").all_inner_texts() == answers
    page.get_by_role("link", name="Search", exact=True).click()
    page.locator("#results-title").wait_for()
    page.get_by_role("link", name="Classify").click()
    assert page.get_by_label("Labels", exact=True).input_value() == LABELS
    assert page.locator(".answers h3").all_inner_texts() == answers


def test_labels_too_long_for_an_address_are_kept_beside_it(desk):
    page = desk.open("?tab=classify", "#classify-labels")
    page.get_by_label("Labels", exact=True).fill(
        "\n".join(f"an amine number {n} that takes a proton" for n in range(150))
    )
    page.get_by_label("Items").fill("CCN")
    page.get_by_role("button", name="Classify", exact=True).click()
    page.locator(".answers").wait_for()
    assert len(page.url) < 1000
    page.reload()
    page.locator(".answers").wait_for()


def test_labels_that_the_encoder_cannot_read_are_refused_with_the_reason(desk):
    page = desk.open("?tab=classify&labels=%E8%A9%9E%0A%E8%AF%8D&items=CCN", ".fault")
    assert "cannot be candidates" in page.locator(".fault").inner_text()
    desk.forget_refusals()
