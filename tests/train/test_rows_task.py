"""Every loss, kind of negative and augmentation, through `fit_heads` and from settings alone."""

import math

import numpy as np
import pytest
import torch
from scipy import sparse

from bridgehead.errors import ArgumentError, ConfigError, ShapeError
from bridgehead.train import TrainConfig, fit_heads

SMALL = {"embed_dim": 8, "hidden": (16,), "epochs": 25, "batch_size": 60, "dropout": 0.0, "learning_rate": 1e-2}
LOSSES = [
    {"name": "info_nce"},
    {"name": "info_nce", "tile": 16},
    {"name": "info_nce", "products": "bf16", "tile": 16},
    {"name": "info_nce", "alignment_weight": 0.1, "uniformity_weight": 0.1},
    {"name": "decoupled"},
    {"name": "hard_negative", "beta": 0.5},
    {"name": "sigmoid"},
    {"name": "sigmoid", "tile": 16},
    {"name": "guided"},
    {"name": "hierarchical", "coarse_weight": 0.2},
]


def classes(rows_a):
    """Which half of the items each belongs to, by what a shows of it; the same on both sides."""
    high = (rows_a[:, 0] > 0).astype(np.int64)
    return high, high


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: "-".join(map(str, loss.values())))
def test_each_loss_learns_what_two_views_share(views, loss):
    fit = [side[:240] for side in views.fit]
    told = {"classes": classes(fit[0])} if loss["name"] == "hierarchical" else {}
    result = fit_heads(*fit, config=TrainConfig.of(SMALL, loss=loss), valid=(*views.valid, None), **told)
    # 180 candidates: chance is H_180 / 180 = 0.032.
    assert max(line["valid_mrr"] for line in result.history) > 0.5
    assert all(math.isfinite(line["loss"]) for line in result.history)


@pytest.mark.parametrize(
    "negatives",
    [
        {"bank_size": 64},
        {"sampling": "distinct"},
        {"sampling": "hard", "k_hard": 3, "mine_every": 2, "start_epoch": 2, "ramp_epochs": 3},
        {"sampling": "hard", "k_hard": 3, "mine_from": "initial"},
        {"sampling": "hard", "k_hard": 3, "semi_hard": True, "bank_size": 32},
    ],
    ids=str,
)
def test_each_kind_of_negatives_learns_what_two_views_share(views, negatives):
    fit = [side[:240] for side in views.fit]
    config = TrainConfig.of(SMALL, negatives=negatives)
    result = fit_heads(*fit, config=config, valid=(*views.valid, None))
    assert max(line["valid_mrr"] for line in result.history) > 0.5


def test_a_bank_adds_its_rows_to_the_candidates(few):
    config = TrainConfig.of(SMALL, epochs=2, batch_size=20, negatives={"bank_size": 30})
    first, second = fit_heads(*few.fit, config=config).history
    # Three batches of 20: with none, 20 and 30 rows in the bank, then with 30 each; the mean is the geometric one.
    assert first["candidates"] == pytest.approx((20 * 40 * 50) ** (1 / 3))
    # Rows of items that are in the batch again do not stand beside their older selves.
    assert 20 < second["candidates"] < 50


def test_a_loss_of_tiles_trains_the_same_weights(few):
    plain, tiled = (
        fit_heads(*few.fit, config=TrainConfig.of(SMALL, epochs=3, loss={"tile": tile})).model for tile in (None, 7)
    )
    for left, right in zip(plain.parameters(), tiled.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-4)


def test_mutual_information_is_read_off_single_positives_alone(few):
    line = fit_heads(*few.fit, config=TrainConfig.of(SMALL, epochs=1)).history[0]
    assert line["mutual_information"] == pytest.approx(line["chance_loss"] - line["loss"])
    many = fit_heads(
        *few.fit, links=[(i, j) for i in range(60) for j in (i, (i + 1) % 60)], config=TrainConfig.of(SMALL, epochs=1)
    )
    assert "mutual_information" not in many.history[0]
    weighted = fit_heads(*few.fit, config=TrainConfig.of(SMALL, epochs=1, loss={"name": "hard_negative"}))
    assert "mutual_information" not in weighted.history[0]


