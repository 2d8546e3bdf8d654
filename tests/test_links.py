import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.errors import LinksError
from bridgehead.links import Links


def naive_matches(links: Links) -> set[tuple[int, int]]:
    """Every match by the definition: a link, carried over to all items of the same group."""

    def same(groups, i, j):
        return i == j or (groups is not None and groups[i] >= 0 and groups[i] == groups[j])

    return {
        (i, j)
        for i in range(links.n_a)
        for j in range(links.n_b)
        if any(same(links.groups_a, i, a) and same(links.groups_b, j, b) for a, b in links.pairs.tolist())
    }


@st.composite
def some_links(draw):
    n_a, n_b = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    pairs = draw(st.lists(st.tuples(st.integers(0, n_a - 1), st.integers(0, n_b - 1)), max_size=8))
    groups = [draw(st.none() | st.lists(st.integers(-1, 2), min_size=n, max_size=n).map(np.array)) for n in (n_a, n_b)]
    return Links(pairs, n_a, n_b, *groups)


@given(some_links())
def test_matches_are_links_carried_over_by_groups(links):
    expected = naive_matches(links)
    assert set(map(tuple, np.argwhere(links.matrix.toarray()).tolist())) == expected
    assert set(map(tuple, links.expanded().pairs.tolist())) == expected
    starts, rows = links.targets()
    assert {(i, j) for i in range(links.n_a) for j in rows[starts[i] : starts[i + 1]].tolist()} == expected
    assert all(np.all(np.diff(rows[starts[i] : starts[i + 1]]) > 0) for i in range(links.n_a))


@given(some_links(), st.data())
def test_a_batch_holds_every_match_between_its_rows(links, data):
    rows_a = data.draw(st.lists(st.integers(0, links.n_a - 1), max_size=6))
    rows_b = data.draw(st.lists(st.integers(0, links.n_b - 1), max_size=6))
    matches = naive_matches(links)
    expected = {(p, q) for p, a in enumerate(rows_a) for q, b in enumerate(rows_b) if (a, b) in matches}
    found = links.within(rows_a, rows_b)
    assert set(map(tuple, found.pairs.tolist())) == expected
    assert (found.n_a, found.n_b) == (len(rows_a), len(rows_b))


@given(some_links())
def test_swapping_sides_transposes_the_truth_and_twice_changes_nothing(links):
    assert {(b, a) for a, b in naive_matches(links)} == naive_matches(links.swapped())
    assert links.swapped().swapped() == links


@given(some_links())
def test_matches_never_cross_components(links):
    of_a, of_b = links.components()
    assert all(of_a[i] == of_b[j] for i, j in naive_matches(links))
    for groups, labels in ((links.groups_a, of_a), (links.groups_b, of_b)):
        for label in () if groups is None else set(groups[groups >= 0].tolist()):
            assert len(set(labels[groups == label].tolist())) == 1


def test_components_are_what_chains_of_links_connect():
    of_a, of_b = Links([[0, 0], [1, 0], [1, 1], [2, 2]], 4, 3).components()
    assert of_a[0] == of_a[1] == of_b[0] == of_b[1]
    assert of_a[2] == of_b[2] != of_a[0]
    assert of_a[3] not in {of_a[0], of_a[2]}


def test_pairs_are_sorted_and_duplicates_collapse():
    links = Links([[2, 0], [0, 1], [2, 0], [0, 0]], 3, 2)
    assert links.pairs.tolist() == [[0, 0], [0, 1], [2, 0]]
    assert links.pairs.dtype == np.int64
    assert len(links) == 3


@pytest.mark.parametrize("pairs", [[[0, 1]], [(0, 1)], np.array([[0, 1]], np.uint8), torch.tensor([[0, 1]])])
def test_pairs_may_be_lists_arrays_or_tensors(pairs):
    assert Links(pairs, 1, 2).pairs.tolist() == [[0, 1]]


