"""Training encoders from items to a saved aligner: stages, early stop, precision, and resume."""

import json
import math
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bridgehead.encode import make_encoder
from bridgehead.errors import ArgumentError, ConfigError, RunStateError
from bridgehead.train.config import TrainConfig
from bridgehead.train.live.config import LiveConfig
from bridgehead.train.live.fit import fit_encoders
from bridgehead.train.live.items import LinkedItems
from bridgehead.train.live.task import LiveTask
from bridgehead.train.loop import train_task
from bridgehead.train.precision import accelerator
from tiny_models import write_bert
from train.live_models import aligner, items

CONFIG = TrainConfig.of(batch_size=10, epochs=3, seed=4, checkpoint_seconds=0, patience=None, learning_rate=1e-2)
STAGES = [
    {"group": "encoder_a.last_1", "from_epoch": 1},
    {"group": "encoder_b", "from_epoch": 2},
    {"group": "encoder_a", "from_epoch": 2},
]
LIVE = LiveConfig.of(stages=STAGES, mini_batch=4, encoder_learning_rate=1e-3)


def fit(folder=None, config=CONFIG, live=LIVE, model=None, **more):
    data, held_out = items(), items(12, seed=9)
    more.setdefault("valid", (held_out.a, held_out.b, held_out.links))
    return fit_encoders(model or aligner(), data.a, data.b, data.links, config, live, folder=folder, **more)


def without_seconds(history):
    return [{key: value for key, value in line.items() if key != "seconds"} for line in history]


def outcome(folder):
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    return load_file(folder / "aligner" / "model.safetensors"), without_seconds(lines)


def assert_same(left, right):
    assert left[1] == right[1]
    assert left[0].keys() == right[0].keys()
    assert all(torch.equal(left[0][name], right[0][name]) for name in left[0])


@pytest.mark.slow
def test_encoders_learn_what_heads_alone_do_not():
    stages = [{"group": f"encoder_{side}", "from_epoch": 2} for side in "ab"]
    config = TrainConfig.of(CONFIG, epochs=30, batch_size=24)
    live = LiveConfig.of(LIVE, stages=stages, mini_batch=8, encoder_learning_rate=5e-3)
    both = fit(config=config, live=live, model=aligner(dropout=0.0))
    heads = fit(config=config, live=LiveConfig.of(LIVE, stages=[]), model=aligner(dropout=0.0))
    assert both.history[-1]["loss"] < 0.6 * heads.history[-1]["loss"]


def test_frozen_weights_are_bit_identical_until_their_epoch_and_others_move_from_the_first():
    model = aligner()
    data = items()
    task = LiveTask(model, data, CONFIG, LIVE)
    seen = []
    before = {name: tensor.clone() for name, tensor in task.model.state_dict().items()}

    def note(*_):
        seen.append({name: tensor.clone() for name, tensor in task.model.state_dict().items()})

    train_task(task, CONFIG, progress=note)

    def moved(epoch):
        return {name for name in before if not torch.equal(seen[epoch][name], before[name])}

    assert moved(0) and not any(".encoder_" in name for name in moved(0))
    assert any("encoder.layer.1" in name for name in moved(1))
    assert all("encoder_a.encoder.layer.1" in name for name in moved(1) if ".encoder_" in name)
    assert any("encoder_b.embeddings" in name for name in moved(2))
    assert not any("pooler" in name or "log_temperature" in name for name in moved(2))


def test_rates_of_a_stage_rise_over_its_own_warm_up_and_follow_the_course_of_all():
    history = fit(config=TrainConfig.of(CONFIG, epochs=4)).history
    rates = [line["learning_rates"] for line in history]
    name = next(name for name in rates[0] if name.startswith("encoder_a") and name.endswith("@1"))
    assert rates[0][name] == 0 and rates[1][name] > 0
    for line in rates[1:]:
        assert line[name] / 1e-3 == pytest.approx(line["heads"] / 1e-2)


def test_a_stage_has_its_rate_from_the_first_step_of_its_epoch_where_a_last_batch_of_one_is_merged():
    data = items(21)
    diagonal = [(i, i) for i in range(21)]
    live = LiveConfig.of(LIVE, stages=[{"group": "encoder_a", "from_epoch": 2}])
    task = LiveTask(aligner(), LinkedItems.of(data.a, data.b, diagonal), CONFIG, live)
    assert [len(batch[0]) for batch in task.begin_epoch(0)] == [10, 11]
    history = train_task(task, CONFIG).history
    assert [line["learning_rates"]["encoder_a@2"] > 0 for line in history] == [False, False, True]


