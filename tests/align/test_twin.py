import json
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy import sparse

from bridgehead.align import HeadConfig, HeadsConfig, NumpyHeads, TwoHeads, load_heads, save_heads
from bridgehead.errors import (
    ArgumentError,
    FormatVersionError,
    InputFileNotFoundError,
    NonFiniteRowsError,
    RunStateError,
    ShapeError,
)

CSR = sparse.csr_matrix(sparse.random(23, 300, 0.1, random_state=0, dtype=np.float32))
DENSE = (np.random.default_rng(0).standard_normal((23, 20)) * 3 + 1).astype(np.float32)


def a_model(**settings) -> TwoHeads:
    torch.manual_seed(0)
    own = {"embed_dim": 16, "hidden": (16, 24)} | settings
    norm = own.pop("input_norm", "none")
    config = HeadsConfig(
        HeadConfig(300, sparse=True, input_norm="unit" if norm != "none" else "none", **own),
        HeadConfig(20, input_norm=norm, **own),
    )
    model = TwoHeads(config).eval()
    model.head_b.fit_input(DENSE)
    for name, value in model.state_dict().items():
        if name.endswith("running_var"):
            torch.nn.init.uniform_(value, 0.5, 2.0)
        elif value.ndim == 1 and "std" not in name and "mean" not in name.removesuffix("running_mean"):
            torch.nn.init.normal_(value)
    return model


@pytest.fixture
def saved(tmp_path):
    save_heads(a_model(), tmp_path / "heads.safetensors", {"made_by": "a test"})
    return tmp_path / "heads.safetensors"


ARCHITECTURES = [
    {"activation": activation, "norm": norm, "residual": residual, "input_norm": input_norm}
    for activation, norm, residual, input_norm in product(
        ("gelu", "relu"), (True, False), (True, False), ("none", "unit", "standard")
    )
] + [
    {"hidden": hidden, "norm": norm, "residual": residual, "activation": "relu" if len(hidden) % 2 else "gelu"}
    for norm, residual, hidden in product(
        ("layer", "batch", "rms", "none"),
        ("none", "output", "layers"),
        ((), (16,), (16, 16), (16, 24, 24), (16, 16, 12, 12)),
    )
    if hidden or residual != "output"
]


@pytest.mark.parametrize("settings", ARCHITECTURES, ids=str)
def test_the_twin_and_the_reloaded_model_project_as_the_model_does(settings, tmp_path):
    model = a_model(**settings)
    save_heads(model, tmp_path / "h.safetensors")
    twin, again = NumpyHeads.load(tmp_path / "h.safetensors"), load_heads(tmp_path / "h.safetensors")
    for side, rows in (("a", CSR), ("b", DENSE)):
        expected = getattr(model, f"project_{side}")(rows)
        assert np.array_equal(getattr(again, f"project_{side}")(rows), expected)
        found = getattr(twin, f"project_{side}")(rows, block=7)
        assert found.dtype == np.float32
        assert np.abs(found - expected).max() <= 1e-5
        assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-6)


def test_tables_in_half_precision_halve_the_file_and_are_the_same_model_after_rounding(tmp_path):
    model = a_model()
    save_heads(model, tmp_path / "full.safetensors")
    save_heads(model, tmp_path / "half.safetensors", storage="float16")
    assert load_file(tmp_path / "half.safetensors")["head_a.first.weight"].dtype == torch.float16
    before = model.project_a(CSR)
    model.round_tables_("float16")
    expected = model.project_a(CSR)
    assert np.array_equal(load_heads(tmp_path / "half.safetensors").project_a(CSR), expected)
    assert np.abs(NumpyHeads.load(tmp_path / "half.safetensors").project_a(CSR) - expected).max() <= 1e-5
    assert 0 < np.abs(before - expected).max() < 1e-3


def test_equal_models_give_files_of_equal_bytes(tmp_path):
    files = set()
    for number in range(8):
        save_heads(a_model(), tmp_path / f"{number}.safetensors", {"made_by": "a test", "ß\x7f": "\n"})
        files.add((tmp_path / f"{number}.safetensors").read_bytes())
    assert len(files) == 1 and load_heads(tmp_path / "0.safetensors").config == a_model().config


def test_a_table_beyond_half_precision_is_refused(tmp_path):
    model = a_model()
    with torch.no_grad():
        model.head_a.first.weight[0, 0] = 1e6
    with pytest.raises(ArgumentError, match="beyond float16"):
        save_heads(model, tmp_path / "h.safetensors", storage="float16")
    with pytest.raises(ArgumentError, match="storage = 'int4'"):
        save_heads(model, tmp_path / "h.safetensors", storage="int4")


