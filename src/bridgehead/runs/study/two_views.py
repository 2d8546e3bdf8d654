"""`two_view_study`: the main table, the three exercises, the page and the record of it all.

This module puts the parts together; what they are and prove stands in them.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.files import write_json
from bridgehead.report.study_page import write_study
from bridgehead.runs.prepare import Progress
from bridgehead.runs.study.duplicated_texts import DuplicatedTexts, duplicated_texts
from bridgehead.runs.study.main_table import EpochCallback, MainTable, main_table
from bridgehead.runs.study.one_sided import OneSided, one_sided
from bridgehead.runs.study.page import page_content, score_windows, two_dimensional_views
from bridgehead.runs.study.source_tag import SourceTag, source_tag
from bridgehead.runs.two_view import N_FIT, N_HELD_OUT, N_VALID, SEEDS, TwoViews, first_model, two_views
from bridgehead.vectors import FloatArray

FOLDER = "runs/two-views"
PAGE, RECORD = "two_views.html", "two_views.json"
_DIGITS = 4


def two_view_study(
    folder: str | Path = FOLDER, everything: bool = False, progress: Progress | None = None
) -> dict[str, Any]:
    """Repeat the published two-view study, write its page into `folder`, and return the record of it.

    The record has `measured` and `published`, each by `split.condition.metric` with `mean` and sample `sd` over the
    five seeds (`measured["held_out.paired.a_to_b.recall@1"]`; `paired_minus_shuffled` is the difference within seeds);
    `difference`, `within_tolerance` and `all_within` hold the one against the other; `chance` by `split.metric`,
    `by_seed` the single values, `seconds` what each part took, `page` the file, and `lines` to print. `everything` adds
    `one_sided`, `duplicated_texts` and `source_tag`, and what the page draws: `views` and `scores`. The record without
    `lines` is written beside the page, both atomically. Training is on one thread and all draws are fixed, so that two
    runs on one machine give the same figures. Raises `ArgumentError` where `folder` is a file, and `OSError` where it
    cannot be written to.

    Source of the protocol: a chapter on multimodal learning whose published table is in `study.published`.
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise ArgumentError(f"{target} is a file; expected a folder for the page and the record: name another one")
    target.mkdir(parents=True, exist_ok=True)
    study = _Study(progress)
    main = study.timed("main table", "ten models at once", lambda tick: main_table(study.data, progress=tick))
    one: OneSided | None = None
    duplicated: DuplicatedTexts | None = None
    tagged: SourceTag | None = None
    if everything:
        one = study.timed("one-sided", "five models", lambda tick: one_sided(study.data, main, progress=tick))
        duplicated = study.timed("duplicated texts", "measuring", lambda _: duplicated_texts(study.data, main))
        tagged = study.timed("source tag", "ten models", lambda tick: source_tag(study.data, main, progress=tick))
    page = target / PAGE
    study.timed("page", "drawing", lambda _: write_study(page, page_content(study.data, main, one, duplicated, tagged)))
    exercises = {"one_sided": one, "duplicated_texts": duplicated, "source_tag": tagged}
    record = {
        **main.to_dict(),
        **_protocol(),
        **{name: found.to_dict() for name, found in exercises.items() if found is not None},
        **(_drawn(study.data, main) if everything else {}),
        "seconds": study.seconds,
    }
    write_json(target / RECORD, record, "two-view study")
    lines = [_head(), "", *main.lines()]
    for found in exercises.values():
        lines += [] if found is None else ["", *found.lines()]
    return {**record, "page": str(page), "lines": [*lines, "", f"page: {page}"]}


class _Study:
    """The data, and how long each part took."""

    def __init__(self, progress: Progress | None) -> None:
        self.data: TwoViews = two_views()
        self.seconds: dict[str, float] = {}
        self._progress = progress

    def timed(self, name: str, message: str, work: Any) -> Any:
        """Do a part of the study: `work(tick)`, where `tick` is a callback of `fit_ensemble`."""
        started = time.monotonic()
        if self._progress is not None:
            self._progress(name, message, None, None)
        found = work(self._ticks(name, message))
        self.seconds[name.replace(" ", "_").replace("-", "_")] = round(time.monotonic() - started, 2)
        return found

    def _ticks(self, name: str, message: str) -> EpochCallback | None:
        progress = self._progress
        return None if progress is None else lambda epoch, epochs, _: progress(name, message, epoch, epochs)


def _head() -> str:
    return (
        f"two views of one event: {N_FIT} pairs to fit, {N_VALID} to validate, {N_HELD_OUT} held out; "
        f"{_n_weights():,} weights; seeds {SEEDS[0]} to {SEEDS[-1]}; means over seeds, SD in brackets"
    )


def _n_weights() -> int:
    return sum(weight.numel() for weight in first_model(SEEDS[0]).parameters() if weight.requires_grad)


def _protocol() -> dict[str, Any]:
    return {
        "seeds": list(SEEDS),
        "sizes": {"fit": N_FIT, "validation": N_VALID, "held_out": N_HELD_OUT},
        "weights": _n_weights(),
        "directions": {"a_to_b": "image to text", "b_to_a": "text to image"},
    }


def _drawn(data: TwoViews, main: MainTable) -> dict[str, Any]:
    """Return what the page draws, as lists rounded to four decimals."""
    views = two_dimensional_views(data, main)
    return {
        "views": {
            name: {
                "image": _listed(view.a),
                "text": _listed(view.b),
                "share_of_variance": view.share,
                "mean_cosine_of_mates": view.mate_cosine,
                "mean_cosine_of_others": view.other_cosine,
            }
            for name, view in views.items()
        },
        "scores": {condition: _listed(scores) for condition, scores in score_windows(data, main).items()},
    }


def _listed(values: FloatArray) -> list[list[float]]:
    rounded: list[list[float]] = np.round(values.astype(np.float64), _DIGITS).tolist()
    return rounded
