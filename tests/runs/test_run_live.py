"""Runs that train their encoders: what is tuned, what is measured with it, and what is said."""

import json
import shutil

import numpy as np
import pytest
import torch
from live_run import LIVE, changed, weights

from bridgehead import runs
from bridgehead.align.model import load_heads
from bridgehead.align.twin import NumpyHeads
from bridgehead.encode import load_encoder
from bridgehead.errors import ArgumentError, ConfigError
from bridgehead.evaluate import retrieval_report
from bridgehead.runs import live as live_module
from bridgehead.runs import stages
from bridgehead.runs.fitting import fit_model
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.prepare import prepare
from bridgehead.search import open_space


def silent(*_args):
    return


def test_the_encoder_that_the_stages_name_is_tuned_and_the_other_one_is_not(tuned, bert):
    first, evaluated, refit = (
        {side: load_encoder(tuned.path(*parts, "encoders", side)) for side in "ab"}
        for parts in (("first",), (), ("refit",))
    )
    assert first["a"].fingerprint() == evaluated["a"].fingerprint()
    assert len({model["b"].fingerprint() for model in (first, evaluated, refit)}) == 3
    for parts in ((), ("refit",)):
        moved = changed(weights(bert), weights(tuned.path(*parts, "encoders", "b", "model")))
        assert any("layer.1" in name for name in moved) and not any("pooler" in name for name in moved)
    settings = {"pooling": "cls", "max_tokens": 12, "batch_size": 32, "device": "cpu", "revision": None}
    assert evaluated["b"].settings() == settings


def test_metrics_are_those_of_the_tuned_encoder_and_its_heads_on_the_test_part(tuned):
    prepared = prepare(tuned, silent)
    items_a, items_b, links = prepared.part("test")
    heads = NumpyHeads.load(tuned.path("heads.safetensors"))
    rows = {}
    for side, items, project in (("a", items_a, heads.project_a), ("b", items_b, heads.project_b)):
        texts = prepared.table.side(side).items
        rows[side] = project(load_encoder(tuned.path("encoders", side)).encode([texts[i] for i in items]).rows)
    expected = retrieval_report(rows["a"], rows["b"], links, n_resamples=0).to_dict()
    found = tuned.record("evaluate")["all"]
    for name in ("a_to_b.mrr", "b_to_a.mrr", "a_to_b.recall@1", "b_to_a.recall@10", "b_to_a.n_candidates"):
        assert found[name] == pytest.approx(expected[name], abs=1e-9)


def test_baselines_without_training_are_those_of_the_run_over_frozen_encoders(tuned, frozen):
    with_live, without = tuned.record("evaluate"), frozen.record("evaluate")
    assert with_live["baseline"] == without["baseline"]
    assert with_live["closed_form"] == without["closed_form"]
    assert with_live["all"] != without["all"]


def test_the_validation_of_the_kept_epoch_is_that_of_what_was_stored(tuned):
    prepared, trained = prepare(tuned, silent), tuned.record("train")
    items_a, items_b, links = prepared.part("valid")
    heads = NumpyHeads.load(tuned.path("heads.safetensors"))
    rows = [
        project(
            load_encoder(tuned.path("encoders", side)).encode([prepared.table.side(side).items[i] for i in items]).rows
        )
        for side, items, project in (("a", items_a, heads.project_a), ("b", items_b, heads.project_b))
    ]
    report = retrieval_report(*rows, links, n_resamples=0)
    kept = trained["history"][trained["best_epoch"] - 1]
    # Tables of fingerprints are stored in half precision, which moves a rank now and then.
    assert (report.a_to_b.mrr + report.b_to_a.mrr) / 2 == pytest.approx(kept["valid_mrr"], abs=0.02)
    assert kept["logit_scale"] == pytest.approx(heads_scale(tuned.path("heads.safetensors")), rel=1e-5)


def heads_scale(path):
    return float(load_heads(path).scale().detach())


def test_the_control_trains_encoders_as_long_and_leaves_no_weights(tuned):
    lines = tuned.path("shuffled", "0", "history.jsonl").read_text().splitlines()
    assert len(lines) == tuned.record("train")["epochs"]
    assert any("@1" in name for name in json.loads(lines[-1])["learning_rates"])
    assert not list(tuned.path("shuffled").rglob("*.safetensors"))
    assert tuned.record("evaluate")["shuffled"]["values"]


