"""A build that is killed goes on where it stood, ends with the same files, and leaves the old index until then."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import bridgehead
from bridgehead.errors import ArgumentError
from bridgehead.index import IndexSide, RowShards, VectorPlan, build_index, open_index
from vector_sides import clustered

N, DIM = 12_000, 16
# Each child ends itself, as by SIGKILL, at the first line that none before has printed; forks save the imports.
PROGRAM = textwrap.dedent(
    """
    import json, os, signal, sys
    from pathlib import Path
    import bridgehead.index.build
    import bridgehead.index.vectors.row_file as row_file, bridgehead.index.vectors.training as training
    row_file.BLOCKS_PER_SYNC, training.CHECKPOINT_SECONDS = 1, 0.0
    from bridgehead.index import IndexSide, RowShards, VectorPlan, build_index
    folder, kind, seen = Path(sys.argv[1]), sys.argv[2], set()

    def build(out):
        def say(line):
            os.write(out, (line + "\\n").encode())
            if line not in seen:
                os.kill(os.getpid(), signal.SIGKILL)

        shards = RowShards(sorted(folder.glob("shard-*.npy")))
        n = len(shards)
        side = IndexSide("molecule", shards, ["C"] * n, [str(i) for i in range(n)], "molecule", structures=False)
        text = IndexSide("text", RowShards([folder / "texts.npy"]), ["x"] * 300, [str(i) for i in range(300)])
        build_index(folder / "index", {"a": side, "b": text}, "m", None, VectorPlan(kind=kind, recall_floor=0.8), say)

    while True:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            build(write)
            os._exit(0)
        os.close(write)
        with open(read) as file:
            lines = file.read().splitlines()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps([code, lines, (folder / "index" / "index.json").exists()]), flush=True)
        seen.update(lines)
        if code != -signal.SIGKILL:
            break
    """
)
STAGES = ["rows written", "training", "added", "searching exactly", "writing 2"]


def runs(folder: Path, kind: str) -> list[tuple[int, list[str], bool]]:
    """Return exit code, lines and whether there was an index after it, of each run until one is not killed."""
    path = str(Path(bridgehead.__file__).parent.parent)
    command = [sys.executable, "-c", PROGRAM, str(folder), kind]
    environment = {**os.environ, "PYTHONPATH": path}
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [tuple(json.loads(line)) for line in ended.stdout.splitlines()]


def write_inputs(folder: Path, n: int = N) -> None:
    rows = clustered(n, DIM, 0)
    np.save(folder / "shard-0.npy", rows[: n // 3])
    np.save(folder / "shard-1.npy", rows[n // 3 :])
    np.save(folder / "texts.npy", clustered(300, DIM, 1))


def contents(folder: Path) -> dict[str, bytes]:
    build = folder / json.loads((folder / "index.json").read_text())["folder"]
    return {path.name: path.read_bytes() for path in build.iterdir() if not path.name.startswith("items.sqlite")}


def given(folder: Path) -> dict[str, IndexSide]:
    shards = RowShards(sorted(folder.glob("shard-*.npy")))
    ids = [str(i) for i in range(len(shards))]
    side = IndexSide("molecule", shards, ["C"] * len(shards), ids, "molecule", structures=False)
    text = IndexSide("text", np.load(folder / "texts.npy"), ["x"] * 300, [str(i) for i in range(300)])
    return {"a": side, "b": text}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ivf-sq8", "hnsw"])
def test_a_build_killed_at_every_step_ends_as_if_it_had_never_been(tmp_path, kind):
    write_inputs(tmp_path)
    reached = {"molecule": -1, "text": -1}
    ended = runs(tmp_path, kind)
    for code, lines, there in ended:
        assert (code, there) in ((-signal.SIGKILL, False), (0, True))
        side = "molecule"
        for line in lines:
            side = "text" if line.startswith("indexing 300") else side
            for stage, words in enumerate(STAGES):
                if words in line:
                    assert stage >= reached[side], f"{line!r} was done again"
                    reached[side] = stage
    assert len(ended) >= 8 and ended[-1][0] == 0 and reached["molecule"] >= 3
    build_index(tmp_path / "whole", given(tmp_path), "m", None, VectorPlan(kind=kind, recall_floor=0.8))
    assert contents(tmp_path / "index") == contents(tmp_path / "whole")
    assert len(list((tmp_path / "index").glob("build-*"))) == 1
    with open_index(tmp_path / "index", "m", thorough=True) as index:
        assert index.search("a", clustered(N, DIM, 0)[77:78], 1)[0].numbers.tolist() == [77]


def test_an_interrupted_build_goes_on_only_with_the_same_content(tmp_path):
    write_inputs(tmp_path, 600)
    plan = VectorPlan(kind="ivf-sq8", recall_floor=0.8)

    def interrupt(line):
        if "searching exactly" in line:
            raise KeyboardInterrupt

    for change in ({}, {"model": "n"}, {"plan": VectorPlan(kind="ivf-sq8", recall_floor=0.7)}, {"rows": True}):
        with pytest.raises(KeyboardInterrupt):
            build_index(tmp_path / "index", given(tmp_path), "m", None, plan, interrupt)
        sides = given(tmp_path)
        if "rows" in change:
            sides["b"] = IndexSide("text", -sides["b"].rows, sides["b"].items, sides["b"].ids)
        said: list[str] = []
        build_index(tmp_path / "index", sides, change.get("model", "m"), None, change.get("plan", plan), said.append)
        assert any("going on with a build" in line for line in said) == (not change)
        assert len(list((tmp_path / "index").glob("build-*"))) == 1


def test_a_build_whose_floor_is_out_of_reach_fails_and_leaves_the_old_index(tmp_path, monkeypatch):
    write_inputs(tmp_path, 600)
    build_index(tmp_path / "index", given(tmp_path), "m")
    monkeypatch.setattr("bridgehead.index.vectors.tuning._WIDTHS", {"ivf-sq8": (1,)})
    with pytest.raises(ArgumentError, match="take kind = 'flat'"):
        build_index(tmp_path / "index", given(tmp_path), "n", None, VectorPlan(kind="ivf-sq8"))
    assert len(list((tmp_path / "index").glob("build-*"))) == 1
    open_index(tmp_path / "index", "m").close()


def test_the_facts_of_an_index_hold_method_and_recall_of_both_modalities(tmp_path):
    write_inputs(tmp_path, 1500)
    said: list[str] = []
    facts = build_index(tmp_path / "index", given(tmp_path), "m", None, VectorPlan("ivf-sq8"), said.append)
    assert set(facts.vectors["a"].recall) == {"other side", "own side"}
    assert facts.lines()[0] in said and facts.lines()[0].startswith("molecule: 1,500 rows x 16, ivf-sq8, 154 lists")
    with open_index(tmp_path / "index") as index:
        assert index.sides["a"].vectors == facts.vectors["a"]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows_but_for_their_codes(tmp_path):
    program = textwrap.dedent(
        """
        import resource, sys, numpy as np
        from pathlib import Path
        from bridgehead.index.vectors import RowShards, VectorPlan, write_side
        folder, n = Path(sys.argv[1]), int(sys.argv[2])
        start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        shards = RowShards(sorted(folder.glob("shard-*.npy"))[: n // 16000])
        (folder / str(n)).mkdir()
        write_side(folder / str(n), "a", shards, np.arange(n), {}, VectorPlan("ivf-sq8", recall_floor=0.5))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)
        """
    )
    rng = np.random.default_rng(0)
    for number in range(6):
        np.save(tmp_path / f"shard-{number}.npy", rng.standard_normal((16_000, 128), dtype=np.float32))
    path = str(Path(bridgehead.__file__).parent.parent)
    grown = {}
    for n in (32_000, 96_000):
        command = [sys.executable, "-c", program, str(tmp_path), str(n)]
        environment = {**os.environ, "PYTHONPATH": path}
        grown[n] = int(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)
    # 64,000 rows more are 32 MB in float32 and 8 MB as codes; pages of the mapped float16 rows come on top.
    assert grown[96_000] - grown[32_000] < 30 << 10
