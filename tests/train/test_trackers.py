import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from bridgehead.errors import MissingExtraError
from bridgehead.train import trackers
from bridgehead.train.trackers import History, read_history

LINES: list[dict[str, Any]] = [{"epoch": 1, "loss": 2.5}, {"epoch": 2, "loss": 1.25}]


def test_each_line_is_in_the_file_as_soon_as_it_is_added(tmp_path: Path) -> None:
    history = History(tmp_path / "new")
    history.restart([])
    for count, line in enumerate(LINES, 1):
        history.add(line)
        assert read_history(tmp_path / "new") == LINES[:count]


def test_a_resumed_training_begins_with_the_lines_of_its_checkpoint(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.restart([])
    for line in [*LINES, {"epoch": 3, "loss": 9.0}]:
        history.add(line)
    resumed = History(tmp_path)
    resumed.restart(LINES[:1])
    resumed.add(LINES[1])
    assert read_history(tmp_path) == LINES


def test_a_last_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text(json.dumps(LINES[0]) + '\n{"epoch": 2, "lo')
    assert read_history(tmp_path) == LINES[:1]
    assert read_history(tmp_path / "none") == []


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with History(None) as history:
        history.restart(LINES)
        history.add(LINES[0])
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_that_is_missing_is_named_with_its_install_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"run: pip install 'bridgehead\[tensorboard\]'") as caught:
        History(None, tmp_path)
    assert isinstance(caught.value, ImportError)


def test_numbers_of_a_line_become_scalars_at_its_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, float, int]] = []

    class Writer:
        def __init__(self, log_dir: str) -> None:
            assert log_dir == str(tmp_path)

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, value, step))

        def flush(self) -> None:
            pass

        def close(self) -> None:
            written.append(("closed", 0, 0))

    monkeypatch.setattr(trackers, "find_spec", lambda name: name)
    monkeypatch.setattr(trackers, "import_module", lambda name: types.SimpleNamespace(SummaryWriter=Writer))
    with History(None, tmp_path) as history:
        history.add({"epoch": 2, "loss": 0.5, "note": "words", "good": True, "valid_mrr": float("nan")})
        history.add({"epoch": 2, "step": 40, "loss": 0.25})
    assert written == [("epoch", 2, 2), ("loss", 0.5, 2), ("epoch", 2, 40), ("loss", 0.25, 40), ("closed", 0, 0)]


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    with History(None, tmp_path) as history:
        for line in LINES:
            history.add(line)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(1, 2.5), (2, 1.25)]


def test_tensorboard_is_not_loaded_unless_asked_for(tmp_path: Path) -> None:
    before = "torch.utils.tensorboard" in sys.modules
    History(tmp_path).restart([])
    assert ("torch.utils.tensorboard" in sys.modules) == before