def test_it_is_said_what_is_trained_from_which_epoch_and_how_many_weights(tuned, bert):
    checked, trained = tuned.record("check")["lines"], tuned.record("train")["lines"]
    assert f"  the encoder of text (text:hf={bert}), its last 1 layer, from epoch 1 of 2 on, rate 0.001" in checked
    n_all = sum(tensor.numel() for tensor in weights(bert).values())
    layer, rest, pooler = (
        sum(tensor.numel() for name, tensor in weights(bert).items() if name.startswith(prefix))
        for prefix in ("encoder.layer.1.", "e", "pooler")
    )
    assert f"its last 1 layer: {layer:,} of {n_all:,} weights trained from epoch 1 on, rate 0.001" in trained[0]
    assert f": {rest - layer:,} of {n_all:,} weights trained from epoch 2 on" in trained[1]
    assert rest + pooler == n_all
    assert any(line.startswith("text: ") and "have more than 12 tokens and were cut there" in line for line in trained)


def test_report_and_card_speak_of_the_tuned_encoder(tuned, frozen):
    card, page = tuned.path("card.md").read_text(), tuned.path("report.html").read_text()
    assert "trained together with the encoder of text;" in card and "on frozen encoders" not in card
    assert "on frozen encoders" in frozen.path("card.md").read_text()
    shown = load_encoder(tuned.path("encoders", "b")).fingerprint()[:16]
    for text in (card.replace("\\", ""), page):
        assert "(tuned), 16 columns" in text and shown in text and "weights trained from epoch 2 on" in text


def test_heads_start_where_those_over_frozen_encoders_start_and_learn_the_same_while_nothing_thaws(
    live_settings, tmp_path
):
    # Without dropout, and with one batch an epoch, both trainings are the same function until the stage's epoch.
    train = {"epochs": 2, "dropout": 0.0, "batch_size": 512, "storage": "float32"}
    late = {**LIVE, "stages": [{"group": "encoder_b", "from_epoch": 1}]}
    lines = {}
    for name, live in (("live", late), ("frozen", None)):
        run = RunFolder.of(live_settings(train=train, live=live), tmp_path / name)
        lines[name] = runs.train(run)["history"]
    assert lines["live"][0]["loss"] == pytest.approx(lines["frozen"][0]["loss"], rel=1e-5)
    assert lines["live"][0]["valid_mrr"] == pytest.approx(lines["frozen"][0]["valid_mrr"], rel=1e-5)
    assert lines["live"][1]["candidates"] == lines["frozen"][1]["candidates"]


def test_before_its_epoch_an_encoder_is_bit_for_bit_what_it_was_and_the_notes_say_so(live_settings, bert, tmp_path):
    late = {**LIVE, "stages": [{"group": "encoder_b", "from_epoch": 1}]}
    work = stages.Work(RunFolder.of(live_settings(live=late), tmp_path / "run"), silent)
    stages.encode(work)
    for epochs in (1, 2):
        folder = tmp_path / str(epochs)
        fitted = fit_model(work.run.config, work.start, work.first_part("train"), folder, epochs=epochs)
        same = not changed(weights(bert), weights(folder / "encoders" / "b" / "model"))
        said = [note for note in fitted.notes if "epoch 1 was kept, and encoder_b is trained only later" in note]
        assert (same, len(said)) == (epochs == 1, int(epochs == 1))


