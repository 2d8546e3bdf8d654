"""The audits that a run can have, in the order of the table; each is a function of `Work`.

This module is not about when they run (`stage`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from bridgehead.audits import Finding
from bridgehead.runs.work import Work


@dataclass(frozen=True)
class Audit:
    """One audit: its name in the table and in `audit.skip`, and the function that makes its findings.

    `look` raises `NotApplicable` where it has nothing to look at. `control` is the name in `audit.controls` of an audit
    that costs trainings, so that it runs where it is asked for and not else.
    """

    name: str
    look: Callable[[Work], list[Finding]]
    control: str | None = None


def all_audits() -> tuple[Audit, ...]:
    """Return the audits in the order in which they run and are shown."""
    # Imported when they are asked for: they bring RDKit or scikit-learn with them.
    from bridgehead.runs.auditing import controls, data, leakage, negatives, shortcuts, space, training

    return (
        Audit("identities across the split", leakage.identities),
        Audit("scaffolds across the split", leakage.shared_scaffolds),
        Audit("near-duplicate texts", leakage.near_texts),
        Audit("near-duplicate rows", leakage.nearly_same_rows),
        Audit("items of several entities", leakage.several_entities),
        Audit("records out of order", data.order),
        Audit("likely wrong pairs", data.mispairs),
        Audit("weak texts", data.weak_texts),
        Audit("broad texts", data.broad_texts),
        Audit("false negatives", negatives.shared_labels),
        Audit("false negatives by a guide", negatives.guided),
        Audit("ceiling of recall@1", negatives.ceiling),
        Audit("shortcut: length", shortcuts.length),
        Audit("shortcut: words", shortcuts.words),
        Audit("shortcut: names", shortcuts.names),
        Audit("shortcut: formula", shortcuts.formulas),
        Audit("shortcut: columns", shortcuts.columns),
        Audit("names masked", shortcuts.masked_names),
        Audit("nearest neighbours", space.neighbours),
        Audit("closed form", space.closed_form),
        Audit("loss and scale", training.history),
        Audit("convergence", training.convergence),
        Audit("collapse", training.collapse),
        Audit("training gap", training.gap),
        Audit("shape of the space", space.geometry),
        Audit("shuffled links", controls.shuffled_links),
        Audit("shuffled within groups", controls.within_groups, control="within"),
        Audit("one modality", controls.one_modality, control="one modality"),
        Audit("one-sided training", controls.one_sided, control="one-sided"),
        Audit("planted source tag", controls.source_tag, control="source tag"),
    )
