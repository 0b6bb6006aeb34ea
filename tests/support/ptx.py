"""Runs kernels in the PTX interpreter: CUDA text or PTX, NumPy arrays as its arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from solvergen.errors import KernelFault
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.buffers import address_of
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.ptx.machine.buffers import Buffer, variable_buffers
from solvergen.runtime.ptx.machine.faults import Shape
from solvergen.runtime.ptx.machine.launch import LIMIT, Launch, run
from solvergen.runtime.ptx.machine.program import Program, decoded
from solvergen.runtime.ptx.text import parse

COMPILERS = nvrtc.installed()

needs_nvrtc = pytest.mark.skipif(not COMPILERS, reason="NVRTC isn't installed")

HEADER = """
.version 8.0
.target sm_90
.address_size 64
"""


@functools.cache
def ptx_of(cuda: str, capability: int = 90, version: tuple[int, int] | None = None) -> str:
    """What NVRTC makes of CUDA text, with line numbers. Names are C's: ``extern "C"`` is put before it."""
    compiler = next(c for c in COMPILERS if version in (None, c.version))
    text = 'extern "C" {\n' + cuda + "\n}"
    return compiler.compile(text, f"compute_{capability}", extra_flags=("-lineinfo",)).ptx


def kernel_of(body: str, parameters: str = ".param .u64 out", *, before: str = "") -> str:
    """A whole PTX text with one kernel, ``k``."""
    return f"{HEADER}\n{before}\n.visible .entry k({parameters})\n{{\n{body}\n}}\n"


@functools.cache
def program_of(ptx: str, name: str | None = None) -> Program:
    """The kernel ``name`` of a text, or its only one."""
    module = parse(ptx)
    return decoded(module, name or next(iter(module.kernels)))


def execute(
    ptx: str,
    *arguments: Any,
    blocks: int | tuple[int, ...] = 1,
    threads: int | tuple[int, ...] = 32,
    name: str | None = None,
    read_only: tuple[HostArray, ...] = (),
    unwritten: tuple[HostArray, ...] = (),
    pointed: tuple[HostArray, ...] = (),
    variables: tuple[Buffer, ...] | None = None,
    shared: int = 0,
    limit: int = LIMIT,
    source: str = "",
) -> None:
    """Launch a kernel. Arrays among the arguments are handed over by their address and called "argument 0".

    ``read_only`` and ``unwritten`` list those of them that the kernel may not write, or that hold nothing.
    ``pointed`` are further arrays, to which tables among the arguments point; they are numbered after them.
    The launch is run under both orders, whether or not one could show: that is a test of the machine.
    """
    program = program_of(ptx, name)
    buffers, values = [], []
    for place, argument in enumerate((*arguments, *pointed)):
        if not isinstance(argument, np.ndarray):
            values.append(argument)
            continue
        if place < len(arguments):
            values.append(np.uint64(address_of(argument)))
        written = np.zeros(argument.nbytes, np.bool_) if any(argument is a for a in unwritten) else None
        data = argument.reshape(-1).view(np.uint8)
        writable = not any(argument is a for a in read_only)
        buffers.append(
            Buffer(f"argument {place}", address_of(argument), data, writable, argument.itemsize, written)
        )
    run(
        Launch(
            program,
            _shape(blocks),
            _shape(threads),
            values,
            [*buffers, *(variable_buffers(program) if variables is None else variables)],
            shared_nbytes=shared,
            source=lambda: source,
            limit=limit,
            both_orders=True,
        )
    )


def fault_of(launch: Callable[[], None]) -> KernelFault:
    """The fault that a launch ends with."""
    with pytest.raises(KernelFault) as caught:
        launch()
    return caught.value


def _shape(extent: int | tuple[int, ...]) -> Shape:
    return Shape(extent) if isinstance(extent, int) else Shape(*extent)
