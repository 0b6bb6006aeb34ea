"""Which compiler is taken, and what is said when there is none."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from solvergen.errors import BackendUnavailable
from solvergen.runtime import native
from solvergen.runtime.backends.cpu import CpuBackend
from solvergen.runtime.native import compiler
from solvergen.runtime.native.compiler import find_compiler
from tests.unit.native.support import run_python

SYSTEM = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), "")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No compiler anywhere; the folder is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compiler, "_found", {})
    monkeypatch.setattr(compiler, "_ziglang", lambda: iter(()))
    return folder


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\nPATH={os.path.dirname(SYSTEM)}:/usr/bin:/bin\n{text}\n")
    path.chmod(0o755)
    return path


needs_system_compiler = pytest.mark.skipif(not SYSTEM, reason="there is no system compiler")


def test_none_at_all(bare: Path) -> None:
    reason = native.available()
    assert reason is not None
    assert "install a C compiler" in reason
    assert "pip install 'solvergen[native]'" in reason
    with pytest.raises(BackendUnavailable, match=r"backend 'cpu'.*install a C compiler.*backend='numpy'"):
        CpuBackend()


def test_none_that_works(bare: Path) -> None:
    script(bare / "cc", "echo cc: everything is broken >&2; exit 1")
    script(bare / "gcc", 'case "$*" in *--version*) echo gcc 1.0;; *) echo no headers >&2; exit 1;; esac')
    reason = native.available()
    assert reason is not None
    assert "cc: everything is broken" in reason
    assert "no headers" in reason
    assert "install a C compiler" in reason


def test_a_compiler_that_claims_success_and_makes_nothing(bare: Path) -> None:
    script(bare / "cc", "exit 0")
    reason = native.available()
    assert reason is not None
    assert "can't be loaded" in reason


@needs_system_compiler
def test_order(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gcc", "clang", "mine"):
        script(bare / name, f'exec {SYSTEM} "$@"')
    script(bare / "broken", "exit 1")
    paths = os.environ["PATH"]
    assert find_compiler().command == (str(bare / "gcc"),)
    monkeypatch.setenv("CC", "mine -O0 -ffast-math")
    assert find_compiler().command == (str(bare / "mine"), "-O0", "-ffast-math")
    monkeypatch.setenv("CC", "broken")
    assert find_compiler().command == (str(bare / "gcc"),)
    monkeypatch.setenv("CC", "no-such")
    assert find_compiler().command == (str(bare / "gcc"),)
    monkeypatch.setenv("SOLVERGEN_CC", str(bare / "clang"))
    assert find_compiler().command == (str(bare / "clang"),)
    # One that was asked for by name is not silently replaced.
    monkeypatch.setenv("SOLVERGEN_CC", "broken")
    with pytest.raises(BackendUnavailable, match="SOLVERGEN_CC"):
        find_compiler()
    monkeypatch.setenv("SOLVERGEN_CC", "no-such --x")
    with pytest.raises(BackendUnavailable, match=r"SOLVERGEN_CC.*no-such --x: not found"):
        find_compiler()
    assert os.environ["PATH"] == paths


@needs_system_compiler
def test_flags_of_cc_that_change_values_are_undone(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from solvergen.runtime.native.inspection import assembly, fused_operations, loops

    monkeypatch.setenv("PATH", os.path.dirname(SYSTEM))
    monkeypatch.setenv("CC", f"{SYSTEM} -O0 -ffast-math -ffp-contract=fast")
    text = "float sg_run(float a, float b, float c) { return (a + b) - a + a * b + c / 3.0f; }"
    listing = assembly(text)
    assert "-ffast-math" in find_compiler().command
    assert fused_operations(listing) == []
    assert sum(listing.count(f"{op}ss") for op in ("add", "sub", "mul", "div")) in (0, 6)  # 0: not x86
    assert loops(listing) == ()


@needs_system_compiler
def test_a_replaced_compiler_is_looked_at_again(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(bare / "cc", f'exec {SYSTEM} "$@"')
    first = find_compiler()
    monkeypatch.setattr(compiler, "_found", {})
    assert find_compiler() == first
    script(path, f'case "$*" in *--version*) echo version 2;; *) exec {SYSTEM} "$@";; esac')
    monkeypatch.setattr(compiler, "_found", {})
    second = find_compiler()
    assert second.version == "version 2\n"
    assert second.identity != first.identity


@needs_system_compiler
@pytest.mark.parametrize("refused", ["-march=native", "native"])
def test_options_for_this_processor_are_left_out_where_refused(bare: Path, refused: str) -> None:
    script(bare / "cc", f'case "$*" in *{refused}*) echo bad option >&2; exit 1;; esac; exec {SYSTEM} "$@"')
    options = find_compiler().options
    assert not any(refused in option for option in options)
    assert "-ffp-contract=off" in options


def test_what_is_kept_about_a_compiler_is_readable(kernel_cache: Path) -> None:
    find_compiler()
    kept = [json.loads(path.read_text()) for path in (kernel_cache / "native").glob("*.json")]
    assert kept
    assert all(set(each) == {"version", "options"} for each in kept)


def test_backend_auto_and_by_name_without_a_compiler(tmp_path: Path) -> None:
    """As a user meets it: one warning and NumPy, or an error where the backend was asked for."""
    code = """
import warnings
import numpy as np
from solvergen.runtime.native import compiler
compiler._ziglang = lambda: iter(())
from generated import Adam
from solvergen.errors import SolvergenError
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        w = np.ones(3, np.float32)
        opt = Adam({"w": w})
        opt.step({"w": np.ones(3, np.float32)})
print(len(caught), "install a C compiler" in str(caught[0].message), w[0] < 1)
try:
    Adam({"w": w}, backend="cpu")
except SolvergenError as error:
    print("install a C compiler" in str(error))
"""
    done = run_python(code, PATH=str(tmp_path), CC=None, SOLVERGEN_CC=None)
    assert done.stdout == "1 True True\nTrue\n", done.stdout + done.stderr


zig = pytest.mark.skipif(
    not list(compiler._ziglang()) or sys.platform == "win32", reason="ziglang is not installed"
)


@zig
@pytest.mark.slow
def test_ziglang_instead_of_a_system_compiler(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """All of the above with `zig cc`: the same bits, vectorised, nothing fused."""
    empty = tmp_path / "bin"
    empty.mkdir()
    code = """
from tests.unit.native.support import adam_plan, check_steps, values
from solvergen.runtime.native.compiler import find_compiler
from solvergen.runtime.native.inspection import assembly, fused_operations, loops
from tests.unit.native.test_vectorised import HANDWRITTEN
from tests.unit.native.test_cpu_backend import MIXES
print(find_compiler().command[1:])
for param, grad in MIXES:
    plan = adam_plan([values((40001,), param), values((), param)], grad)
    check_steps(plan, [[values((40001,), grad, 1), values((), grad, 2)]] * 2)
    print(param, grad)
for code in range(4):
    macros = (f"SG_PARAM={code}", f"SG_GRAD={code}", "SG_OPTION_amsgrad=1", "SG_OPTION_maximize=0")
    listing = assembly(HANDWRITTEN.read_text(), macros)
    assert fused_operations(listing) == []
    assert any(loop.packed and not loop.scalar for loop in loops(listing)), loops(listing)
print("done")
"""
    done = run_python(
        code,
        timeout=600,
        PATH=str(empty),
        CC=None,
        SOLVERGEN_CC=None,
        SOLVERGEN_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert done.stdout.startswith("('cc',)\n"), done.stderr
    assert done.stdout.endswith("done\n"), done.stderr
