"""One small run, one service of it and one browser for all tests of the page."""

from pathlib import Path

import pytest

import served_page

HERE = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Put the tests of this folder last: while the browser is there, no other test could run an event loop."""
    items.sort(key=lambda item: item.path.is_relative_to(HERE))


@pytest.fixture(scope="session")
def small_page_run(tmp_path_factory):
    return served_page.write_small_run(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="session")
def browser():
    with served_page.chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def home(browser, small_page_run):
    with served_page.listening(small_page_run) as home:
        yield home


@pytest.fixture
def visit(browser, home):
    """Open visits; what went wrong on any of them fails the test at its end."""
    visits = []

    def new(**options):
        visits.append(served_page.Visit(browser, home, **options))
        return visits[-1]

    yield new
    for one in visits:
        one.close()


@pytest.fixture
def desk(visit):
    """A wide light page."""
    return visit()
