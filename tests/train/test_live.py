"""Encoders are trained with their heads: in chunks, stage by stage, and what is frozen stays as it is."""

import numpy as np
import pytest
import torch

from bridgehead.align.losses.infonce import info_nce
from bridgehead.errors import ArgumentError, ConfigError, LinksError
from bridgehead.train.carried import carried_state, restore_carried
from bridgehead.train.config import TrainConfig
from bridgehead.train.live.config import LiveConfig
from bridgehead.train.live.items import LinkedItems, LiveItems
from bridgehead.train.live.task import LiveTask, hash_weights
from train.live_models import aligner, items

CONFIG = TrainConfig.of(batch_size=10, epochs=3, seed=4)
FROM_START = [{"group": "encoder_a", "from_epoch": 0}, {"group": "encoder_b", "from_epoch": 0}]


def task(model=None, data=None, config=None, knowledge=None, **live):
    live.setdefault("stages", FROM_START)
    return LiveTask(
        model or aligner(),
        data or items(),
        TrainConfig.of(CONFIG, **(config or {})),
        LiveConfig.of(live),
        knowledge=knowledge,
    )


def gradients(own, batch=0, epoch=0):
    batches = own.begin_epoch(epoch)
    own.model.zero_grad(set_to_none=True)
    outcome = own.backward(batches[batch], epoch, batch)
    return outcome, {name: p.grad.clone() for name, p in own.model.named_parameters() if p.grad is not None}


def largest_difference(left, right):
    """The largest difference of two gradients of a weight, as a share of the largest entry where that is over 1."""
    assert left.keys() == right.keys()
    shares = [(left[name] - right[name]).abs().max() / right[name].abs().max().clamp(min=1) for name in left]
    return float(max(shares))


def without_dropout(**live):
    return task(aligner(dropout=0.0), **live)


@pytest.mark.parametrize("size", [1, 3, 64])
def test_a_batch_has_the_loss_and_gradients_of_its_rows_encoded_one_by_one_each_as_often_as_named(size):
    own = without_dropout(mini_batch=size)
    outcome, found = gradients(own)
    model, data = own.aligner, own.data
    rows_a, rows_b = own.begin_epoch(0)[0]
    assert len(np.unique(rows_a)) < len(rows_a)
    own.model.zero_grad(set_to_none=True)
    z_a = torch.cat([model.encode_a(**data.a.take(np.array([row]))) for row in rows_a])
    z_b = torch.cat([model.encode_b(**data.b.take(np.array([row]))) for row in rows_b])
    matches = {tuple(pair) for pair in data.links.pairs.tolist()}
    pairs = [(i, j) for i, a in enumerate(rows_a) for j, b in enumerate(rows_b) if (int(a), int(b)) in matches]
    loss = info_nce(z_a, z_b, own.scale(), pairs)
    loss.backward()
    expected = {name: p.grad for name, p in own.model.named_parameters() if p.grad is not None}
    assert outcome.loss == pytest.approx(float(loss.detach()), abs=1e-5)
    assert largest_difference(found, expected) < 1e-5
    assert outcome.chance == pytest.approx(np.log(10)) and outcome.n_candidates == pytest.approx(10)


def test_the_mini_batch_does_not_change_the_gradients_and_dropout_is_on():
    whole, chunks = (gradients(without_dropout(mini_batch=size))[1] for size in (None, 3))
    assert largest_difference(whole, chunks) < 1e-5
    assert largest_difference(gradients(task(mini_batch=3))[1], chunks) > 1e-3


def test_a_step_is_a_function_of_seed_epoch_and_number_whatever_came_before():
    fresh, used = task(mini_batch=3), task(mini_batch=3)
    for number in (0, 1):
        gradients(used, number)
    torch.manual_seed(99)
    used.resume_epoch(0)
    (first, expected), (again, found) = (gradients(own, 2) for own in (fresh, used))
    assert first.loss == again.loss and largest_difference(found, expected) == 0
    assert gradients(used, 1)[0].loss != gradients(task(config={"seed": 5}), 1)[0].loss


def test_torchs_own_generator_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    gradients(task(mini_batch=3))
    assert torch.equal(torch.rand(3), expected)


def test_frozen_encoders_get_no_gradient_and_no_dropout_until_their_epoch():
    stages = [
        {"group": "encoder_a.last_1", "from_epoch": 1},
        {"group": "encoder_a", "from_epoch": 2},
        {"group": "encoder_b", "from_epoch": 2},
    ]
    own = task(stages=stages, mini_batch=4)
    learned = [{name for name in gradients(own, epoch=epoch)[1] if ".encoder_" in name} for epoch in range(3)]
    assert not learned[0]
    assert learned[1] and all(name.startswith("aligner.encoder_a.encoder.layer.1.") for name in learned[1])
    assert {name.split(".")[1] for name in learned[2]} == {"encoder_a", "encoder_b"}
    own.begin_epoch(1)
    layers = own.aligner.encoder_a.encoder.layer
    assert layers[1].training and not layers[0].training and not own.aligner.encoder_b.training
    assert own.aligner.proj_b.training


