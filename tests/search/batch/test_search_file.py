"""Every query of a file, in parts that last: answers are those of one by one, and an interrupted search goes on."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import polars as pl
import pytest

from bridgehead.errors import ArgumentError, BridgeheadError, DataError, RunBusyError
from bridgehead.files import folder_lock
from bridgehead.search import Query
from bridgehead.search.batch import search_file, searching
from lettered_space import texts

COLUMNS = ["query_row", "query_id", "query", "read_as", "rank", "id", "name", "item", "score", "percentile", "also",
           "note", "failure"]  # fmt: skip
LINES = ["abc", "", "l3", "zz", "qq ww", "aab bd", "x" * 10_001, "?", "d"]


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of four queries, encoded three at a time."""
    monkeypatch.setattr(searching, "_MOST_QUERIES", 4)
    monkeypatch.setattr(searching, "_TOGETHER", 3)


def write(path, lines):
    path.write_text("\n".join(lines))
    return path


def expected_rows(space, lines, **options):
    rows = []
    for number, line in enumerate(lines):
        try:
            answer = space.answer_all([Query(line, **options)])[0]
            if isinstance(answer, BridgeheadError):
                raise answer
        except BridgeheadError as error:
            rows.append((number, None, None, None, str(error)))
            continue
        rows += [(number, hit.rank, hit.id, hit.score, None) for hit in answer.hits]
        rows += [(number, None, None, None, None)] if not answer.hits else []
    return rows


def rows_of(out):
    return pl.read_parquet(out).select("query_row", "rank", "id", "score", "failure").rows()


