"""A config says exactly what is wrong with it, and its relative paths are those of its folder."""

import tomllib

import pytest
from pydantic import ValidationError
from small_run import config, settings_of

from bridgehead.errors import ConfigError, InputFileNotFoundError, RunStateError
from bridgehead.runs.config import PairsConfig, config_of, read_config
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.toml import to_toml


def changed(**sections):
    return settings_of("pairs.csv", **sections)


@pytest.mark.parametrize(
    "sections, message",
    [
        ({"pairs": {"smile": "x"}}, r"pairs\.smile: unknown key.* \(got 'x'\)"),
        ({"pairs": {"kind_a": "protein"}}, r"pairs\.kind_a: Input should be 'molecule', 'text' or 'rows'"),
        ({"pairs": {"b": "smiles"}}, r"pairs\.a and pairs\.b are both 'smiles'; expected two columns"),
        ({"train": {"augment": {"random_smiles": ["a"]}}}, r"random_smiles = \['a'\], and no encoder is trained"),
        ({"split": {"hold_out": "c"}}, r"split\.hold_out: Input should be 'a', 'b' or 'both'"),
        ({"split": {"fractions": [0.9, 0.1]}}, r"split\.fractions"),
        ({"train": {"epochs": 0}}, r"train\.epochs: .*greater than or equal to 1 \(got 0\)"),
        ({"train": {"learning_rate": float("nan")}}, r"train\.learning_rate"),
        ({"train": {"logit_scale_init": 1000.0}}, r"train: .*outside logit_scale_bounds"),
        ({"index": {"recall_floor": 2}}, r"index\.recall_floor"),
        ({"pairs": {"kind_a": "text"}, "index": {"extra_a": "chemicals"}}, r"kind_a = 'text'; further items"),
        ({"examples": [{"query": "x", "of": "protein"}]}, r"examples\.0\.of = 'protein'; .* molecule, text"),
        ({"examples": [{"query": " "}]}, r"examples\.0\.query is empty"),
        ({"split": {"fractions": [0.5, 0.5, 0.5]}}, r"split\.fractions: .*sum to 1\.5; expected 1"),
        ({"split": {"fractions": [-1, 1, 1]}}, r"split\.fractions: .*three numbers of 0 or more, train above 0"),
        ({"split": {"fractions": [0, 0.5, 0.5]}}, r"split\.fractions: .*train above 0"),
        ({"evaluate": {"n_resamples": 10**9}}, r"evaluate\.n_resamples: .*less than or equal to 1000000"),
        ({"evaluate": {"ks": []}}, r"evaluate\.ks: .*each at least 1"),
        ({"evaluate": {"ks": [1, 0]}}, r"evaluate\.ks: .*each at least 1"),
        ({"schema": 2}, r"schema: Input should be 1 \(got 2\)"),
        ({"evaluation": {}}, r"evaluation: unknown key; did you mean 'evaluate'"),
    ],
)
def test_an_error_names_the_key_and_what_came(sections, message):
    with pytest.raises(ConfigError, match=message):
        config_of(changed(**sections))


def test_a_missing_key_is_named():
    settings = changed()
    del settings["pairs"]["a"]
    with pytest.raises(ConfigError, match=r"pairs\.a: Field required"):
        config_of(settings)
    with pytest.raises(ConfigError, match=r"encode: Field required.*pairs: Field required|pairs: .*encode: "):
        config_of({})


def test_what_is_no_mapping_is_an_error():
    with pytest.raises(ConfigError, match="config: Input should be a valid dictionary"):
        config_of(["pairs"])


def test_one_text_stands_for_a_list_of_one():
    made = config("pairs.csv", pairs={"group": "donor", "names": "name"}, index={"extra_a": "more.csv"})
    assert (made.pairs.group, made.pairs.names, made.index.extra_a) == (("donor",), ("name",), ("more.csv",))


@pytest.mark.parametrize(
    "more, shown",
    [
        ({}, ("text a", "text b")),
        ({"kind_a": "molecule"}, ("molecule", "text")),
        ({"kind_a": "rows"}, ("smiles", "text")),
        ({"kind_a": "rows", "kind_b": "rows"}, ("smiles", "words")),
        ({"name_a": "drug", "name_b": "effect"}, ("drug", "effect")),
    ],
)
def test_sides_are_shown_by_their_names_kinds_or_columns(more, shown):
    assert PairsConfig(path="x", a="smiles", b="words", **more).shown == shown


def test_the_name_of_a_side_is_one_line_and_a_number_stands_once():
    odd = config("pairs.csv", pairs={"name_a": " a\n\tname  ", "name_b": " "}, evaluate={"ks": [10, 1, 10]})
    assert odd.pairs.shown == ("a name", "text")
    assert odd.evaluate.ks == (10, 1)


def test_a_config_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        config("pairs.csv").name = "other"


def write(folder, settings, name="config.toml"):
    (folder / name).write_text(to_toml(settings), encoding="utf-8")
    return folder / name