def test_a_saturated_bound_is_said(few):
    rows = few.fit[0][:8]
    config = TrainConfig.of(SMALL, epochs=60, batch_size=8, hidden=())
    result = fit_heads(rows, rows, config=config)
    assert any("saturated" in note for note in result.notes)


def test_learning_nothing_is_said_after_the_warm_up(views):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 6)).astype(np.float32)
    order = rng.permutation(200)
    config = TrainConfig.of(SMALL, epochs=3, batch_size=50, hidden=(), learning_rate=1e-6, logit_scale_init=1.0)
    notes = fit_heads(rows, views.fit[1][:200][order], config=config).notes
    assert any("no signal" in note or "nothing" in note for note in notes)


def test_the_hierarchical_loss_asks_for_classes_and_others_refuse_them(few):
    with pytest.raises(ConfigError, match="needs the coarse class of each item"):
        fit_heads(*few.fit, config=TrainConfig.of(SMALL, loss={"name": "hierarchical"}))
    with pytest.raises(ConfigError, match="classes came"):
        fit_heads(*few.fit, config=TrainConfig.of(SMALL), classes=classes(few.fit[0]))
    with pytest.raises(ShapeError, match=r"classes of b have shape \(3,\)"):
        fit_heads(
            *few.fit,
            config=TrainConfig.of(SMALL, loss={"name": "hierarchical"}),
            classes=(np.zeros(60, int), np.zeros(3, int)),
        )


def test_a_guide_is_the_frozen_rows_unless_another_is_given(few):
    config = TrainConfig.of(SMALL, epochs=2, loss={"name": "guided"})
    own = fit_heads(*few.fit, config=config)
    given = fit_heads(*few.fit, config=config, guide=few.fit)
    assert own.history[-1]["loss"] == given.history[-1]["loss"]
    with pytest.raises(ShapeError, match="the guide of a has 59 rows; expected 60"):
        fit_heads(*few.fit, config=config, guide=(few.fit[0][:59], None))


def test_csr_rows_guide_too(few):
    rows = sparse.csr_matrix(np.maximum(few.fit[0], 0))
    result = fit_heads(rows, few.fit[1], config=TrainConfig.of(SMALL, epochs=2, loss={"name": "guided"}))
    assert math.isfinite(result.history[-1]["loss"])


def test_a_csr_guide_without_a_non_zero_masks_nothing(few):
    config = TrainConfig.of(SMALL, epochs=2, loss={"name": "guided"})
    empty = sparse.csr_matrix((60, 5), dtype=np.float32)
    assert fit_heads(*few.fit, config=config, guide=(empty, empty)).history[-1]["loss_masked"] == 0


def test_a_device_that_is_not_there_is_refused_before_training(few):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ArgumentError, match="device = 'cuda' cannot be used; there is cpu"):
        fit_heads(*few.fit, config=TrainConfig.of(SMALL, device="cuda"))


@pytest.mark.parametrize("norm", ["layer", "rms", "batch", "none"])
def test_every_norm_trains_in_half_precision_without_a_warning(few, norm):
    result = fit_heads(*few.fit, config=TrainConfig.of(SMALL, epochs=2, norm=norm, precision="bf16"))
    assert math.isfinite(result.history[-1]["loss"])


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_learns_with_logits_in_float32(views, precision):
    fit = [side[:240] for side in views.fit]
    result = fit_heads(*fit, config=TrainConfig.of(SMALL, precision=precision), valid=(*views.valid, None))
    assert max(line["valid_mrr"] for line in result.history) > 0.5
    assert all(parameter.dtype == torch.float32 for parameter in result.model.parameters())


@pytest.mark.parametrize(
    "augment", [{"feature_noise": 0.2}, {"latent_mixing": 1.0}, {"feature_noise": 0.1, "latent_mixing": 0.5}], ids=str
)
def test_augmented_rows_train_and_change_nothing_when_off(views, augment):
    fit = [side[:240] for side in views.fit]
    result = fit_heads(*fit, config=TrainConfig.of(SMALL, augment=augment), valid=(*views.valid, None))
    assert max(line["valid_mrr"] for line in result.history) > 0.5
