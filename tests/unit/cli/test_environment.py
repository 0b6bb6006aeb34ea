"""The command as a process in all kinds of surroundings: streams, locales, signals; and what it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from solvergen.cli import main; main()"]
ROOT = Path(__file__).parents[3]

SPEC = """\
name: plain
summary: Gradient descent à la Möbius.
hyperparameters:
  lr: {default: 0.1, min: 0, doc: die Größe}
references: [{title: Über Čech, authors: Čech, year: 1900}]
update:
  - param = param - lr*grad
"""

ASCII = {"PYTHONIOENCODING": "ascii"}
POSIX = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture(autouse=True)
def signals_as_on_a_terminal() -> Iterator[None]:
    """Whoever runs the tests (nohup, a shell's background) may ignore signals, and children inherit that."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with one spec in specs/, its texts and file name not ASCII, and temp/ for temporary files."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "temp").mkdir()
    (tmp_path / "specs" / "größe.yaml").write_text(SPEC, encoding="utf-8")
    return tmp_path


def surroundings(here: Path, **more: str) -> dict[str, str]:
    kept = {
        k: v for k, v in os.environ.items() if k not in ("LC_ALL", "LANG", "PYTHONUTF8", "PYTHONIOENCODING")
    }
    return {**kept, "PYTHONPATH": str(ROOT), "TMPDIR": str(here / "temp"), **more}


def run(here: Path, *arguments: str, shell: str = "", **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command in ``here``; ``shell`` redirects."""
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", *COMMAND, *arguments]
    return subprocess.run(
        command, cwd=here, env=surroundings(here, **env), capture_output=True, timeout=100, check=False
    )


# streams


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "arguments", [("list",), ("check", "--json"), ("show", "plain"), ("build", "--check"), ("--help",)]
)
def test_closed_streams_are_no_error(here: Path, closed: str, arguments: tuple[str, ...]) -> None:
    done = run(here, *arguments, shell=closed)
    assert done.returncode == (1 if "--check" in arguments else 0)
    assert b"This is a bug" not in done.stdout + done.stderr
    if "2>&-" in closed and ">&- 2" not in closed:
        assert done.stdout == run(here, *arguments).stdout


def test_files_are_not_mistaken_for_a_closed_stdout(here: Path) -> None:
    """Descriptor 1 would be the next that a file gets."""
    run(here, "build", "--out", "expected")
    assert run(here, "build", "--out", "found", shell="<&- >&- 2>&-").returncode == 0
    expected, found = (
        {p.relative_to(here / out): p.read_bytes() for p in (here / out / "plain").rglob("*") if p.is_file()}
        for out in ("expected", "found")
    )
    assert found == expected


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_behind_stdout_is_told(here: Path) -> None:
    for arguments in (("list",), ("show", "plain", "--stage", "cuda"), ("list", "--json")):
        done = run(here, *arguments, shell=">/dev/full")
        assert done.returncode == 1
        assert done.stderr.count(b"No space left") == 1
        assert b"bug" not in done.stderr
        assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("env", [ASCII, POSIX], ids=["ascii", "posix"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("check", "--json"),
        ("list",),
        ("list", "--json"),
        ("show", "plain", "--stage", "parsed"),
        ("show", "plain", "--json"),
        ("build", "--check"),
        ("build", "--check", "--json"),
        ("build", "--json"),
    ],
)
def test_streams_that_are_ascii_only_get_what_they_can_take(
    here: Path, arguments: tuple[str, ...], env: dict[str, str]
) -> None:
    plain = run(here, *arguments, LC_ALL="C.UTF-8")
    for path in (here / "generated",):
        if path.exists():
            assert run(here, "build", "--check", **env).returncode == 0  # the same files in every locale
            subprocess.run(["rm", "-r", str(path)], check=True)
    done = run(here, *arguments, **env)
    assert b"bug in solvergen" not in done.stderr
    assert done.returncode == plain.returncode
    assert done.stdout.isascii()
    if "--json" in arguments:
        assert json.loads(done.stdout) == json.loads(plain.stdout)
    else:
        assert len(done.stdout.splitlines()) == len(plain.stdout.splitlines())


# signals


INTERRUPTING = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "solvergen.cli.app":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


def ran(here: Path, script: str) -> subprocess.CompletedProcess[bytes]:
    """A process that runs ``script``."""
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=here,
        env=surroundings(here),
        capture_output=True,
        timeout=100,
        check=False,
    )


def interrupted(here: Path, script: str) -> subprocess.CompletedProcess[bytes]:
    """``solvergen verify`` of 300 examples in a process in which ``script`` ran first."""
    arguments = ["verify", "-n", "300", "--backends", "numpy"]
    return ran(here, f"{script}\nimport sys\nsys.argv[1:] = {arguments}\n{COMMAND[2]}")


IN_THE_COLLECTOR = """
import gc, signal
from solvergen.verify import agreement
count = 0
raised = False
def callback(phase, info):
    global raised
    if count == 3 and not raised:
        raised = True
        signal.raise_signal(signal.{name})
gc.callbacks.append(callback)
before = agreement.disagreement_on
def disagreement_on(*arguments):
    global count
    count += 1
    print(count, flush=True)
    gc.collect()
    return before(*arguments)
agreement.disagreement_on = disagreement_on
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_during_garbage_collection_ends_verify(here: Path, name: str) -> None:
    """Where an exception of its handler would be printed and forgotten."""
    done = interrupted(here, IN_THE_COLLECTOR.replace("{name}", name))
    assert done.returncode == 128 + getattr(signal, name)
    assert b"Exception ignored" not in done.stderr
    assert done.stdout.split() == [b"1", b"2", b"3"]
    assert not any((here / "temp").iterdir())


def test_a_second_signal_does_not_wait_for_the_end_of_an_example(here: Path) -> None:
    script = """
import signal, time
from solvergen.verify import agreement
def disagreement_on(*arguments):
    signal.raise_signal(signal.SIGINT)
    print("first", flush=True)
    signal.raise_signal(signal.SIGINT)
    print("second", flush=True)
agreement.disagreement_on = disagreement_on
"""
    done = interrupted(here, script)
    assert done.returncode == 130
    assert done.stdout.split() == [b"first"]


def test_an_interrupt_during_the_imports_is_silent(here: Path) -> None:
    done = ran(here, f"import os, signal, sys\n{INTERRUPTING}\n{COMMAND[2]}")
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_streams_that_were_taken_away(here: Path) -> None:
    for taken in ("sys.stdout.close()", "sys.stdout = None", "sys.stderr = None", "sys.stderr.close()"):
        script = f"import sys\nfrom solvergen.cli import streams\n{taken}\nsys.exit(streams.finish(0))"
        done = ran(here, script)
        assert (done.returncode, done.stderr) == (0, b"")
        script = f"import sys\nfrom solvergen.solver.logs.sinks import to_stderr\n{taken}\nto_stderr('x')"
        assert ran(here, script).returncode == 0


def test_shrinking_can_be_interrupted(here: Path) -> None:
    script = """
import signal
from dataclasses import replace
from solvergen.verify import agreement
from solvergen.verify.disagreement import Disagreement
tries = 0
def disagreement_on(optimizer, backend, example, expected=None):
    global tries
    tries += 1
    if tries == 22:
        signal.raise_signal(signal.SIGINT)
    print(tries, flush=True)
    found = Disagreement("Plain", "specs/plain.yaml", backend.name, example, error="wrong")
    return None if tries < 20 else found
agreement.disagreement_on = disagreement_on
"""
    done = interrupted(here, script)
    assert done.returncode == 130
    assert done.stdout.split()[-1] == b"22"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_build_of_a_kernel_leaves_nothing_behind(here: Path, name: str, jobs: int) -> None:
    """The compiler runs in a temporary folder, verify's package lies in another."""
    (here / "specs" / "second.yaml").write_text(SPEC.replace("name: plain", "name: second"), encoding="utf-8")
    compiler = here / "slow-cc"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *kernel.c*) : > started; exec sleep 100;; *) exec cc "$@";; esac\n'
    )
    compiler.chmod(0o755)
    env = surroundings(here, SOLVERGEN_CC=str(compiler), SOLVERGEN_CACHE_DIR=str(here / "cache"))
    child = subprocess.Popen(
        [*COMMAND, "verify", "--backends", "cpu", "--jobs", str(jobs)],
        cwd=here,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (here / "started").exists():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert any((here / "temp").iterdir())
    os.killpg(child.pid, getattr(signal, name))  # as a terminal does it; workers have groups of their own
    out, err = child.communicate(timeout=60)
    assert child.returncode == 128 + getattr(signal, name), (out, err)
    assert [p.name for p in (here / "temp").iterdir()] == []
    if sys.platform == "linux":
        assert processes(here / "temp") == []


def processes(temporary: Path) -> list[bytes]:
    """Command lines of processes whose temporary files go there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            surroundings, command = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"TMPDIR=" + os.fsencode(temporary) in surroundings and command:  # empty: only to be waited for
            found.append(command)
    return found


def test_ignored_signals_stay_ignored(here: Path) -> None:
    script = f"import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n{IN_THE_COLLECTOR}"
    done = interrupted(here, script.replace("{name}", "SIGHUP"))
    assert done.returncode == 0, done.stderr
    assert b"passed" in done.stdout


# what is left behind


def test_verify_leaves_no_files(here: Path) -> None:
    before = sorted(here.rglob("*"))
    done = run(here, "verify", "--backends", "numpy", "-n", "3")
    assert done.returncode == 0
    assert sorted(here.rglob("*")) == before


def test_check_agreement_leaves_no_files_and_hypothesis_as_it_was(here: Path) -> None:
    script = """
from hypothesis import configuration
from solvergen.optimizers import Lion
from solvergen.verify import check_agreement
configuration.set_hypothesis_home_dir("mine")
check_agreement(Lion, ("numpy",), examples=2)
assert configuration.storage_directory("x").path.as_posix() == "mine/x"
configuration.set_hypothesis_home_dir(None)
check_agreement(Lion, ("numpy",), examples=2)
assert configuration.storage_directory("x").path.parent.name == ".hypothesis"
"""
    before = sorted(here.rglob("*"))
    subprocess.run([sys.executable, "-c", script], cwd=here, env=surroundings(here), timeout=100, check=True)
    assert sorted(here.rglob("*")) == before
