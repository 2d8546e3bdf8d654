"""Opening a run folder with real encoders and heads, without torch on the way to an answer."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bridgehead
from bridgehead.encode import make_encoder
from bridgehead.errors import ArgumentError, InputFileNotFoundError, MismatchError, RunStateError
from bridgehead.evaluate.zero_shot import class_prototypes, classify_rows, prompts_of
from bridgehead.files import atomic_path
from bridgehead.index import IndexSide, build_index
from bridgehead.search import (
    canary_attachments,
    item_kind,
    model_attachment,
    model_fingerprint,
    open_space,
    open_space_of,
    opening,
)

SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "CC(C)NCC(O)COc1cccc2ccccc12", "CCO", "c1ccccc1O", "CC(=O)Nc1ccc(O)cc1"]
TEXTS = ["inhibits cyclooxygenase", "beta blocker", "solvent", "antiseptic", "reduces fever and pain"]
IDS = [str(4000 + n) for n in range(5)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder: untrained heads are enough to see that all parts meet."""
    import torch

    from bridgehead.align import HeadConfig, HeadsConfig, NumpyHeads, TwoHeads, save_heads

    folder = tmp_path_factory.mktemp("run")
    model = folder / "refit"
    encoder_a = make_encoder("molecule:fingerprints", min_count=1, processes=1).fit(SMILES)
    encoder_b = make_encoder("text:ngram").fit(TEXTS)
    encoder_a.save(model / "encoders" / "a")
    encoder_b.save(model / "encoders" / "b")
    torch.manual_seed(0)
    config = HeadsConfig(
        HeadConfig(encoder_a.n_columns, 16, (32,), sparse=True), HeadConfig(encoder_b.n_columns, 16, (32,), sparse=True)
    )
    save_heads(TwoHeads(config), model / "heads.safetensors")
    heads = NumpyHeads.load(model / "heads.safetensors")
    sides = {
        "a": IndexSide("molecule", heads.project_a(encoder_a.encode(SMILES).rows), SMILES, IDS, item_kind(encoder_a)),
        "b": IndexSide("text", heads.project_b(encoder_b.encode(TEXTS).rows), TEXTS, TEXTS, item_kind(encoder_b)),
    }
    build_index(
        folder / "index",
        sides,
        model_fingerprint(encoder_a, encoder_b, model / "heads.safetensors"),
        attachments=canary_attachments(encoder_a, SMILES, encoder_b, TEXTS) | model_attachment(model),
    )
    return folder


