"""Shortcuts of a run: what a nuisance finds by itself on the test part, beside the trained model.

The test part alone is ranked here, by both: what a further candidate says or where it comes from is not known. This
module is not about the scorers (`audits.shortcuts`).
"""

from typing import Any

import numpy as np
from scipy import sparse

from bridgehead.audits import (
    Finding,
    column_shortcut,
    drop_findings,
    length_shortcut,
    mask_names,
    name_shortcut,
    overlap_shortcut,
)
from bridgehead.errors import EncoderError
from bridgehead.evaluate import RetrievalReport, retrieval_report
from bridgehead.runs.auditing.applicable import NotApplicable
from bridgehead.runs.auditing.items import (
    column_values,
    formulas_of,
    ids_of,
    kind_of,
    lengths_of,
    names_of,
    of,
    shown,
    values_of,
)
from bridgehead.runs.work import Work

FEWEST_MASKED = 20
"""Texts with a name under which a loss of the queries that they helped could not be told from luck."""


def length(work: Work) -> list[Finding]:
    """Rank by length: heavy atoms, characters, entries of a sparse row."""
    test = work.part("test")
    lengths_a = lengths_of(work, "a", test.items_a, test.rows_a)
    lengths_b = lengths_of(work, "b", test.items_b, test.rows_b)
    if lengths_a is None or lengths_b is None:
        raise NotApplicable("dense rows are all as long; needs molecules, texts or sparse rows on both sides")
    return length_shortcut(lengths_a, lengths_b, test.links, **_options(work))


def words(work: Work) -> list[Finding]:
    """Rank by shared words, where both sides are texts."""
    if kind_of(work, "a") != "text" or kind_of(work, "b") != "text":
        raise NotApplicable("needs texts on both sides")
    test = work.part("test")
    texts = values_of(work, "a", test.items_a), values_of(work, "b", test.items_b)
    return overlap_shortcut(*texts, test.links, **_options(work))


def names(work: Work) -> list[Finding]:
    """Rank by names of an item of a that stand in the text."""
    test = work.part("test")
    known = _names(work)
    texts, ids = values_of(work, "b", test.items_b), ids_of(work, "a", test.items_a)
    return name_shortcut(known, texts, test.links, ids_a=ids, **_options(work))


def masked_names(work: Work) -> list[Finding]:
    """Take the names out of the texts of the test part, and look at what the queries that they helped lose.

    Those are the texts with a name, and the items that such a text is linked to; all others lose nothing by it.
    """
    test, config = work.part("test"), work.run.config
    if "rows:" in config.encode.b:
        raise NotApplicable("rows that were brought do not change with the text; needs an encoder that reads it")
    texts = values_of(work, "b", test.items_b)
    masked, _ = mask_names(texts, _names(work), test.links)
    changed = np.array([before != after for before, after in zip(texts, masked, strict=True)], dtype=bool)
    if changed.sum() < FEWEST_MASKED:
        raise NotApplicable(
            f"{changed.sum()} of {len(texts):,} {shown(work, 'b')} items of the test part hold a name of their "
            f"{shown(work, 'a')}; needs {FEWEST_MASKED} to tell what hangs on them"
        )
    z_a, z_b = work.heads.project_a(test.rows_a), work.heads.project_b(_masked_rows(work, masked, changed))
    options = {**_labels(work), "ks": config.evaluate.ks, "names": config.pairs.shown, "n_resamples": 0}
    after = retrieval_report(z_a, z_b, test.links, **options)
    helped = np.zeros(test.links.n_a, dtype=bool)
    pairs = test.links.pairs
    helped[pairs[changed[pairs[:, 1]], 0]] = True
    before = _of_queries(work.alone, helped, changed)
    what = f"names masked ({int(changed.sum()):,} of {len(masked):,} {shown(work, 'b')} items hold one)"
    return drop_findings(what, before, _of_queries(after, helped, changed), k=_k(work), seed=config.evaluate.seed)