def test_the_rows_of_a_frozen_encoder_are_encoded_once_and_give_the_same_step(monkeypatch):
    stages = [{"group": "encoder_b", "from_epoch": 0}, {"group": "encoder_a", "from_epoch": 1}]
    kept, anew = (
        task(aligner(dropout=0.0), stages=stages, mini_batch=3, cache_frozen=cached) for cached in (True, False)
    )
    (outcome, found), (expected_outcome, expected) = (gradients(own, 1) for own in (kept, anew))
    assert outcome.loss == pytest.approx(expected_outcome.loss, abs=1e-5)
    assert largest_difference(found, expected) < 1e-5

    def forbidden(*_args, **_inputs):
        raise AssertionError("the frozen encoder was run again")

    with monkeypatch.context() as patch:
        patch.setattr(kept.aligner.encoder_a, "forward", forbidden)
        gradients(kept, 0)
        with pytest.raises(AssertionError, match="run again"):
            gradients(kept, 0, epoch=1)


def test_groups_hold_each_weight_once_with_its_rate_decay_and_epoch():
    stages = [
        {"group": "encoder_a.last_1", "from_epoch": 1, "learning_rate": 5e-5},
        {"group": "encoder_a", "from_epoch": 2},
    ]
    own = task(stages=stages, layer_decay=0.5, encoder_learning_rate=1e-5)
    groups = own.groups()
    names = [name for group in groups for name, _ in group.parameters]
    assert len(names) == len(set(names))
    by_name = {name: group for group in groups for name, _ in group.parameters}
    parameters = dict(own.model.named_parameters())
    assert all(parameters[name] is p for group in groups for name, p in group.parameters)
    top = by_name["aligner.encoder_a.encoder.layer.1.output.dense.weight"]
    assert (top.from_epoch, top.learning_rate, top.weight_decay) == (1, 5e-5, CONFIG.weight_decay)
    below = by_name["aligner.encoder_a.encoder.layer.0.output.dense.weight"]
    assert (below.from_epoch, below.learning_rate) == (2, 5e-6)
    words = by_name["aligner.encoder_a.embeddings.word_embeddings.weight"]
    assert (words.from_epoch, words.learning_rate) == (2, 2.5e-6)
    bias = by_name["aligner.encoder_a.encoder.layer.0.output.dense.bias"]
    assert bias.weight_decay == 0 and by_name["scale.log_logit_scale"].weight_decay == 0
    head = by_name["scale.log_logit_scale"]
    assert (head.from_epoch, head.learning_rate) == (0, CONFIG.learning_rate)
    assert not any("encoder_b" in name or "log_temperature" in name for name in names)


def test_a_weight_on_which_no_row_depends_is_in_no_group_and_named():
    own = task()
    names = {name for group in own.groups() for name, _ in group.parameters}
    assert not any("pooler" in name for name in names)
    assert own.notes[0].startswith("no row depends on encoder_a.pooler.dense.bias") and "and 1 more" in own.notes[0]
    found = gradients(own)[1]
    assert found.keys() == names


def test_a_stage_with_more_layers_than_there_are_is_refused():
    with pytest.raises(ArgumentError, match=r"last = 3; encoder_a has 2 layers"):
        task(stages=[{"group": "encoder_a.last_3"}])


def test_validation_ranks_held_out_items_under_the_weights_there_are():
    held_out = items(12, seed=9)
    own = LiveTask(aligner(), items(), CONFIG, LiveConfig.of(mini_batch=5), valid=held_out)
    own.begin_epoch(0)
    first = own.validate()
    assert 0 < first["valid_mrr"] <= 1
    assert first["valid_mrr"] == (first["valid_mrr_a_to_b"] + first["valid_mrr_b_to_a"]) / 2
    own.begin_epoch(1)
    assert own.validate() == pytest.approx(first)
    with torch.no_grad():
        own.aligner.encoder_a.embeddings.word_embeddings.weight.mul_(-3)
    assert own.validate() != first
    assert task().validate() == {}


def test_the_key_follows_data_settings_and_first_weights():
    keys = [
        task().key(),
        task().key(),
        task(mini_batch=3).key(),
        task(aligner(seed=1)).key(),
        task(data=items(seed=1)).key(),
        task(config={"seed": 5}).key(),
        LiveTask(aligner(), items(), CONFIG, LiveConfig.of(stages=FROM_START), valid=items(12, seed=9)).key(),
    ]
    assert keys[0] == keys[1] and len(set(keys)) == 6


