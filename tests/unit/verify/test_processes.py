"""verify in several processes: the same rows as in one, crashes that are told, and nothing left behind."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvergen import compiler
from solvergen.errors import VerificationError
from solvergen.runtime.backends.numpy import NumpyBackend
from solvergen.runtime.importing import import_package
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify import Progress, matrix, optimizers_in, read_replay, select, shipped, verify_all
from solvergen.verify.drawing import each_example
from solvergen.verify.processes import _temporary_folder
from solvergen.verify.replaying.data import example_data
from solvergen.verify.report import Row
from solvergen.verify.settings import space_of
from solvergen.verify.trace import Difference
from solvergen.verify.wire import _difference, _difference_data
from tests.unit.verify.support import SPECS, faulty

ROOT = Path(__file__).parents[3]
WRONG = ("adam", "kernel.c", r"beta1 \* exp_avg \+", "beta1 * exp_avg -")
CRASHES = ("lion", "kernel.c", r"    \(void\)sg_row;", "    if (sg_count == 3) *(volatile int *)0 = 0;")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the test's own for temporary files, which must be empty afterwards."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    assert list(folder.iterdir()) == []
    monkeypatch.undo()
    tempfile.tempdir = None


def plain(row: Row) -> Any:
    """All of a row but its time."""
    found = row.disagreement
    data = None if found is None else (found.describe(), found.module, example_data(found.example))
    return row.optimizer, row.backend, row.outcome, row.examples, row.detail, data, row.replay


def test_the_rows_are_those_of_one_process(tmp_path: Path) -> None:
    with faulty(*WRONG) as adam:
        optimizers = {"adam": adam, **select(shipped(), ["lion", "signsgd"])}
        reports = [
            verify_all(
                optimizers, ["cpu", "numpy"], examples=15, seed=5, jobs=jobs, replays=tmp_path / "kept"
            )
            for jobs in (1, 3)
        ]
    assert [plain(row) for row in reports[1].rows] == [plain(row) for row in reports[0].rows]
    assert [row.outcome for row in reports[0].rows] == ["failed"] + ["passed"] * 5
    assert "equation  exp_avg = " in str(reports[1].rows[0].disagreement)
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_progress_comes_from_all_processes() -> None:
    seen: list[Progress] = []
    chosen = select(shipped(), ["lion", "signsgd", "sgd"])
    report = verify_all(chosen, ["numpy"], examples=12, jobs=2, progress=seen.append)
    for position, name in enumerate(chosen, start=1):
        of_this = [p for p in seen if p.optimizer == name]
        assert {(p.backend, p.position, p.total, p.examples) for p in of_this} == {("numpy", position, 3, 12)}
        assert set(range(1, 13)) <= {p.done for p in of_this}
        assert [p.row for p in of_this if p.row is not None] == [report.rows[position - 1]]


def test_a_crash_is_a_finding_and_the_others_go_on(tmp_path: Path) -> None:
    with faulty(*CRASHES) as lion:
        optimizers = {"lion": lion, **select(shipped(), ["signsgd"])}
        report = verify_all(optimizers, ["cpu", "numpy"], examples=30, jobs=2, replays=tmp_path / "kept")
        assert [(row.optimizer, row.backend, row.outcome) for row in report.rows] == [
            ("lion", "cpu", "failed"),
            ("lion", "numpy", "passed"),
            ("signsgd", "cpu", "passed"),
            ("signsgd", "numpy", "passed"),
        ]
        crashed = report.rows[0]
        assert crashed.detail == "cpu raises Crash: the process was ended by SIGSEGV"
        assert 0 < crashed.examples < 30
        assert crashed.disagreement is not None
        assert isinstance(crashed.replay, Path)
        again = read_replay(crashed.replay)
    # The example is the one on which it crashes: a chunk of three elements is in it, and in none before.
    drawn: list[Any] = []
    each_example(
        space_of(shipped()["lion"].definition), lambda e: drawn.append(e) or False, examples=30, seed=0
    )
    sizes = [{t.param.size for t in example.tensors} for example in drawn]
    assert example_data(again.example) == example_data(drawn[crashed.examples - 1])
    assert any(size == 3 or size > 1000 for size in sizes[crashed.examples - 1])


def test_a_process_that_ends_before_it_has_begun() -> None:
    ends = "import os, sys\nif 'solvergen.verify.worker' in sys.modules:\n    os._exit(3)\n"
    with faulty("lion", "scalars.py", r"(?m)^from __future__ import annotations$", rf"\g<0>\n{ends}") as lion:
        optimizers = {"lion": lion, **select(shipped(), ["signsgd"])}
        report = verify_all(optimizers, ["numpy"], examples=3, jobs=2)
    assert [row.outcome for row in report.rows] == ["failed", "passed"]
    assert report.rows[0].detail == "the process ended with exit code 3 before it could run the first example"


def test_what_others_cannot_import_runs_here() -> None:
    here: list[int] = []

    class Mine(shipped()["lion"]):  # type: ignore[misc]
        definition = shipped()["lion"].definition

        def step(self, gradients: Any) -> bool:
            here.append(os.getpid())
            return bool(super().step(gradients))

    optimizers: dict[str, type[Optimizer]] = {"lion": Mine, **select(shipped(), ["signsgd"])}
    report = verify_all(optimizers, ["numpy"], examples=5, jobs=2)
    assert [row.outcome for row in report.rows] == ["passed", "passed"]
    assert set(here) == {os.getpid()}


def test_a_package_that_another_one_hides_is_imported_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, hiding = tmp_path / "a" / "my_rules_here", tmp_path / "b" / "my_rules_here"
    for path, text in compiler.build([SPECS / "lion.yaml"]).artifacts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    hiding.mkdir(parents=True)
    (hiding / "__init__.py").write_text("raise RuntimeError('another one')")
    monkeypatch.syspath_prepend(hiding.parent)
    lion = optimizers_in(import_package("my_rules_here", folder))["lion"]
    monkeypatch.setattr(matrix, "rows_of", lambda *_, **__: pytest.fail("run in this process"))
    report = verify_all({"lion": lion, **select(shipped(), ["signsgd"])}, ["numpy"], examples=3, jobs=2)
    assert [row.outcome for row in report.rows] == ["passed", "passed"]


def test_a_backend_without_a_name_is_run_here() -> None:
    used: list[int] = []

    class Mine(NumpyBackend):
        def adopt(self, name: str, array: Any) -> Any:
            used.append(os.getpid())
            return super().adopt(name, array)

    report = verify_all(select(shipped(), ["lion", "signsgd"]), [Mine()], examples=3, jobs=2)
    assert report.ok
    assert set(used) == {os.getpid()}


def test_what_progress_raises_ends_all_processes(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*arguments: Any, **more: Any) -> Any:
        started.append(popen(*arguments, **more))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)

    def stop(at: Progress) -> None:
        if at.done > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_all(select(shipped(), ["lion", "signsgd"]), ["numpy"], examples=10_000, jobs=2, progress=stop)
    assert len(started) == 2
    assert all(process.returncode not in (None, 0) for process in started)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_workers_do_not_outlive_a_parent_that_is_killed(temporary: Path) -> None:
    script = """
