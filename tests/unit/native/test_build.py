"""Kernels are compiled and kept rightly when processes race, disks are full and files rot."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from solvergen.errors import CacheWarning, NativeBuildError
from solvergen.runtime import cache_folder
from solvergen.runtime.native import build, compiler
from solvergen.runtime.native.build import load
from tests.unit.native.support import ROOT, run_python

FUNCTION = '__attribute__((visibility("default"))) int answer(void) { return %d; }\n'
STEP = """
from tests.unit.native.support import adam_plan, check_steps, values
plan = adam_plan([values((1000,), "float32")])
check_steps(plan, [[values((1000,), "float32", 1)]] * 2)
print("right")
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a process that remembers nothing."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(folder))
    forget(monkeypatch)
    return folder


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_loaded", {})
    monkeypatch.setattr(compiler, "_found", {})
    monkeypatch.setattr(cache_folder, "_warned", set())


def objects(cache: Path) -> list[Path]:
    return sorted((cache / "native").glob("*.so"))


def refuse_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*arguments: Any, **_: Any) -> Any:
        raise AssertionError(f"a process was started: {arguments}")

    monkeypatch.setattr(subprocess, "run", started)
    monkeypatch.setattr(subprocess, "Popen", started)


def test_a_warm_start_runs_no_process(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load({"a.c": FUNCTION % 1}).answer() == 1
    forget(monkeypatch)
    refuse_processes(monkeypatch)
    assert load({"a.c": FUNCTION % 1}).answer() == 1
    with pytest.raises(AssertionError, match="a process was started"):
        load({"a.c": FUNCTION % 2})


def test_one_object_for_each_text_definition_and_option(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '__attribute__((visibility("default"))) int answer(void) { return N; }\n'
    assert load({"a.c": text}, ["N=1"]).answer() == 1
    assert load({"a.c": text}, ["N=2"]).answer() == 2
    assert load({"a.c": text + "\n"}, ["N=2"]).answer() == 2
    assert load({"a.c": '#include "n.h"\n' + text, "n.h": "#define N 3\n"}).answer() == 3
    assert load({"a.c": '#include "n.h"\n' + text, "n.h": "#define N 4\n"}).answer() == 4
    assert len(objects(cache)) == 5
    # A home directory may be shared by machines with other processors.
    monkeypatch.setattr(build, "processor", lambda: "another")
    assert load({"a.c": text}, ["N=1"]).answer() == 1
    assert len(objects(cache)) == 6
    monkeypatch.setattr(build, "ABI", build.ABI + 1)
    assert load({"a.c": text}, ["N=1"]).answer() == 1
    assert len(objects(cache)) == 7


def test_the_folder_is_its_owner_s_alone(cache: Path) -> None:
    load({"a.c": FUNCTION % 1})
    for path in (cache, cache / "native", *objects(cache)):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert [p.name for p in (cache / "native").iterdir() if p.suffix not in (".so", ".json")] == []


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "zeros"])
def test_damaged_objects_are_built_again(cache: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load({"a.c": FUNCTION % 1}).answer() == 1
    paths = [path for path in (cache / "native").iterdir() if path.is_file()]
    assert len(paths) == 2  # what is known of the compiler, and the object
    for path in paths:
        data = bytearray(path.read_bytes())
        if damage == "cut":
            del data[len(data) // 2 :]
        elif damage == "bit":
            data[len(data) // 2] ^= 0x10
        elif damage == "empty":
            data.clear()
        else:
            data[:] = bytes(len(data))
        path.unlink()  # the object is in use by this process
        path.write_bytes(data)
        path.chmod(0o700)
    runs = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: (runs.append(a), run(*a, **k))[1])
    forget(monkeypatch)
    assert load({"a.c": FUNCTION % 1}).answer() == 1
    assert len(runs) == 3  # the version, the trial, the object
    forget(monkeypatch)
    assert load({"a.c": FUNCTION % 1}).answer() == 1  # and all is well now
    assert len(runs) == 3


def test_an_object_of_another_machine_is_built_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checksum and all in order, but the system can't load it."""
    load({"a.c": FUNCTION % 5})
    (path,) = objects(cache)
    key = path.name.split(".")[0]
    path.unlink()
    cache_folder.open_cache("native").store(key, b"\x7fELF no more", ".so")
    forget(monkeypatch)
    assert load({"a.c": FUNCTION % 5}).answer() == 5


def test_processes_that_build_the_same_kernel_at_once(cache: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SOLVERGEN_CACHE_DIR": str(cache)}
    begin = time.time() + 1.5
    wait = f"import time; time.sleep(max(0, {begin!r} - time.time()))\n"
    command = [sys.executable, "-W", "error", "-c", wait + STEP]
    running = [
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(5)
    ]
    for process in running:
        out, problem = process.communicate(timeout=120)
        assert out == "right\n", problem
    assert [p for p in (cache / "native").iterdir() if p.suffix not in (".so", ".json")] == []


def test_threads_that_build_the_same_kernel_at_once(cache: Path) -> None:
    import threading

    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(load({"a.c": FUNCTION % 8}).answer()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [8] * 8
    assert len(objects(cache)) == 1


def test_a_kernel_that_does_not_compile(cache: Path) -> None:
    text = "int wrong(void) {\n    return missing_name;\n}\n"
    with pytest.raises(NativeBuildError) as caught:
        load({"kernel.c": text}, ["SG_PARAM=0"])
    error = caught.value
    assert "missing_name" in error.log
    assert "missing_name" in str(error)
    assert "-ffp-contract=off" in error.command
    assert "-DSG_PARAM=0" in error.command
    assert Path(error.kept, "kernel.c").read_text() == text
    assert error.kept in str(error)
    assert stat.S_IMODE(os.stat(error.kept).st_mode) == 0o700
    assert objects(cache) == []


def failing_writes(monkeypatch: pytest.MonkeyPatch, under: Path, number: int) -> None:
    write = cache_folder._write_whole

    def refuse(path: Path, data: bytes) -> Path:
        if under in path.parents:
            raise OSError(number, os.strerror(number), str(path))
        return write(path, data)

    monkeypatch.setattr(cache_folder, "_write_whole", refuse)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_cache_that_takes_no_files(cache: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_writes(monkeypatch, cache, number)
    assert load({"a.c": FUNCTION % 3}).answer() == 3
    assert objects(cache) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_nothing_takes_files_once_it_is_compiled(
    cache: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_writes(monkeypatch, Path("/"), number)
    assert load({"a.c": FUNCTION % 4}).answer() == 4


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux mounts")
@pytest.mark.parametrize(
    "options", ["size=12k,mode=700", "ro,mode=700", "noexec,mode=700"], ids=["full", "ro", "noexec"]
)
def test_on_real_file_systems(options: str, tmp_path: Path) -> None:
    place = tmp_path / "mounted"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("mounting a file system needs rights that this user lacks")
    try:
        for _ in range(2):  # the second time with what the first could leave there
            done = run_python(STEP, SOLVERGEN_CACHE_DIR=str(place))
            assert done.stdout == "right\n", done.stderr
        # The same for temporary files, but that some place must take what the compiler makes.
        done = run_python(STEP, SOLVERGEN_CACHE_DIR=str(tmp_path / "fresh"), TMPDIR=str(place))
        assert done.stdout == "right\n", done.stderr
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load({"a.c": FUNCTION % 1})
    (cache / "native").chmod(0o500)
    try:
        forget(monkeypatch)
        assert load({"a.c": FUNCTION % 1}).answer() == 1
        assert load({"a.c": FUNCTION % 2}).answer() == 2
        assert len(objects(cache)) == 1
    finally:
        (cache / "native").chmod(0o700)


def test_no_space_for_any_file() -> None:
    """RLIMIT_FSIZE: neither the compiler nor anybody else can write more than a few hundred bytes."""
    done = run_python(
        """
import resource, warnings
from solvergen.errors import NativeBuildError, BackendUnavailable
from solvergen.runtime.native.compiler import find_compiler
find_compiler()
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
from solvergen.runtime.native.build import load
try:
    load({"a.c": "int a;" + " " * 400})
except NativeBuildError as error:
    print("refused:", error)
""",
    )
    assert done.stdout.startswith("refused:"), done.stderr
    assert any(text in done.stdout for text in ("no space", "File too large", "File size limit")), done.stdout


def test_a_folder_that_others_can_write_is_not_used(cache: Path) -> None:
    cache.mkdir(mode=0o700)
    cache.chmod(0o777)
    with pytest.warns(CacheWarning, match="others may write"):
        assert load({"a.c": FUNCTION % 6}).answer() == 6
    assert list(cache.iterdir()) == []


def test_without_a_home(tmp_path: Path) -> None:
    done = run_python(
        STEP, SOLVERGEN_CACHE_DIR=None, XDG_CACHE_HOME=None, HOME=str(tmp_path / "file" / "below")
    )
    assert done.stdout == "right\n", done.stderr
    (tmp_path / "file").write_text("") if not (tmp_path / "file").exists() else None
    done = run_python(STEP, SOLVERGEN_CACHE_DIR="/proc/no/such", XDG_CACHE_HOME=None)
    assert done.stdout == "right\n", done.stderr
    assert "CacheWarning" in done.stderr
    assert "SOLVERGEN_CACHE_DIR" in done.stderr or "/proc/no/such" in done.stderr


def test_loading_twice_gives_the_same_library(cache: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = load({"a.c": FUNCTION % 7}), load({"a.c": FUNCTION % 7})
    assert first is second
    assert isinstance(first, ctypes.CDLL)
