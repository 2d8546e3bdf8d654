"""The sandbox: what hangs, breaks or eats memory costs its own call, and nothing is left running."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bridgehead.depict import picture_of
from bridgehead.errors import ArgumentError, SandboxBusyError, SandboxLimitError, StructureError
from bridgehead.index.structures import has_substructure
from bridgehead.serve.sandbox import Sandbox, pool, tasks

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
FULLERENE = (
    "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c"
    "5c1c1c6c2c3c41"
)
# Walks of 25 atoms over a cage, none of which ends at uranium: more of them than could ever be looked at.
ENDLESS = "~".join(["*"] * 25) + "~[#92]"


def cage(n: int, seed: int = 1) -> str:
    """A SMILES of n atoms in a chain, with ring closures between random ones of them."""
    draw = random.Random(seed)
    ends = [at for at in range(n) for _ in range(2)]
    draw.shuffle(ends)
    closures: dict[int, list[int]] = {at: [] for at in range(n)}
    for label, (one, other) in enumerate(zip(ends[::2], ends[1::2], strict=True), start=100):
        if abs(one - other) > 1 and not set(closures[one]) & set(closures[other]):
            closures[one].append(label)
            closures[other].append(label)
    return "".join("C" + "".join(f"%({label})" for label in closures[at]) for at in range(n))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(seconds=1.0, memory_mib=512) as made:
        yield made


def processes_of(sandbox: Sandbox) -> list[int]:
    return [worker._process.pid for worker in sandbox._workers]


def gone(pid: int, seconds: float = 20.0) -> bool:
    """Whether a process ends within some seconds; one that nobody has collected yet has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_tasks_give_what_the_functions_give(sandbox: Sandbox) -> None:
    reasons = sandbox.call_blocking("inspect", ["CCO", "benzene", "C1CC", "\ud800", ASPIRIN, "[#200]", ""])
    assert [reason is None for reason in reasons] == [True, False, False, False, True, False, False]
    assert sandbox.call_blocking("depict", ASPIRIN, "molecule") == picture_of(ASPIRIN, "molecule")
    assert sandbox.call_blocking("depict", "no structure", "molecule") is None
    assert sandbox.call_blocking("substructure", "c1ccccc1", ["CCO", ASPIRIN, "no structure", "Cc1ccccc1"]) == [1, 3]
    assert sandbox.call_blocking("pattern", "c1ccccc1")["read_as"] == "SMILES"
    assert sandbox.call_blocking("pattern", "[CX4]")["read_as"] == "SMARTS"
    assert "SMARTS" in sandbox.call_blocking("pattern", "C(")["reason"]


def test_the_table_of_tasks_is_the_one_that_is_offered() -> None:
    assert set(tasks.TASKS) == set(pool.TASK_NAMES)


def test_an_error_of_the_library_is_raised_here(sandbox: Sandbox) -> None:
    with pytest.raises(StructureError, match="neither as SMILES"):
        sandbox.call_blocking("substructure", "benzene", ["CCO"])


@pytest.mark.parametrize("call", [("open", "/etc/passwd"), ("__import__", "os"), ("inspect", object()), ("",)])
def test_only_tasks_of_the_table_on_plain_data_are_done(sandbox: Sandbox, call: tuple[object, ...]) -> None:
    with pytest.raises(ArgumentError):
        sandbox.call_blocking(*call)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [(), ("a", "b", "c"), (3,), (None,), ({"a": 1},)])
def test_arguments_that_a_task_does_not_take_cost_that_call_only(sandbox: Sandbox, arguments: tuple[object]) -> None:
    before = processes_of(sandbox)
    with pytest.raises(SandboxLimitError, match="cannot be worked on"):
        sandbox.call_blocking("depict", *arguments)
    assert sandbox.call_blocking("inspect", ["CCO"]) == [None]
    assert before == [] or processes_of(sandbox) == before


