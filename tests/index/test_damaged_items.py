"""Item files with values that no writer puts there: a look gives what is whole or says that the file is damaged."""

import json
import sqlite3

import numpy as np
import pytest

from bridgehead.errors import RunStateError
from bridgehead.index import IndexSide, IndexWriter, build_index, open_index

DAMAGES = {
    "an item that is bytes": "UPDATE items SET item = x'ff00' WHERE number = 0",
    "an id that is bytes": "UPDATE items SET id = CAST(id AS BLOB) WHERE number = 0",
    "a key that is bytes": "UPDATE items SET key = x'00' WHERE number = 0",
    "an entity that is bytes": "UPDATE items SET entity = x'00' WHERE number = 0",
    "a payload that is a list": "UPDATE items SET payload = '[1]' WHERE number = 0",
    "a payload that is a number": "UPDATE items SET payload = CAST('5' AS BLOB) WHERE number = 0",
    "a payload that is nested beyond reading": f"UPDATE items SET payload = '{'[' * 100_000}' WHERE number = 0",
    "names that are a number": "UPDATE items SET names = '5' WHERE number = 0",
    "names that are numbers": "UPDATE items SET names = '[5]' WHERE number = 0",
    "names that are gone": "UPDATE items SET names = NULL WHERE number = 0",
    "an item that is on no side": "UPDATE items SET side = 7 WHERE number = 0",
    "an item that is gone": "DELETE FROM items WHERE number = 0",
    "words that are a number": "UPDATE word_texts SET text = 5 WHERE number = 0",
    "counts of words that are cut": "UPDATE words_a_docsize SET sz = x''",
    "an average of words that is cut": "UPDATE words_a_data SET block = x'' WHERE id = 1",
    "a value of no item": "INSERT INTO fields SELECT field, value, 'x' FROM fields LIMIT 1",
    "a row that is cut": "UPDATE added SET row = x'00ff'",
    "a row that is a text": "UPDATE added SET row = 'row'",
    "structure bits that are cut": "UPDATE added SET structure = x'00ff'",
    "no size": "DELETE FROM meta WHERE name = 'size:a'",
    "a size that is a text": "UPDATE meta SET value = 'x' WHERE name = 'size:a'",
    "no next number": "DELETE FROM meta WHERE name = 'next_number'",
    "a next number that is null": "UPDATE meta SET value = NULL WHERE name = 'next_number'",
    "no change": "DELETE FROM meta WHERE name = 'change'",
    "a change that is a text": "UPDATE meta SET value = 'x' WHERE name = 'change'",
    "a field whose name is bytes": "UPDATE field_names SET name = CAST(name AS BLOB)",
    "a field whose counts are none": "UPDATE field_names SET n_items = 'x', n_numbers = x'00'",
}


@pytest.fixture
def folder(tmp_path):
    rows = np.random.default_rng(0).standard_normal((9, 8))
    smiles, ids = ["C" * (i + 1) + "O" for i in range(9)], [f"m{i}" for i in range(9)]
    names, payload = [[f"compound {i}"] for i in range(9)], [{"year": i, "unit": "nM"} for i in range(9)]
    given = {"names": names, "payload": payload, "keys": ids, "entities": ids}
    some = {name: values[:8] for name, values in given.items()}
    build_index(tmp_path, {"a": IndexSide("molecule", rows[:8], smiles[:8], ids[:8], "molecule", **some)}, "model")
    with IndexWriter(tmp_path) as writer:
        last = {name: values[8:] for name, values in given.items()}
        writer.put("a", IndexSide("molecule", rows[8:], smiles[8:], ids[8:], "molecule", **last))
    return tmp_path


def damage(folder, statement):
    store = folder / json.loads((folder / "index.json").read_text())["folder"] / "items.sqlite"
    with sqlite3.connect(store) as connection:
        connection.execute(statement)
    connection.close()
    return store


LOOKS = {
    "items": lambda state: state.items("a", state.numbers("a")),
    "texts": lambda state: state.texts("a", state.numbers("a")),
    "id": lambda state: state.by_id("m0"),
    "name": lambda state: state.by_name("compound 0"),
    "key": lambda state: state.by_key("m0"),
    "words": lambda state: [state.word_text(hit.number) for hit in state.words("compound 0", "a")],
    "filter": lambda state: state.matching("a", "year >= 0 and unit = 'nM'").tolist(),
    "fields": lambda state: state.fields("a"),
    "structures": lambda state: state.structures("a"),
    "search": lambda state: state.search("a", np.ones((1, 8)), 9)[0].numbers.tolist(),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_every_look_at_a_damaged_item_file_says_so_or_gives_what_is_whole(folder, what):
    store = damage(folder, DAMAGES[what])
    for name, look in LOOKS.items():
        found, said = None, f"{store} is damaged; build the index again"
        try:
            with open_index(folder) as index, index.state() as state:
                found = look(state)
        except RunStateError as error:
            said = str(error)
        assert str(store) in said and "build the index again" in said, name
        if name == "items" and found is not None:
            assert all(isinstance(item.item, str) and isinstance(item.payload, dict) for item in found)


def texts_of(index, numbers):
    with index.state() as state:
        return state.texts("a", numbers)


def test_a_number_that_the_index_has_no_item_of_is_the_fault_of_the_index(folder):
    damage(folder, DAMAGES["an item that is gone"])
    with open_index(folder) as index:
        for look in (lambda: index.items("a", [0]), lambda: texts_of(index, [0])):
            with pytest.raises(RunStateError, match=r"items\.sqlite.*build the index again"):
                look()
        with pytest.raises(ValueError, match="no item of number 77"):
            index.items("a", [77])
