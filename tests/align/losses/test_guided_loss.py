import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_losses as naive
from bridgehead.align.losses.guided import guided_loss, guided_parts
from bridgehead.align.losses.infonce import info_nce
from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError


def masked_by_shared_guide(table, matches, margin, kind):
    """The masked (anchor, candidate) pairs by loops: above the anchor's highest positive, less the margin."""
    masked = set()
    for i, row in enumerate(table):
        positives = [j for j in range(len(row)) if (i, j) in matches]
        if positives:
            best = max(row[p] for p in positives)
            threshold = best - (margin if kind == "absolute" else margin * abs(best))
            masked |= {(i, j) for j, g in enumerate(row) if j not in positives and g > threshold}
    return masked


def masked_by_sides(guide_a, guide_b, matches, margin):
    """The masked pairs by loops: a negative that is near a positive within a side."""
    within_a, within_b = naive.cosines(guide_a, guide_a), naive.cosines(guide_b, guide_b)
    masked = set()
    for i in range(len(guide_a)):
        for j in range(len(guide_b)):
            near_b = any(within_b[j][p] > 1 - margin - 1e-6 for q, p in matches if q == i)
            near_a = any(within_a[i][q] > 1 - margin - 1e-6 for q, p in matches if p == j)
            if (near_a or near_b) and (i, j) not in matches:
                masked.add((i, j))
    return masked


@settings(deadline=None)
@given(
    naive.batches(),
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.sampled_from(["absolute", "relative"]),
    st.sampled_from(["outside", "inside"]),
)
def test_a_shared_guide_equals_the_definition_written_as_loops(batch, seed, margin, kind, form):
    z_a, z_b, matches, scale = batch
    generator = torch.Generator().manual_seed(seed)
    guide = [torch.randn(len(z), 3, generator=generator, dtype=torch.float64) for z in (z_a, z_b)]
    table, swapped = naive.cosines(*guide), {(b, a) for a, b in matches}
    expected = naive.loss(
        z_a,
        z_b,
        matches,
        naive.info_nce_cost(scale, form, masked_by_shared_guide(table, matches, margin, kind)),
        naive.info_nce_cost(scale, form, masked_by_shared_guide(naive.transposed(table), swapped, margin, kind)),
    )
    options = {"guide_a": guide[0], "guide_b": guide[1], "guide_space": "shared", "margin": margin, "kind": kind}
    found = float(guided_loss(z_a, z_b, scale, sorted(matches), form=form, **options))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(naive.batches(), st.integers(0, 1000), st.sampled_from([0.0, 0.1, 0.7]), st.sampled_from(["a", "b", "both"]))
def test_a_guide_per_side_equals_the_definition_written_as_loops(batch, seed, margin, sides):
    z_a, z_b, matches, scale = batch
    generator = torch.Generator().manual_seed(seed)
    guide_a, guide_b = (torch.randn(len(z), 2, generator=generator, dtype=torch.float64) for z in (z_a, z_b))
    # A side that has no guide sees its items as unlike each other: one axis each.
    loop_a = guide_a if sides != "b" else torch.eye(len(z_a))
    loop_b = guide_b if sides != "a" else torch.eye(len(z_b))
    masked = masked_by_sides(loop_a, loop_b, matches, margin)
    back = {(b, a) for a, b in masked}
    expected = naive.loss(
        z_a, z_b, matches, naive.info_nce_cost(scale, masked=masked), naive.info_nce_cost(scale, masked=back)
    )
    given_a, given_b = (guide_a if sides != "b" else None), (guide_b if sides != "a" else None)
    found = float(guided_loss(z_a, z_b, scale, sorted(matches), guide_a=given_a, guide_b=given_b, margin=margin))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_duplicate_of_the_matching_text_is_masked_worked_by_hand():
    # Cosines [[1, 0], [0, 1]] and s = 2; texts 0 and 1 are the same to the guide, so no negative is left: cost 0.
    rows, same = torch.eye(2), torch.ones(2, 4)
    parts = guided_parts(rows, rows, 2.0, guide_b=same)
    assert float(parts.loss) == 0.0 and float(parts.terms["masked"]) == 1.0
    # Texts at a cosine of 0.8 are masked from a margin of 0.2 on: below it this is InfoNCE, log(1 + e^-2).
    near = torch.tensor([[1.0, 0.0], [0.8, 0.6]])
    assert float(guided_loss(rows, rows, 2.0, guide_b=near, margin=0.19)) == pytest.approx(math.log1p(math.exp(-2)))
    assert float(guided_loss(rows, rows, 2.0, guide_b=near, margin=0.21)) == 0.0


@pytest.mark.parametrize(
    ("kind", "margin", "masks"),
    [("absolute", 0.1, False), ("absolute", 0.3, True), ("relative", 0.1, False), ("relative", 0.6, True)],
)
def test_margins_are_right_for_positives_that_the_guide_scores_below_0(kind, margin, masks):
    # The positive scores -0.4 and the negative -0.6. Absolute: masked from a margin of 0.2 on; relative: from 0.5 on,
    # as the threshold is -0.4 - 0.4 margin. With -0.4 (1 - margin) instead it would rise, and never mask what is near.
    z = torch.eye(2, dtype=torch.float64)
    guide_a = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    guide_b = torch.tensor([[-0.4, math.sqrt(1 - 0.16)], [-0.6, 0.8]], dtype=torch.float64)
    options = {"guide_a": guide_a, "guide_b": guide_b, "guide_space": "shared", "margin": margin, "kind": kind}
    loss = guided_loss(z[:1], z, 1.0, [(0, 0)], direction="a_to_b", **options)
    assert float(loss) == pytest.approx(0.0 if masks else math.log1p(math.exp(-1)), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["absolute", "relative"])
