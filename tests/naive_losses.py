"""The losses as loops over Python numbers, from their definitions: what the tests of the losses compare with."""

import math

import torch
from hypothesis import strategies as st


def cosines(z_a, z_b):
    def unit(row):
        norm = math.sqrt(sum(x * x for x in row))
        return [x / norm for x in row] if norm else list(row)

    a, b = [unit(row) for row in z_a.tolist()], [unit(row) for row in z_b.tolist()]
    return [[sum(x * y for x, y in zip(u, v, strict=True)) for v in b] for u in a]


def transposed(table):
    return [list(column) for column in zip(*table, strict=True)]


def one_way(table, matches, cost):
    """The mean of `cost(i, row of the table, positives of i)` over rows with a positive; a cost of None is left out."""
    costs = []
    for i, row in enumerate(table):
        positives = sorted(j for j in range(len(row)) if (i, j) in matches)
        if positives:
            costs.append(cost(i, row, positives))
    costs = [found for found in costs if found is not None]
    return sum(costs) / len(costs) if costs else 0.0


def loss(z_a, z_b, matches, cost, cost_back=None, direction="both"):
    """The mean of the directions that `direction` names; `cost_back` where b to a differs (it sees b's numbers)."""
    table = cosines(z_a, z_b)
    forth = one_way(table, matches, cost)
    back = one_way(transposed(table), {(b, a) for a, b in matches}, cost_back or cost)
    return {"both": (forth + back) / 2, "a_to_b": forth, "b_to_a": back}[direction]


def info_nce_cost(scale, form="outside", masked=frozenset()):
    def cost(i, row, positives):
        exps = [math.exp(scale * c) for c in row]
        total = sum(e for j, e in enumerate(exps) if (i, j) not in masked)
        if form == "outside":
            return sum(-math.log(exps[p] / total) for p in positives) / len(positives)
        return -math.log(sum(exps[p] for p in positives) / total)

    return cost


def decoupled_cost(scale, form="outside"):
    def cost(i, row, positives):
        exps = [math.exp(scale * c) for c in row]
        negatives = sum(e for j, e in enumerate(exps) if j not in positives)
        if negatives == 0:
            return None
        if form == "outside":
            return sum(-math.log(exps[p] / negatives) for p in positives) / len(positives)
        return -math.log(sum(exps[p] for p in positives) / negatives)

    return cost


def hard_negative_cost(scale, beta, tau_plus=0.0, form="outside"):
    def cost(i, row, positives):
        exps = [math.exp(scale * c) for c in row]
        negatives = [j for j in range(len(row)) if j not in positives]
        weighted = 0.0
        if negatives:
            importance = {j: math.exp(beta * scale * row[j]) for j in negatives}
            mean = sum(importance.values()) / len(negatives)
            weighted = sum(importance[j] / mean * exps[j] for j in negatives)
            likely = tau_plus * len(negatives) * sum(exps[p] for p in positives) / len(positives)
            weighted = max((weighted - likely) / (1 - tau_plus), len(negatives) * math.exp(-scale))
        total = sum(exps[p] for p in positives) + weighted
        if form == "outside":
            return sum(-math.log(exps[p] / total) for p in positives) / len(positives)
        return -math.log(sum(exps[p] for p in positives) / total)

    return cost


def sigmoid_cost(scale, bias):
    def cost(i, row, positives):
        return sum(
            math.log(1 + math.exp(-(1 if j in positives else -1) * (scale * c + bias))) for j, c in enumerate(row)
        )

    return cost


@st.composite
def batches(draw, scales=(0.0, 0.5, 1.0, 14.0)):
    """Rows of both sides in float64, matches as a set of pairs, and a scale."""
    n_a, n_b, d = draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    pairs = st.tuples(st.integers(0, n_a - 1), st.integers(0, n_b - 1))
    matches = draw(st.sets(pairs, min_size=1))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    rows = [torch.randn(n, d, generator=generator, dtype=torch.float64) for n in (n_a, n_b)]
    return *rows, matches, draw(st.sampled_from(scales))
