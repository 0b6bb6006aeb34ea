"""Decoding knows all the arithmetic that NVRTC emits, and nothing is passed to the machine by mistake."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import generated
from solvergen.errors import PtxError
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.definition import Definition
from solvergen.runtime.kernel_interface import update_defines
from solvergen.runtime.ptx.instructions import Operation, decode
from solvergen.runtime.ptx.module import Instruction
from solvergen.runtime.ptx.text import parse
from solvergen.runtime.ptx.types import Type
from tests.support.cuda_launch import MIXES
from tests.support.ptx_instructions import as_tuple, evaluate

COMPILERS = nvrtc.installed()
HERE = Path(__file__).parent
DEFINITIONS: dict[str, Definition] = {name: getattr(generated, name).definition for name in generated.__all__}

MACHINE = frozenset(
    ("activemask", "atom", "bar", "bra", "cvta", "exit", "ld", "membar", "nanosleep", "ret", "shfl", "st")
) | {"trap", "vote"}
"""The opcodes of these kernels that aren't arithmetic."""

pytestmark = pytest.mark.skipif(not COMPILERS, reason="NVRTC isn't installed")

compilers = pytest.mark.parametrize(
    "compiler", COMPILERS, ids=lambda found: f"{found.version[0]}.{found.version[1]}"
)


def capabilities(compiler: nvrtc.Nvrtc) -> list[int]:
    return [capability for capability in compiler.capabilities if capability >= 75]


def instructions(ptx: str) -> Iterator[Instruction]:
    for kernel in parse(ptx).kernels.values():
        yield from kernel.instructions


def operations(ptx: str) -> dict[str, Operation]:
    """Every arithmetic instruction, decoded, one of each name; others must be the machine's."""
    found = {}
    for instruction in instructions(ptx):
        operation = decode(instruction)
        assert (operation is None) == (instruction.opcode in MACHINE), instruction.name
        if operation is not None:
            found[instruction.name] = operation
    return found


def some(type: Type, lanes: int, random: np.random.Generator) -> np.ndarray:
    if type.kind == "predicate":
        return random.random(lanes) < 0.5
    words = random.integers(0, 2**64 - 1, lanes, np.uint64, endpoint=True)
    return words.astype(f"u{type.nbytes}").view(type.dtype)


def check_computes(operation: Operation, random: np.random.Generator) -> None:
    """Results have their types and lengths for any bits, for lanes of their own and for one that is all's."""
    for lanes in (1, 33):
        evaluate(operation, [some(source, lanes, random) for source in operation.sources])
    with np.errstate(all="ignore"):
        none = as_tuple(operation.compute(*(some(source, 0, random) for source in operation.sources)))
    assert [result.size for result in none] == [0] * len(operation.results)
    for shared in range(len(operation.sources)):
        lengths = (1 if index == shared else 33 for index in range(len(operation.sources)))
        evaluate(operation, [some(s, n, random) for s, n in zip(operation.sources, lengths, strict=True)])


def settings_of(definition: Definition) -> list[dict[str, bool]]:
    names = definition.option_names
    return [dict(zip(names, v, strict=True)) for v in itertools.product((False, True), repeat=len(names))]


@compilers
@pytest.mark.parametrize("name", generated.__all__)
def test_every_update_kernel(name: str, compiler: nvrtc.Nvrtc) -> None:
    """Each setting of the options, pair of types and capability at least once."""
    definition = DEFINITIONS[name]
    text = Path(definition.folder, "kernel.cu").read_text(encoding="utf-8")
    settings, targets = settings_of(definition), capabilities(compiler)
    found: dict[str, Operation] = {}
    for turn in range(max(len(settings), len(MIXES), len(targets))):
        options = settings[(turn + turn // len(MIXES)) % len(settings)]
        defines = update_defines(*MIXES[turn % len(MIXES)], options)
        compiled = compiler.compile(text, f"compute_{targets[turn % len(targets)]}", defines)
        found |= operations(compiled.ptx)
    assert {"mul.rn.f32", "mul.rn.f64", "setp.lt.u32", "mul.wide.s32"} <= set(found)


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("SOLVERGEN_STATIC") != "all",
    reason="thousands of kernels, six minutes and more: nox -s static, or SOLVERGEN_STATIC=all",
)
@compilers
def test_every_setting_with_every_pair_of_types(compiler: nvrtc.Nvrtc) -> None:
    """The capability turns with them, out of step."""
    targets = itertools.cycle(capabilities(compiler))
    for definition in DEFINITIONS.values():
        text = Path(definition.folder, "kernel.cu").read_text(encoding="utf-8")
        for options, mix in itertools.product(settings_of(definition), MIXES):
            defines = update_defines(*mix, options)
            operations(compiler.compile(text, f"compute_{next(targets)}", defines).ptx)


@compilers
@pytest.mark.parametrize("flags", [(), ("--fmad=true",), ("--ftz=true",)], ids=["strict", "fmad", "ftz"])
@pytest.mark.parametrize("source", ["arithmetic.cu", "everything.cu"])
def test_handwritten_kernels(source: str, flags: tuple[str, ...], compiler: nvrtc.Nvrtc) -> None:
    text = HERE.joinpath(source).read_text(encoding="utf-8")
    random = np.random.default_rng(0)
    found: dict[str, Operation] = {}
    for capability in (75, 90, 100, 120):
        found |= operations(compiler.compile(text, f"compute_{capability}", {}, extra_flags=flags).ptx)
    for operation in found.values():
        check_computes(operation, random)
    if source == "arithmetic.cu":
        assert len(found) > 200
        assert any(name.startswith("fma.rn") for name in found)
        assert any(".ftz." in name for name in found) == ("--ftz=true" in flags)


@compilers
@pytest.mark.parametrize("call", ["expf(x)", "tanhf(x)", "powf(x, 3.7f)", "rsqrtf(x)", "__fdividef(x, 3)"])
def test_approximations_are_refused(call: str, compiler: nvrtc.Nvrtc) -> None:
    text = 'extern "C" __global__ void k(float *p) { float x = p[threadIdx.x]; p[threadIdx.x] = CALL; }'
    ptx = compiler.compile(text.replace("CALL", call), "compute_90").ptx
    with pytest.raises(PtxError, match="is an approximation") as caught:
        operations(ptx)
    assert ".approx" in caught.value.text
    assert ptx.splitlines()[caught.value.line - 1].split() == caught.value.text.split()
