"""What the study's page says: the measured parts put into words, tables and arrays of `report.study_page`.

This module is not about how the page looks or about measuring.
"""

import numpy as np

from bridgehead.report.content import MapView, Table
from bridgehead.report.study_page import (
    StudyBars,
    StudyContent,
    StudyGroup,
    StudyRow,
    StudySection,
    StudyWindow,
)
from bridgehead.runs.study.duplicated_texts import COUNTS_AS_CORRECT, WAYS, DuplicatedTexts
from bridgehead.runs.study.main_table import MainTable
from bridgehead.runs.study.one_sided import OneSided
from bridgehead.runs.study.published import CONDITIONS, DIFFERENCE, TOLERANCE
from bridgehead.runs.study.source_tag import N_SOURCES, TESTS, SourceTag
from bridgehead.runs.study.spread import ARROWS, DIRECTIONS, METRICS, NAMES
from bridgehead.runs.study.views import (
    N_IN_VIEW,
    N_IN_WINDOW,
    VIEW_SEED,
    WINDOW_SEED,
    TwoDimensions,
    in_two_dimensions,
    score_window,
)
from bridgehead.runs.two_view import N_FIT, N_HELD_OUT, N_VALID, SEEDS, TwoViews, first_model
from bridgehead.vectors import FloatArray, IntArray

_SPREAD_NOTE = (
    "SD is over five seeds of first weights and batch order, on one set of data and one derangement: how far training "
    "moves the figure, not how far other data would. Differences are taken within seeds. Chance is random order of the "
    "part's own candidates; figures over parts of different size cannot be compared."
)
_PARTS = {"validation": f"Validation, {N_VALID} candidates", "held_out": f"Held out, {N_HELD_OUT} candidates"}
_PAIRS = {
    "paired": "true pairs",
    "shuffled": "shuffled pairs",
    DIFFERENCE: "true minus shuffled, within seeds",
}

PROTOCOL = (
    ("Data", "1,200 events of five hidden numbers, each seen as 14 image and as 11 text columns, nonlinear and noisy"),
    ("Parts", f"{N_FIT} pairs to fit, {N_VALID} to validate, {N_HELD_OUT} held out; standardised by the fit rows"),
    ("Towers", "one ReLU layer of 40 into 16 dimensions on each side, unit rows; 2,392 weights in all"),
    ("Training", "symmetric loss at temperature 0.08, 160 epochs, batches of 120, AdamW at 0.002 with decay 0.001"),
    ("Seeds", f"{SEEDS[0]} to {SEEDS[-1]}; first weights and batch order are the same under both conditions"),
    ("Control", "one derangement of the fit pairs for all seeds: every image gets another one's text, none its own"),
    ("Chosen by", "the lowest loss on the true validation pairs, taken after every fifth epoch, under both conditions"),
)  # fmt: skip

CONTRACT = (
    ("What is paired?", "two views of one event; every event once"),
    ("What may cross a split?", "nothing: parts are disjoint in events, and preprocessing sees the fit rows alone"),
    ("What is a valid match?", "the other view of the same event; where texts are duplicated, as stated there"),
    ("Which candidates?", "all rows of the part: 180 in validation, 300 held out, without duplicates"),
    ("Which direction?", "both, reported apart"),
    ("Which shortcuts were ruled out?", "shuffled pairs at the same budget; with --all, a planted source tag"),
    ("Where were decisions made?", "on validation alone; the held-out part was ranked after that, and decided nothing"),
)


def page_content(
    data: TwoViews,
    main: MainTable,
    one_sided: OneSided | None = None,
    duplicated: DuplicatedTexts | None = None,
    tagged: SourceTag | None = None,
) -> StudyContent:
    """Return the page of the main table with its pictures, and of those exercises that were measured."""
    sections = [
        *([] if one_sided is None else [_one_sided_section(one_sided)]),
        *([] if duplicated is None else [_duplicated_section(duplicated)]),
        *([] if tagged is None else [_tag_section(tagged)]),
    ]
    return StudyContent(
        title="Two views of one event",
        summary=(
            "Two small towers learn one space from pairs. With true pairs each view finds the other among rows never "
            "seen; with the same training on shuffled pairs it does not. So it is the pairs that teach, not the width."
        ),
        told=f"{main.told}.",
        all_within=main.within,
        tolerance=TOLERANCE,
        headline=_headline(main),
        groups=_groups(main),
        spread_note=_SPREAD_NOTE,
        bars=_bars(main),
        windows=[
            _window(condition, window, f"{condition.capitalize()}, seed {WINDOW_SEED}")
            for condition, window in score_windows(data, main).items()
        ],
        views=[_view(title, view) for title, view in two_dimensional_views(data, main).items()],
        names=NAMES,
        sections=sections,
        protocol=PROTOCOL,
        contract=CONTRACT,
    )


def score_windows(data: TwoViews, main: MainTable) -> dict[str, FloatArray]:
    """Return the scores of the first 40 held-out pairs under the models of seed 6052, by condition."""
    at = SEEDS.index(WINDOW_SEED)
    return {condition: score_window(main.models[condition][at], data.held_out) for condition in CONDITIONS}


