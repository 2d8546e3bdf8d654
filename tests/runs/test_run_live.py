"""Runs that train their encoders: what is tuned, what is measured with it, and what a kill or a move leaves."""

import json
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small_run import config, records, stamps, write_table

from bridgehead import runs
from bridgehead.align.twin import NumpyHeads
from bridgehead.encode import load_encoder
from bridgehead.errors import ArgumentError, ConfigError, MismatchError, RunStateError
from bridgehead.evaluate import retrieval_report
from bridgehead.runs import live as live_module
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.prepare import prepare
from bridgehead.runs.stages import Work
from bridgehead.runs.toml import to_toml
from bridgehead.search import open_space
from tiny_models import write_bert

LIVE = {"stages": [{"group": "encoder_b.last_1", "from_epoch": 0}, {"group": "encoder_b", "from_epoch": 1}],
        "mini_batch": 8, "encoder_learning_rate": 1e-3}  # fmt: skip


def silent(*_args):
    return


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("small") / "pairs.csv", records()[:70])


@pytest.fixture(scope="module")
def settings(small, bert):
    def make(**sections):
        """Return the config of a live run with fingerprints beside a tiny BERT; `sections` change it."""
        given = {
            "encode": {"b": f"text:hf={bert}", "settings_b": {"pooling": "cls", "max_tokens": 12}},
            "live": LIVE,
            "train": {"epochs": 2, "checkpoint_seconds": 0},
            "evaluate": {"n_resamples": 0, "shuffled": 0},
            "split": {"test": []},
        }
        for name, changes in sections.items():
            mixed = name != "live" and isinstance(changes, dict) and name in given
            given[name] = {**given[name], **changes} if mixed else changes
        return config(small, **given)

    return make


@pytest.fixture(scope="module")
def tuned(settings, tmp_path_factory):
    """A live run of all stages, with the control; shared, so nobody may write into it."""
    return runs.run(settings(evaluate={"shuffled": 1}), tmp_path_factory.mktemp("tuned") / "run")


@pytest.fixture(scope="module")
def frozen(settings, tmp_path_factory):
    """The same run over frozen encoders, without index."""
    run = RunFolder.of(settings(live=None), tmp_path_factory.mktemp("frozen") / "run")
    runs.evaluate(run)
    return run


def weights(folder):
    return load_file(folder / "model.safetensors")


def changed(left, right):
    """Return the names of the weights that differ."""
    assert left.keys() == right.keys()
    return {name for name in left if not torch.equal(left[name], right[name])}


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
    from bridgehead.align.model import load_heads

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


def test_what_is_done_is_not_done_again(tuned, settings, tmp_path):
    shutil.copytree(tuned.folder.parent, tmp_path / "copy")
    folder = tmp_path / "copy" / "run"
    before = stamps(folder)
    runs.run(settings(evaluate={"shuffled": 1}), folder)
    runs.run(folder)
    assert stamps(folder) == before


def test_a_run_can_be_moved_and_its_first_model_removed_and_still_be_searched(settings, bert, tmp_path):
    own = shutil.copytree(bert, tmp_path / "own")
    run = runs.run(settings(encode={"b": f"text:hf={own}"}), tmp_path / "run")
    with open_space(run.folder) as space:
        expected = space.search("carries a heavy chlorine", k=5)
    shutil.rmtree(own)
    shutil.rmtree(run.cache)
    run.folder.rename(tmp_path / "elsewhere")
    for heads in ("refit", "evaluated"):
        with open_space(tmp_path / "elsewhere", heads) as space:
            found = space.search("carries a heavy chlorine", k=5)
            assert heads == "evaluated" or found == expected


def test_a_run_with_other_tuned_weights_than_its_index_is_refused_and_made_whole_by_running_it(tuned, tmp_path):
    shutil.copytree(tuned.folder.parent, tmp_path / "copy")
    folder = tmp_path / "copy" / "run"
    model, other = (folder / place / "b" / "model" / "model.safetensors" for place in ("encoders", "refit/encoders"))
    shutil.copyfile(other, model)
    with pytest.raises(MismatchError, match="are not those that"):
        open_space(folder, "evaluated")
    runs.run(folder)
    open_space(folder, "evaluated").close()
    before, after = ((place / "encoders/b/encoder.json").read_text() for place in (tuned.folder, folder))
    assert before == after


class Stopped(BaseException):
    """Stands for the end of the process."""


def outcome(run):
    history = [json.loads(line) for line in run.path("history.jsonl").read_text().splitlines()]
    for line in history:
        del line["seconds"]
    files = ("heads.safetensors", "encoders/b/encoder.json", "encoders/b/model/model.safetensors")
    return [history, *(run.path(name).read_bytes() for name in files)]


