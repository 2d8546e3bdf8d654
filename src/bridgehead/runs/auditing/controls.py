"""Controls: what is found where nothing could have been learnt, or only something else.

That on shuffled links belongs to the evaluation; the others train again, at the run's own budget, and only where they
are asked for. What each found is kept in `controls.json` until the model or the question changes. This module is not
about how a control is judged (`audits.shuffled` and its neighbours).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from bridgehead.audits import (
    Finding,
    PairedRows,
    frequency_report,
    one_modality_findings,
    one_sided_findings,
    random_rows,
    source_tag_findings,
    within_groups_findings,
)
from bridgehead.evaluate import RetrievalReport, retrieval_report
from bridgehead.evaluate.slices import length_bins
from bridgehead.links import Links
from bridgehead.runs.auditing.applicable import NotApplicable
from bridgehead.runs.auditing.budget import train_again
from bridgehead.runs.auditing.items import SideName, kind_of, length_unit, lengths_of, shown, values_of
from bridgehead.runs.auditing.kept import kept
from bridgehead.runs.encoded import PartRows
from bridgehead.runs.evaluating import stored_control
from bridgehead.runs.work import Work
from bridgehead.scaffolds import scaffolds


def shuffled_links(work: Work) -> list[Finding]:
    """Judge the control that the stage evaluate trained on shuffled links."""
    control = stored_control(work.run)
    if control is None:
        raise NotApplicable("evaluate.shuffled = 0: no control was trained")
    return list(control.findings)


def within_groups(work: Work) -> list[Finding]:
    """Train on links shuffled within groups of side a (length, scaffold, class, slide) that `audit.within` names."""
    found: list[Finding] = []
    for grouping in work.run.config.audit.within:
        found += kept(work, f"within {grouping}", partial(_within, work, *_labels(work, grouping)))
    return found


def _within(work: Work, labels: list[Any], called: str) -> list[Finding]:
    part = work.first_part("train")

    def fit(links: Links, seed: int) -> RetrievalReport:
        # Classes tell what belongs together, and are exchanged with the partners.
        model = train_again(work, replace(part, links=links), f"shuffled within {called}", seed, exchanged=True)
        return _measured(work, *_projected(model, work.part("test")))

    return within_groups_findings(fit, part.links, labels, work.alone, called, _seeds(work))


def one_modality(work: Work) -> list[Finding]:
    """Train and evaluate with rows of one side that belong to other items: nothing is left to find."""
    _needs_heads_alone(work)
    part, test = work.part("train"), work.part("test")

    def fit(side: SideName, seed: int) -> RetrievalReport:
        name = f"rows_{side}"
        mine, tested = random_rows(getattr(part, name), getattr(test, name), seed=seed)
        model = train_again(work, replace(part, **{name: mine}), f"no {shown(work, side)}", seed)
        return _measured(work, *_projected(model, replace(test, **{name: tested})))

    def look() -> list[Finding]:
        frequency = frequency_report(test.links, **{**_options(work), "n_resamples": 0})
        return one_modality_findings(fit, seeds=_seeds(work), frequency=frequency, names=work.run.config.pairs.shown)

    return kept(work, "one modality", look)


def one_sided(work: Work) -> list[Finding]:
    """Train one direction of the loss alone, and see what each direction of retrieval loses."""
    config = work.run.config
    if config.train.direction != "both":
        raise NotApplicable(f"the run itself was trained with train.direction = {config.train.direction!r}")
    part = work.first_part("train")

    def fit(direction: Any, seed: int) -> RetrievalReport:
        model = train_again(work, part, f"{direction} alone", seed, direction=direction)
        return _measured(work, *_projected(model, work.part("test")))

    def look() -> list[Finding]:
        return one_sided_findings(
            fit, work.alone, seeds=_seeds(work), n_resamples=config.evaluate.n_resamples, seed=config.evaluate.seed
        )

    return kept(work, "one-sided", look)


def source_tag(work: Work) -> list[Finding]:
    """Plant a tag that pairs share, train on it, and see how much hangs on it once it is drawn anew."""
    _needs_heads_alone(work)
    part, test = work.part("train"), work.part("test")

    def fit(tagged: PairedRows) -> Callable[[Any, Any], tuple[Any, Any]]:
        changed = replace(part, rows_a=tagged.rows_a, rows_b=tagged.rows_b)
        model = train_again(work, changed, "a planted source tag", work.run.config.train.seed)
        return lambda rows_a, rows_b: (model.project_a(rows_a), model.project_b(rows_b))

    def look() -> list[Finding]:
        seed, names = work.run.config.evaluate.seed, work.run.config.pairs.shown
        ks = work.run.config.evaluate.ks
        return source_tag_findings(
            fit,
            PairedRows(part.rows_a, part.rows_b, part.links),
            PairedRows(test.rows_a, test.rows_b, test.links),
            seed=seed,
            k=10 if 10 in ks else max(ks),
            names=names,
            **{name: value for name, value in _options(work).items() if name not in ("ks", "names", "seed")},
        )

    return kept(work, "source tag", look)


def _needs_heads_alone(work: Work) -> None:
    if work.run.config.live is not None:
        raise NotApplicable("changes rows, and with [live] encoders are trained from the items themselves")


def _seeds(work: Work) -> tuple[int, ...]:
    first = work.run.config.train.seed
    return tuple(range(first, first + work.run.config.audit.control_seeds))


def _options(work: Work) -> dict[str, Any]:
    config, test = work.run.config, work.part("test")
    labels_a, labels_b = work.entities
    return {
        "ks": config.evaluate.ks,
        "names": config.pairs.shown,
        "entities_a": labels_a[: test.links.n_a],
        "entities_b": labels_b[: test.links.n_b],
        "n_resamples": config.evaluate.n_resamples,
        "seed": config.evaluate.seed,
    }


def _measured(work: Work, z_a: Any, z_b: Any) -> RetrievalReport:
    options = {**_options(work), "n_resamples": 0}
    return retrieval_report(z_a, z_b, work.part("test").links, **options)


def _projected(model: Any, test: PartRows) -> tuple[Any, Any]:
    return model.project_a(test.rows_a), model.project_b(test.rows_b)


def _labels(work: Work, grouping: str) -> tuple[list[Any], str]:
    """Return the group of each item of a that trains, and what the groups are called."""
    part = work.first_part("train")
    name = shown(work, "a")
    if grouping == "length":
        lengths = lengths_of(work, "a", part.items_a, part.rows_a)
        if lengths is None:
            raise NotApplicable(f"audit.within = 'length': dense rows of {name} are all as long")
        return list(length_bins(lengths, 10, length_unit(work, "a")).labels), f"length ({length_unit(work, 'a')})"
    if grouping == "scaffold":
        if kind_of(work, "a") != "molecule":
            raise NotApplicable(f"audit.within = 'scaffold': {name} items are no molecules")
        return list(scaffolds(values_of(work, "a", part.items_a))), "scaffold"
    if grouping == "group":
        if not work.run.config.pairs.group:
            raise NotApplicable("audit.within = 'group' needs pairs.group, columns such as the slide or the donor")
        groups = work.prepared.table.group_labels("a")
        return [" ".join(groups[number]) for number in part.items_a.tolist()], ", ".join(work.run.config.pairs.group)
    classes = _classes(work)
    if classes is None:
        raise NotApplicable("audit.within = 'class' needs pairs.class_a, the column with the class of side a")
    return list(classes[part.items_a]), "class"


def _classes(work: Work) -> Any:
    from bridgehead.runs.classes import classes_of

    pairs = work.run.config.pairs
    return classes_of(work.prepared.table, pairs.class_a, None)[0] if pairs.class_a else None