def test_the_twin_is_used_without_importing_torch(saved, tmp_path):
    np.save(tmp_path / "rows.npy", DENSE)
    program = (
        "import sys, json, numpy as np\n"
        "from bridgehead.align import NumpyHeads\n"
        "z = NumpyHeads.load(sys.argv[1]).project_b(np.load(sys.argv[2], allow_pickle=False))\n"
        "print(json.dumps([list(z.shape), 'torch' in sys.modules]))\n"
    )
    command = [sys.executable, "-c", program, str(saved), str(tmp_path / "rows.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[23, 16], False]


def test_no_rows_give_no_rows_and_a_zero_csr_row_a_finite_one(saved):
    empty = sparse.csr_matrix((0, 300), dtype=np.float32)
    for heads in (NumpyHeads.load(saved), load_heads(saved)):
        assert heads.project_a(empty).shape == (0, 16)
        assert np.isfinite(heads.project_a(sparse.csr_matrix((1, 300), dtype=np.float32))).all()


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_the_twin_makes_unit_rows_of_large_and_small_numbers_as_the_model_does(factor, tmp_path):
    save_heads(a_model(input_norm="unit"), tmp_path / "h.safetensors")
    for heads in (NumpyHeads.load(tmp_path / "h.safetensors"), load_heads(tmp_path / "h.safetensors")):
        assert np.allclose(heads.project_a(CSR * np.float32(factor)), heads.project_a(CSR), atol=1e-5)
        assert np.allclose(heads.project_b(DENSE * np.float32(factor)), heads.project_b(DENSE), atol=1e-5)


def test_few_rows_through_wide_layers_are_projected_as_the_model_does_it(tmp_path):
    torch.manual_seed(1)
    rows = np.random.default_rng(1).standard_normal((40, 700)).astype(np.float32)
    model = TwoHeads(HeadsConfig(*[HeadConfig(700, embed_dim=130, hidden=(301,))] * 2)).eval()
    save_heads(model, tmp_path / "heads.safetensors")
    twin = NumpyHeads.load(tmp_path / "heads.safetensors")
    with torch.no_grad():
        expected = model.head_a(torch.from_numpy(rows))
    expected = torch.nn.functional.normalize(expected, dim=1).numpy()
    for few in (1, 2, 16, 17, 40):
        np.testing.assert_allclose(twin.project_a(rows[:few]), expected[:few], atol=1e-5)


def test_rows_that_do_not_fit_are_refused_alike_by_twin_and_model(saved):
    bad = DENSE.copy()
    bad[4, 2] = np.nan
    for heads in (NumpyHeads.load(saved), load_heads(saved)):
        with pytest.raises(NonFiniteRowsError, match="rows 4"):
            heads.project_b(bad)
        with pytest.raises(ShapeError, match="19"):
            heads.project_b(DENSE[:, :19])
        with pytest.raises(NonFiniteRowsError, match="float32"):
            heads.project_b(DENSE.astype(np.float64) * 1e300)
        with pytest.raises(ShapeError, match="reads CSR rows"):
            heads.project_a(np.zeros((2, 300), dtype=np.float32))
        with pytest.raises(ShapeError, match="reads dense rows"):
            heads.project_b(CSR[:, :20])
        with pytest.raises(ArgumentError, match="block = 0"):
            heads.project_b(DENSE, block=0)


@pytest.mark.parametrize("load", [load_heads, NumpyHeads.load])
def test_files_that_are_not_heads_are_refused(load, saved, tmp_path):
    with pytest.raises(InputFileNotFoundError, match="does not exist"):
        load(tmp_path / "none.safetensors")
    (tmp_path / "cut").write_bytes(saved.read_bytes()[:500])
    with pytest.raises(RunStateError, match="damaged"):
        load(tmp_path / "cut")
    save_file({"x": torch.ones(1)}, tmp_path / "other", metadata={"format": "something", "version": "1"})
    with pytest.raises(FormatVersionError, match=r"format 'something' version '1'; this release reads"):
        load(tmp_path / "other")


@pytest.mark.parametrize("load", [load_heads, NumpyHeads.load])
def test_a_file_that_lacks_weights_is_refused(load, saved, tmp_path):
    config = json.dumps(a_model().config.to_dict())
    tensors = {name: tensor for name, tensor in load_file(saved).items() if name != "head_b.rest.0.bias"}
    save_file(tensors, tmp_path / "less", metadata={"format": "bridgehead-heads", "version": "1", "config": config})
    with pytest.raises(RunStateError, match=r"head_b\.rest\.0\.bias"):
        load(tmp_path / "less")


def test_the_scale_that_training_ended_with_is_known_and_may_be_missing(saved):
    heads = NumpyHeads.load(saved)
    assert heads.logit_scale == pytest.approx(float(load_heads(saved).scale().detach()), rel=1e-6)
    assert NumpyHeads(heads.config, {}).logit_scale is None
