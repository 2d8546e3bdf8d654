"""train_alignment: the plain loop's arithmetic, and everything that a loader can do wrong."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from bridgehead.align.dual_encoder import DualEncoderAligner
from bridgehead.errors import ArgumentError, DataError
from bridgehead.evaluate.alignment_metrics import AlignmentMetrics
from bridgehead.train.alignment import epoch_line, train_alignment
from bridgehead.train.dataset import MoleculeTextDataset
from tiny_models import write_bert

KEYS = [
    "recall@1_a2b", "recall@5_a2b", "recall@10_a2b", "recall@1_b2a", "recall@5_b2a", "recall@10_b2a",
    "mrr_a2b", "mrr_b2a", "alignment", "uniformity", "train_loss", "epoch", "temperature",
]  # fmt: skip


class Tower(nn.Module):
    def __init__(self, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(width, 8), nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.dropout(self.layer(x))
        return rows


def towers(dropout: float = 0.0) -> DualEncoderAligner:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return DualEncoderAligner.from_modules(Tower(6, dropout), Tower(5), 8, 8, projection_dim=4)


def linked(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of two sides that are linear views of the same hidden rows."""
    draw = np.random.default_rng(seed)
    hidden = draw.standard_normal((n, 4))
    fixed = np.random.default_rng(99)
    return tuple(torch.from_numpy(hidden @ fixed.standard_normal((4, d))).float() for d in (6, 5))  # type: ignore


def batches(n: int, size: int, seed: int = 0) -> list[tuple[torch.Tensor, torch.Tensor]]:
    x, y = linked(n, seed)
    return [(x[at : at + size], y[at : at + size]) for at in range(0, n, size)]


def test_weights_and_history_are_those_of_the_plain_loop() -> None:
    model, plain, loader, valid = towers(), towers(), batches(64, 16), batches(40, 40, seed=1)
    history = train_alignment(model, loader, valid, epochs=3, lr=1e-2)
    optimiser = torch.optim.AdamW(plain.parameters(), lr=1e-2, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=3)
    expected = []
    for epoch in range(3):
        losses = []
        for x, y in loader:
            a, b = (nn.functional.normalize(z, dim=-1) for z in (plain.encode_a(x), plain.encode_b(y)))
            logits = a @ b.T / plain.loss_fn.log_temperature.exp()
            labels = torch.arange(len(x))
            loss = (nn.functional.cross_entropy(logits, labels) + nn.functional.cross_entropy(logits.T, labels)) / 2
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        schedule.step()
        with torch.no_grad():
            found = AlignmentMetrics(plain.encode_a(valid[0][0]), plain.encode_b(valid[0][1])).report()
        temperature = plain.loss_fn.log_temperature.exp().item()
        expected.append({**found, "train_loss": np.mean(losses), "epoch": epoch + 1, "temperature": temperature})
    for line, wanted in zip(history, expected, strict=True):
        assert list(line) == KEYS and line == pytest.approx(wanted, abs=1e-5)
    for left, right in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)
    assert not model.training
    assert epoch_line(history[0]).startswith("epoch 1: loss ")


def test_linked_rows_are_learnt_and_a_validation_loader_sees_it() -> None:
    seen: list[dict[str, float]] = []
    history = train_alignment(
        towers(), batches(256, 32), batches(128, 50, seed=1), epochs=12, lr=1e-2, on_epoch=seen.append
    )
    assert seen == history and [line["epoch"] for line in history] == list(range(1, 13))
    assert history[-1]["recall@10_a2b"] > 0.9 and history[-1]["recall@10_b2a"] > 0.9 > 3 * history[0]["recall@1_a2b"]
    assert history[-1]["train_loss"] < history[0]["train_loss"] / 2


def test_rows_that_were_encoded_before_cannot_move_and_a_warning_says_so() -> None:
    model = towers()
    rows = torch.eye(12, 4), torch.eye(12, 4)
    with pytest.warns(UserWarning, match="their metrics are the same after every epoch; pass a loader"):
        history = train_alignment(model, batches(32, 16), rows, epochs=2)
    expected = AlignmentMetrics(*rows).report()
    assert all({key: line[key] for key in expected} == expected for line in history)
    assert history[0]["train_loss"] != history[1]["train_loss"]


def test_a_last_batch_of_one_is_left_out_and_said() -> None:
    model, other = towers(), towers()
    with pytest.warns(UserWarning, match="a batch of one pair has no negatives and is left out") as caught:
        history = train_alignment(model, batches(33, 16), batches(8, 8), epochs=3)
    assert len(caught) == 1
    x, y = linked(33)
    plain = train_alignment(other, [(x[:16], y[:16]), (x[16:32], y[16:32])], batches(8, 8), epochs=3)
    assert history == plain
    with pytest.warns(UserWarning, match="batch of one"), pytest.raises(DataError, match=r"every batch .* one pair"):
        train_alignment(towers(), batches(3, 1), batches(8, 8), epochs=1)