def test_the_best_epoch_comes_back_whole_encoders_heads_and_scale():
    data, held_out = items(), items(12, seed=9)
    config = TrainConfig.of(CONFIG, epochs=4)
    task = LiveTask(aligner(), data, config, LIVE, valid=held_out)
    values, seen = iter([0.1, 0.2, 0.9, 0.3]), []

    def validate():
        seen.append({name: tensor.clone() for name, tensor in task.model.state_dict().items()})
        return {"valid_mrr": next(values)}

    task.validate = validate
    result = train_task(task, config)
    assert result.best_epoch == 3
    assert all(torch.equal(tensor, seen[2][name]) for name, tensor in task.model.state_dict().items())
    assert not torch.equal(
        seen[2]["aligner.encoder_b.embeddings.word_embeddings.weight"],
        seen[3]["aligner.encoder_b.embeddings.word_embeddings.weight"],
    )


class Stopped(BaseException):
    """Stands for the end of the process."""


def stop_at(monkeypatch, steps):
    original, taken = LiveTask.backward, []

    def backward(self, *arguments):
        taken.append(1)
        if len(taken) == steps:
            raise Stopped
        return original(self, *arguments)

    monkeypatch.setattr(LiveTask, "backward", backward)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    fit(folder)
    return outcome(folder)


# 32 links in batches of 10: 4 steps an epoch, the stages begin with steps 5 and 9.
@pytest.mark.parametrize("steps", [[1], [3, 2], [5], [6, 3], [9], [12]])
def test_stopped_at_any_step_it_ends_in_the_same_bits(whole, tmp_path, monkeypatch, steps):
    for step in steps:
        with monkeypatch.context() as patch:
            stop_at(patch, step)
            with pytest.raises(Stopped):
                fit(tmp_path)
    fit(tmp_path)
    assert_same(outcome(tmp_path), whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aligner", "history.jsonl"]


def test_it_does_not_depend_on_the_checkpoints_and_not_on_torchs_generator(whole, tmp_path):
    torch.manual_seed(77)
    fit(tmp_path, TrainConfig.of(CONFIG, checkpoint_seconds=3600))
    assert_same(outcome(tmp_path), whole)


def test_a_checkpoint_of_other_first_weights_or_items_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            fit(tmp_path)
    with pytest.raises(RunStateError, match="another config or other data"):
        fit(tmp_path, model=aligner(seed=1))
    with pytest.raises(RunStateError, match="another config or other data"):
        fit(tmp_path, live=LiveConfig.of(LIVE, mini_batch=5))


def test_an_overflow_in_fp16_is_left_out_and_counted_in_history_and_notes(monkeypatch):
    original, taken = LiveTask.backward, []

    def backward(self, batch, epoch, number):
        found = original(self, batch, epoch, number)
        taken.append(1)
        if len(taken) == 6:
            next(p for p in self.model.parameters() if p.grad is not None).grad.view(-1)[0] = math.inf
        return found

    config = TrainConfig.of(CONFIG, precision="fp16", logit_scale_init=1.0)
    plain = fit(config=config)
    skipped_before = [line.get("skipped_steps", 0) for line in plain.history]
    monkeypatch.setattr(LiveTask, "backward", backward)
    result = fit(config=config)
    assert [line.get("skipped_steps", 0) for line in result.history][1] == skipped_before[1] + 1
    assert any("steps were skipped because a gradient was not finite" in note for note in result.notes)
    assert all(math.isfinite(line["loss"]) for line in result.history)


@pytest.mark.parametrize(
    "settings",
    [
        {"negatives": {"bank_size": 20}},
        {"negatives": {"sampling": "hard", "k_hard": 2, "start_epoch": 1, "mine_every": 1, "ramp_epochs": 0}},
        {"loss": {"name": "sigmoid"}},
        {"loss": {"name": "guided"}},
        {"loss": {"name": "hierarchical"}},
        {"augment": {"token_dropout": 0.3}},
    ],
    ids=str,
)
def test_every_kind_of_loss_and_negative_trains_encoders_too_and_resumes(tmp_path, monkeypatch, settings):
    config = TrainConfig.of(CONFIG, **settings)
    more = {"classes": (np.arange(24) % 3,) * 2} if "hierarchical" in str(settings) else {}
    fit(tmp_path / "whole", config, **more)
    with monkeypatch.context() as patch:
        stop_at(patch, 7)
        with pytest.raises(Stopped):
            fit(tmp_path / "stopped", config, **more)
    fit(tmp_path / "stopped", config, **more)
    assert_same(outcome(tmp_path / "stopped"), outcome(tmp_path / "whole"))


PROGRAM = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from train import test_fit_live
original, left = test_fit_live.LiveTask.backward, [int(sys.argv[3])]
def backward(self, *arguments):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, *arguments)
test_fit_live.LiveTask.backward = backward
test_fit_live.fit(Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_killed_at_random_steps_it_ends_in_the_same_bits(whole, tmp_path):
    rng, codes = np.random.default_rng(), []
    while not codes or codes[-1] == -signal.SIGKILL:
        command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parents[1]), str(tmp_path)]
        codes.append(subprocess.run([*command, str(rng.integers(2, 7))], check=False).returncode)
    # 12 steps, of which a killed process takes at most five.
    assert codes[-1] == 0 and len(codes) >= 3
    assert_same(outcome(tmp_path), whole)