def test_no_links_and_no_rows_are_allowed():
    for n_a, n_b in ((0, 0), (0, 3), (3, 0), (2, 2)):
        links = Links([], n_a, n_b)
        assert links.matrix.shape == (n_a, n_b)
        assert links.expanded() == links
        assert len(links.components()[0]) == n_a and len(links.components()[1]) == n_b
        assert links.targets()[0].tolist() == [0] * (n_a + 1)
        assert len(links.within([], [])) == 0


@pytest.mark.parametrize("n", [2.5, 2.0, float("nan"), "2", None, True])
def test_a_number_of_rows_is_a_whole_number(n):
    with pytest.raises(LinksError, match="expected numbers of rows"):
        Links([[0, 0]], n, 2)
    with pytest.raises(LinksError, match="expected numbers of rows"):
        Links([[0, 0]], 2, n)


@pytest.mark.parametrize("rows", [[0.5], ["a"], [[0]], [True, False], 0, [None]])
def test_rows_of_a_batch_are_whole_numbers_in_one_list(rows):
    with pytest.raises(LinksError, match="expected a list of row numbers"):
        Links.identity(3).within(rows, [0])


@pytest.mark.parametrize("pair", [[3, 0], [0, 2], [-1, 0], [0, -1]])
def test_a_link_outside_the_rows_is_refused(pair):
    with pytest.raises(LinksError, match="1 links point outside side"):
        Links([[0, 0], pair], 3, 2)


@pytest.mark.parametrize("rows", [([-1], [0]), ([3], [0]), ([0], [-1]), ([0], [2])])
def test_a_batch_row_outside_is_refused_and_minus_one_is_not_the_last_row(rows):
    with pytest.raises(LinksError, match="is not on side"):
        Links([[0, 0], [2, 1]], 3, 2).within(*rows)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([0, 1], "expected"),
        ([[0, 1, 2]], r"expected \(n, 2\)"),
        ([[0.0, 1.0]], "expected integers"),
        ([["0", "1"]], "expected integers"),
        ([[True, False]], "expected integers"),
    ],
)
def test_what_is_not_a_list_of_pairs_is_refused(pairs, message):
    with pytest.raises(LinksError, match=message):
        Links(pairs, 3, 3)


def test_groups_need_one_integer_for_each_row():
    with pytest.raises(LinksError, match=r"groups_a has shape \(2,\); expected \(3,\)"):
        Links([], 3, 2, groups_a=[0, 0])
    with pytest.raises(LinksError, match="groups_b has dtype float64"):
        Links([], 3, 2, groups_b=[0.0, 1.0])
    with pytest.raises(LinksError, match="n_a = -1"):
        Links([], -1, 2)


def test_no_links_given_means_row_by_row_and_equal_numbers():
    assert Links.of(None, 2, 2) == Links.identity(2)
    with pytest.raises(LinksError, match="side a has 2 rows and side b 3"):
        Links.of(None, 2, 3)
    with pytest.raises(LinksError, match="links are over 2 x 2 rows, the arrays have 2 and 3"):
        Links.of(Links.identity(2), 2, 3)
    assert Links.of([[0, 1]], 2, 3) == Links([[0, 1]], 2, 3)


def test_links_are_equal_when_pairs_sizes_and_groups_are():
    assert Links([[0, 0]], 1, 1) == Links([[0, 0], [0, 0]], 1, 1)
    assert Links([[0, 0]], 1, 1) != Links([[0, 0]], 1, 2)
    assert Links([[0, 0]], 1, 1) != Links([[0, 0]], 1, 1, groups_a=[0])
    assert Links([[0, 0]], 1, 1) != [[0, 0]]


def test_a_batch_costs_what_it_holds_not_what_there_is():
    n = 200_000
    links = Links.identity(n)
    rows = np.arange(0, n, n // 500)
    assert links.within(rows, rows).pairs.tolist() == [[i, i] for i in range(len(rows))]
    assert links.matrix.nnz == n
