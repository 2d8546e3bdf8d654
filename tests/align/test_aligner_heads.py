"""Heads of a dual encoder as a file of heads: the same rows, with torch and without."""

import numpy as np
import pytest
import torch
from torch import nn

from bridgehead.align.aligner_heads import heads_of
from bridgehead.align.dual_encoder import DualEncoderAligner
from bridgehead.align.model import load_heads, save_heads
from bridgehead.align.twin import NumpyHeads
from bridgehead.errors import ArgumentError


def aligner(dims=(12, 7), projection_dim=5):
    model = DualEncoderAligner.from_modules(
        nn.Identity(), nn.Identity(), *dims, projection_dim, initial_temperature=0.2
    )
    with torch.no_grad():
        for parameter in (*model.proj_a.parameters(), *model.proj_b.parameters()):
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
    return model


def test_they_project_as_the_heads_of_the_aligner_do():
    model = aligner()
    rows = [torch.randn(9, width, generator=torch.Generator().manual_seed(width)) * 3 for width in (12, 7)]
    z_a, z_b, scale = heads_of(model)(*rows)
    assert torch.allclose(z_a, model.encode_a(rows[0]), atol=1e-6)
    assert torch.allclose(z_b, model.encode_b(rows[1]), atol=1e-6)
    assert float(scale.detach()) == pytest.approx(5.0, rel=1e-6)


def test_written_and_read_without_torch_they_give_the_same_unit_rows(tmp_path):
    model = aligner()
    save_heads(heads_of(model), tmp_path / "heads.safetensors")
    read = NumpyHeads.load(tmp_path / "heads.safetensors")
    for side, width, project in (("a", 12, read.project_a), ("b", 7, read.project_b)):
        rows = torch.randn(20, width, generator=torch.Generator().manual_seed(1))
        expected = nn.functional.normalize(getattr(model, f"encode_{side}")(rows), dim=1).detach().numpy()
        np.testing.assert_allclose(project(rows.numpy()), expected, atol=1e-6)
    assert float(load_heads(tmp_path / "heads.safetensors").scale().detach()) == pytest.approx(5.0, rel=1e-6)


def test_they_are_copies_and_torchs_random_state_is_left_alone():
    model = aligner()
    before = torch.get_rng_state()
    heads = heads_of(model)
    assert torch.equal(before, torch.get_rng_state()) and not heads.training
    with torch.no_grad():
        heads.head_a.first.weight.zero_()
    assert bool((model.proj_a.net[0].weight != 0).any())


def test_other_heads_are_refused():
    model = aligner()
    model.proj_b = nn.Linear(7, 5)
    with pytest.raises(ArgumentError, match="proj_b is a Linear; expected a ProjectionHead"):
        heads_of(model)