def test_one_encoder_for_both_sides_trains_and_resumes(tmp_path, monkeypatch):
    def shared():
        model = aligner()
        model.encoder_b = model.encoder_a
        return model

    live = LiveConfig.of(LIVE, stages=[{"group": "encoder_a"}])
    result = fit(tmp_path / "whole", live=live, model=shared())
    with monkeypatch.context() as patch:
        stop_at(patch, 7)
        with pytest.raises(Stopped):
            fit(tmp_path / "stopped", live=live, model=shared())
    fit(tmp_path / "stopped", live=live, model=shared())
    assert_same(outcome(tmp_path / "stopped"), outcome(tmp_path / "whole"))
    assert result.aligner.encoder_a is result.aligner.encoder_b


@pytest.fixture
def fresh_accelerate():
    state = pytest.importorskip("accelerate.state")
    state.AcceleratorState._reset_state(reset_partial_state=True)
    yield
    state.AcceleratorState._reset_state(reset_partial_state=True)


def test_through_accelerate_it_ends_in_the_same_bits(whole, tmp_path, fresh_accelerate):
    if accelerator()[1]:
        pytest.skip("accelerate would take the accelerator that is here")
    fit(tmp_path, TrainConfig.of(CONFIG, device="accelerate"))
    assert_same(outcome(tmp_path), whole)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return write_bert(folder / "a"), write_bert(folder / "b", seed=1)


def test_from_folders_and_texts_to_encoders_that_the_rest_reads(folders, tmp_path, no_network):
    from transformers import AutoTokenizer

    texts_a = ["C N O", "C C C", "N N", "O = C", "C 1 N", "( C )"]
    texts_b = ["blocks the enzyme", "opens the receptor", "a b", "c d", "e f g", "h i"]
    tokenizers = tuple(AutoTokenizer.from_pretrained(folder) for folder in folders)
    config = TrainConfig.of(CONFIG, embed_dim=8, batch_size=3)
    live = LiveConfig.of(encoder_learning_rate=1e-3, mini_batch=2)
    torch.manual_seed(1)
    result = fit_encoders(folders, texts_a, texts_b, None, config, live, tokenizers=tokenizers, folder=tmp_path)
    torch.manual_seed(2)
    again = fit_encoders(folders, texts_a, texts_b, None, config, live)
    assert without_seconds(result.history) == without_seconds(again.history)
    for side, folder, texts in (("a", folders[0], texts_a), ("b", folders[1], texts_b)):
        encoder = getattr(result.aligner, f"encoder_{side}")
        found = make_encoder(f"text:hf={tmp_path / 'aligner' / f'encoder_{side}'}").encode(texts).rows
        tokens = tokenizers[0](texts, padding=True, return_tensors="pt")
        with torch.no_grad():
            hidden = encoder(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1)
        np.testing.assert_allclose(found, ((hidden * mask).sum(1) / mask.sum(1)).numpy(), atol=1e-5)
        assert np.abs(found - make_encoder(f"text:hf={folder}").encode(texts).rows).max() > 1e-3
    assert result.aligner.loss_fn.temperature == pytest.approx(result.history[-1]["temperature"])


def test_settings_of_other_heads_are_said_to_be_left_aside(folders):
    config = TrainConfig.of(CONFIG, epochs=1, batch_size=3, norm="batch", hidden=(8,))
    texts = (["C N O", "C C C", "N N"], ["blocks the enzyme", "opens the receptor", "a b"])
    notes = fit_encoders(folders, *texts, config=config).notes
    assert notes[0].startswith("not followed: hidden, norm, which shape the heads of fit_heads")
    assert not [note for note in fit_encoders(folders, *texts, config=CONFIG).notes if "not followed" in note]


def test_texts_without_tokenizers_and_other_models_are_refused():
    for wrong in (5, (None, None)):
        with pytest.raises(ArgumentError, match=r"tokenizers = .*; expected a pair"):
            fit_encoders(aligner(), ["a", "b"], ["c", "d"], config=CONFIG, tokenizers=wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"items of b are texts, and no tokenizers came"):
        fit_encoders(aligner(), items().a, ["a", "b"])
    data = items()
    with pytest.raises(ArgumentError, match="model is a str; expected an aligner, or two names or folders"):
        fit_encoders("one", data.a, data.b)
    with pytest.raises(ArgumentError, match="epochs = 2; expected at least 1, and no valid pairs"):
        fit(epochs=2)
    with pytest.raises(ArgumentError, match="expected \\(items_a, items_b, links\\)"):
        fit(valid=3)
    with pytest.raises(ConfigError, match="hierarchical loss needs the coarse class"):
        fit(config=TrainConfig.of(CONFIG, loss={"name": "hierarchical"}))
