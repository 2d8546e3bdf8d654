"""What stands behind made-up figures: every part of a report that `conftest.content` leaves empty, filled."""

from dataclasses import replace

import numpy as np

from bridgehead.audits import Finding
from bridgehead.audits.finding import Listing
from bridgehead.report import (
    Attribution,
    Contract,
    ContractAnswer,
    Difference,
    Fold,
    FoldMeasure,
    FoldResults,
    GeometryFacts,
    GeometryValue,
    Hub,
    Item,
    MapView,
    Measure,
    PoolCurve,
    PoolRecall,
    QueryCase,
    QueryCases,
    ReportContent,
    Similarities,
    SkippedAudit,
    Slice,
    SliceTable,
    StageCost,
)

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0L9 9" stroke="#000"/></svg>'
SIDES = (("text", "molecule"), ("molecule", "text"))


def cases(kind, query, candidate, n, word="", picture=PICTURE):
    asked, found = Item("t1", word or "inhibits a kinase"), Item("imatinib", word or "CCO", picture)
    first = Item("other", word or "CCN", picture)
    return QueryCases(kind, query, candidate, [QueryCase(asked, 3.5, 812, [found], 2, 0.41, first, 0.52)] * n, word)


def folds(word=""):
    values = {"recall@10": 0.61, "mrr": 0.42}
    measures = [
        FoldMeasure(query, candidate, "recall@10", Measure(0.6, 0.55, 0.65, 0.06), 0.011, 0.037, 0.029)
        for query, candidate in SIDES
    ]
    single = [Fold(f"{n + 1}", *side, 160, 163, values) for side in SIDES for n in range(5)]
    return FoldResults(5, 1, 2, measures, single, [word or "Two settings within 0.029 cannot be told apart."])


def geometry(word=""):
    edges = np.linspace(-1, 1, 41)
    counts = np.zeros(40)
    counts[20:30] = 7
    kinds = ("across, true", "across, random", "within a", "within b")
    return GeometryFacts(
        [GeometryValue(word or "distance of the centroids", 0.31, word or "0.05 without a gap")],
        Similarities(edges, dict.fromkeys(kinds, counts), word),
        [Hub(Item("aspirin", word or "CC(=O)O", PICTURE), word or "molecule", 151.2, 512, 10, 6.3)],
        [Difference(word or "molecule to text", "recall@10", 0.52, 0.55, 0.01, 0.05)],
        [word or "A tenth never comes."],
    )


def contract(word=""):
    return Contract(
        [
            ContractAnswer(word or "What is one pair?", word or "a record", word or "One ligand.", "config"),
            ContractAnswer("Which candidates are ranked?", word or "812 items", "", "missing"),
            ContractAnswer("Which direction is measured?", "both", "", "program"),
        ],
        [(word or "pool", word or "0a1b2c")],
        word,
    )


def views(word=""):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 2))
    links = np.column_stack([np.arange(60)] * 2)
    return [
        MapView(word or title, points, points + 0.1, links, word) for title in ("before training", "after training")
    ]


def findings(word=""):
    listed = Listing(("id", "rank"), [(word or "GTP:7", 900), (word or "GTP:8", 870)], 133, word)
    return [
        Finding("exact structure on both sides", 0, "0", "pass", "none is", "leakage", 0.8),
        Finding("near text", 0.12, "under 0.05", "warn", "118 texts have a near copy", "leakage", 12.4, listed),
        Finding("rows out of order", 0.31, "declared", "fail", "shifted from record 3,512 on", "data", 72.0),
        Finding(word or "distance between the sides", 0.31, "under 0.5", "pass", "the sides overlap"),
    ]


def filled(content: ReportContent, word: str = "") -> ReportContent:
    """Return `content` with every part that it left empty; `word` takes the place of the texts."""
    queries = content.query_sets[0]
    curve = PoolCurve(10, [PoolRecall(100, 0.9, 0.1), PoolRecall(812, 0.6, 0.012)])
    directions = [
        replace(d, pools=[curve], corrected={"recall@10": 0.59}, measures={**d.measures, "r_precision": Measure(0.4)})
        for d in queries.directions
    ]
    figures = {"recall@10": Measure(0.31, 0.2, 0.4, 0.012), "mrr": Measure(0.2)}
    return replace(
        content,
        query_sets=[replace(queries, directions=directions), *content.query_sets[1:]],
        contract=contract(word),
        findings=findings(word),
        skipped=[SkippedAudit(word or "metadata column", word or "no column was named")],
        audit_notes=[word or "Everything took 91 s."],
        slices=[
            SliceTable(word or "length", *SIDES[0], [Slice(word or "1 to 9", 164, figures, 80)], figures, word),
            SliceTable("class", *SIDES[1], [Slice("peptide", 3, {"mrr": Measure(0.2)})]),
        ],
        differences=[Difference(word or "text to molecule, against CCA", "mrr", 0.40, 0.45, 0.02, 0.08, 0.0002)],
        geometry=geometry(word),
        views=views(word),
        cases=[cases(kind, *SIDES[0], 3, word) for kind in ("best", "median", "worst")],
        folds=folds(word),
        costs=[StageCost("train", 245.0, 1_930_000_000, word)],
        versions=[(word or "numpy", word or "2.3")],
        hashes=[(word or "heads", word or "ab12")],
        config=word or 'schema = 1\nname = "x"\n',
        sources=[*content.sources, Attribution(word or "encoder", word or "CC-BY-NC-4.0", word, word or "encoder")],
    )
