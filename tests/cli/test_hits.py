import pytest
from rich.cells import cell_len

from bridgehead.cli.hits import hit_columns, partner_columns, tab_separated, table_lines
from bridgehead.search import Hit

LONG = "Inhibits cyclooxygenase, the enzyme that makes prostaglandins. " * 5


def hit(rank=1, item="[Na+].[Cl-]", payload=None, score=0.5):
    return Hit(rank, str(100 + rank), score, item, payload or {}, "text")


def headers(columns):
    return [name for name, _ in columns]


def test_molecules_show_name_smiles_and_statement():
    hits = [hit(payload={"name": "salt", "approved": True, "statement": ["Tastes", "Dries meat"]}), hit(2)]
    columns = hit_columns(hits, "molecule", "molecule", "statement")
    assert headers(columns) == ["rank", "score", "id", "name", "SMILES", "statement"]
    assert columns[-1][1] == ["Tastes; Dries meat", ""] and columns[3][1] == ["salt", ""]


def test_without_names_or_partners_there_are_no_such_columns():
    assert headers(hit_columns([hit()], "molecule", "molecule", "statement")) == ["rank", "score", "id", "SMILES"]


def test_where_no_config_names_the_partners_the_first_field_with_words_is_shown():
    hits = [hit(payload={"name": "salt of sea", "formula": "NaCl", "use": "for the kitchen"})]
    assert headers(hit_columns(hits, "molecule", "molecule"))[-1] == "use"


def test_texts_show_the_text():
    hits = [hit(item=LONG, payload={"smiles": ["1", "2"]})]
    columns = hit_columns(hits, "description", "text", "smiles")
    assert headers(columns) == ["rank", "score", "id", "description"]
    assert "id" not in table_lines(columns, 60, "text")[0]


def test_the_config_of_the_run_says_which_field_holds_the_partners(tmp_path):
    assert partner_columns(tmp_path) == {}
    (tmp_path / "config.toml").write_text('[pairs]\na = "smiles"\nb = "statement"\n')
    assert partner_columns(tmp_path) == {"a": "statement", "b": "smiles"}
    (tmp_path / "config.toml").write_text("pairs = [")
    assert partner_columns(tmp_path) == {}


@pytest.mark.parametrize("width", [40, 60, 80, 120, 300])
@pytest.mark.parametrize("named", [True, False])
def test_a_table_is_as_wide_as_the_terminal_and_every_column_shows(width, named):
    payload = {
        "statement": LONG,
        **({"name": "acetylsalicylic acid, an old acquaintance of everybody"} if named else {}),
    }
    hits = [hit(rank, "C" * 80, payload) for rank in (1, 2, 1234)]
    lines = table_lines(hit_columns(hits, "molecule", "molecule", "statement"), width)
    assert len(lines) == 5 and max(map(cell_len, lines)) <= width
    for line in lines[2:]:
        rank, score, *_ = line.split()
        assert rank in ("1", "2", "1234") and score == "0.500" and "C" in line and "In" in line
        assert ("ac" in line) is named


def test_a_table_narrower_than_can_be_read_is_as_wide_as_it_must_be():
    lines = table_lines(hit_columns([hit(payload={"name": "x", "statement": LONG})], "molecule", "molecule"), 10)
    assert max(map(cell_len, lines)) <= 40


def test_cells_that_fit_are_whole_and_brackets_are_no_markup():
    hits = [hit(payload={"name": "salt [bold]", "statement": "Tastes [1]"})]
    lines = table_lines(hit_columns(hits, "molecule", "molecule", "statement"), 80)
    assert lines[2] == "   1   0.500   salt [bold]   [Na+].[Cl-]   Tastes [1]"


def test_wide_characters_count_as_two():
    hits = [hit(payload={"name": "水" * 40, "statement": "鎮痛剤 " * 40})]
    assert max(map(cell_len, table_lines(hit_columns(hits, "molecule", "molecule", "statement"), 70))) <= 70


def test_tab_separated_rows_have_one_line_and_all_cells():
    hits = [hit(item="C\tC\nO", payload={"name": "a\tb", "statement": LONG})]
    header, row = tab_separated(hit_columns(hits, "molecule", "molecule", "statement"))
    assert len(header.split("\t")) == len(row.split("\t")) == 6 and row.endswith(LONG.strip())
    assert tab_separated(hit_columns([], "molecule", "molecule")) == ["rank\tscore\tid\tSMILES"]
