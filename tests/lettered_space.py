"""A space whose encoders count letters, so that each cosine is known: two sides with words, payload and entities.

Many items have equal rows, some have none, and the words of a query are not its letters alone.
"""

from types import SimpleNamespace

import numpy as np

from bridgehead.index import IndexSide, build_index, open_index
from bridgehead.search import REFERENCES, Space, reference_attachment

ALPHABET = "abcdefgh"
N_LEFT, N_RIGHT = 90, 60
TRAINED = np.array([(i, (i * 7) % N_RIGHT) for i in range(0, N_LEFT, 2)])


class Letters:
    """The row of a text: how often each letter of the alphabet occurs. What holds a ? cannot be read."""

    def __init__(self):
        self.asked = []

    def encode(self, items):
        self.asked.append(list(items))
        failures = [SimpleNamespace(index=i, reason="a question") for i, item in enumerate(items) if "?" in item]
        rows = [[item.lower().count(letter) for letter in ALPHABET] for item in items if "?" not in item]
        return SimpleNamespace(rows=np.array(rows, dtype=np.float32).reshape(-1, len(ALPHABET)), failures=failures)


class Biased:
    """Heads that, like trained ones, do not map zero to zero."""

    def project_a(self, rows):
        rows = np.asarray(rows, dtype=np.float32) + 1e-3
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    project_b = project_a


def texts(n, seed):
    """Return texts of one to three words of one to three letters; every tenth has no letter of the alphabet."""
    drawn = np.random.default_rng(seed)

    def word():
        return "".join(drawn.choice(list(ALPHABET[:4]), drawn.integers(1, 4)))

    return ["zz yy" if i % 10 == 9 else " ".join(word() for _ in range(drawn.integers(1, 4))) for i in range(n)]


def side(name, n, seed):
    items = texts(n, seed)
    return IndexSide(
        name,
        Letters().encode(items).rows,
        items,
        [f"{name[0]}{i}" for i in range(n)],
        payload=[{"number": i, **({"colour": "red" if i % 3 else "blue"} if i % 4 else {})} for i in range(n)],
        # Three of five items share what they are with another one.
        entities=[None if i % 5 == 0 else f"{name}-{i // 5 % 9}-{i % 2}" for i in range(n)],
    )


def lettered_space(folder):
    """Return the space, its index in `folder`; "left" is side a, "right" side b."""
    sides = {"a": side("left", N_LEFT, 1), "b": side("right", N_RIGHT, 2)}
    references = reference_attachment(sides["a"].rows, sides["b"].rows, TRAINED)
    build_index(folder, sides, "model", attachments={REFERENCES: references})
    return Space(open_index(folder), Letters(), Letters(), Biased())