@pytest.fixture
def copy(run, tmp_path):
    """A copy of the run; its index carries a model of its own, since copying makes files of links."""
    shutil.copytree(run, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def without_model(copy):
    """The same with an index that carries no model, as other builders may leave it."""
    path = copy / "index" / "index.json"
    manifest = json.loads(path.read_text())
    shutil.rmtree(copy / "index" / manifest["folder"] / "attached" / "model")
    manifest["files"] = {name: facts for name, facts in manifest["files"].items() if "attached/model/" not in name}
    path.write_text(json.dumps(manifest))
    return copy


def carried(folder, name="heads.safetensors"):
    """Return the path of a file of the model that the index carries."""
    manifest = json.loads((folder / "index" / "index.json").read_text())
    return folder / "index" / manifest["folder"] / "attached" / "model" / name


def spoil(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_a_new_query_lands_on_the_item_that_was_indexed(run):
    with open_space(run) as space:
        for text in TEXTS:
            hit = space.search(text, k=1, of="text", read_as="text")[0]
            assert hit.item == text and hit.score == pytest.approx(1, abs=1e-5)
        hit = space.search("O=C(O)c1ccccc1OC(C)=O", k=1, of="molecule")[0]  # aspirin, another way round
        assert hit.id == "4000" and hit.read_as == "smiles" and hit.score == pytest.approx(1, abs=1e-5)
        assert len(space.search("4001", k=100)) == 5
        assert space.kinds == {"a": "molecule", "b": "text"}


def test_a_text_of_unknown_characters_is_not_answered_by_the_heads_biases(run):
    with open_space(run) as space:
        answer = space.answer("头痛药")
    assert answer.hits == () and "knows nothing of it" in answer.note


def test_a_query_over_ngrams_and_fingerprints_imports_no_torch(run):
    program = (
        "import sys, bridgehead.search\n"
        "heavy = {'torch', 'faiss', 'rdkit', 'sklearn', 'transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        f"space = bridgehead.search.open_space({str(run)!r})\n"
        "assert space.search('reduces fever') and space.search('c1ccccc1O')\n"
        "assert space.classify(['c1ccccc1O'], ['fever', 'beta blocker']).items\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
    )
    path = str(Path(bridgehead.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": path})


def test_molecules_are_put_to_texts_and_texts_to_molecules_with_real_encoders(run):
    with open_space(run) as space:
        found = space.classify([SMILES[1], "C1CC(", SMILES[0]], TEXTS, ["{}", "it {}"])
        back = space.classify(TEXTS, SMILES[:3], of="molecule", k=1)
        assert [one.position for one in found.items] == [0, 2] and found.unread[0].position == 1
        rows = space.heads.project_a(space.encoders["a"].encode([SMILES[1], SMILES[0]]).rows)
        prompts = prompts_of(TEXTS, ["{}", "it {}"])
        words = space.heads.project_b(space.encoders["b"].encode(list(prompts.texts)).rows)
        expected = classify_rows(rows, class_prototypes(words, prompts.class_of))
        assert [[one.label for one in item.labels] for item in found.items] == [
            [TEXTS[c] for c in row] for row in expected.classes.tolist()
        ]
        assert found.logit_scale == space.heads.logit_scale and found.logit_scale == pytest.approx(1 / 0.07)
        assert len(back.items) == 5 and {one.answer for one in back.items} <= set(SMILES)
        with pytest.raises(ArgumentError, match="1 of 2 labels cannot be candidates, read as molecule: 'aspirin'"):
            space.classify(TEXTS, [SMILES[0], "aspirin"], of="molecule")


def test_the_command_gives_what_the_library_gives(run):
    from typer.testing import CliRunner

    from bridgehead.cli.commands import app

    options = ["--labels", ",".join(TEXTS), "--item", SMILES[0], "--item", "C1CC(", "--json"]
    done = CliRunner().invoke(app, ["classify", str(run), *options])
    assert done.exit_code == 0, done.output
    with open_space(run) as space:
        found = space.classify([SMILES[0], "C1CC("], TEXTS)
    assert json.loads(done.stdout) == json.loads(json.dumps(found.to_dict() | {"heads": "refit"}))


def test_the_model_that_the_index_carries_searches_whatever_happens_to_that_of_the_run(copy):
    with open_space(copy) as space:
        before, note = space.search(TEXTS[0], k=5, of="molecule"), space.model_note
    spoil(copy / "refit" / "heads.safetensors")
    make_encoder("text:ngram").fit([*TEXTS, "one more"]).save(copy / "refit" / "encoders" / "b")
    with open_space(copy) as space:
        assert space.search(TEXTS[0], k=5, of="molecule") == before
        assert note == "" and "another model now" in space.model_note
    shutil.rmtree(copy / "refit")
    with open_space(copy) as space:
        assert space.search(TEXTS[0], k=5, of="molecule") == before and space.model_note == ""


def test_the_index_holds_the_model_as_links_which_outlive_new_files(run, copy):
    assert carried(run).samefile(run / "refit" / "heads.safetensors")
    with open_space(copy) as space:
        before = space.search(TEXTS[0], k=5, of="molecule")
    linked = carried(copy)
    linked.unlink()
    os.link(copy / "refit" / "heads.safetensors", linked)
    atomic_path(copy / "refit" / "heads.safetensors", lambda name: Path(name).write_bytes(b"new heads"))
    with open_space(copy) as space:
        assert space.search(TEXTS[0], k=5, of="molecule") == before


def test_where_links_cannot_be_made_the_model_is_copied(copy, monkeypatch, tmp_path):
    def refuse(*arguments, **options):
        raise OSError("no links here")

    monkeypatch.setattr(opening.os, "link", refuse)
    for write in model_attachment(copy / "refit").values():
        write(tmp_path / "model")
    assert not (tmp_path / "model" / "heads.safetensors").samefile(copy / "refit" / "heads.safetensors")
    assert opening.same_model(tmp_path / "model", copy / "refit")


def test_what_a_killed_writer_of_a_model_left_is_not_carried(copy, tmp_path):
    (copy / "refit/encoders/a/.model.part").mkdir()
    (copy / "refit/encoders/a/.model.part/weights").write_text("half")
    model_attachment(copy / "refit")["model"](tmp_path / "model")
    assert not [path for path in (tmp_path / "model").rglob("*") if path.name == "weights"]


def test_a_carried_model_that_was_changed_is_refused(copy):
    spoil(carried(copy))
    with pytest.raises(RunStateError, match=r"heads\.safetensors is damaged"):
        open_space(copy)


def test_other_heads_are_refused_where_the_index_carries_no_model(without_model):
    spoil(without_model / "refit" / "heads.safetensors")
    with pytest.raises(MismatchError, match="another model"):
        open_space(without_model)


def test_another_encoder_is_refused_where_the_index_carries_no_model(without_model):
    open_space(without_model).close()
    make_encoder("text:ngram").fit([*TEXTS, "one more"]).save(without_model / "refit" / "encoders" / "b")
    with pytest.raises(MismatchError, match="another model"):
        open_space(without_model)


def test_a_space_is_not_reopened_while_its_index_is_the_one_that_is_there(run):
    with open_space(run) as space:
        assert space.reopened() is None


def test_an_encoder_whose_rows_changed_though_its_fingerprint_did_not_is_refused(copy, monkeypatch):
    from bridgehead.encode.ngram import NgramEncoder

    original = NgramEncoder.raw_rows

    def changed(self, *arguments, **options):
        raw = original(self, *arguments, **options)
        raw.rows.data[0] = np.nextafter(raw.rows.data[0], np.float32(2))
        return raw

    monkeypatch.setattr(NgramEncoder, "raw_rows", changed)
    with pytest.raises(MismatchError, match="text:ngram"):
        open_space(copy)


def test_what_is_not_there_is_named(run, tmp_path):
    with pytest.raises(InputFileNotFoundError, match="no run folder"):
        open_space(tmp_path / "nowhere")
    with pytest.raises(InputFileNotFoundError, match="run the stage refit"):
        open_space(tmp_path)
    with pytest.raises(InputFileNotFoundError, match="run the stage train"):
        open_space(run, heads="evaluated")
    with pytest.raises(InputFileNotFoundError, match="holds no index"):
        open_space_of(run / "refit", tmp_path)
    with pytest.raises(ArgumentError, match="expected 'refit' or 'evaluated'"):
        open_space(run, heads="best")


def test_kinds_come_from_the_spec():
    assert item_kind(make_encoder("molecule:fingerprints")) == "molecule"
    assert item_kind(make_encoder("molecule:fingerprints + text:ngram")) == "molecule"


def test_a_build_that_takes_the_place_of_one_while_it_is_opened_is_opened_instead(copy, monkeypatch):
    load, calls = opening.load_model, []

    def replaced_meanwhile(folder, fingerprint):
        if not calls:
            build = folder.parent.parent
            build.rename(build.with_name("build-later"))
            manifest = json.loads((copy / "index" / "index.json").read_text())
            atomic_path(
                copy / "index" / "index.json",
                lambda name: Path(name).write_text(json.dumps({**manifest, "folder": "build-later"})),
            )
        calls.append(folder)
        return load(folder, fingerprint)

    monkeypatch.setattr(opening, "load_model", replaced_meanwhile)
    with open_space(copy) as space:
        assert space.search(TEXTS[0], k=1, of="text", read_as="text")[0].item == TEXTS[0]
    assert len(calls) == 2