def test_the_state_comes_back():
    own, again = (task(config={"precision": "fp16"}) for _ in range(2))
    own.precision.skipped_steps = 3
    restore_carried(again, carried_state(own))
    assert again.precision.skipped_steps == 3 and carried_state(again) == carried_state(own)


def test_the_temperature_of_the_aligner_is_the_learned_one_at_the_end():
    own = task()
    with torch.no_grad():
        own.scale.log_logit_scale.fill_(np.log(20))
    own.model.keep_scale()
    assert own.aligner.loss_fn.temperature == pytest.approx(1 / 20)


@pytest.mark.parametrize(("precision", "kind"), [("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_in_half_precision_encoders_multiply_in_it_and_the_loss_in_float32(precision, kind):
    own = task(aligner(dropout=0.0), config={"precision": precision}, mini_batch=4)
    seen = []
    objective = own.objective.forward

    def watched(z_a, z_b, scale, positives):
        parts = objective(z_a, z_b, scale, positives)
        seen.append((z_a.dtype, parts.loss.dtype, torch.is_autocast_enabled("cpu")))
        return parts

    own.objective.forward = watched
    factor = 1.0
    if precision == "fp16":
        factor = 64.0
        restore_carried(own, carried_state(own) | {"precision.loss_scale": torch.tensor(factor)})
    outcome, found = gradients(own)
    assert seen == [(kind, torch.float32, False)]
    expected_outcome, expected = gradients(without_dropout(mini_batch=4))
    assert outcome.loss == pytest.approx(expected_outcome.loss, rel=0.02)
    name = "aligner.encoder_a.encoder.layer.0.output.dense.weight"
    assert found[name].dtype == torch.float32
    assert float((found[name] / factor - expected[name]).norm()) < 0.1 * float(expected[name].norm())


def test_batch_normalisation_is_refused_in_chunks_and_taken_whole():
    model = aligner()
    model.proj_a = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.BatchNorm1d(8))
    own = task(model, mini_batch=4)
    with pytest.raises(ConfigError, match=r"BatchNorm1d in training.*set mini_batch to none"):
        own.begin_epoch(0)
    gradients(task(model, mini_batch=None))


def test_features_of_one_shape_are_items_too():
    from bridgehead.align.dual_encoder import DualEncoderAligner

    class Tower(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(5, 6)

        def forward(self, features):
            return self.layer(features).relu()

    rng = np.random.default_rng(0)
    rows = LiveItems.of({"features": rng.standard_normal((20, 5)).astype(np.float32)})
    model = DualEncoderAligner.from_modules(Tower(), Tower(), 6, 6, 4)
    _, found = gradients(task(model, LinkedItems.of(rows, rows), mini_batch=4))
    assert "aligner.encoder_a.layer.weight" in found


def test_links_with_nothing_to_learn_from_are_refused_before_anything_is_encoded():
    data = items()
    with pytest.raises(LinksError, match="there is no link among the training items"):
        task(data=LinkedItems.of(data.a, data.b, []))


def test_the_hash_of_weights_follows_each_of_them_whatever_the_dtype():
    layer = torch.nn.Linear(2, 2).to(torch.bfloat16)
    first = hash_weights(layer)
    with torch.no_grad():
        layer.bias[0] += 1
    assert hash_weights(layer) != first


def test_tokens_are_dropped_from_the_items_of_batches_alone_and_frozen_rows_are_not_kept():
    own = task(aligner(dropout=0.0), config={"augment": {"token_dropout": 0.4}}, stages=[], mini_batch=3)
    plain = task(aligner(dropout=0.0), stages=[], mini_batch=3)
    first, again, other = (gradients(own, number)[0].loss for number in (0, 0, 1))
    assert first == again != gradients(plain, 0)[0].loss and other != gradients(plain, 1)[0].loss
    for side, expected in zip(own.sides, plain.sides, strict=True):
        np.testing.assert_allclose(side.unit_rows(), expected.unit_rows(), atol=1e-5)


@pytest.mark.parametrize(
    ("augment", "match"),
    [
        ({"feature_noise": 0.1}, "a live encoder reads items, not rows"),
        ({"latent_mixing": 1.0}, "it mixes rows that were encoded once"),
        ({"random_smiles": ["a"]}, "side a, whose items are no texts; pass the SMILES"),
    ],
)
def test_augmentation_that_is_not_for_live_encoders_is_refused(augment, match):
    with pytest.raises(ConfigError, match=match):
        task(config={"augment": augment})