def test_relative_paths_are_taken_from_the_folder_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    settings = changed(
        pairs={"path": ["pairs.csv", "more/*.csv", "/data/x.csv"]},
        encode={"a": "rows:a.npz + molecule:fingerprints", "b": "text:hf=model", "settings_a": {}, "cache": "rows"},
        index={"extra_a": ["chemicals", "pool.csv"]},
        folder="out",
    )
    path = write(tmp_path, settings)
    monkeypatch.chdir("/")
    made = read_config(path)
    assert made.folder == f"{tmp_path}/out"
    assert made.pairs.path == (f"{tmp_path}/pairs.csv", f"{tmp_path}/more/*.csv", "/data/x.csv")
    assert made.encode.a == f"rows:{tmp_path}/a.npz + molecule:fingerprints"
    assert made.encode.b == f"text:hf={tmp_path}/model" and made.encode.cache == f"{tmp_path}/rows"
    assert made.index.extra_a == ("chemicals", f"{tmp_path}/pool.csv")


def test_the_home_folder_may_be_written_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    made = read_config(write(tmp_path, changed(pairs={"path": "~/pairs.csv"}, folder="~/runs/x")))
    assert (made.pairs.path, made.folder) == ("/home/somebody/pairs.csv", "/home/somebody/runs/x")
    assert read_config(write(tmp_path, changed(folder="starter"))).folder == f"{tmp_path}/starter"


def test_online_reaches_encoders_of_the_hub_alone_or_as_a_part(monkeypatch):
    from bridgehead.runs import encoded

    asked = []
    monkeypatch.setattr(encoded, "make_encoder", lambda spec, **settings: asked.append((spec, settings)))
    encode = {"a": "molecule:fingerprints", "b": "text:ngram + text:hf=org/model", "settings_a": {"radius": 3}}
    encoded.make_encoders(config("pairs.csv", encode=encode, online=True))
    encoded.make_encoders(config("pairs.csv", encode={**encode, "b": "text:hf=org/model"}, online=True))
    assert asked[0][1] == asked[2][1] and "online" not in asked[0][1]
    assert asked[1] == ("text:ngram + text:hf=org/model", {"parts": [{}, {"online": True}]})
    assert asked[3] == ("text:hf=org/model", {"online": True})


def test_a_hub_name_and_the_packaged_table_are_no_paths(tmp_path):
    made = read_config(write(tmp_path, changed(pairs={"path": "starter"}, encode={"b": "text:hf=org/model"})))
    assert made.pairs.path == "starter" and made.encode.b == "text:hf=org/model"


def test_the_run_folder_is_by_default_named_after_the_file(tmp_path):
    assert read_config(write(tmp_path, changed(), "first.toml")).folder == f"{tmp_path}/runs/first"


def test_a_config_object_with_relative_paths_is_written_with_absolute_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = RunFolder.of(config("pairs.csv"), "out")
    with run.writing():
        pass
    assert tomllib.loads((tmp_path / "out/config.toml").read_text())["pairs"]["path"] == f"{tmp_path}/pairs.csv"
    assert RunFolder.of(tmp_path / "out").config.plain() == {
        **run.config.plain(),
        "folder": f"{tmp_path}/out",
    }


def test_the_config_inside_a_run_folder_is_that_of_the_folder(tmp_path):
    run = RunFolder.of(config("pairs.csv"), tmp_path / "out")
    with run.writing():
        pass
    assert RunFolder.of(tmp_path / "out" / "config.toml").folder == tmp_path / "out"
    (tmp_path / "out").rename(tmp_path / "moved")
    assert RunFolder.of(tmp_path / "moved" / "config.toml").folder == tmp_path / "moved"


def test_a_config_of_somebody_else_is_not_replaced(tmp_path):
    path = write(tmp_path, changed(name="mine"))
    mine = path.read_bytes()
    with pytest.raises(RunStateError, match=r"config\.toml, which is not that of a run; name another folder"):
        RunFolder.of(config("pairs.csv"), tmp_path).writing().__enter__()
    assert path.read_bytes() == mine and [file.name for file in tmp_path.iterdir()] == ["config.toml"]


def test_every_default_survives_being_written_and_read(tmp_path):
    made = config("/data/pairs.csv", examples=[{"query": 'a "quoted" ß\n', "expect": "1"}], train={"patience": 3})
    path = write(tmp_path, made.plain())
    assert read_config(path).plain() == {**made.plain(), "folder": f"{tmp_path}/runs/config"}


def test_a_byte_order_mark_before_a_config_is_no_part_of_it(tmp_path):
    path = write(tmp_path, changed())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_config(path).pairs.a == "smiles"


def test_a_file_of_pairs_in_the_place_of_a_config_is_told_how_to_get_one(tmp_path):
    (tmp_path / "pairs.csv").write_text("smiles,text\nCCO,x\n")
    with pytest.raises(ConfigError, match=r"make one with: bridgehead init .*pairs\.csv"):
        read_config(tmp_path / "pairs.csv")


@pytest.mark.parametrize("content", [b"pairs = [", b"\xff\xfe", b"a = 1\na = 2", b"a = " + b"[" * 5000])
def test_what_is_not_toml_is_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.toml is not TOML in UTF-8"):
        read_config(tmp_path)


def test_a_config_that_is_not_there_says_how_to_make_one(tmp_path):
    with pytest.raises(InputFileNotFoundError, match="bridgehead init FILE"):
        read_config(tmp_path / "none.toml")