def test_both_sides_can_be_trained_and_dense_rows_can_stand_beside_an_encoder(live_settings, bert, tmp_path):
    prepared = prepare(RunFolder.of(live_settings(), tmp_path / "first"), silent)
    rows = np.random.default_rng(0).standard_normal((len(prepared.table.a), 7)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", ids=np.array(prepared.table.a.ids), rows=rows)
    for name, a, live in (
        ("dense", f"rows:{tmp_path / 'rows.npz'}", {"mini_batch": 8}),
        ("both", f"text:hf={bert}", {"mini_batch": 8, "encoder_learning_rate": 1e-3}),
    ):
        # Without a valid part the last epoch is kept, in which both encoders are trained.
        split = {"fractions": [0.8, 0, 0.2]}
        made = live_settings(encode={"a": a, "settings_a": {}}, live=live, split=split)
        assert [stage.group for stage in made.live.stages] == ["encoder_a", "encoder_b"][name == "dense" :]
        run = RunFolder.of(made, tmp_path / name)
        trained = runs.train(run)
        assert np.isfinite(trained["history"][-1]["loss"])
        # Each side has its own copy of the model.
        assert (run.path("encoders", "a", "model").is_dir()) is (name == "both")
    left, right = (weights(tmp_path / "both" / "encoders" / side / "model") for side in "ab")
    assert changed(left, right)


def test_rows_of_a_side_that_is_not_trained_are_found_by_number_beyond_what_float32_counts(monkeypatch):
    numbers = np.array([0, 5, (1 << 24) + 1, (1 << 30) + 12345], dtype=np.int64)
    seen = []
    head = torch.nn.Identity()
    monkeypatch.setattr(live_module, "model_input", lambda _, at: seen.append(at) or torch.zeros(len(at), 1))
    live_module.StoredHead(head, None)(live_module.RowNumbers.items(numbers).take(np.arange(4))["row"])
    assert np.array_equal(seen[0], numbers)


REFUSED = [
    (
        {"encode": {"b": "text:ngram", "settings_b": {}}, "live": {}},
        "names no encoder to train .*leave the section out",
    ),
    ({"live": {"stages": []}}, "names no encoder to train"),
    ({"live": {"stages": [{"group": "encoder_a"}]}}, "encode.a = 'molecule:fingerprints' has no weights that can be"),
    ({"live": {"stages": [{"group": "encoder_b", "from_epoch": 2}]}}, "train.epochs = 2; it would never be"),
    ({"train": {"norm": "batch"}}, "normalises over a whole batch"),
    ({"live": {**LIVE, "mini_batch": None}}, "live.mini_batch is none, which a config file cannot say"),
    ({"live": {"stagse": []}}, "did you mean 'live.stages'"),
    ({"live": {"stages": [{"group": "encoder_c"}]}}, "'encoder_c' is no group"),
    ({"live": {"pooling": "cls"}}, "live.pooling: unknown key"),
]


@pytest.mark.parametrize("changes, message", REFUSED)
def test_what_cannot_be_trained_is_refused_with_what_to_do(live_settings, changes, message):
    with pytest.raises(ConfigError, match=message):
        live_settings(**changes)


def test_more_layers_than_there_are_is_refused_before_an_epoch(live_settings, tmp_path):
    run = RunFolder.of(live_settings(live={"stages": [{"group": "encoder_b.last_9"}]}), tmp_path / "run")
    with pytest.raises(ArgumentError, match="encoder_b has 2 layers"):
        runs.train(run)


def test_the_resolved_config_reads_back_as_the_same_run(live_settings, tmp_path):
    run = RunFolder.of(live_settings(live={"mini_batch": 8}), tmp_path / "run")
    runs.check(run)
    assert {**RunFolder.of(run.folder).config.plain(), "folder": None} == {**run.config.plain(), "folder": None}


@pytest.mark.parametrize(
    "train",
    [
        {"augment": {"token_dropout": 0.2}},
        {"loss": {"name": "guided"}},
        {"negatives": {"sampling": "hard", "k_hard": 2, "start_epoch": 0, "ramp_epochs": 0, "bank_size": 16}},
        {"precision": "bf16"},
    ],
)
def test_losses_negatives_and_augmentation_of_the_config_hold_for_live_encoders_too(live_settings, tmp_path, train):
    trained = runs.train(RunFolder.of(live_settings(train={**train, "epochs": 2}), tmp_path / "run"))
    assert np.isfinite([line["loss"] for line in trained["history"]]).all()


def test_new_texts_come_into_the_index_through_the_tuned_encoder_that_it_carries(tuned, tmp_path):
    shutil.copytree(tuned.folder.parent, tmp_path / "copy")
    folder = tmp_path / "copy" / "run"
    (tmp_path / "texts.jsonl").write_text('{"id": "T1", "text": "carries a thiol and a ring"}\n')
    shutil.rmtree(folder / "refit" / "encoders")
    assert [one.added for one in runs.sync(folder, tmp_path / "texts.jsonl", side="text").indexes] == [1, 1]
    for heads in ("refit", "evaluated"):
        with open_space(folder, heads) as space:
            row = space.encode(["carries a thiol and a ring"], "b")[0][0]
            assert space.index.row("b", space.item("text:T1").number) @ row == pytest.approx(1, abs=1e-3)
