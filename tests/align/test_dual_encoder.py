"""Two real (tiny) transformers, heads and loss as one module: rows, freezing, saving."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bridgehead.align.dual_encoder import DualEncoderAligner
from bridgehead.align.layers import layers_of
from bridgehead.encode import make_encoder
from bridgehead.encode.hub import find_model
from bridgehead.encode.huggingface import load_network
from bridgehead.errors import (
    ArgumentError,
    EncoderError,
    InputFileNotFoundError,
    OfflineError,
    RunStateError,
    ShapeError,
)
from bridgehead.links import Links
from tiny_models import write_bert, write_other

MOLECULES, TEXTS = ["C C O", "C N", "C ( = O ) O C"], ["blocks the enzyme", "opens the receptor now", "the"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root = tmp_path_factory.mktemp("models")
    return str(write_bert(root / "a", n_layers=3)), str(write_bert(root / "b", seed=1, width=24))


@pytest.fixture
def model(folders: tuple[str, str]) -> DualEncoderAligner:
    torch.manual_seed(0)
    return DualEncoderAligner(*folders, projection_dim=8)


def tokens(folder: str, texts: list[str], side: str = "right") -> dict[str, torch.Tensor]:
    from transformers import AutoTokenizer

    return dict(AutoTokenizer.from_pretrained(folder, padding_side=side)(texts, return_tensors="pt", padding=True))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "no inputs of side a came; expected tensors by name"),
        (None, "no inputs of side a came"),
        ({"input_ids": [[1, 2]]}, "input_ids of side a is a list; expected a tensor, and texts tokenised with return_"),
        ("C C O", "inputs of side a is a str; expected a tensor"),
    ],
)
def test_inputs_that_are_no_tensors_are_refused_before_the_encoder_stumbles(
    model: DualEncoderAligner, inputs: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        model(inputs, inputs)


@pytest.fixture
def batch(folders: tuple[str, str]) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    return tokens(folders[0], MOLECULES), tokens(folders[1], TEXTS)


def test_rows_and_loss_are_those_of_transformers_and_the_formula(
    model: DualEncoderAligner, folders: tuple[str, str], batch: Any
) -> None:
    from transformers import AutoModel

    model.eval()
    rows = []
    for folder, head, inputs in zip(folders, (model.proj_a, model.proj_b), batch, strict=True):
        hidden = AutoModel.from_pretrained(folder).eval()(**inputs).last_hidden_state
        rows.append(head(hidden[:, 0]))
    torch.testing.assert_close(model.encode_a(**batch[0]), rows[0])
    torch.testing.assert_close(model.encode_b(**batch[1]), rows[1])
    a, b = (torch.nn.functional.normalize(z, dim=1) for z in rows)
    logits, labels = a @ b.T / 0.07, torch.arange(3)
    cross = torch.nn.functional.cross_entropy
    torch.testing.assert_close(model(*batch), (cross(logits, labels) + cross(logits.T, labels)) / 2)


def test_links_say_what_matches(model: DualEncoderAligner, batch: Any) -> None:
    model.eval()
    loss = model(*batch, links=Links([(0, 1), (1, 0), (2, 2)], 3, 3))
    swapped = {name: value[[1, 0, 2]] for name, value in batch[1].items()}
    torch.testing.assert_close(loss, model(batch[0], swapped))


@pytest.mark.parametrize("how", ["cls", "mean", "max", "last"])
def test_a_row_does_not_depend_on_batch_or_side_of_the_padding(folders: tuple[str, str], how: str) -> None:
    torch.manual_seed(0)
    model = DualEncoderAligner(*folders, projection_dim=8, pooling=("mean", how)).eval()
    right, left = (tokens(folders[1], TEXTS, side) for side in ("right", "left"))
    # Positions are numbered from the left by BERT; given by hand, both sides mean the same.
    left["position_ids"] = (left["attention_mask"].cumsum(1) - 1).clamp(min=0)
    alone = torch.cat([model.encode_b(**tokens(folders[1], [text])) for text in TEXTS])
    for together in (right, left):
        cosines = torch.nn.functional.cosine_similarity(model.encode_b(**together), alone)
        assert cosines.min() > 1 - 1e-5


def test_frozen_encoders_learn_nothing_and_have_no_dropout_in_training(model: DualEncoderAligner, batch: Any) -> None:
    model.train()
    assert model.proj_a.training and not any(module.training for module in model.encoder_a.modules())
    assert torch.equal(model.encode_a(**batch[0]), model.encode_a(**batch[0]))
    model(*batch).backward()
    learnt = {name for name, p in model.named_parameters() if p.grad is not None}
    assert learnt == {name for name, _ in model.named_parameters() if not name.startswith("encoder_")}
    assert "loss_fn.log_temperature" in learnt


def test_encoders_that_are_not_frozen_learn_and_have_dropout(folders: tuple[str, str], batch: Any) -> None:
    model = DualEncoderAligner(*folders, projection_dim=8, freeze_encoders=False)
    assert model.encoder_a.training
    assert not torch.equal(model.encode_a(**batch[0]), model.encode_a(**batch[0]))
    model(*batch).backward()
    grad = model.encoder_b.get_input_embeddings().weight.grad
    assert grad is not None and grad.any()


def trained(encoder: nn.Module) -> set[str]:
    """The parts (two names deep) that hold trained weights."""
    return {".".join(name.split(".")[:3]) for name, p in encoder.named_parameters() if p.requires_grad}


def test_the_last_layers_are_unfrozen_with_what_comes_after_and_no_embeddings(
    model: DualEncoderAligner, batch: Any
) -> None:
    model.unfreeze("a", last=2)
    assert trained(model.encoder_a) == {
        "encoder.layer.1",
        "encoder.layer.2",
        "pooler.dense.weight",
        "pooler.dense.bias",
    }
    assert trained(model.encoder_b) == set()
    bert: Any = model.encoder_a
    assert bert.encoder.layer[1].attention.self.dropout.training and bert.encoder.layer[2].training
    assert not bert.embeddings.training and not bert.embeddings.dropout.training and not bert.encoder.layer[0].training
    model.eval()
    assert not any(module.training for module in model.modules())
    model.train()
    assert bert.encoder.layer[1].training and not bert.encoder.layer[0].training
    model.unfreeze("a", last=1)
    assert "encoder.layer.1" not in trained(bert)
    model.unfreeze()
    assert all(p.requires_grad for p in model.parameters()) and bert.embeddings.dropout.training
    model.freeze("b")
    assert trained(model.encoder_b) == set() and trained(bert)


@pytest.mark.parametrize("last", [0, 4, -1, True, 1.5])
def test_a_number_of_layers_that_is_not_there_is_refused(model: DualEncoderAligner, last: Any) -> None:
    with pytest.raises(ArgumentError, match="encoder_a has 3 layers: expected 1 to 3, or None"):
        model.unfreeze("a", last=last)
    with pytest.raises(ArgumentError, match="side = 'c'; expected 'a', 'b', or None"):
        model.freeze("c")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind, layers, after",
    [("gpt2", "h", {"ln_f.weight", "ln_f.bias"}), ("distilbert", "transformer.layer", set()), ("t5", "block", None)],
)
def test_layers_are_found_in_other_architectures(tmp_path: Path, kind: str, layers: str, after: Any) -> None:
    torch.manual_seed(0)
    folder = str(write_other(tmp_path / kind, kind))
    model = DualEncoderAligner(folder, folder, projection_dim=8, pooling="last")
    found = layers_of(model.encoder_a)
    assert found is not None and (found[0], len(found[1])) == (layers, 3)
    model.unfreeze("a", last=1)
    names = {name for name, p in model.encoder_a.named_parameters() if p.requires_grad}
    expected = {name for name, _ in model.encoder_a.named_parameters() if name.startswith(f"{layers}.2.")}
    assert names == expected | ({"final_layer_norm.weight"} if kind == "t5" else after)


@pytest.mark.parametrize("kind", ["gpt2", "distilbert", "t5"])
def test_other_architectures_are_saved_and_restored_with_their_trained_weights(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    folder = str(write_other(tmp_path / kind, kind))
    model = DualEncoderAligner(folder, folder, projection_dim=8, pooling="last")
    with torch.no_grad():
        for parameter in model.encoder_a.parameters():
            parameter.mul_(1.5)
    model.save_pretrained(tmp_path / "saved")
    again = DualEncoderAligner.from_pretrained(tmp_path / "saved")
    inputs = {key: value for key, value in tokens(folder, TEXTS).items() if key != "token_type_ids"}
    with torch.no_grad():
        assert torch.equal(again.encode_a(**inputs), model.eval().encode_a(**inputs))
        assert torch.equal(again.encode_b(**inputs), model.encode_b(**inputs))
    # Each encoder is a model by itself, for whoever wants its rows.
    network = load_network(find_model(str(tmp_path / "saved" / "encoder_a")))
    for name, weight in model.encoder_a.state_dict().items():
        assert torch.equal(network.state_dict()[name], weight)


def test_groups_have_their_rates_and_norms_biases_and_temperature_do_not_decay(model: DualEncoderAligner) -> None:
    groups = {group["name"]: group for group in model.parameter_groups(1e-3, weight_decay=0.1)}
    assert set(groups) == {"heads", "heads.no_decay", "loss"}
    model.unfreeze("a", last=1)
    model.unfreeze("b")
    groups = {group["name"]: group for group in model.parameter_groups(1e-3, 1e-5, weight_decay=0.1)}
    assert {group["lr"] for name, group in groups.items() if name.startswith("encoder")} == {1e-5}
    ids = [id(p) for group in groups.values() for p in group["params"]]
    assert sorted(ids) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    for group in groups.values():
        assert {p.ndim >= 2 for p in group["params"]} == {group["weight_decay"] > 0}
    assert groups["loss"]["params"] == [model.loss_fn.log_temperature] and groups["loss"]["lr"] == 1e-3
    torch.optim.AdamW(model.parameter_groups(1e-3)).step()


def test_layer_decay_lowers_the_rate_from_the_last_layer_down(model: DualEncoderAligner) -> None:
    model.unfreeze("a")
    groups = model.parameter_groups(1.0, 0.8, layer_decay=0.5, weight_decay=0.0)
    rates = {group["name"]: group["lr"] for group in groups if group["name"].startswith("encoder_a")}
    assert rates == {
        "encoder_a.after": 0.8,
        "encoder_a.layer.2": 0.8,
        "encoder_a.layer.1": 0.4,
        "encoder_a.layer.0": 0.2,
        "encoder_a.embeddings": 0.1,
    }
    with pytest.raises(ArgumentError, match=r"layer_decay = 1.5; expected a factor in \(0, 1\]"):
        model.parameter_groups(1.0, layer_decay=1.5)


def test_checkpointed_gradients_are_the_same(folders: tuple[str, str], batch: Any) -> None:
    torch.manual_seed(0)
    model = DualEncoderAligner(*folders, projection_dim=8, freeze_encoders=False)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    for config in (model.encoder_a.config, model.encoder_b.config):
        config.attention_probs_dropout_prob = 0.0
    plain = copy.deepcopy(model)
    model.gradient_checkpointing()
    assert model.encoder_a.encoder.layer[0].gradient_checkpointing
    model(*batch).backward()
    plain(*batch).backward()
    for (name, left), right in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert (left.grad is None) == (right.grad is None), name
        if left.grad is not None:
            torch.testing.assert_close(left.grad, right.grad)
    model.gradient_checkpointing(False, "a")
    assert not model.encoder_a.encoder.layer[0].gradient_checkpointing
    assert model.encoder_b.encoder.layer[0].gradient_checkpointing


def test_saved_and_restored_is_the_same_model_with_the_same_weights_frozen(
    model: DualEncoderAligner, batch: Any, tmp_path: Path
) -> None:
    model.unfreeze("a", last=1)
    optimiser = torch.optim.SGD(model.parameter_groups(0.5))
    model(*batch).backward()
    optimiser.step()
    model.save_pretrained(tmp_path / "saved")
    state = torch.random.get_rng_state()
    again = DualEncoderAligner.from_pretrained(tmp_path / "saved")
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not again.training and torch.equal(again(*batch), model.eval()(*batch))
    assert [p.requires_grad for p in again.parameters()] == [p.requires_grad for p in model.parameters()]
    # Each encoder is a folder that transformers reads, tokenizer and all.
    assert tokens(str(tmp_path / "saved" / "encoder_a"), MOLECULES)["input_ids"].equal(batch[0]["input_ids"])
    # Saving over the folder that it was loaded from keeps it whole.
    again.save_pretrained(tmp_path / "saved")
    assert torch.equal(DualEncoderAligner.from_pretrained(tmp_path / "saved")(*batch), model(*batch))
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [
        "config.json", "encoder_a", "encoder_b", "model.safetensors",
    ]  # fmt: skip


def test_a_disk_that_fills_while_saving_leaves_the_earlier_model_whole(
    model: DualEncoderAligner, batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors import SafetensorError

    import bridgehead.align.dual_encoder as module

    model.eval().save_pretrained(tmp_path)
    before = model(*batch)
    write, calls = module.write_model, []

    def fill(network: Any, source: Any, folder: Path) -> None:
        calls.append(folder)
        if len(calls) == 2:
            raise SafetensorError("I/O error: No space left on device (os error 28)")
        write(network, source, folder)

    monkeypatch.setattr(module, "write_model", fill)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    with pytest.raises(OSError, match="No space left on device"):
        model.save_pretrained(tmp_path)
    assert len(calls) == 2 and torch.equal(DualEncoderAligner.from_pretrained(tmp_path)(*batch), before)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("how", ["cls", "mean", "max", "last"])
def test_pooled_rows_are_those_that_the_encoder_of_texts_caches(folders: tuple[str, str], how: str) -> None:
    torch.manual_seed(0)
    model = DualEncoderAligner(*folders, projection_dim=8, pooling=how).eval()
    rows = make_encoder(f"text:hf={folders[1]}", pooling=how).encode(TEXTS).rows
    with torch.no_grad():
        torch.testing.assert_close(model.encode_b(**tokens(folders[1], TEXTS)), model.proj_b(torch.from_numpy(rows)))


def test_a_saved_folder_whose_encoder_was_exchanged_is_refused(
    model: DualEncoderAligner, folders: tuple[str, str], tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path)
    other = write_bert(tmp_path / "other", seed=9, n_layers=3)
    shutil.copyfile(other / "model.safetensors", tmp_path / "encoder_a" / "model.safetensors")
    with pytest.raises(RunStateError, match=r"encoder_a/model.safetensors is not the file that"):
        DualEncoderAligner.from_pretrained(tmp_path)


def test_an_encoder_that_is_not_there_says_so(folders: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputFileNotFoundError, match="does not exist; expected a folder with a model, or a hub name"):
        DualEncoderAligner(folders[0], str(tmp_path / "absent"))
    with pytest.raises(OfflineError, match="hf download some-org/some-model --revision v2"):
        DualEncoderAligner(folders[0], "some-org/some-model", revision=(None, "v2"))
    pickled = Path(shutil.copytree(folders[0], tmp_path / "pickled"))
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(EncoderError, match="no weights in safetensors"):
        DualEncoderAligner(str(pickled), folders[1])
    config = json.loads((pickled / "config.json").read_text())
    (pickled / "config.json").write_text(json.dumps(config | {"model_type": "something-new"}))
    (pickled / "pytorch_model.bin").rename(pickled / "model.safetensors")
    with pytest.raises(EncoderError, match="cannot be loaded as a text model"):
        DualEncoderAligner(folders[0], str(pickled))


def test_settings_that_make_no_sense_are_refused(folders: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="pooling = 'median'; expected one of mean, cls, max, last"):
        DualEncoderAligner(*folders, pooling="median")
    with pytest.raises(ArgumentError, match="expected one text for both sides, or two"):
        DualEncoderAligner(*folders, pooling=("cls", "mean", "max"))  # type: ignore[arg-type]
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(ArgumentError, match=r"device = 'cuda', but torch .* finds 0 such devices"):
        DualEncoderAligner(*folders, device="cuda")


class Tower(nn.Module):
    """Rows (B, 4) -> (B, 6); with `length`, hidden states (B, length, 6)."""

    def __init__(self, length: int = 0) -> None:
        super().__init__()
        self.layer, self.dropout, self.length = nn.Linear(4, 6), nn.Dropout(0.5), length

    def forward(self, x: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        rows: torch.Tensor = self.dropout(self.layer(x))
        return rows.unsqueeze(1).expand(-1, self.length, -1) if self.length else rows


def test_any_two_modules_can_be_aligned(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = DualEncoderAligner.from_modules(Tower(), Tower(5), 6, 6, projection_dim=3, pooling="mean")
    x, y = torch.randn(7, 4), torch.randn(7, 4)
    model(x, {"x": y, "attention_mask": torch.ones(7, 5)}).backward()
    assert model.encoder_a.layer.weight.grad is not None
    model.eval()
    torch.testing.assert_close(model.encode_a(x), model.proj_a(model.encoder_a.layer(x)))
    torch.testing.assert_close(model.encode_b(y), model.proj_b(model.encoder_b.layer(y)))
    model.save_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match=r"was saved from modules: give both as encoder_a= and encoder_b="):
        DualEncoderAligner.from_pretrained(tmp_path, encoder_a=Tower())
    again = DualEncoderAligner.from_pretrained(tmp_path, encoder_a=Tower(), encoder_b=Tower(5))
    assert torch.equal(again(x, y), model(x, y)) and again.encoder_a.layer.weight.requires_grad
    with pytest.raises(ArgumentError, match=r"encoder_b \(Tower\) has no list of layers; unfreeze all of it"):
        again.unfreeze("b", last=1)
    with pytest.raises(ArgumentError, match=r"encoder_a \(Tower\) has no gradient checkpointing"):
        again.gradient_checkpointing()


def test_an_output_that_is_not_understood_is_refused() -> None:
    class Odd(nn.Module):
        def __init__(self, output: Any) -> None:
            super().__init__()
            self.output = output

        def forward(self, x: torch.Tensor) -> Any:
            return self.output

    for output, error, message in (
        ((1, 2), ArgumentError, "encoder_a returned a tuple; expected a tensor, or an object with last_hidden_state"),
        (torch.zeros(2), ShapeError, r"encoder_a returned shape \(2,\)"),
        (torch.zeros(2, 5), ShapeError, r"expected \(..., 6\)"),
    ):
        model = DualEncoderAligner.from_modules(Odd(output), Tower(), 6, 6, projection_dim=3)
        with pytest.raises(error, match=message):
            model.encode_a(torch.zeros(2, 4))