@pytest.mark.parametrize("options", [{}, {"mode": "hybrid", "distinct": True}, {"where": "number < 5", "of": "left"}])
def test_the_file_holds_what_each_query_gets_alone(lettered, tmp_path, small_parts, options):
    report = search_file(lettered, write(tmp_path / "q.txt", LINES), tmp_path / "hits.parquet", k=3, **options)
    expected = expected_rows(lettered, LINES, k=3, **options)
    found = rows_of(report.out)
    assert [row[:4] for row in found] == [row[:4] for row in expected]
    assert [row[4] is None for row in found] == [row[4] is None for row in expected]
    assert (report.n_queries, report.n_hits) == (9, sum(row[1] is not None for row in expected))
    assert [row for row, _, _ in report.failures] == [1, 6] and report.n_failed == 2
    assert report.failures[0] == (1, "1", "the query is empty") and "10,001 characters" in report.failures[1][2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hits.parquet", "q.txt"]


def test_columns_say_how_a_query_was_read_and_why_there_is_nothing(lettered, tmp_path):
    path = tmp_path / "q.csv"
    path.write_text("id,query\nfirst,abc\nsecond,qq ww\nthird,zz\n")
    report = search_file(lettered, path, tmp_path / "hits.parquet", k=2)
    frame = pl.read_parquet(report.out)
    assert frame.columns == COLUMNS and frame["query_id"].to_list() == ["first", "first", "second", "third", "third"]
    assert frame["read_as"].to_list() == ["text", "text", "text", "words", "words"]
    assert "nothing to show" in frame["note"][2] and "answered from the words alone" in frame["note"][3]
    assert frame["percentile"].is_null().to_list() == [False, False, True, True, True]
    assert report.lines()[0] == "3 queries, 4 hits; 1 without a hit, 0 failed"


def test_an_interrupted_search_goes_on_where_it_stopped(lettered, tmp_path, small_parts, monkeypatch):
    lines = [line for line in texts(40, 5) if line]
    path, out = write(tmp_path / "q.txt", lines), tmp_path / "hits.parquet"
    whole = rows_of(search_file(lettered, path, tmp_path / "whole.parquet", k=3).out)
    done = []

    def stop(n, total):
        done.append(n)
        if len(done) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_file(lettered, path, out, k=3, progress=stop)
    assert not out.exists() and len(list((tmp_path / ".hits.parquet.parts").glob("part-*"))) == 5
    asked = []
    answer_all = type(lettered).answer_all
    monkeypatch.setattr(type(lettered), "answer_all", lambda self, q: asked.extend(q) or answer_all(self, q))
    assert rows_of(search_file(lettered, path, out, k=3).out) == whole
    assert [query.text for query in asked] == [line.strip() for line in lines[20:]]


def test_parts_of_another_question_are_not_taken(lettered, tmp_path, small_parts):
    path, out = write(tmp_path / "q.txt", texts(20, 6)), tmp_path / "hits.parquet"

    def stop(n, total):
        raise KeyboardInterrupt

    for changed, options in ((texts(20, 6), {"k": 2}), (texts(20, 7), {"k": 3})):
        with pytest.raises(KeyboardInterrupt):
            search_file(lettered, path, out, k=3, progress=stop)
        write(path, changed)
        expected = expected_rows(lettered, [line.strip() for line in changed], **options)
        assert [row[:4] for row in rows_of(search_file(lettered, path, out, **options).out)] == [
            e[:4] for e in expected
        ]
        write(path, texts(20, 6))


def test_what_fits_no_query_is_refused_at_once(lettered, tmp_path):
    path = write(tmp_path / "q.txt", ["abc"])
    for options, message in (
        ({"where": "weight < 3"}, "weight"),
        ({"of": "middle"}, "no side 'middle'"),
        ({"k": 0}, "k = 0"),
        ({"explain": True}, "explain: no option of a search with many queries"),
        ({"substructure": "c1ccccc1"}, "no structures"),
    ):
        with pytest.raises(ArgumentError, match=message):
            search_file(lettered, path, tmp_path / "hits.parquet", **options)
    with pytest.raises(ArgumentError, match=r"expected the name of a .parquet file"):
        search_file(lettered, path, tmp_path / "hits.csv")
    with pytest.raises(DataError, match="holds no query"):
        search_file(lettered, write(tmp_path / "none.txt", []), tmp_path / "hits.parquet")
    pl.DataFrame({"query": ["abc"]}).write_parquet(tmp_path / "q.parquet")
    with pytest.raises(ArgumentError, match="the file of queries itself"):
        search_file(lettered, tmp_path / "q.parquet", tmp_path / "q.parquet")
    with folder_lock(tmp_path / ".hits.parquet.parts"), pytest.raises(RunBusyError):
        search_file(lettered, path, tmp_path / "hits.parquet")


PROGRAM = """
    import sys
    from pathlib import Path
    from bridgehead.index import open_index
    from bridgehead.search import Space
    from bridgehead.search.batch import search_file, searching
    from lettered_space import Biased, Letters
    searching._MOST_QUERIES = 50
    with Space(open_index(sys.argv[1]), Letters(), Letters(), Biased()) as space:
        search_file(space, sys.argv[2], sys.argv[3], k=3, progress=lambda done, total: print(done, flush=True))
"""


@pytest.mark.slow
def test_a_killed_search_leaves_the_old_file_whole_and_goes_on(lettered, tmp_path):
    path, out = write(tmp_path / "q.txt", texts(1500, 8)), tmp_path / "hits.parquet"
    out.write_bytes(b"old")
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(lettered.index.folder), str(path), str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    for kills in range(1, 4):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            # The work that is measured: so many parts were written, more than before.
            while int(process.stdout.readline()) < 300 * kills:
                pass
            time.sleep(0.01 * kills)
            process.send_signal(signal.SIGKILL)
        assert out.read_bytes() == b"old"
    subprocess.run(command, check=True, capture_output=True, env=environment)
    expected = rows_of(search_file(lettered, path, tmp_path / "whole.parquet", k=3).out)
    assert rows_of(out) == expected
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hits.parquet", "q.txt", "whole.parquet"]
