"""Ten thousand requests that nobody well-meaning would send, the same ones every time."""

import json
import random
from dataclasses import dataclass, field
from urllib.parse import quote

MARK = "hostile-mark"
"""Stands in many of the texts, and must not stand in the log of the service."""

BOMBS = [
    "C" * 9_990,
    "c1ccccc1" * 1_200,
    "C(" * 4_900 + "C",
    "C(" * 3_000 + "C" + ")" * 3_000,
    "C%99" * 2_400,
    "C1" * 4_000,
    "C%(99999999)" * 800,
    "[" * 9_990,
    "]" * 9_990,
    "(" * 9_990,
    "C1CC1" * 1_900,
    ".".join("C" * 900),
    "[C@H](F)" * 900,
    "C/C=C/" * 320 + "C",
    "c1ccc2c(c1)" * 800,
    "[#200]",
    "[999999999999999999999C]",
    "[C+99999999]",
    "C" + "=C" * 4_000,
    "[Fe]->[Fe]" * 500,
    "*" * 9_000,
    "C~" * 2_000 + "C",
    "[H]" * 3_000,
    "N#N" * 1_000,
    "%%%%",
    "C%",
    "[C@TH9]",
    "[C@OH99]",
    "[2H]" * 2_400,
    "C$C",
    "[Xx]",
    "[C",
    "C)",
    "c",
    "cc",
    "C1",
    "C=1CC#1",
    "B-" * 3_000 + "B",
]
PATTERNS = [
    "[$(C" * 400 + ")]" * 400,
    "[$([$([$([$(C)])])])]",
    "[" + "!" * 1_900 + "C]",
    "[" + ",".join(["C"] * 600) + "]",
    "[" + ";".join(["C"] * 600) + "]",
    "[R]",
    "*",
    "[*]",
    "[!#1]",
    "smarts:",
    "smarts:" * 100,
    "[C&C;C,C!C]",
    "[#0]",
    "[D99999999999]",
    "[r99999999999999]",
    "[$(*)]" * 30,
    "C.C.C",
    "(C).(C)",
    "[C:1]>>[C:1]",
    "[v-1]",
    "[h{1-}]",
    "[^9]",
]
ENDLESS = ["~".join(["*"] * 25) + "~[#92]", "*~" * 30 + "[$([#92])]", "[$(" + "~".join(["*"] * 20) + "~[#92])]"]
WORDS = [
    "' OR 1=1 --",
    "'; DROP TABLE items; --",
    '" UNION SELECT * FROM items --',
    "1; ATTACH DATABASE '/tmp/x' AS y",
    "NEAR(a b, 99999999)",
    "a AND OR NOT",
    '"unclosed',
    "col:word",
    "text : *",
    "^start",
    "a* b* *",
    "{a b}: c",
    "-",
    "*",
    "()" * 500,
    "((((((((((",
    '""""',
    "OR",
    "AND",
    "NOT",
    "a NOT",
    "\\",
    "\\0",
    "%",
    "_",
    "a" * 9_999,
    "é" * 5_000,
    "../../../../etc/passwd",
    "..\\..\\windows\\win.ini",
    "/etc/passwd",
    "file:///etc/passwd",
    "http://127.0.0.1/health",
    "C:\\Windows\\System32",
    "%2e%2e%2f%2e%2e%2f",
    "..%c0%af..",
    "index.json",
    "secret.txt",
    "~/.ssh/id_rsa",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "{{7*7}}",
    "${7*7}",
    "#{7*7}",
    "<svg/onload=alert(1)>",
    "]]><!--",
    "%s%s%s%n",
    "{0.__class__}",
    "{}",
    "$(id)",
    "`id`",
    "| id",
    "\r\nSet-Cookie: a=b",
    "\0",
    "a\0b",
    "".join(map(chr, range(32))),
    "\x7f",
    "\x85",
    "\u2028\u2029",
    "\u202e\u202dabc",
    "\ufeff",
    "\ufffe",
    "\ud800",
    "\udfff",
    "a\ud800b",
    "\U0010ffff",
    "\u0300" * 5_000,
    "Z" + "\u0489" * 3_000,
    "\u200d" * 3_000,
    "ﷺ" * 3_000,
    "İ" * 3_000,
    "ß" * 3_000,
    "한글" * 2_000,
    "日本語" * 2_000,
    "中",
    "中文",
    "🧪" * 3_000,
    "٣" * 2_000,
    "Ⅷ" * 2_000,
    " ",
    "\t",
    "\u3000" * 100,
    "a b " * 3_000,
    "-" * 9_999,
    "'" * 9_999,
    "1e309",
    "NaN",
    "Infinity",
    "-0",
    "9" * 5_000,
    "null",
    "InChI=1S/" + "C" * 9_000,
    "InChIKey=BSYNRYMUTXBXSQ-UHFFFAOYSA-N",
    "AAAAAAAAAAAAAA-AAAAAAAAAA-A",
    "True",
    "[]",
]
FILTERS = [
    "text = 'a' OR 1=1",
    "1=1",
    "'; DROP TABLE fields; --",
    "a" * 9_000 + " = 1",
    "(" * 4_000 + "a = 1" + ")" * 4_000,
    "not " * 2_000 + "a = 1",
    "a in (" + ",".join(["1"] * 3_000) + ")",
    "a = 1 and " * 900 + "a = 1",
    "exists " * 1_000,
    "a = 'unclosed",
    'a = "',
    "a = \\'",
    "a < 1e999",
    "a = NaN",
    "a = 99999999999999999999999999",
    "a ! b",
    "a == 1",
    "=",
    '"a""b" = 1',
    "`a` = 1",
    "a.b.c = 1",
    "number = 1",
    "rowid = 1",
    "side = 'a'",
    "sqlite_master = 1",
    "a like '%'",
    "text = '\0'",
    "text = '\ud800'",
    "text in ()",
    "not",
    "and",
    "exists",
    "exists text and not exists text",
    "text <> 1",
    "text != null",
    "text = true",
    "text in (null, true, 'a', 1.5)",
    "a = 1; select 1",
    "a = (select 1)",
    "a = b",
]
BODIES = [
    b"",
    b" ",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"0",
    b'"q"',
    b"{",
    b"}",
    b"[" * 10_000 + b"]" * 10_000,
    b"[" * 100_000,
    b'{"q":' * 10_000 + b"1" + b"}" * 10_000,
    b'{"q": "a", "filter": ' + b'{"not": ' * 10_000 + b"1" + b"}" * 10_001,
    b'{"q": NaN}',
    b'{"q": "a", "k": NaN}',
    b'{"q": "a", "k": Infinity}',
    b'{"q": "a", "k": 1e999}',
    b'{"q": "a", "k": -1}',
    b'{"q": "a", "k": 99999999999999999999999999}',
    b'{"q": "a", "k": 1.0}',
    b'{"q": "a", "k": "1"}',
    b'{"q": "a", "k": true}',
    b'{"q": "a", "k": 1, "k": 2}',
    b'{"q": "a", "q": "b", "q": ["c"]}',
    b'{"q": ["a"]}',
    b'{"q": {"a": 1}}',
    b'{"q": 1}',
    b'{"q": "\xff\xfe"}',
    b"\xff\xfe{\x00",
    b"\xef\xbb\xbf{}",
    '{"q": "a"}'.encode("utf-16"),
    b'{"q": "\\ud800"}',
    b'{"q": "\\u0000"}',
    b'{"q": "a\x00b"}',
    b'{"q": "a"',
    b'{"q": "a"}}',
    b'{"q": "a"} {"q": "b"}',
    b"q=a&k=1",
    b"<q>a</q>",
    b'{"q": "a", "__class__": 1}',
    b'{"q": "a", "__proto__": {"k": 1}}',
    b'{"q": "a", "of": 5}',
    b'{"q": "a", "of": "c"}',
    b'{"q": "a", "least_similarity": 1e400}',
    b'{"q": "a", "mode": "drop"}',
    b'{"q": "a", "read_as": "pickle"}',
    b'{"q": "a", "filter": []}',
    b'{"q": "a", "filter": {"and": []}}',
    b'{"q": "a", "filter": {"": null}}',
    b'{"items": [], "labels": []}',
    b'{"items": "CCO", "labels": "a"}',
    b'{"items": [1], "labels": [2]}',
    b'{"items": ["CCO"], "labels": ["a", "a"]}',
    b'{"items": ["CCO"], "labels": ["a"], "templates": ["{0.__class__}"]}',
    b'{"items": ["CCO"], "labels": ["a"], "templates": ["{}{}"]}',
    b'{"items": ["CCO"], "labels": ["a"], "synonyms": {"b": []}}',
    b'{"items": ["CCO"], "labels": ["a"], "k": 1000, "abstain_below": -1}',
    b'{"items": ["CCO"], "of": "molecule"}',
]
MEDIA = [
    "application/json",
    "application/json; charset=utf-16",
    "text/plain",
    "application/x-www-form-urlencoded",
    "",
    "a" * 500,
    "multipart/form-data; boundary=x",
    "application/xml",
    "application/json\tx",
    "application/vnd.api+json",
]
HEADERS = [
    {},
    {"accept": "text/html"},
    {"accept-encoding": "gzip, br;q=9999"},
    {"x-forwarded-for": "127.0.0.1, ::1"},
    {"authorization": "Bearer " + "a" * 5_000},
    {"authorization": "Basic !!!"},
    {"cookie": "a=" + "b" * 8_000},
    {"origin": "http://evil.example"},
    {"referer": "javascript:1"},
    {"if-none-match": '"' + "a" * 1_000},
    {"range": "bytes=0-"},
    {"host": "evil.example"},
    {"x-http-method-override": "DELETE"},
    {"te": "trailers"},
    {"expect": "nothing"},
]
RAW = [
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /health\r\n\r\n",
    b"\r\n\r\n",
    b"\0" * 200,
    b"\x16\x03\x01\x02\x00\x01",
    b"A" * 70_000,
    b"GET /items/\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
    b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    b"TRACE / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
    b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}",
    b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
    b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