def test_loaders_that_give_nothing_or_only_once_are_refused_before_anything_is_lost() -> None:
    with pytest.raises(DataError, match="train_loader gives no batch"):
        train_alignment(towers(), [], batches(8, 8), epochs=2)
    with pytest.raises(DataError, match="val_pairs gives no batch"):
        train_alignment(towers(), batches(8, 8), [], epochs=1)
    model = towers()
    before = copy.deepcopy(model.state_dict())
    for train, valid, name in (
        (iter(batches(8, 8)), batches(8, 8), "train_loader"),
        (batches(8, 8), (batch for batch in batches(8, 8)), "val_pairs"),
    ):
        with pytest.raises(ArgumentError, match=f"{name} is an iterator .* used up after the first of 2 epochs"):
            train_alignment(model, train, valid, epochs=2)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert len(train_alignment(model, iter(batches(8, 8)), batches(8, 8), epochs=1)) == 1

    class Once:
        """Looks as if it could be gone through again."""

        def __init__(self) -> None:
            self.left = iter(batches(8, 8))

        def __iter__(self) -> Iterator[Any]:
            yield from self.left

    with pytest.raises(DataError, match="train_loader gives no batch"):
        train_alignment(towers(), Once(), batches(8, 8), epochs=2)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"epochs": 0}, "epochs = 0; expected a whole number of at least 1"),
        ({"lr": -1.0}, "lr = -1.0; expected a finite learning rate"),
        ({"lr": float("nan")}, "lr = nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        train_alignment(towers(), batches(8, 8), batches(8, 8), **options)


def test_batches_that_are_not_pairs_of_inputs_are_refused() -> None:
    for batch in (torch.zeros(2, 6), (torch.zeros(2, 6),), ([1, 2], [3, 4]), ({}, {})):
        with pytest.raises(DataError, match="expected"):
            train_alignment(towers(), [batch], batches(8, 8), epochs=1)
    model = towers().requires_grad_(False)
    with pytest.raises(ArgumentError, match="all weights of the model are frozen"):
        train_alignment(model, batches(8, 8), batches(8, 8))
    with pytest.raises(ArgumentError, match="train_loader is a int; expected a DataLoader"):
        train_alignment(towers(), 3, batches(8, 8))  # type: ignore[arg-type]


def test_dropout_and_shuffling_follow_the_seed_and_leave_the_random_state_alone() -> None:
    data = list(zip(*linked(24), strict=True))

    def history(seed: int) -> list[dict[str, float]]:
        loader: Any = DataLoader(data, batch_size=6, shuffle=True)  # type: ignore[arg-type]
        return train_alignment(towers(dropout=0.5), loader, batches(8, 8), epochs=2, seed=seed)

    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    first = history(0)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(2)
    assert history(0) == first and history(1) != first


def test_the_order_of_a_shuffling_loader_differs_between_epochs() -> None:
    orders: list[list[float]] = []

    class Watched(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            orders.append(x[:, 0].tolist()) if self.training else None
            return x[:, 1:]

    model = DualEncoderAligner.from_modules(Watched(), Tower(5), 3, 8, projection_dim=4)
    x = torch.cat([torch.arange(12.0)[:, None], torch.randn(12, 3, generator=torch.Generator().manual_seed(0))], dim=1)
    loader: Any = DataLoader(list(zip(x, linked(12)[1], strict=True)), batch_size=12, shuffle=True)  # type: ignore
    train_alignment(model, loader, [(x, linked(12)[1])], epochs=2)
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])


def test_identical_items_of_a_batch_share_their_matches() -> None:
    # Items 0 and 1 of a are one molecule, items 1 and 2 of b one text: so that molecule matches all three texts.
    x, y = linked(6)
    x[1], y[2] = x[0], y[1]
    merged = train_alignment(towers(), [(x, y)], batches(8, 8), epochs=1)[0]["train_loss"]
    pairs = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (4, 4), (5, 5)]
    assert merged == pytest.approx(towers()(x, y, links=pairs).item(), abs=1e-6)
    given = train_alignment(towers(), [(x, y, pairs)], batches(8, 8), epochs=1, merge_identical=False)
    assert given[0]["train_loss"] == pytest.approx(merged, abs=1e-6)
    apart = train_alignment(towers(), [(x, y)], batches(8, 8), epochs=1, merge_identical=False)
    assert apart[0]["train_loss"] == pytest.approx(towers()(x, y).item(), abs=1e-6)
    assert abs(apart[0]["train_loss"] - merged) > 0.01


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    root: Path = tmp_path_factory.mktemp("models")
    return str(write_bert(root / "a")), str(write_bert(root / "b", seed=1, width=24))


def test_two_transformers_learn_pairs_and_cut_padding_changes_nothing(folders: tuple[str, str]) -> None:
    from transformers import AutoTokenizer

    pairs = [(" ".join(letter * 6), " ".join(letter * 7)) for letter in "abcdefghij"]
    tokenizers = [AutoTokenizer.from_pretrained(folder) for folder in folders]
    data = MoleculeTextDataset(pairs, *tokenizers, max_length_a=16, max_length_b=24)
    found = []
    widths: list[int] = []
    for trim in (True, False):
        torch.manual_seed(0)
        model = DualEncoderAligner(*folders, projection_dim=8, pooling="mean")
        hook = model.encoder_b.register_forward_pre_hook(
            lambda _, __, inputs: widths.append(inputs["input_ids"].shape[1]), with_kwargs=True
        )
        valid = list(DataLoader(data, batch_size=10))
        found.append(train_alignment(model, valid * 10, valid, epochs=10, lr=1e-2, trim_padding=trim))
        hook.remove()
    assert set(widths[:110]) == {9} and set(widths[110:]) == {24}
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-3)
    assert found[0][-1]["recall@1_a2b"] > 0.8 > found[0][0]["recall@1_a2b"]


def test_groups_of_the_model_have_their_own_rates(folders: tuple[str, str]) -> None:
    torch.manual_seed(0)
    model = DualEncoderAligner(*folders, projection_dim=8)
    model.unfreeze("b", last=1)
    before = copy.deepcopy(model.state_dict())
    ids = torch.randint(4, 20, (6, 5), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    groups = model.parameter_groups(1e-3, encoder_learning_rate=0.0)
    train_alignment(model, [(inputs, inputs)], [(inputs, inputs)], epochs=1, groups=groups)
    changed = {name.partition(".")[0] for name, value in model.state_dict().items() if not value.equal(before[name])}
    assert changed == {"proj_a", "proj_b", "loss_fn"}