import os, signal
from solvergen.verify import select, shipped, verify_all
def stop(at):
    if at.done > 5:
        os.kill(os.getpid(), signal.SIGKILL)
verify_all(select(shipped(), ["lion", "signsgd"]), ["numpy"], examples=100000, jobs=2, progress=stop)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=100, check=False
    )
    assert done.returncode == -9
    deadline = time.monotonic() + 30
    while workers(temporary):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for left in temporary.iterdir():  # nobody was there to remove it
        subprocess.run(["rm", "-r", str(left)], check=True)


def workers(temporary: Path) -> list[str]:
    """Processes whose temporary files are to go there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            surroundings = (process / "environ").read_bytes()
        except OSError:
            continue
        if process.name != str(os.getpid()) and f"TMPDIR={temporary}/".encode() in surroundings:
            found.append(process.name)
    return found


def test_fewer_processes_than_one() -> None:
    with pytest.raises(VerificationError, match="jobs=0: there must be one"):
        verify_all(shipped(), ["numpy"], jobs=0)


def test_the_seed_alone_decides_what_is_drawn(tmp_path: Path) -> None:
    """Not the numbers in modules that are loaded, which Hypothesis draws too if one lets it."""
    code = """
import hashlib, json, sys
sys.path.insert(0, sys.argv[1])
import loaded
from solvergen.verify import shipped
from solvergen.verify.drawing import each_example
from solvergen.verify.replaying.data import example_data
from solvergen.verify.settings import space_of
digest = hashlib.sha256()
def take(example):
    digest.update(json.dumps(example_data(example)).encode())
each_example(space_of(shipped()["adam"].definition), take, examples=30, seed=3)
print(digest.hexdigest())
"""
    found = set()
    for name, text in (
        ("few", "A = 5\n"),
        ("many", f"A = {[*range(2, 900), *(k / 7 for k in range(400))]}\n"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "loaded.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / name)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
        found.add(done.stdout.strip())
    digest = hashlib.sha256()

    def take(example: Any) -> bool:
        digest.update(json.dumps(example_data(example)).encode())
        return False

    each_example(space_of(shipped()["adam"].definition), take, examples=30, seed=3)
    assert found == {digest.hexdigest()}


@pytest.mark.parametrize(
    "difference",
    [
        Difference(1, "w0", "param", (2, 0), np.float32(0.1), np.float32("nan"), None, 3, 6),
        Difference(2, "w1", "s", None, 0.1, float("-inf"), 5),
        Difference(2, "w1", "t", None, 2**53, 1),
        Difference(1, "", "outcome", None, "raised", "applied"),
    ],
    ids=["element", "scalar", "count", "word"],
)
def test_differences_keep_every_bit_on_their_way(difference: Difference) -> None:
    back = _difference(json.loads(json.dumps(_difference_data(difference))))
    assert repr(back) == repr(difference)
    assert [type(back.expected), type(back.found)] == [type(difference.expected), type(difference.found)]


def test_only_what_a_row_names_stays_in_the_temporary_folder(temporary: Path) -> None:
    with _temporary_folder() as (folder, rows):
        for name in ("solvergen-build-a", "solvergen-build-b"):
            (folder / name).mkdir()
            (folder / name / "kernel.c").write_text("int")
        (folder / "file").write_text("x")
        rows.append(Row("lion", "cpu", "failed", detail=f"refused; see {folder / 'solvergen-build-a'}"))
    assert [path.name for path in folder.iterdir()] == ["solvergen-build-a"]
    subprocess.run(["rm", "-r", str(folder)], check=True)
