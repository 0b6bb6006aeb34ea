"""A ``Device`` (see ``runtime/cuda/device.py``) that is a program: it interprets the PTX that it is given."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from solvergen.errors import KernelBuildError, PtxError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.interrupts import NothingDone
from solvergen.runtime.ptx.machine.buffers import Buffer, variable_buffers
from solvergen.runtime.ptx.machine.faults import Shape
from solvergen.runtime.ptx.machine.launch import LIMIT, Launch, no_source, run
from solvergen.runtime.ptx.machine.program import Program, decoded
from solvergen.runtime.ptx.module import Module
from solvergen.runtime.ptx.observe import Observer, watching
from solvergen.runtime.ptx.text import parse

_ALIGNMENT = 256


@dataclass(frozen=True, slots=True)
class Argument:
    """What an argument points to, where it is a table: its name and its size. ``writable``: by the kernel."""

    name: str
    nbytes: int
    itemsize: int
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """What a launch may touch: arrays, and what its arguments point to (None: the argument is a number).

    ``source`` tells the kernel's CUDA text, for messages.
    """

    arrays: Sequence[Buffer]
    arguments: Sequence[Argument | None]
    source: Callable[[], str]


@dataclass(frozen=True, eq=False, slots=True)
class LoadedKernel:
    """A kernel that is ready, with the variables of its module."""

    program: Program
    variables: tuple[Buffer, ...]


class Allocation:
    """Memory of the device: ``ptr`` is its address. ``written``: the bytes that hold anything."""

    def __init__(self, nbytes: int) -> None:
        spare = np.empty(nbytes + _ALIGNMENT, np.uint8)
        begin = -spare.ctypes.data % _ALIGNMENT
        self.bytes: HostArray = spare[begin : begin + nbytes]
        self.written = np.zeros(nbytes, np.bool_)
        self.ptr: int = self.bytes.ctypes.data


class _Done:
    """All work is done when a call returns."""

    def record(self) -> None:
        return

    def wait(self) -> None:
        return


@functools.lru_cache(maxsize=4)
def _module(image: bytes) -> Module:
    """The kernels of a text, which are asked for one after the other."""
    return parse(image.rstrip(b"\0").decode())


class PtxDevice:
    """Runs kernels as soon as they are launched.

    A launch may touch what it is told by ``expecting``, or else every allocation that is alive.
    """

    def __init__(
        self, capability: int, *, number: int = 0, observe: Observer | None = None, limit: int = LIMIT
    ) -> None:
        self.number = number
        self.capability = capability
        self._observe = observe
        self._limit = limit
        self._allocations: weakref.WeakValueDictionary[int, Allocation] = weakref.WeakValueDictionary()
        self._expected: Expected | None = None

    def load(self, image: bytes, name: str) -> LoadedKernel:
        """The kernel ``name`` of a PTX text. Raises KernelBuildError if it can't be interpreted."""
        try:
            program = decoded(_module(image), name)
        except (PtxError, UnicodeDecodeError) as problem:
            raise KernelBuildError(f"the PTX of kernel {name} can't be interpreted: {problem}") from problem
        return LoadedKernel(program, variable_buffers(program))

    def allocate(self, nbytes: int) -> Allocation:
        """Memory without values, aligned to 256 bytes."""
        allocation = Allocation(nbytes)
        self._allocations[allocation.ptr] = allocation
        return allocation

    def staging(self, nbytes: int) -> HostArray:
        """Host memory."""
        return np.zeros(nbytes, np.uint8)

    def event(self) -> _Done:
        """An event: always in the past."""
        return _Done()

    def upload(self, address: int, source: HostArray) -> None:
        """Copy from the host."""
        allocation, begin = self._find(address, source.nbytes)
        allocation.bytes[begin : begin + source.nbytes] = source.reshape(-1).view(np.uint8)
        allocation.written[begin : begin + source.nbytes] = True

    def copy(self, address: int, source: int, nbytes: int) -> None:
        """Copy from one allocation to another, or within one."""
        (to, at), (of, begin) = self._find(address, nbytes), self._find(source, nbytes)
        to.bytes[at : at + nbytes] = of.bytes[begin : begin + nbytes].copy()
        to.written[at : at + nbytes] = of.written[begin : begin + nbytes].copy()

    def download(self, target: HostArray, address: int) -> None:
        """Copy to the host."""
        allocation, begin = self._find(address, target.nbytes)
        target.reshape(-1).view(np.uint8)[...] = allocation.bytes[begin : begin + target.nbytes]

    def fetch(self, target: HostArray, address: int) -> None:
        """Copy to the host."""
        self.download(target, address)

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    @contextmanager
    def expecting(self, expected: Expected) -> Iterator[None]:
        """Launches within may touch just what is expected."""
        self._expected = expected
        try:
            yield
        finally:
            self._expected = None

    def launch(
        self, kernel: LoadedKernel, blocks: int, threads: int, arguments: Sequence[np.generic]
    ) -> None:
        """Run ``kernel``. Raises KernelFault; then nothing has changed."""
        expected = self._expected
        if expected is None:
            buffers = [_whole(allocation) for allocation in list(self._allocations.values())]
        else:
            buffers = [*expected.arrays]
            for what, argument in zip(expected.arguments, arguments, strict=True):
                if what is not None:
                    allocation, begin = self._find(int(argument), what.nbytes)
                    buffers.append(_part(allocation, begin, int(argument), what))
        program = kernel.program
        watch = None
        if self._observe is not None:
            watch = watching(self._observe, program.kernel.name, program.slots.names, threads)
        launch = Launch(
            program,
            Shape(blocks),
            Shape(threads),
            arguments,
            [*buffers, *kernel.variables],
            limit=self._limit,
            watch=watch,
            source=no_source if expected is None else expected.source,
        )
        try:
            run(launch)
        except KeyboardInterrupt as interrupt:  # an observer's
            raise NothingDone(*interrupt.args) from interrupt

    def _find(self, address: int, nbytes: int) -> tuple[Allocation, int]:
        for allocation in list(self._allocations.values()):
            begin = address - allocation.ptr
            if begin >= 0 and begin + nbytes <= len(allocation.bytes):
                return allocation, begin
        raise ValueError(f"no allocation has {nbytes} bytes at {address:#x}")


def _whole(allocation: Allocation) -> Buffer:
    name = f"an allocation of {len(allocation.bytes)} bytes"
    return Buffer(name, allocation.ptr, allocation.bytes, written=allocation.written)


def _part(allocation: Allocation, begin: int, address: int, what: Argument) -> Buffer:
    part = slice(begin, begin + what.nbytes)
    written = allocation.written[part]
    return Buffer(
        what.name,
        address,
        allocation.bytes[part],
        what.writable,
        what.itemsize,
        None if written.all() else written,
    )