@pytest.fixture(scope="module")
def whole(settings, tmp_path_factory):
    run = RunFolder.of(settings(), tmp_path_factory.mktemp("whole") / "run")
    runs.train(run)
    return outcome(run)


@pytest.mark.parametrize("place", ["after an epoch", "before the encoder", "before the heads", "before the record"])
def test_stopped_while_it_trains_or_writes_it_ends_in_the_same_bits(settings, whole, tmp_path, monkeypatch, place):
    run = RunFolder.of(settings(), tmp_path / "run")

    def stop(*_args, **_options):
        raise Stopped

    def progress(stage, message, done, _total):
        if place == "after an epoch" and stage == "train" and done == 1:
            raise Stopped

    with monkeypatch.context() as patch:
        if place == "before the encoder":
            patch.setattr("bridgehead.encode.huggingface.sync_folder", stop)
        elif place == "before the heads":
            patch.setattr(live_module, "save_heads", stop)
        elif place == "before the record":
            patch.setattr("bridgehead.runs.stages.train_lines", stop)
        with pytest.raises(Stopped):
            runs.train(run, progress)
    runs.train(RunFolder.of(settings(), tmp_path / "run"))
    assert outcome(run) == whole
    assert not list(run.folder.rglob("*.part")) and not list(run.folder.rglob("checkpoint*"))


PROGRAM = """
import sys
from bridgehead import runs
print("begins", flush=True)
runs.run(sys.argv[1])
print("ends", flush=True)
"""


def started(path):
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begins\n"
    return process