BOMBS = {
    "a megabyte of atoms": "C" * 1_000_000,
    "a megabyte of brackets": "(" * 1_000_000,
    "a megabyte of rings": "c1ccccc1" * 125_000,
    "deep branches": "C(" * 4900 + "C",
    "closed deep branches": "C(" * 3000 + "C" + ")" * 3000,
    "one ring label again and again": "C%99" * 2400,
    "huge ring labels": "C%(99999999)" * 800,
    "huge isotopes": "[99999999999999999999C]",
    "huge charges": "[C+999999999]",
    "open square brackets": "[" * 9999,
    "thousands of rings": "C1CC1" * 1900,
    "many parts": ".".join("C" * 900),
    "stereo centres": "[C@H](F)" * 900,
    "double bonds with directions": "C/C=C/" * 320 + "C",
    "aromatic without end": "c1ccc2c(c1)" * 800,
    "an element that is none": "[#200]",
    "null": "C\0C",
    "half a character": "C\ud800",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_smiles_bomb_is_told_or_refused_and_the_next_call_works(sandbox: Sandbox, name: str) -> None:
    try:
        told = sandbox.call_blocking("inspect", [BOMBS[name]])
    except SandboxLimitError as error:
        told = [str(error)]
    assert len(told) == 1 and (told[0] is None or len(told[0]) < 500)
    assert sandbox.call_blocking("inspect", ["CCO"]) == [None]


def test_a_structure_that_takes_too_long_is_refused_and_its_process_replaced(sandbox: Sandbox) -> None:
    sandbox.call_blocking("inspect", ["CCO"])
    before = processes_of(sandbox)
    with pytest.raises(SandboxLimitError, match="longer than it may"):
        sandbox.call_blocking("inspect", [cage(900)[:9990].rpartition("C")[0], cage(450), cage(450, 2), cage(450, 3)])
    assert sandbox.call_blocking("inspect", ["CCO"]) == [None]
    assert all(gone(pid) for pid in before)
    assert set(processes_of(sandbox)).isdisjoint(before)


def test_each_of_many_texts_has_its_own_time_and_it_is_short(sandbox: Sandbox) -> None:
    # What passes here is read once more where it holds up everybody.
    assert tasks.MOST_SECONDS["inspect"] == tasks.MOST_SECONDS["pattern"] == 0.5
    assert sandbox.call_blocking("inspect", [cage(60, seed) for seed in range(12)]) == [None] * 12
    with pytest.raises(SandboxLimitError, match="longer than it may"):
        sandbox.call_blocking("inspect", ["CCO", cage(450)])
    assert sandbox.call_blocking("inspect", ["CCO"]) == [None]


@pytest.mark.parametrize("pattern", [ENDLESS, "*~" * 30 + "[$([#92])]", f"[$({'~'.join('*' * 20)}~[#92])]"])
def test_a_pattern_without_end_is_refused(sandbox: Sandbox, pattern: str) -> None:
    with pytest.raises(SandboxLimitError, match="longer than"):
        sandbox.call_blocking("substructure", pattern, [FULLERENE, cage(120)])
    assert sandbox.call_blocking("substructure", "C", ["CCO"]) == [0]


def test_a_process_that_is_killed_is_replaced_before_it_is_missed(sandbox: Sandbox) -> None:
    sandbox.call_blocking("inspect", ["CCO"])
    for pid in processes_of(sandbox):
        os.kill(pid, signal.SIGKILL)
        assert gone(pid)
    time.sleep(0.1)
    assert sandbox.call_blocking("inspect", ["CCO"]) == [None]


def test_memory_beyond_the_limit_is_refused() -> None:
    # Room for a few MiB: the list alone takes more.
    with Sandbox(memory_mib=8, seconds=10) as small:
        with pytest.raises(SandboxLimitError, match=r"8 MiB|broke"):
            small.call_blocking("inspect", ["C" * 200 + str(at) for at in range(100_000)])
        assert small.call_blocking("inspect", ["CCO"]) == [None]


def test_many_callers_share_the_processes_and_each_gets_its_own_answer() -> None:
    with Sandbox(processes=2, waiting=200) as made, ThreadPoolExecutor(16) as threads:
        lengths = range(1, 120)
        found = threads.map(lambda n: made.call_blocking("substructure", "C", ["O" + "C" * (n % 3), "N"] * n), lengths)
        for n, positions in zip(lengths, found, strict=True):
            assert positions == ([] if n % 3 == 0 else list(range(0, 2 * n, 2)))
        assert len(made._workers) == 2


def test_too_many_that_wait_are_refused_at_once() -> None:
    with Sandbox(waiting=1, seconds=1.0) as made, ThreadPoolExecutor(8) as threads:
        made.call_blocking("inspect", ["CCO"])
        slow = [threads.submit(made.call_blocking, "substructure", ENDLESS, [FULLERENE]) for _ in range(2)]
        while made._asked < 2 and not any(one.done() for one in slow):
            time.sleep(0.001)
        with pytest.raises(SandboxBusyError, match="wait"):
            made.call_blocking("inspect", ["CCO"])
        assert all(isinstance(one.exception(), SandboxLimitError) for one in slow)
        assert made.call_blocking("inspect", ["CCO"]) == [None]


def test_the_event_loop_goes_on_while_a_structure_hangs(sandbox: Sandbox) -> None:
    async def both() -> int:
        hanging = asyncio.ensure_future(sandbox.call("substructure", ENDLESS, [FULLERENE]))
        turns = 0
        while not hanging.done():
            await asyncio.sleep(0.005)
            turns += 1
        with pytest.raises(SandboxLimitError):
            await hanging
        assert await sandbox.call("inspect", ["CCO"]) == [None]
        return turns

    assert asyncio.run(both()) > 20


def test_the_verifier_matches_as_the_library_does_and_stops_at_its_time(sandbox: Sandbox) -> None:
    smiles = ["C" * (1 + at % 30) + ("O" if at % 3 else "N") for at in range(4500)] + ["no structure", FULLERENE]
    for pattern in ("CO", "[NX3]", "c1ccccc1", "CCCCC"):
        assert np.array_equal(sandbox.verifier(60)(pattern, smiles), has_substructure(pattern, smiles, processes=1))
    assert not len(sandbox.verifier(60)("C", []))
    with pytest.raises(SandboxLimitError, match="narrow"):
        sandbox.verifier(1e-9)("CO", smiles)


def test_closing_ends_the_processes_and_what_is_under_way() -> None:
    made = Sandbox(processes=2)
    made.call_blocking("inspect", ["CCO"])
    pids = processes_of(made)
    with ThreadPoolExecutor(3) as threads:
        slow = [threads.submit(made.call_blocking, "substructure", ENDLESS, [FULLERENE]) for _ in range(3)]
        time.sleep(0.2)
        made.close()
        assert all(isinstance(one.exception(), SandboxLimitError | SandboxBusyError) for one in slow)
    assert len(pids) == 2 and all(gone(pid) for pid in [*pids, *processes_of(made)])
    with pytest.raises(SandboxBusyError, match="closed"):
        made.call_blocking("inspect", ["CCO"])
    made.close()


def test_a_sandbox_that_was_never_used_closes() -> None:
    Sandbox().close()


@pytest.mark.parametrize("limits", [{"processes": 0}, {"seconds": 0}, {"memory_mib": 0}, {"waiting": -1}])
def test_limits_that_allow_nothing_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ArgumentError, match="expected"):
        Sandbox(**limits)  # type: ignore[arg-type]