@dataclass(frozen=True)
class Request:
    """A request as http.client sends it, or the bytes of one as they are."""

    method: str = "GET"
    path: str = "/"
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


def requests(n: int, seed: int = 7) -> list[Request]:
    """Return `n` requests: each of the lists above in each place where it fits, then mixtures of them."""
    draw = random.Random(seed)
    found = [Request(raw=raw) for raw in RAW]
    for text in [*WORDS, *BOMBS, *PATTERNS]:
        found += [_searched(text, draw), _searched(text, draw), _addressed(text, draw), _classified(text, draw)]
        found += [_encoded(text, draw)]
    for text in [*PATTERNS, *BOMBS, *WORDS]:
        found += [
            _posted("/search", {"q": MARK, name: text, "of": "molecule"}) for name in ("substructure", "similar_to")
        ]
    for text in [*FILTERS, *WORDS]:
        found += [
            _posted("/search", {"q": MARK, "filter": text}),
            Request(path=f"/similar/aspirin?filter={_quoted(text)}"),
        ]
    for body in BODIES:
        for path in ("/search", "/classify", "/encode"):
            found += [Request("POST", path, body, {"content-type": media}) for media in draw.sample(MEDIA, 2)]
            found.append(Request("POST", path, body, {"content-type": "application/json"}))
    found += [_posted("/search", {"q": "a" * 1_000_000}), _posted("/encode", {"items": ["C" * 990_000], "of": "a"})] * 8
    found += [_posted("/encode", {"items": ["\U0001f9ea" * 80_000], "of": "b"})] * 4
    found += [_posted("/search", {"q": MARK, "of": "molecule", "substructure": text}) for text in ENDLESS]
    while len(found) < n:
        text = _mixed(draw)
        make = draw.choice([_searched, _searched, _searched, _addressed, _classified, _encoded, _spoilt])
        found.append(make(text, draw))
    draw.shuffle(found)
    return found[:n]


