"""How fast the two-view study's ten models train at once, against one after another in plain PyTorch.

Five seeds, each with true and with wrong pairs, 160 epochs of 6 batches. Both ways have the same data, first weights,
orders, optimiser and choice of the epoch; the plain one is an ordinary loop over nn.Sequential and cross_entropy. Each
way has the thread count, 1 or 2, at which it was faster over 10 epochs; then the two are measured in turns. Prints
JSON; the exit status is 1 when the ratio of the medians is under the limit, or the mean recalls differ by over 0.005.
Run: python bench/ensemble.py [--quick] [--repeats N]
"""

import argparse
import copy
import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from bridgehead.evaluate import retrieval_report
from bridgehead.runs.two_view import (
    SEEDS,
    TwoViews,
    epoch_orders,
    first_model,
    study_config,
    study_course,
    study_members,
    two_views,
    wrong_pairs,
)
from bridgehead.train.ensemble.fit import fit_ensemble

LEAST_RATIO = 5.0
MOST_DIFFERENCE = 0.005
THREADS = (1, 2)
TRIED = 10

Rows = list[tuple[np.ndarray, np.ndarray]]
Way = Callable[[TwoViews, int], Rows]


def at_once(data: TwoViews, epochs: int) -> Rows:
    """Train the ten models together; return their held-out rows, true and wrong pairs of each seed in turn."""
    found = fit_ensemble(
        data.fit.a, data.fit.b, None, study_config(epochs), study_members(epochs),
        valid=(data.valid.a, data.valid.b, None), course=study_course(),
    )  # fmt: skip
    return [(fit.model.project_a(data.held_out.a), fit.model.project_b(data.held_out.b)) for fit in found]


def one_by_one(data: TwoViews, epochs: int) -> Rows:
    """Train the ten models one after another in plain PyTorch; return what `at_once` returns."""
    true = torch.arange(len(data.fit))
    return [
        plain(data, seed, partners, epochs) for seed in SEEDS for partners in (true, torch.tensor(wrong_pairs()[:, 1]))
    ]


def plain(data: TwoViews, seed: int, partners: torch.Tensor, epochs: int) -> tuple[np.ndarray, np.ndarray]:
    """Train one model as one would write it down and return its held-out rows of both sides."""
    drawn = first_model(seed)
    towers = [nn.Sequential(head.first, nn.ReLU(), head.rest[0]) for head in (drawn.head_a, drawn.head_b)]
    model = nn.ModuleList(towers)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    fit, valid, held_out = (
        [torch.from_numpy(part.a), torch.from_numpy(part.b)] for part in (data.fit, data.valid, data.held_out)
    )

    def rows(side: int, x: torch.Tensor) -> torch.Tensor:
        return F.normalize(towers[side](x), dim=-1)

    def loss_of(x_a: torch.Tensor, x_b: torch.Tensor) -> torch.Tensor:
        logits = rows(0, x_a) @ rows(1, x_b).T / 0.08
        labels = torch.arange(len(logits))
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2

    best, kept = float("inf"), copy.deepcopy(model.state_dict())
    for epoch, order in enumerate(torch.from_numpy(epoch_orders(seed, epochs)), start=1):
        for batch in order.split(120):
            loss = loss_of(fit[0][batch], fit[1][partners[batch]])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        if epoch % 5 == 0:
            with torch.no_grad():
                value = float(loss_of(*valid))
            if value < best:
                best, kept = value, copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)
    with torch.no_grad():
        return rows(0, held_out[0]).numpy(), rows(1, held_out[1]).numpy()


def recalls(found: Rows) -> dict[str, list[float]]:
    """Return recall@1 a to b and b to a, the mean over the seeds, for true and for wrong pairs."""
    reports = [retrieval_report(*rows, None, ks=(1,), n_resamples=0) for rows in found]
    values = [[report.a_to_b.recall[1], report.b_to_a.recall[1]] for report in reports]
    return {
        name: [round(float(v), 4) for v in np.mean(values[start::2], axis=0)]
        for start, name in enumerate(("true_pairs", "wrong_pairs"))
    }


def seconds_of(way: Way, data: TwoViews, epochs: int, threads: int) -> tuple[float, Rows]:
    """Return how long a way takes, and what it found."""
    torch.set_num_threads(threads)
    start = time.perf_counter()
    found = way(data, epochs)
    return time.perf_counter() - start, found


def best_threads(way: Way, data: TwoViews) -> dict[int, float]:
    """Return the seconds of a few epochs at each number of threads, the fastest first; the first call warms up."""
    seconds_of(way, data, 2, 1)
    seconds = {threads: min(seconds_of(way, data, TRIED, threads)[0] for _ in range(2)) for threads in THREADS}
    return dict(sorted(seconds.items(), key=lambda item: item[1]))


def main() -> int:
    """Measure, print, and say whether the limits were kept."""
    parser = argparse.ArgumentParser(description="Ten models at once against one after another.")
    parser.add_argument("--quick", action="store_true", help="20 epochs and one repeat; the recalls are lower")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    epochs, repeats = (20, 1) if given.quick else (160, given.repeats)
    data, ways = two_views(), {"at_once": at_once, "one_by_one": one_by_one}
    tried = {name: best_threads(way, data) for name, way in ways.items()}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    figures = {}
    for _ in range(repeats):
        for name, way in ways.items():
            taken, found = seconds_of(way, data, epochs, next(iter(tried[name])))
            seconds[name].append(taken)
            figures[name] = recalls(found)
    ours, theirs = figures["at_once"], figures["one_by_one"]
    difference = max(abs(x - y) for kind in theirs for x, y in zip(ours[kind], theirs[kind], strict=True))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ratio = medians["one_by_one"] / medians["at_once"]
    result = {
        "models": 2 * len(SEEDS),
        "epochs": epochs,
        "repeats": repeats,
        f"seconds_of_{TRIED}_epochs_by_threads": {
            name: {threads: round(value, 3) for threads, value in found.items()} for name, found in tried.items()
        },
        "seconds": {name: round(value, 3) for name, value in medians.items()},
        "spread": {name: [round(min(values), 3), round(max(values), 3)] for name, values in seconds.items()},
        "ratio": round(ratio, 2),
        "held_out_recall@1": figures,
        "largest_difference": round(difference, 4),
        "limits": {"ratio": LEAST_RATIO, "difference": MOST_DIFFERENCE},
    }
    print(json.dumps(result))
    return int(ratio < LEAST_RATIO or difference > MOST_DIFFERENCE)


if __name__ == "__main__":
    sys.exit(main())
