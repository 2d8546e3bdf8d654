"""Items that follow from an id and a version, so that whoever knows both knows all that an index should hold."""

import zlib

import numpy as np

from bridgehead.index import IndexSide

DIM = 16


def row_of(identifier, version):
    seed = zlib.crc32(f"{identifier} {version}".encode())
    return np.random.default_rng(seed).standard_normal(DIM).astype(np.float32)


def side_of(versions, origin="sync"):
    """Return texts of `versions` (id -> version): the version is a word of the text, and a field of the payload."""
    known = list(versions.items())
    rows = np.array([row_of(*one) for one in known], dtype=np.float32).reshape(len(known), DIM)
    return IndexSide(
        "text",
        rows,
        [f"thing {identifier} word{version}" for identifier, version in known],
        [identifier for identifier, _ in known],
        names=[[f"name of {identifier}", f"version {version}"] for identifier, version in known],
        payload=[{"version": version, "id length": len(identifier)} for identifier, version in known],
        keys=[f"KEY{identifier}" for identifier, _ in known],
        origin=origin,
    )


def assert_holds(state, versions, side="b"):
    """Check that items, rows, names, words and filters of a state are those of `versions` and of nothing else."""
    numbers = state.numbers(side).tolist()
    items = state.items(side, numbers)
    assert {item.id: item.payload["version"] for item in items} == versions
    assert state.size(side) == len(versions) == state.sides[side].n_items
    expected = (
        side_of(dict.fromkeys(versions)) if not versions else side_of({i.id: i.payload["version"] for i in items})
    )
    assert [item.item for item in items] == list(expected.items)
    if not versions:
        assert state.search(side, np.ones((1, DIM)), 5)[0].numbers.tolist() == []
        return
    stored = expected.rows / np.linalg.norm(expected.rows, axis=1, keepdims=True)
    assert np.allclose(state.rows(side, numbers), stored, atol=2e-3)
    assert_finds(state, side, numbers, stored, items)


def assert_finds(state, side, numbers, stored, items):
    rng = np.random.default_rng(len(items))
    query = rng.standard_normal(DIM)
    scores = stored @ query / np.linalg.norm(query)
    found = state.search(side, query[None], 10)[0]
    best = np.sort(scores)[::-1][: len(found)]
    assert len(found) == min(10, len(items)) and np.allclose(found.scores, best, atol=2e-3)
    for one in rng.integers(0, len(items), 3):
        item, version = items[one], items[one].payload["version"]
        assert state.words(f"{item.id} word{version}", side, 3)[0].number == item.number
        for found in (state.by_name(f"Name of {item.id}"), state.by_id(item.id), state.by_key(item.key)):
            assert [other for other in found if other.side == side] == [item]
        same = [other.number for other in items if other.payload["version"] == version]
        assert state.matching(side, f"version = {version}").tolist() == same
        assert state.search(side, stored[one][None], 1)[0].numbers.tolist() == [item.number]
