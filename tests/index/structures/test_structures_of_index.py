"""Structures in an index that changes: what is added is found, what is gone is not, compacted or not."""

from pathlib import Path

import numpy as np
import pytest

from bridgehead.errors import ArgumentError
from bridgehead.index import IndexSide, IndexWriter, build_index, open_index
from bridgehead.index.structures import similar_numbers, substructure_numbers

SMILES = ["c1ccccc1C(=O)O", "CCO", "Cc1ccccc1", "no structure", "C1CCCCC1", "Oc1ccccc1"]


def molecules(smiles: list[str], first: int = 0) -> IndexSide:
    rows = np.random.default_rng(first).standard_normal((len(smiles), 8)).astype(np.float32)
    return IndexSide("molecule", rows, smiles, [f"m{first + at}" for at in range(len(smiles))], kind="molecule")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = IndexSide("text", np.eye(2, 8, dtype=np.float32), ["a ring", "a chain"], ["t0", "t1"], kind="text")
    build_index(tmp_path / "index", {"a": molecules(SMILES), "b": texts}, "model")
    return tmp_path / "index"


def found(folder: Path, pattern: str) -> list[str]:
    with open_index(folder) as index, index.state() as state:
        return [item.id for item in state.items("a", substructure_numbers(state, "a", pattern))]


def like(folder: Path, smiles: str) -> list[str]:
    with open_index(folder) as index, index.state() as state:
        return [item.id for item in state.items("a", similar_numbers(state, "a", smiles, 1.0)[0])]


def test_what_is_added_replaced_and_deleted_is_found_or_not_at_once(folder: Path) -> None:
    assert found(folder, "c1ccccc1") == ["m0", "m2", "m5"]
    with IndexWriter(folder) as writer:
        writer.put("a", molecules(["Nc1ccccc1", "CCCC"], first=6))
        # The acid of m0 becomes an alcohol without a ring.
        writer.put("a", molecules(["CCCO"]))
        writer.delete("a", ["m2"])
        assert found(folder, "c1ccccc1") == ["m5", "m6"]
        assert like(folder, "OCCC") == ["m0"] and like(folder, "Cc1ccccc1") == []
        writer.compact()
    assert found(folder, "c1ccccc1") == ["m5", "m6"]
    assert like(folder, "c1ccc(N)cc1") == ["m6"]


def test_a_side_of_texts_has_no_structures(folder: Path) -> None:
    with open_index(folder) as index, index.state() as state, pytest.raises(ArgumentError, match="no structures"):
        substructure_numbers(state, "b", "C")