def two_dimensional_views(data: TwoViews, main: MainTable) -> dict[str, TwoDimensions]:
    """Return the first 20 held-out pairs in the plane, under the towers of seed 6050 before and after training."""
    after = main.models["paired"][SEEDS.index(VIEW_SEED)]
    models = {"untrained": first_model(VIEW_SEED), "trained": after}
    return {title: in_two_dimensions(model, data.held_out) for title, model in models.items()}


def _headline(main: MainTable) -> list[tuple[str, str, str]]:
    found, shown = main.found["held_out"], []
    for side in DIRECTIONS:
        metric = f"{side}.recall@1"
        paired, shuffled = (found[condition].values[metric] for condition in CONDITIONS)
        note = f"shuffled {shuffled.mean:.4f}, chance {found['paired'].chance[metric]:.4f}"
        shown.append((f"{_arrow(side)} recall@1, held out", f"{paired.mean:.4f}", note))
    return shown


def _groups(main: MainTable) -> list[StudyGroup]:
    groups: dict[str, list[StudyRow]] = {}
    for row in main.rows:
        side, metric = row.metric.split(".")
        _, _, _, measured, published, apart, _, chance = row.cells()
        title = f"{_PARTS[row.split]}, {_PAIRS[row.condition]}"
        shown = StudyRow(f"{_arrow(side)} {metric}", measured, published, apart, row.within, chance.replace("-", "–"))
        groups.setdefault(title, []).append(shown)
    return [StudyGroup(title, rows) for title, rows in groups.items()]


def _bars(main: MainTable) -> StudyBars:
    found = main.found["held_out"]
    series = []
    for condition in CONDITIONS:
        spreads = [found[condition].values[metric] for metric in METRICS]
        series.append((_PAIRS[condition], [spread.mean for spread in spreads], [spread.sd for spread in spreads]))
    labels = [f"{ARROWS[metric.split('.')[0]]}\n{metric.split('.')[1]}" for metric in METRICS]
    return StudyBars(labels, series, [found["paired"].chance[metric] for metric in METRICS])


def _window(condition: str, scores: FloatArray, title: str) -> StudyWindow:
    diagonal = float(scores.diagonal().mean())
    others = float((scores.sum() - scores.trace()) / (scores.size - len(scores)))
    said = {
        "paired": "The diagonal holds the true pairs; it stands out.",
        "shuffled": "The diagonal holds the true pairs; nothing sets it apart.",
    }[condition]
    return StudyWindow(
        title,
        scores,
        f"The first {N_IN_WINDOW} held-out pairs. {said} Mean cosine {diagonal:.2f} on it, {others:.2f} off it.",
    )


def _view(title: str, view: TwoDimensions) -> MapView:
    said = {"untrained": "Before training: one width, unrelated coordinates", "trained": "After training on true pairs"}
    note = (
        f"The first {N_IN_VIEW} held-out pairs, seed {VIEW_SEED}, in the plane that holds {view.share:.0%} of their "
        f"variance; mean cosine of mates {view.mate_cosine:.2f}, of other pairs {view.other_cosine:.2f}."
    )
    return MapView(said[title], view.a, view.b, _diagonal(len(view.a)), note)


def _diagonal(n: int) -> IntArray:
    return np.repeat(np.arange(n, dtype=np.int64)[:, None], 2, axis=1)


def _one_sided_section(found: OneSided) -> StudySection:
    return StudySection(
        "One-sided training",
        "Does training on the image-to-text half of the loss alone change both directions of retrieval equally?",
        ["First weights, batch order and the choice of the epoch are those of the symmetric run of the same seed."],
        _table("One-sided training", found.table()),
        found.conclusion,
    )


def _duplicated_section(found: DuplicatedTexts) -> StudySection:
    return StudySection(
        "Duplicated texts",
        f"A fifth of the {found.n_rows} validation texts occur in a second row. Why can the diagonal mark a right "
        "answer wrong, and what counts as correct instead?",
        [
            *(
                f"{truth.replace('_', '-').capitalize()}: correct is {said}."
                for truth, said in COUNTS_AS_CORRECT.items()
            ),
            *(f"{way.replace('_', ' ').capitalize()}: {said}." for way, said in WAYS.items()),
        ],
        _table("Duplicated texts", found.table(), "Models and rankings are the same in both columns of recall."),
        found.conclusion,
    )


def _tag_section(found: SourceTag) -> StudySection:
    return StudySection(
        "A planted source tag",
        f"Both views get a further column that names which of {N_SOURCES} sources the pair is from. Do the models "
        "learn the event or the source?",
        [
            *(f"{test.replace('_', ' ').capitalize()}: {said}." for test, said in TESTS.items()),
            "Control: trained on tags that differ between the two sides of a pair.",
        ],
        _table("A planted source tag", found.table()),
        found.diagnosis,
    )


def _table(title: str, rows: list[tuple[str, ...]], note: str = "") -> Table:
    columns, *cells = rows
    return Table(title, columns, [[cell.replace("->", "→") for cell in row] for row in cells], note)


def _arrow(side: str) -> str:
    return ARROWS[side].replace("->", "→")
