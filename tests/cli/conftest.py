"""A run whose stages are fakes, for tests of what the commands do with results, progress and errors."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bridgehead
from bridgehead import runs
from bridgehead.search import Answer, Hit, Reading

ASPIRIN = {"name": "aspirin", "statement": ["Inhibits COX-1", "Eases pain"]}
SALT = {"name": "sodium [red]chloride[/red]", "statement": None}
HITS = (
    Hit(1, "7", 0.91234, "CC(=O)Oc1ccccc1C(=O)O", ASPIRIN, "text"),
    Hit(2, "9", 0.5, "[Na+].[Cl-]", SALT, "text"),
)


@dataclass
class FakeSpace:
    """Answers every query with `answer_` and remembers what it was asked."""

    answer_: Answer
    names: dict[str, str] = field(default_factory=lambda: {"a": "molecule", "b": "text"})
    kinds: dict[str, str] = field(default_factory=lambda: {"a": "molecule", "b": "text"})
    asked: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    opened: list[tuple[Any, str]] = field(default_factory=list)

    def __enter__(self) -> "FakeSpace":
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def answer(self, *arguments: Any, **options: Any) -> Answer:
        self.asked, self.options = arguments, options
        return self.answer_


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> FakeSpace:
    """A space behind `bridgehead.open_space`; `space.opened` holds the folder and heads that were asked for."""
    fake = FakeSpace(Answer(HITS, Reading("text", "pain", "b", None, "read as words"), "molecule"))

    def open_space(run: Any, heads: str = "refit") -> FakeSpace:
        fake.opened.append((run, heads))
        return fake

    monkeypatch.setattr(bridgehead, "open_space", open_space, raising=False)
    return fake


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace a stage of `runs`: `stage("check", function)`; run folders are then plain names."""

    def replace(name: str, function: Any) -> None:
        monkeypatch.setattr(runs, name, function, raising=False)

    replace("RunFolder", SimpleNamespace(of=lambda source, folder=None: SimpleNamespace(folder=Path(source))))
    return replace
