import json
import math

import numpy as np
import pytest
import torch
from scipy import sparse

from bridgehead.align import load_heads
from bridgehead.align.losses import Objective
from bridgehead.errors import ArgumentError, ConfigError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.links import Links
from bridgehead.train import TrainConfig, fit_heads
from bridgehead.train import rows_task as task_module

SMALL = {"embed_dim": 8, "hidden": (16,), "epochs": 3}


def weights(result):
    return {name: tensor.clone() for name, tensor in result.model.state_dict().items()}


def same_weights(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def without_seconds(history):
    return [{key: value for key, value in line.items() if key != "seconds"} for line in history]


def test_the_same_seed_gives_bit_identical_weights_and_history_and_another_seed_others(few):
    config = TrainConfig.of(SMALL, dropout=0.3, input_dropout=0.1)
    first, again = (fit_heads(*few.fit, config=config, valid=(*few.valid, None)) for _ in range(2))
    assert same_weights(weights(first), weights(again))
    assert without_seconds(first.history) == without_seconds(again.history)
    other = fit_heads(*few.fit, config=TrainConfig.of(config, seed=1), valid=(*few.valid, None))
    assert not same_weights(weights(first), weights(other))


def test_training_neither_uses_nor_moves_torchs_own_generator(few):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = fit_heads(*few.fit, config=TrainConfig.of(SMALL))
    assert torch.equal(torch.rand(3), expected)
    assert same_weights(weights(first), weights(fit_heads(*few.fit, config=TrainConfig.of(SMALL))))


def test_the_history_names_what_it_holds(few, tmp_path):
    seen = []
    result = fit_heads(
        *few.fit,
        config=TrainConfig.of(SMALL),
        valid=(*few.valid, None),
        folder=tmp_path / "new",
        progress=lambda epoch, epochs, line: seen.append((epoch, epochs, line["loss"])),
    )
    lines = [json.loads(line) for line in (tmp_path / "new" / "history.jsonl").read_text().splitlines()]
    assert lines == result.history
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert seen == [(line["epoch"], 3, line["loss"]) for line in lines]
    for line in lines:
        assert line["temperature"] == pytest.approx(1 / line["logit_scale"])
        assert line["valid_mrr"] == pytest.approx((line["valid_mrr_a_to_b"] + line["valid_mrr_b_to_a"]) / 2)
        assert 0 < line["valid_recall@10"] <= 1
        assert line["seconds"] >= 0 and line["learning_rate"] > 0
    # Batches of 32 and 28 links.
    assert lines[0]["chance_loss"] == pytest.approx((math.log(32) + math.log(28)) / 2)


def test_heads_are_saved_and_no_checkpoint_is_left(few, tmp_path):
    result = fit_heads(*few.fit, config=TrainConfig.of(SMALL, checkpoint_seconds=0), folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heads.safetensors", "history.jsonl"]
    assert same_weights(weights(result), load_heads(tmp_path / "heads.safetensors").state_dict())


def test_heads_saved_in_half_precision_are_the_model_that_is_returned(tmp_path):
    rows = sparse.csr_matrix(sparse.random(40, 90, 0.2, random_state=0, dtype=np.float32))
    config = TrainConfig.of(SMALL, storage="float16")
    result = fit_heads(rows, rows, config=config, folder=tmp_path)
    assert same_weights(weights(result), load_heads(tmp_path / "heads.safetensors").state_dict())


def planned(monkeypatch, values):
    """Let validation say these values, one an epoch, and note the weights it saw."""
    seen = []

    def metrics(model, _valid):
        seen.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        return {"valid_mrr": values[len(seen) - 1]}

    monkeypatch.setattr(task_module, "validation_metrics", metrics)
    return seen


def test_it_stops_after_patience_epochs_without_a_better_one_and_restores_the_best_whole(few, monkeypatch):
    seen = planned(monkeypatch, [0.1, 0.5, 0.4, 0.5, 0.9])
    config = TrainConfig.of(SMALL, epochs=9, patience=2)
    result = fit_heads(*few.fit, config=config, valid=(*few.valid, None))
    assert len(result.history) == 4
    assert result.best_epoch == 2
    assert same_weights(weights(result), seen[1])
    assert seen[1]["scale.log_logit_scale"] != seen[3]["scale.log_logit_scale"]
    assert result.notes[0] == "stopped after epoch 4 of 9: epoch 2 stayed the best"


def test_without_patience_all_epochs_are_trained_and_the_best_is_kept(few, monkeypatch):
    seen = planned(monkeypatch, [0.9, 0.5, 0.4, 0.3])
    result = fit_heads(*few.fit, config=TrainConfig.of(SMALL, epochs=4, patience=None), valid=(*few.valid, None))
    assert len(result.history) == 4
    assert same_weights(weights(result), seen[0])


def test_a_refit_of_n_epochs_takes_the_steps_of_the_planned_course_up_to_n(few):
    config = TrainConfig.of(SMALL, epochs=6)
    whole, part = fit_heads(*few.fit, config=config), fit_heads(*few.fit, config=config, epochs=2)
    assert (len(part.history), part.best_epoch, whole.best_epoch) == (2, 2, 6)
    assert without_seconds(part.history) == without_seconds(whole.history[:2])


def test_the_rate_warms_up_and_ends_at_zero_and_s_stays_within_its_bounds(few):
    config = TrainConfig.of(SMALL, epochs=6, logit_scale_init=1.0, logit_scale_bounds=(1.0, 1.2), learning_rate=0.5)
    history = fit_heads(*few.fit, config=config).history
    rates = [line["learning_rate"] for line in history]
    assert rates[0] == pytest.approx(0.5) and rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.02
    assert all(1 <= line["logit_scale"] <= 1.2 for line in history)


def test_items_that_other_links_brought_into_the_batch_are_positives(monkeypatch):
    seen = []
    original = Objective.forward

    def spy(self, z_a, z_b, scale, positives, **known):
        seen.append((len(positives), len(z_a), len(z_b)))
        return original(self, z_a, z_b, scale, positives, **known)

    monkeypatch.setattr(Objective, "forward", spy)
    rng = np.random.default_rng(0)
    links = [(0, 0), (0, 1), (1, 1), (2, 2)]
    config = TrainConfig.of(SMALL, epochs=1, form="inside")
    fit_heads(rng.random((3, 4)), rng.random((3, 5)), links, config)
    # Rows as the links name them: a 0, 0, 1, 2 and b 0, 1, 1, 2 in some order. Both rows of item 0 match the one of b 0
    # and the two of b 1, the row of item 1 those two, and 2 its own.
    assert seen == [(6 + 2 + 1, 4, 4)]


def test_csr_and_dense_sides_train_together_and_groups_count_as_links():
    rng = np.random.default_rng(0)
    csr = sparse.csr_matrix(sparse.random(50, 80, 0.2, random_state=0, dtype=np.float32))
    links = Links(np.stack([np.arange(50)] * 2, axis=1), 50, 50, groups_a=np.arange(50) // 2)
    result = fit_heads(csr, rng.standard_normal((50, 6)), links, TrainConfig.of(SMALL))
    assert result.model.project_a(csr).shape == (50, 8)


def test_tensors_and_lists_are_rows_too(few):
    a, b = few.fit
    expected = weights(fit_heads(a, b, config=TrainConfig.of(SMALL)))
    found = fit_heads(torch.from_numpy(a), b.tolist(), config=TrainConfig.of(SMALL))
    assert same_weights(weights(found), expected)


def test_shuffled_links_are_reported_as_no_signal(few):
    rng = np.random.default_rng(0)
    links = np.stack([np.arange(60), rng.permutation(60)], axis=1)
    config = TrainConfig.of(SMALL, epochs=1, learning_rate=1e-5, logit_scale_init=1.0)
    (note,) = fit_heads(*few.fit, links, config).notes
    assert note.startswith("no signal: the loss is")


@pytest.mark.parametrize(
    ("a", "b", "links", "match"),
    [
        (np.eye(1), np.eye(1), None, "side a has one distinct item in 1 links"),
        (np.ones((6, 3)), np.random.default_rng(0).random((6, 2)), None, "side a has one distinct item in 6 links"),
        (np.eye(3), np.eye(3), [(0, 1), (1, 1), (2, 1)], "side b has one distinct item in 3 links"),
        (np.eye(3), sparse.csr_matrix(np.ones((3, 2), dtype=np.float32)), None, "side b has one distinct item"),
        (np.eye(2), np.eye(2), [(0, 0), (0, 1), (1, 0), (1, 1)], "every item of a is linked with every item of b"),
        (np.eye(2), np.eye(2), [], "there is no link among the training rows"),
        (np.eye(3), np.eye(2), None, "needs equal numbers"),
        (np.zeros((0, 3)), np.zeros((0, 3)), None, "there is no link among the training rows"),
    ],
)
def test_data_with_nothing_to_tell_apart_is_refused(a, b, links, match):
    with pytest.raises(LinksError, match=match):
        fit_heads(a, b, links, TrainConfig.of(SMALL))


def test_two_different_pairs_are_enough():
    result = fit_heads(np.eye(2), np.eye(2), config=TrainConfig.of(SMALL))
    assert len(result.history) == 3


def test_rows_with_nan_are_named_before_any_training():
    rows = np.eye(5)
    rows[3, 1] = np.nan
    with pytest.raises(NonFiniteRowsError, match=r"rows_b: 1 of 5 rows hold NaN or infinity \(rows 3\)"):
        fit_heads(np.eye(5), rows, config=TrainConfig.of(SMALL))


def test_numbers_that_float32_cannot_hold_are_named_before_any_training():
    rows = np.eye(5)
    rows[3, 1] = 1e300
    with pytest.raises(NonFiniteRowsError, match=r"rows_b: 1 of 5 rows .*float32.*\(rows 3\)"):
        fit_heads(np.eye(5), rows, config=TrainConfig.of(SMALL))


@pytest.mark.parametrize(
    ("valid", "match"),
    [
        ((np.eye(3), np.eye(3, 4)), r"valid rows of a have 3 columns; expected 5, as in training"),
        ((np.eye(3, 5), np.eye(3)), r"valid rows of b have 3 columns; expected 4, as in training"),
        (
            (np.eye(3, 5), sparse.csr_array(np.eye(3, 4))),
            "valid rows of b are CSR; expected dense rows",
        ),
    ],
)
def test_validation_rows_are_of_the_kind_and_width_of_training_before_an_epoch_is_trained(valid, match):
    epochs = []
    with pytest.raises(ShapeError, match=match):
        fit_heads(np.eye(4, 5), np.eye(4), config=TrainConfig.of(SMALL), valid=(*valid, None), progress=epochs.append)
    assert epochs == []


@pytest.mark.parametrize("valid", ["abc", (np.eye(3),), 3])
def test_valid_is_rows_of_both_sides_and_links(valid):
    with pytest.raises(ArgumentError, match=r"expected \(rows_a, rows_b, links\)"):
        fit_heads(np.eye(4), np.eye(4), config=TrainConfig.of(SMALL), valid=valid)


def test_rows_of_one_dimension_are_refused():
    with pytest.raises(ShapeError, match="rows_a has shape"):
        fit_heads(np.arange(5.0), np.eye(5), config=TrainConfig.of(SMALL))


def test_a_fixed_number_of_epochs_does_not_go_with_validation(few):
    with pytest.raises(ArgumentError, match="epochs = 2; expected at least 1, and no valid pairs"):
        fit_heads(*few.fit, config=TrainConfig.of(SMALL), valid=(*few.valid, None), epochs=2)
    with pytest.raises(ArgumentError, match="epochs = 0"):
        fit_heads(*few.fit, config=TrainConfig.of(SMALL), epochs=0)


@pytest.mark.parametrize("epochs", ["2", 1.5, True])
def test_a_fixed_number_of_epochs_is_a_whole_number(few, epochs):
    with pytest.raises(ArgumentError, match=r"epochs = .*; expected a whole number of at least 1"):
        fit_heads(*few.fit, config=TrainConfig.of(SMALL), epochs=epochs)


def test_settings_may_be_a_mapping_and_what_is_neither_is_refused(few):
    given = fit_heads(*few.fit, None, {"epochs": 1, "embed_dim": 8})  # type: ignore[arg-type]
    assert given.model.config.a.embed_dim == 8
    with pytest.raises(ConfigError, match="settings is a list"):
        fit_heads(*few.fit, None, ["epochs"])  # type: ignore[arg-type]


def test_links_of_which_no_two_go_together_are_refused_where_batches_are_to_be_distinct():
    rows = np.random.default_rng(0).standard_normal((6, 4))
    all_but_one = [[i, j] for i in range(6) for j in range(6) if (i, j) != (0, 5)]
    config = TrainConfig.of(SMALL, negatives={"sampling": "distinct"})
    with pytest.raises(LinksError, match="epoch 1 has no batch"):
        fit_heads(rows, rows, all_but_one, config)


def test_weights_that_the_last_step_made_infinite_are_refused(few):
    config = TrainConfig.of(SMALL, epochs=1, batch_size=100, warmup_epochs=0, weight_decay=1e30, learning_rate=1e30)
    with pytest.raises(NonFiniteRowsError, match="holds NaN or infinity after the last step; lower the learning rate"):
        fit_heads(*few.fit, config=config)


def test_it_trains_where_gradients_are_switched_off(few):
    with torch.no_grad():
        off = fit_heads(*few.fit, config=TrainConfig.of(SMALL))
        assert not torch.is_grad_enabled()
    assert same_weights(weights(off), weights(fit_heads(*few.fit, config=TrainConfig.of(SMALL))))


def test_weights_beyond_the_storage_are_refused_and_never_infinite(few):
    csr = sparse.csr_matrix(np.maximum(few.fit[0], 0))
    config = TrainConfig.of(SMALL, init_std=1e6)
    with pytest.raises(ArgumentError, match=r"beyond float16 .65504.*storage = 'float32'"):
        fit_heads(csr, few.fit[1], config=config)
    fit_heads(csr, few.fit[1], config=TrainConfig.of(config, storage="float32"))


def test_a_last_batch_of_one_joins_the_one_before_and_that_is_said(few):
    rows = [side[:33] for side in few.fit]
    result = fit_heads(*rows, config=TrainConfig.of(SMALL, batch_size=16, norm="batch"))
    assert result.notes[0].startswith("the last link of each epoch is alone in its batch")
    # Batches of 16 and 17: their logarithms on average.
    assert result.history[0]["chance_loss"] == pytest.approx((math.log(16) + math.log(17)) / 2)
    whole = fit_heads(*few.fit, config=TrainConfig.of(SMALL, batch_size=16))
    assert not [note for note in whole.notes if "alone" in note]


def test_a_validation_split_without_links_is_said_and_left_out(few):
    result = fit_heads(*few.fit, config=TrainConfig.of(SMALL), valid=(*few.valid, []))
    assert "the validation split has no links" in result.notes[0]
    assert result.best_epoch == 3


def test_a_text_that_many_links_name_is_not_near_to_strangers():
    """Links that say nothing must teach nothing, not even which text is frequent: shuffled controls rely on it."""
    rng = np.random.default_rng(0)
    n = 600
    rows_a, rows_b = rng.normal(size=(n, 24)).astype(np.float32), np.eye(30, dtype=np.float32)
    text = np.where(rng.random(n) < 0.4, 0, rng.integers(1, 30, n))
    links = np.stack([np.arange(n), text], axis=1)
    config = TrainConfig.of(embed_dim=16, hidden=(), epochs=40, batch_size=200, learning_rate=1e-2, input_norm="none")
    model = fit_heads(rows_a, rows_b, links, config).model
    strangers = rng.normal(size=(500, 24)).astype(np.float32)
    scores = model.project_a(strangers) @ model.project_b(rows_b).T
    ranks = (scores[:, :1] < scores).sum(axis=1) + 1
    # 15.5 is the mean rank of nobody's favourite; with each row once in a batch it was 1.4.
    assert ranks.mean() > 9
