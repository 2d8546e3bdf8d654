"""A report's content with every part filled, from made-up numbers that look like those of a real run."""

import numpy as np
import pytest

from bridgehead.audits import Finding
from bridgehead.report import (
    Answer,
    Attribution,
    Control,
    Curves,
    DataCheck,
    Direction,
    Example,
    ExampleHit,
    Heatmap,
    Measure,
    QuerySet,
    ReportContent,
    Table,
)

WHY = "5 models trained on shuffled links find no more than random ranking would"
PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 60"><circle cx="50" cy="30" r="20" fill="#fff" '
    'stroke="#333" stroke-width="3"/></svg>'
)


def direction(query: str, candidate: str, n_queries: int, n_candidates: int, level: float, seed: int) -> Direction:
    rng = np.random.default_rng(seed)
    ranks = np.minimum(np.ceil(rng.pareto(0.7, n_queries)) + (rng.random(n_queries) > level), n_candidates)
    recall = {k: float(np.mean(ranks <= k)) for k in (1, 5, 10)}
    measures = {
        f"recall@{k}": Measure(value, max(0.0, value - 0.03), min(1.0, value + 0.03), k / n_candidates)
        for k, value in recall.items()
    }
    measures["mrr"] = Measure(float(np.mean(1 / ranks)), 0.5, 0.58, np.log(n_candidates) / n_candidates)
    measures["median_rank"] = Measure(float(np.median(ranks)), 2.0, 4.0)
    baseline = {name: Measure(m.value * 0.85) for name, m in measures.items() if name != "median_rank"}
    return Direction(query, candidate, n_queries, n_candidates, measures, baseline, ranks, np.full(n_queries, 1), 12, 3)


def examples() -> list[Example]:
    hits = [
        ExampleHit(1, "flurbiprofen", 0.71, "inhibits cyclooxygenase-2; reduces inflammation", picture=PICTURE),
        ExampleHit(2, "aspirin", 0.69, "inhibits cyclooxygenase-1", expected=True, picture=PICTURE),
        ExampleHit(3, "naproxen", 0.66, "inhibits cyclooxygenase-1; reduces inflammation, pain and fever"),
    ]
    query = "inhibits cyclooxygenase and reduces inflammation"
    answers = [Answer("evaluated", [hits[0], hits[2]], 1363, 80_012), Answer("refit", hits, 2, 80_012)]
    return [Example(query, "words", "aspirin", answers)]


def data_check() -> DataCheck:
    return DataCheck(
        counts=[
            ("records", "7,012"),
            ("molecules", "6,998, 14 duplicates"),
            ("statements", "5,120"),
            ("links", "9,402"),
        ],
        tables=[
            Table(
                "Skipped rows", ["row", "id", "side", "reason"], [[12, "GTP:77", "molecule", "ring not closed"]], "", 40
            ),
            Table("Texts that were truncated", ["id", "tokens"], []),
        ],
        notes=["read unquoted: 3 fields hold a quote that is never closed"],
    )


@pytest.fixture
def content() -> ReportContent:
    rng = np.random.default_rng(0)
    scores = np.clip(rng.normal(0.1, 0.15, (40, 40)) + 0.6 * np.eye(40), -1, 1)
    both = [direction("text", "molecule", 512, 812, 0.6, 1), direction("molecule", "text", 812, 512, 0.5, 2)]
    unseen = [direction("text", "molecule", 164, 812, 0.2, 3), direction("molecule", "text", 230, 512, 0.2, 4)]
    epochs = list(range(1, 31))
    return ReportContent(
        title="Molecules and what they do",
        names=("molecule", "text"),
        aligned=[
            ("sides", "molecule (6,998 items), text (5,120 items), 9,402 links"),
            ("split", "by molecule skeleton, seed 0: 5,598 train, 700 valid, 700 test"),
            ("molecule encoder", "molecule:fingerprints, 18,230 columns, fingerprint 9f2c41d07a"),
            ("text encoder", "text:ngram, 32,768 columns, fingerprint 03be77a9c1"),
        ],
        query_sets=[
            QuerySet("all queries", both),
            QuerySet("text unseen in training", unseen, "Queries whose normalised text is in no training pair."),
        ],
        baseline="ranks by the most similar training molecule with the same text.",
        curves=Curves(
            epochs,
            [4.5 * np.exp(-e / 8) + 0.8 for e in epochs],
            [6.2 + 0.01 * e for e in epochs],
            [0.56 * (1 - np.exp(-e / 6)) for e in epochs],
            [14.3 + 0.9 * e for e in epochs],
            best_epoch=24,
        ),
        controls=[
            Control(title, "mrr", observed, [0.008, 0.011, 0.009, 0.012, 0.007], 0.0085, 0.014, "pass", WHY)
            for title, observed in (("text to molecule", 0.56), ("molecule to text", 0.42))
        ],
        findings=[Finding("distance between the sides", 0.31, "under 0.5", "pass", "the sides overlap")],
        heatmap=Heatmap(scores, np.eye(40, dtype=bool) | (rng.random((40, 40)) < 0.005)),
        data=data_check(),
        examples=examples(),
        sources=[Attribution("IUPHAR/BPS Guide to PHARMACOLOGY 2020.5", "ODbL-1.0, CC-BY-SA-4.0", "Cite it.")],
        refit=True,
        made="2026-01-05",
    )  # fmt: skip