@pytest.mark.parametrize("margin", [0.0, 0.1, 0.4])
def test_equals_the_guided_loss_of_sentence_transformers_where_both_are_defined(kind, margin):
    losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    generator = torch.Generator().manual_seed(0)
    rows = [torch.randn(12, 4, generator=generator) for _ in range(4)]

    class Reference(losses.GISTEmbedLoss):
        """Theirs on given rows instead of texts."""

        def __init__(self):
            torch.nn.Module.__init__(self)
            self.margin_strategy, self.margin, self.temperature = kind, margin, 0.1
            self.contrast_anchors = self.contrast_positives = self.gather_across_devices = False
            self.similarity_fct, self.cross_entropy_loss = (
                torch.nn.CosineSimilarity(dim=-1),
                torch.nn.CrossEntropyLoss(),
            )
            self.must_retokenize = False
            self.model, self.guide = (self.columns(rows[0:2]), self.columns(rows[2:4]))

        @staticmethod
        def columns(pair):
            class Given(torch.nn.Module):
                def forward(self, features):
                    return {"sentence_embedding": pair[features["column"]]}

            return Given()

    theirs = Reference().forward([{"column": 0}, {"column": 1}], torch.zeros(0))
    options = {"guide_a": rows[2], "guide_b": rows[3], "guide_space": "shared", "margin": margin, "kind": kind}
    ours = guided_parts(rows[0], rows[1], 10.0, direction="a_to_b", **options)
    assert 0 < float(ours.terms["masked"]) < 1
    assert float(ours.loss) == pytest.approx(float(theirs), rel=1e-5)


@pytest.mark.parametrize("guide_space", ["per_side", "shared"])
def test_a_guide_that_finds_nothing_near_leaves_info_nce(guide_space):
    generator = torch.Generator().manual_seed(1)
    z_a, z_b = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (4, 3))
    links = [(0, 0), (0, 1), (1, 1), (2, 2)]
    # Shared: linked rows alike, others orthogonal.
    guide = torch.eye(4, dtype=torch.float64)
    guide_b = guide[:3] if guide_space == "per_side" else torch.stack([guide[0], guide[0] + guide[1], guide[2]])
    for direction in ("both", "a_to_b", "b_to_a"):
        parts = guided_parts(
            z_a, z_b, 5.0, links, guide_a=guide, guide_b=guide_b, guide_space=guide_space, direction=direction
        )
        assert float(parts.terms["masked"]) == 0.0
        assert float(parts.loss) == pytest.approx(
            float(info_nce(z_a, z_b, 5.0, links, "outside", direction)), rel=1e-12
        )


def test_zero_rows_of_a_guide_and_rows_without_a_positive_mask_nothing():
    z_a, z_b = torch.eye(3), torch.eye(3)
    zeros = torch.zeros(3, 5)
    assert float(guided_parts(z_a, z_b, 1.0, guide_a=zeros, guide_b=zeros, margin=0.9).terms["masked"]) == 0.0
    same = torch.ones(3, 5)
    # Only (0, 0) is linked. All texts are near text 0, so molecule 0 masks texts 1 and 2, and no other pair is masked.
    parts = guided_parts(z_a, z_b, 1.0, [(0, 0)], guide_b=same)
    assert float(parts.terms["masked"]) == pytest.approx(2 / 8)


def test_the_guide_gets_no_gradient_and_may_be_of_half_precision():
    z = torch.eye(3, requires_grad=True)
    guide = torch.randn(3, 4, generator=torch.Generator().manual_seed(2)).half().requires_grad_()
    guided_loss(z, torch.eye(3), 2.0, guide_a=guide, margin=0.5).backward()
    assert guide.grad is None and torch.isfinite(z.grad).all()


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({}, ArgumentError, "neither guide_a nor guide_b"),
        ({"guide_b": torch.eye(2), "guide_space": "shared"}, ArgumentError, "needs the guide's rows of both sides"),
        ({"guide_b": torch.eye(3)}, ShapeError, r"guide_b has shape \(3, 3\); expected \(2, d\)"),
        ({"guide_b": torch.ones(2, 0)}, ShapeError, r"guide_b has shape \(2, 0\)"),
        ({"guide_a": torch.eye(2), "guide_b": torch.ones(2, 3), "guide_space": "shared"}, ShapeError, "in one space"),
        ({"guide_b": [[1.0], [1.0]]}, ArgumentError, "guide_b is a list"),
        ({"guide_b": torch.tensor([[1.0], [math.nan]])}, NonFiniteRowsError, r"rows 1 of guide_b"),
        ({"guide_b": torch.eye(2), "margin": -0.1}, ArgumentError, "margin = -0.1"),
        ({"guide_b": torch.eye(2), "kind": "percent"}, ArgumentError, "kind = 'percent'"),
        ({"guide_b": torch.eye(2), "guide_space": "joint"}, ArgumentError, "guide_space = 'joint'"),
    ],
)
def test_what_the_guide_may_not_be_is_refused(change, error, match):
    with pytest.raises(error, match=match):
        guided_loss(torch.eye(2), torch.eye(2), 1.0, **change)
