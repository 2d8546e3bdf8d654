"""Pages name files, never the folders of a machine."""

import pytest

from bridgehead.runs.shown_config import shown_config


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("/data/lab/pairs.csv", "pairs.csv"),
        ("/data/my lab/parts-*.csv", "parts-*.csv"),
        ("C:\\data\\pairs.csv", "pairs.csv"),
        ("rows:/data/x.npy", "rows:x.npy"),
        ("text:ngram + rows:/data/a b/x.npy", "text:ngram + rows:x.npy"),
        ("text:hf=/models/mini", "text:hf=mini"),
        ("text:hf=sentence-transformers/all-MiniLM-L6-v2", "text:hf=sentence-transformers/all-MiniLM-L6-v2"),
        ("starter", "starter"),
        ("CC(=O)Oc1ccccc1C(=O)O", "CC(=O)Oc1ccccc1C(=O)O"),
        ("F/C=C/F", "F/C=C/F"),
        ("opens / closes", "opens / closes"),
        ("/", "/"),
        (3, 3),
        (None, None),
        (["/a/b", {"c": ("/d/e",)}], ["b", {"c": ["e"]}]),
    ],
)
def test_a_path_is_shown_by_the_name_of_its_file(given, shown):
    assert shown_config(given) == shown


def test_the_report_of_a_run_holds_no_folder_of_the_machine(finished):
    for name in ("report.html", "card.md"):
        text = finished.path(name).read_text(encoding="utf-8")
        assert str(finished.folder.parent) not in text
    assert "pairs.csv" in finished.path("report.html").read_text(encoding="utf-8")
