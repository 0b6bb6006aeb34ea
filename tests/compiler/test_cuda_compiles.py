"""NVRTC compiles every kernel to what it was written for: see ``solvergen.verify.static``, which looks."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

import generated
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.cuda.kernels import REDUCE_TEXT, ROWS_TEXT
from solvergen.runtime.cuda.rows import SUM
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.ptx.text import parse
from solvergen.verify.dtypes import PAIRS
from solvergen.verify.static.arithmetic import arithmetic_findings
from solvergen.verify.static.capabilities import capability
from solvergen.verify.static.cuda import examine
from solvergen.verify.static.matrix import TARGETS, settings_of
from solvergen.verify.static.memory import space_findings
from solvergen.verify.static.source import Source

COMPILERS = nvrtc.installed()

pytestmark = pytest.mark.skipif(not COMPILERS, reason="NVRTC isn't installed")

compilers = pytest.mark.parametrize(
    "compiler", COMPILERS, ids=lambda found: f"{found.version[0]}.{found.version[1]}"
)

DEFINITIONS: dict[str, Definition] = {name: getattr(generated, name).definition for name in generated.__all__}


def check(
    compiler: nvrtc.Nvrtc, name: str, options: dict[str, bool], mix: tuple[str, str], number: int
) -> None:
    """What every kernel is held to, and what only those here are: users' rules may need more registers."""
    for measured in examine(compiler, DEFINITIONS[name], options, *mix, capability(number)):
        where = f"{name} {options} {mix} sm_{number} {compiler} {measured.kernel}"
        assert measured.findings == (), "\n".join([where, *map(str, measured.findings)])
        assert measured.spills == measured.stack == 0, where
        assert (measured.loads, measured.stores) == (measured.loads_needed, measured.stores_needed), where
        if "_stage_" in measured.kernel:
            continue
        assert measured.shared <= 24 * 1024, where
        assert measured.width == 128, where
        # Enough threads fit that loads in flight cover the memory's latency (docs/cuda.md). Passes with
        # reductions have terms in shared memory, which on older cards leaves room for fewer; those over tiles
        # have them in registers, of the two to four words that a thread takes at a time.
        enough = 8 if measured.shared or _walks_tiles(name, measured.kernel) else 24
        assert measured.in_flight >= enough * 1024, f"{where}: {measured.registers} registers"


def _walks_tiles(name: str, kernel: str) -> bool:
    number = kernel.rpartition("_")[2]
    return number.isdigit() and DEFINITIONS[name].passes[int(number)].walk == "tiles"


@pytest.mark.parametrize("name", generated.__all__)
def test_every_kernel(name: str) -> None:
    """Each setting of the options, pair of types, capability and compiler at least once."""
    settings = settings_of(DEFINITIONS[name])
    targets = list(itertools.product(TARGETS, COMPILERS))
    for turn in range(max(len(settings), len(PAIRS), len(targets))):
        number, compiler = targets[turn % len(targets)]
        # Options change slowest where they would otherwise keep step with the types.
        options = settings[(turn + turn // len(PAIRS)) % len(settings)]
        check(compiler, name, options, PAIRS[turn % len(PAIRS)], number)


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("SOLVERGEN_STATIC") != "all",
    reason="thousands of kernels, a quarter of an hour: nox -s static, or SOLVERGEN_STATIC=all",
)
@pytest.mark.parametrize("number", TARGETS)
@compilers
def test_every_kernel_for_every_capability(compiler: nvrtc.Nvrtc, number: int) -> None:
    for name, definition in DEFINITIONS.items():
        for options, mix in itertools.product(settings_of(definition), PAIRS):
            check(compiler, name, options, mix, number)


@pytest.mark.parametrize("dtype", list(STORAGE_TYPES))
@compilers
def test_the_search_for_elements_that_are_not_finite(compiler: nvrtc.Nvrtc, dtype: str) -> None:
    text = Path(nvrtc.__file__).with_name("finite.cu").read_text(encoding="utf-8")
    for number in TARGETS:
        compiled = compiler.compile(text, f"sm_{number}", {"SG_GRAD": STORAGE_TYPES[dtype].code})
        (resources,) = compiled.resources
        assert resources.spill_stores == resources.spill_loads == resources.stack == 0
        kernel = parse(compiled.ptx).kernels["sg_finite"]
        assert arithmetic_findings(kernel, Source(text), float64=False) == ()
        loads = [i.modifiers for i in kernel.instructions if i.opcode == "ld" and "global" in i.modifiers]
        if dtype != "float64":  # whose exponents lie in every other 32 bits: some compilers load just these
            assert any("v4" in modifiers and modifiers[-1].endswith("32") for modifiers in loads)
        # It looks at bits: comparing numbers would cost a conversion for each.
        assert not any(m in ("f16", "f32", "f64") for i in kernel.instructions for m in i.modifiers)


@compilers
def test_the_kernel_that_reduces(compiler: nvrtc.Nvrtc) -> None:
    text = REDUCE_TEXT.read_text(encoding="utf-8")
    for number in TARGETS:
        compiled = compiler.compile(text, f"sm_{number}")
        (resources,) = compiled.resources
        assert resources.spill_stores == resources.spill_loads == resources.stack == 0
        kernel = parse(compiled.ptx).kernels["sg_reduce"]
        assert arithmetic_findings(kernel, Source(text), float64=True) == ()
        assert tuple(space_findings(kernel, Source(text))) == ()


@compilers
@pytest.mark.parametrize("dtype", list(STORAGE_TYPES))
def test_the_kernel_of_rows(compiler: nvrtc.Nvrtc, dtype: str) -> None:
    text = ROWS_TEXT.read_text(encoding="utf-8")
    code, itemsize = STORAGE_TYPES[dtype].code, STORAGE_TYPES[dtype].itemsize
    for turn, number in enumerate(TARGETS):
        for work in (turn % 2, SUM):
            defines = {"SG_WORK": work, "SG_SIZE": itemsize, "SG_ROWS": code}
            compiled = compiler.compile(text, f"sm_{number}", defines)
            (resources,) = compiled.resources
            assert resources.spill_stores == resources.spill_loads == resources.stack == 0
            kernel = parse(compiled.ptx).kernels["sg_rows"]
            assert arithmetic_findings(kernel, Source(text), float64=dtype == "float64") == ()
            assert tuple(space_findings(kernel, Source(text))) == ()


def test_wrong_pairs_of_types_do_not_compile() -> None:
    text = Path(DEFINITIONS["Lion"].folder, "kernel.cu").read_text(encoding="utf-8")
    for param, grad in ((1, 0), (0, 1), (2, 1)):
        with pytest.raises(nvrtc.KernelBuildError, match="float64 parameters need float64 gradients"):
            COMPILERS[0].compile(text, "compute_80", {"SG_PARAM": param, "SG_GRAD": grad})
