"""Words as they are indexed and asked for."""

import re
import sqlite3
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.index.words import indexed_words, match_expression, matched_words

TEXTS = {
    1: "5-HT1A receptor agonist",
    2: "beta-blocker that lowers blood pressure",
    3: "COX-2 inhibitor",
    4: "N,N-dimethyltryptamine",
    5: "2',3'-cAMP",
    6: "does NOT bind",
    7: "hépatite, 肝炎, гепатит",
    8: "COX2 inhibitor",
}


@pytest.fixture(scope="module")
def table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61')")
    connection.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)", [(n, indexed_words(t)) for n, t in TEXTS.items()]
    )
    return connection


def found(table: sqlite3.Connection, query: str, every_term: bool = True) -> set[int]:
    expression = match_expression(query, every_term)
    if not expression:
        return set()
    return {row[0] for row in table.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,))}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("5-HT1A", {1}),
        ("5‐HT1A", {1}),
        ("5HT1A", {1}),
        ("HT1A", {1}),
        ("beta-blocker", {2}),
        ("β blocker", {2}),
        ("betablocker", {2}),
        ("COX-2", {3, 8}),
        ("cox2", {3, 8}),
        ("COX 2", {3}),
        ("N,N-dimethyltryptamine", {4}),
        ("dimethyltryptamine", {4}),
        ("2',3'-cAMP", {5}),
        ("2′,3′‐cAMP", {5}),
        ("3',2'-cAMP", set()),
        ("NOT", {6}),
        ("bind NOT does", {6}),
        ('"COX-2" inhibitor', {3, 8}),
        ("*", set()),
        ("inhib*", set()),
        ('"', set()),
        ("text:COX", set()),
        ("(cox", {3}),
        ("{}^-+:AND", set()),
        ("肝炎", {7}),
        ("ГЕПАТИТ", {7}),
        ("\x00COX-2\x00", {3, 8}),
        ("\u0000 (C#N) 'éß🧪", set()),
        ("\u0000 (COX) '2🧪", {3}),
        ("🧪", set()),
    ],
)
def test_chemical_words_and_query_syntax_are_found_or_not_and_never_an_error(table, query, expected):
    assert found(table, query) == expected


def test_any_term_finds_what_every_term_does_not(table):
    assert found(table, "COX-2 unicorn") == set()
    assert found(table, "COX-2 unicorn", every_term=False) == {3, 8}


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_no_text_is_an_error(text):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61')")
    connection.execute("INSERT INTO words (rowid, text) VALUES (1, ?)", (indexed_words(text),))
    for every_term in (True, False):
        if expression := match_expression(text, every_term):
            hits = connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall()
            assert hits in ([(1,)], [])
    connection.close()


def test_a_query_of_thousands_of_words_stays_within_what_fts_takes(table):
    query = " ".join(f"w{number}-{number}" for number in range(5000))
    assert found(table, query) == set()
    assert found(table, "-".join(str(number) for number in range(5000)), every_term=False) == set()


EASTERN = {
    1: "慢性肝炎の患者に投与する",
    2: "COX-2抑制剤",
    3: "ﾍﾟﾆｼﾘﾝ系抗生物質 コンピューター",
    4: "アセチル・サリチル酸",
    5: "아세틸살리실산은 간염을 치료한다",
    6: "第3相試験",
    7: "𠀀𠀁𠀂 の 𠮷野家",
    8: "肝",
    9: "ยาแอสไพริน",
    10: "阿司匹林 (aspirin) 可抑制环氧合酶",
    11: "葛\U000e0100城",
    12: "مثبط إنزيم",
    13: "か\u309aき",
    14: "β遮断薬",
    15: "مُثَبِّط الكولين",
    16: "दवा उच्च रक्तचाप",
    17: "תְּרוּפָה",
}


@pytest.fixture(scope="module")
def eastern() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61 remove_diacritics 2')"
    )
    connection.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)", [(n, indexed_words(t)) for n, t in EASTERN.items()]
    )
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("肝炎", {1}),
        ("性肝炎の", {1}),
        ("慢肝", set()),
        ("肝", {1, 8}),
        ("者", {1}),
        ("る", {1}),
        ("剤", {2}),
        ("抑制", {2, 10}),
        ("cox2抑制剤", {2}),
        ("抑制剤 COX-2", {2}),
        ("ＣＯＸ－２抑制剤", {2}),
        ("ペニシリン", {3}),
        ("ﾆｼﾘﾝ", {3}),
        ("ピューター", {3}),
        ("ピュータ", {3}),
        ("サリチル酸", {4}),
        ("アセチルサリチル酸", {4}),
        ("アセチル・サリチル酸", {4}),
        ("살리실산", {5}),
        (unicodedata.normalize("NFD", "간염"), {5}),
        ("간염 치료", {5}),
        ("第3相", {6}),
        ("第３相試験", {6}),
        ("第相", set()),
        ("𠀀𠀁", {7}),
        ("𠀁𠀂", {7}),
        ("𠀀𠀂", set()),
        ("𠮷", {7}),
        ("แอสไพริน", {9}),
        ("แอสไพรีน", set()),
        ("阿司匹林", {10}),
        ("aspirin 环氧合酶", {10}),
        ("葛城", {11}),
        ("إنزيم", {12}),
        ("إن", set()),
        ("مثبط", {12, 15}),
        ("مُثَبِّط", {12, 15}),
        ("مــثبط", {12, 15}),
        ("תרופה", {17}),
        ("दवा", {16}),
        ("रक्तचाप", {16}),
        ("\u304b\u309a", {13}),
        ("か", {13}),
        ("beta 遮断", {14}),
        ("🧪肝炎🧪", {1}),
        ("*肝炎*", {1}),
        ("肝炎 NOT 患者", set()),
    ],
)
def test_eastern_scripts_are_found_by_substring_and_single_characters_anywhere(eastern, query, expected):
    assert found(eastern, query) == expected