def _masked_rows(work: Work, masked: list[str], changed: Any) -> Any:
    """Return the rows of b of the test part, those of changed texts encoded anew."""
    test = work.part("test")
    places = np.flatnonzero(changed)
    again = [masked[place] for place in places.tolist()]
    encoded = work.encoders["b"].encode(again, ids=ids_of(work, "b", test.items_b[places]))
    if len(encoded.index) < len(again):
        raise EncoderError(f"{len(again) - len(encoded.index)} texts have no row once names are masked")
    order = np.arange(len(masked))
    order[places] = len(masked) + np.arange(len(places))
    if hasattr(test.rows_b, "tocsr"):
        return sparse.vstack([test.rows_b, encoded.rows], format="csr")[order]
    return np.concatenate([test.rows_b, encoded.rows])[order]


def _of_queries(report: RetrievalReport, rows_a: Any, rows_b: Any) -> RetrievalReport:
    """Return the report of the queries that masks over rows mark, in the same pool."""
    forth, back = report.a_to_b, report.b_to_a
    return RetrievalReport(
        forth.subset(rows_a[forth.queries], n_resamples=0),
        back.subset(rows_b[back.queries], n_resamples=0),
        report.names,
    )


def formulas(work: Work) -> list[Finding]:
    """Rank by the molecular formula that stands in the text."""
    kinds = kind_of(work, "a"), kind_of(work, "b")
    test, options = work.part("test"), _options(work)
    if kinds == ("molecule", "text"):
        known, texts = formulas_of(work, "a", test.items_a), values_of(work, "b", test.items_b)
        ids = ids_of(work, "a", test.items_a)
        return name_shortcut(known, texts, test.links, what="the formula", ids_a=ids, **options)
    if kinds == ("text", "molecule"):
        known, texts = formulas_of(work, "b", test.items_b), values_of(work, "a", test.items_a)
        model, (a, b) = work.alone, work.run.config.pairs.shown
        turned = {
            **options,
            "model": RetrievalReport(model.b_to_a, model.a_to_b, (b, a)),
            "entities_a": options["entities_b"],
            "entities_b": options["entities_a"],
            "names": (b, a),
        }
        ids = ids_of(work, "b", test.items_b)
        return name_shortcut(known, texts, test.links.swapped(), what="the formula", ids_a=ids, **turned)
    raise NotApplicable("needs molecules on one side and texts on the other")


def columns(work: Work) -> list[Finding]:
    """Rank by each metadata column that the config names: audit.columns, or those of slices and groups."""
    config, table = work.run.config, work.prepared.table
    wanted = config.audit.columns or tuple(dict.fromkeys([*config.evaluate.slices, *config.pairs.group]))
    if not wanted:
        raise NotApplicable("needs the columns a shortcut could use, in audit.columns (source, instrument, batch)")
    test = work.part("test")
    found: list[Finding] = []
    for column in wanted:
        held_a = of(column_values(table, "a", column), test.items_a)
        held_b = of(column_values(table, "b", column), test.items_b)
        found += column_shortcut(held_a, held_b, test.links, column=column, **_options(work))
    return found


def _names(work: Work) -> list[tuple[str, ...]]:
    if kind_of(work, "b") != "text" or not work.run.config.pairs.names:
        raise NotApplicable("needs texts on side b, and columns with the names of side a in pairs.names")
    return names_of(work, work.part("test").items_a)


def _k(work: Work) -> int:
    ks = work.run.config.evaluate.ks
    return 10 if 10 in ks else max(ks)


def _options(work: Work) -> dict[str, Any]:
    config = work.run.config
    return {
        **_labels(work),
        "model": work.alone,
        "k": _k(work),
        "names": config.pairs.shown,
        "seed": config.evaluate.seed,
    }


def _labels(work: Work) -> dict[str, Any]:
    test = work.part("test")
    labels_a, labels_b = work.entities
    return {"entities_a": labels_a[: test.links.n_a], "entities_b": labels_b[: test.links.n_b]}