def _mixed(draw: random.Random) -> str:
    """Return parts of hostile texts, put together and cut."""
    parts = [draw.choice(draw.choice([WORDS, BOMBS, PATTERNS, FILTERS])) for _ in range(draw.randrange(1, 4))]
    whole = draw.choice(["", " ", "\0", ".", MARK]).join(part[: draw.choice([5, 40, 400])] for part in parts)
    start = draw.randrange(0, max(1, len(whole) // 4))
    return whole[start:] or "\0"


def _posted(path: str, content: object) -> Request:
    return Request("POST", path, json.dumps(content).encode(), {"content-type": "application/json"})


def _searched(text: str, draw: random.Random) -> Request:
    content: dict[str, object] = {"q": text}
    choices = {
        "k": [1, 10, 1000],
        "offset": [0, 5, 10_000],
        "of": ["molecule", "text", "a", "b", text[:300]],
        "explain": [True],
        "read_as": ["id", "name", "inchikey", "smiles", "text"],
        "mode": ["space", "words", "hybrid"],
        "distinct": [True],
        "filter": [*FILTERS[:8], text],
        "substructure": ["C", text],
        "similar_to": ["CCO", text],
    }
    for name in draw.sample(sorted(choices), draw.randrange(0, 4)):
        content[name] = draw.choice(choices[name])
    return _posted("/search", content)


def _classified(text: str, draw: random.Random) -> Request:
    content: dict[str, object] = {"items": ["CCO"], "labels": ["ring", MARK]}
    name = draw.choice(["items", "labels", "templates", "synonyms", "of"])
    content[name] = {"synonyms": {"ring": [text]}, "of": text[:300]}.get(
        name, [text, "{} " + text][: draw.randrange(1, 3)]
    )
    return _posted("/classify", content)


def _encoded(text: str, draw: random.Random) -> Request:
    return _posted("/encode", {"items": [text, "CCO"], "of": draw.choice(["molecule", "text", text[:300]])})


def _addressed(text: str, draw: random.Random) -> Request:
    place = draw.choice(
        ["/items/", "/similar/", "/depict/", "/static/", "/", "/items/aspirin?of=", "/similar/aspirin?k="]
    )
    path = place + (text if draw.random() < 0.2 and text.isascii() and text.isprintable() else _quoted(text))
    return Request(
        draw.choice(["GET", "GET", "GET", "HEAD", "PUT", "DELETE", "OPTIONS"]),
        path[:20_000].replace(" ", "+"),
        headers=draw.choice(HEADERS),
    )


def _spoilt(text: str, draw: random.Random) -> Request:
    """Return a search whose bytes were changed in some places."""
    body = bytearray(json.dumps({"q": text[:500], "k": 3}).encode())
    for _ in range(draw.randrange(1, 6)):
        body[draw.randrange(len(body))] = draw.randrange(256)
    return Request(
        "POST",
        draw.choice(["/search", "/encode", "/classify"]),
        bytes(body),
        {"content-type": "application/json", **draw.choice(HEADERS)},
    )


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")