def test_pairs_of_a_run_are_found_where_no_item_has_the_whole(eastern):
    assert found(eastern, "慢性胃炎の患者") == set()
    assert found(eastern, "慢性胃炎の患者", every_term=False) == {1}


@given(st.text(alphabet="肝炎慢性のカナー가간ยา𠀀", min_size=1, max_size=12), st.data())
@settings(max_examples=200, deadline=None)
def test_every_substring_of_a_run_finds_it_and_nothing_else_does(run, data):
    start = data.draw(st.integers(0, len(run) - 1))
    part = run[start : data.draw(st.integers(start + 1, len(run)))]
    other = data.draw(st.text(alphabet="肝炎慢性のカナー가간ยา𠀀", min_size=1, max_size=3))
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61')")
    connection.execute("INSERT INTO words (rowid, text) VALUES (1, ?)", (indexed_words(run),))
    assert found(connection, part) == {1}
    assert found(connection, other) == ({1} if other in run else set())
    assert matched_words(part, indexed_words(run)) == (part,)
    connection.close()


def test_no_two_characters_of_a_run_are_one_to_the_index():
    blocks = [(0xE00, 0xF00), (0x1000, 0x1200), (0x1780, 0x1800), (0x2E80, 0x3400), (0x4E00, 0x4F00), (0xA960, 0xAC20)]
    blocks += [(0x1AFF0, 0x1B170), (0x20000, 0x20100)]
    characters = [chr(code) for block in blocks for code in range(*block)]
    tokens = {}
    for character in characters:
        words = indexed_words(f"肝{character}").split()
        if len(words) == 2 and len(words[0]) == 2 and unicodedata.normalize("NFKC", character) == character:
            assert tokens.setdefault(words[0], character) == character
    assert len(tokens) > 1500


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("Selective COX-2 inhibitor", "an inhibitor of COX2", ("COX-2", "inhibitor")),
        ('"cox 2"', "COX-2", ("cox", "2")),
        ("β-blocker", "beta blocker", ("β-blocker",)),
        ("HEPATITE hépatite", "Hépatite", ("HEPATITE", "hépatite")),
        ("2′,3′-cAMP, 3'-cAMP!", "2',3'-cAMP", ("2′,3′-cAMP", "3'-cAMP")),
        ("3',2'-cAMP", "2',3'-cAMP", ()),
        ("COX-2抑制薬", "COX-2抑制剤", ("COX-2", "抑制")),
        ("慢性胃炎の患者", "慢性肝炎の患者", ("慢性", "炎の患者")),
        ("肝", "慢性肝炎", ("肝",)),
        ("ﾍﾟﾆｼﾘﾝ", "ペニシリン", ("ﾍﾟﾆｼﾘﾝ",)),
        ("unicorn", "COX-2", ()),
        ("", "COX-2", ()),
        ("COX-2", "", ()),
        ("* ( \x00 🧪", "COX-2", ()),
    ],
)
def test_matched_words_are_those_of_the_query_that_an_item_holds(query, text, expected):
    assert matched_words(query, indexed_words(text)) == expected


words_or_signs = st.text(
    alphabet=st.sampled_from("ab2-,'()*\"^:{} éβ肝炎抑カー가ยั🧪\x00\ud800\u0301") | st.characters(), max_size=24
)


@given(words_or_signs, words_or_signs)
@settings(max_examples=500, deadline=None)
def test_an_item_that_is_found_has_matched_words_and_one_that_is_not_has_not(query, text):
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61 remove_diacritics 2')"
    )
    words = indexed_words(text)
    connection.execute("INSERT INTO words (rowid, text) VALUES (1, ?)", (words,))
    assert bool(matched_words(query, words)) == bool(found(connection, query, every_term=False))
    connection.close()


@given(st.text(alphabet=st.sampled_from("\"'*^:(){}-+ANDORNTE肝炎ยั \x00;\\") | st.characters(), max_size=40))
@settings(max_examples=500, deadline=None)
def test_an_expression_holds_nothing_but_quoted_words_and_our_own_operators(query):
    for every_term in (True, False):
        left = re.sub(r'"[^"]*"', "", match_expression(query, every_term))
        assert re.fullmatch(r"(\(? OR \)?| AND | OR |\(|\)| \*)*", left)
        for quoted in re.findall(r'"([^"]*)"', match_expression(query, every_term)):
            assert re.fullmatch(r"[\w\ue000-\uefff ]+", quoted)


@pytest.mark.parametrize("query", ["肝炎" * 5000, "肝a" * 5000, "ｱ・" * 4000, "ยั" * 5000, "a-" * 5000, "é " * 5000])
def test_long_queries_and_texts_take_no_time(table, query):
    start = time.perf_counter()
    found(table, query)
    found(table, query, every_term=False)
    matched_words(query, indexed_words(query * 10))
    assert time.perf_counter() - start < 3