@pytest.mark.slow
def test_killed_at_random_instants_it_ends_in_the_same_bits(settings, tmp_path):
    places = []
    for name in ("whole", "killed"):
        cache = {"cache": str(tmp_path / name / "cache")}
        made = settings(evaluate={"shuffled": 1}, train={"epochs": 4}, encode=cache)
        (tmp_path / name).mkdir()
        places.append(tmp_path / name / "config.toml")
        places[-1].write_text(to_toml({**made.plain(), "folder": "run"}))
    begun = time.monotonic()
    with started(places[0]) as process:
        assert process.stdout.read() == "ends\n"
    length, rng, kills = time.monotonic() - begun, np.random.default_rng(0), 0
    for _ in range(6):
        with started(places[1]) as process:
            time.sleep(float(rng.uniform(0.3, 0.9) * length))
            process.send_signal(signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
    with started(places[1]) as process:
        assert process.stdout.read() == "ends\n"
    assert kills >= 2
    whole, killed = (RunFolder.of(path.parent / "run") for path in places)
    assert outcome(killed) == outcome(whole)
    files = ["metrics.json", "refit/heads.safetensors", "refit/encoders/b/model/model.safetensors", "refit/refit.json"]
    assert [killed.path(name).read_bytes() for name in files] == [whole.path(name).read_bytes() for name in files]
    assert not list(killed.folder.rglob("*.part")) and not list(killed.folder.rglob("checkpoint*"))


def test_heads_start_where_those_over_frozen_encoders_start_and_learn_the_same_while_nothing_thaws(
    settings, small, tmp_path
):
    # Without dropout, and with one batch an epoch, both trainings are the same function until the stage's epoch.
    train = {"epochs": 2, "dropout": 0.0, "batch_size": 512, "storage": "float32"}
    late = {**LIVE, "stages": [{"group": "encoder_b", "from_epoch": 1}]}
    lines = {}
    for name, live in (("live", late), ("frozen", None)):
        run = RunFolder.of(settings(train=train, live=live), tmp_path / name)
        lines[name] = runs.train(run)["history"]
    assert lines["live"][0]["loss"] == pytest.approx(lines["frozen"][0]["loss"], rel=1e-5)
    assert lines["live"][0]["valid_mrr"] == pytest.approx(lines["frozen"][0]["valid_mrr"], rel=1e-5)
    assert lines["live"][1]["candidates"] == lines["frozen"][1]["candidates"]


def test_before_its_epoch_an_encoder_is_bit_for_bit_what_it_was_and_the_notes_say_so(settings, bert, tmp_path):
    late = {**LIVE, "stages": [{"group": "encoder_b", "from_epoch": 1}]}
    run = RunFolder.of(settings(live=late), tmp_path / "run")
    work = Work(run, silent)
    start = runs_start(work)
    for epochs, moves in ((1, False), (2, True)):
        folder = tmp_path / str(epochs)
        live_module.tune(
            start.encoders, start.rows, start.table, work.first_part("train"), run.config.train, run.config.live,
            folder, epochs=epochs,
        )  # fmt: skip
        assert bool(changed(weights(bert), weights(folder / "encoders" / "b" / "model"))) is moves


def runs_start(work):
    from bridgehead.runs import stages

    stages.encode(work)
    return work.start


def test_both_sides_can_be_trained_and_dense_rows_can_stand_beside_an_encoder(settings, bert, tmp_path):
    prepared = prepare(RunFolder.of(settings(), tmp_path / "first"), silent)
    rows = np.random.default_rng(0).standard_normal((len(prepared.table.a), 7)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", ids=np.array(prepared.table.a.ids), rows=rows)
    for name, a, live in (
        ("dense", f"rows:{tmp_path / 'rows.npz'}", {"mini_batch": 8}),
        ("both", f"text:hf={bert}", {"mini_batch": 8, "encoder_learning_rate": 1e-3}),
    ):
        # Without a valid part the last epoch is kept, in which both encoders are trained.
        split = {"fractions": [0.8, 0, 0.2]}
        made = settings(encode={"a": a, "settings_a": {}}, live=live, split=split)
        assert [stage.group for stage in made.live.stages] == ["encoder_a", "encoder_b"][name == "dense" :]
        run = RunFolder.of(made, tmp_path / name)
        trained = runs.train(run)
        assert np.isfinite(trained["history"][-1]["loss"])
        # Each side has its own copy of the model.
        assert (run.path("encoders", "a", "model").is_dir()) is (name == "both")
    left, right = (weights(tmp_path / "both" / "encoders" / side / "model") for side in "ab")
    assert changed(left, right)


def test_a_leftover_checkpoint_over_other_rows_is_not_taken_up(settings, tmp_path):
    work = Work(RunFolder.of(settings(), tmp_path / "run"), silent)
    start, part, run = runs_start(work), work.first_part("train"), work.run

    def stop(*_):
        raise Stopped

    options = (start.table, part, run.config.train, run.config.live, tmp_path / "fit")
    with pytest.raises(Stopped):
        live_module.tune(start.encoders, start.rows, *options, progress=stop)
    start.rows.a.encoded.rows.data *= 2
    with pytest.raises(RunStateError, match="another config or other data"):
        live_module.tune(start.encoders, start.rows, *options)


def test_without_live_the_encoders_of_a_folder_are_the_first_ones_again(settings, frozen, tmp_path):
    folder = tmp_path / "run"
    runs.train(RunFolder.of(settings(), folder))
    again = RunFolder.of(settings(live=None), folder)
    runs.evaluate(again)
    assert again.path("heads.safetensors").read_bytes() == frozen.path("heads.safetensors").read_bytes()
    assert again.record("evaluate")["all"] == frozen.record("evaluate")["all"]
    spec = load_encoder(again.path("encoders", "b")).spec
    assert "(tuned)" not in spec and not again.path("encoders", "b", "model").exists()


@pytest.mark.parametrize("changes", [{"live": {**LIVE, "layer_decay": 0.5}}, {"live": {"mini_batch": 8}}])
def test_other_settings_of_live_training_are_another_training(settings, tmp_path, changes):
    folder = tmp_path / "run"
    first = runs.train(RunFolder.of(settings(), folder))
    assert runs.train(RunFolder.of(settings(), folder))["key"] == first["key"]
    assert runs.train(RunFolder.of(settings(**changes), folder))["key"] != first["key"]


def test_other_weights_of_the_first_model_are_another_training(settings, bert, tmp_path):
    own = shutil.copytree(bert, tmp_path / "own")
    run = RunFolder.of(settings(encode={"b": f"text:hf={own}"}), tmp_path / "run")
    first = runs.train(run)
    shutil.rmtree(own)
    write_bert(own, seed=1)
    assert runs.train(run)["key"] != first["key"]


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
def test_what_cannot_be_trained_is_refused_with_what_to_do(settings, changes, message):
    with pytest.raises(ConfigError, match=message):
        settings(**changes)


def test_more_layers_than_there_are_is_refused_before_an_epoch(settings, tmp_path):
    run = RunFolder.of(settings(live={"stages": [{"group": "encoder_b.last_9"}]}), tmp_path / "run")
    with pytest.raises(ArgumentError, match="encoder_b has 2 layers"):
        runs.train(run)


def test_the_resolved_config_reads_back_as_the_same_run(settings, tmp_path):
    run = RunFolder.of(settings(live={"mini_batch": 8}), tmp_path / "run")
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
def test_losses_negatives_and_augmentation_of_the_config_hold_for_live_encoders_too(settings, tmp_path, train):
    trained = runs.train(RunFolder.of(settings(train={**train, "epochs": 2}), tmp_path / "run"))
    assert np.isfinite([line["loss"] for line in trained["history"]]).all()