ORPHANS = """
    import threading, time
    from bridgehead.serve.sandbox import Sandbox

    sandbox = Sandbox(processes=2, seconds=600)
    sandbox.call_blocking("inspect", ["CCO"])
    threading.Thread(target=lambda: sandbox.call_blocking("substructure", %r, [%r]), daemon=True).start()
    time.sleep(0.3)
    print(*[worker._process.pid for worker in sandbox._workers], flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_the_one_that_made_it(how: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(ORPHANS % (ENDLESS, FULLERENE)))
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as made:
        assert made.stdout is not None
        pids = [int(pid) for pid in made.stdout.readline().split()]
        assert len(pids) == 2 and all(Path(f"/proc/{pid}").exists() for pid in pids)
        made.send_signal(how)
        made.wait(60)
    assert all(gone(pid) for pid in pids)


def test_the_processes_know_nothing_of_the_script_and_its_threads(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import threading\nprint('once')\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "from bridgehead.serve.sandbox import Sandbox\n"
        "with Sandbox() as sandbox:\n    print(sandbox.call_blocking('inspect', ['CCO']))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "once\n[None]\n" and done.stderr == ""


def test_importing_the_sandbox_loads_no_rdkit() -> None:
    code = "import sys, bridgehead.serve.sandbox; sys.exit('rdkit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
