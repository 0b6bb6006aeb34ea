"""The native runtime library: threads, the reader of gradients, reductions; compiled once like a kernel.

Mirrors the structures of ``native.h``, ``gather.c`` and ``reduce.c``, and those that kernels read.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char, c_double, c_int32, c_int64, c_uint64, c_void_p, py_object
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from solvergen.runtime.locks import ProcessLock
from solvergen.runtime.native.build import load
from solvergen.runtime.native.threads import affinity, thread_count

SOURCES = ("native.h", "pool.c", "gather.c", "reduce.c")


class Python(Structure):
    """The functions of Python's that the library calls."""

    _fields_ = (
        ("list_get_item", c_void_p),
        ("get_buffer", c_void_p),
        ("release_buffer", c_void_p),
        ("clear_error", c_void_p),
        ("type_of", c_void_p),
        ("let_go", c_void_p),
        ("array_type", c_void_p),
        ("mapped_type", c_void_p),
    )


class Gather(Structure):
    """What is planned for a list of gradients, and the arrays that are written by them."""

    _fields_ = (
        ("n", c_int64),
        ("ndim", c_void_p),
        ("shape", c_void_p),
        ("nbytes", c_void_p),
        ("starts", c_void_p),
        ("ends", c_void_p),
        ("n_spans", c_int64),
        ("pointers", c_void_p),
        ("pointer_stride", c_int64),
        ("itemsize", c_int64),
        ("alignment", c_uint64),
        ("dtype", c_void_p),
        ("head", c_int64),
        ("n_written", c_int64),
        ("written", c_void_p),
        ("format", c_char),
    )


class Job(Structure):
    """What a kernel reads."""

    _fields_ = (("pointers", c_void_p), ("rows", c_void_p), ("table", c_void_p), ("chunks", c_void_p))


class StagedJob(Structure):
    """What a pass of a staged rule reads: a job, and what belongs to the optimizer's workspace."""

    _fields_ = (
        *Job._fields_,
        ("positions", c_void_p),
        ("values", c_void_p),
        ("partials", c_void_p),
    )


class LinesJob(Structure):
    """What a pass of a rule with lines reads: a staged job, and what belongs to lines."""

    _fields_ = (
        *StagedJob._fields_,
        ("lines", c_void_p),
        ("tiles", c_void_p),
        ("offsets", c_void_p),
        ("row_partials", c_void_p),
        ("column_partials", c_void_p),
    )


class Lines(Structure):
    """The tables of lines, and how far their columns are apart."""

    _fields_ = (
        ("geometry", c_void_p),
        ("row_totals", c_void_p),
        ("row_values", c_void_p),
        ("row_states", c_void_p),
        ("column_totals", c_void_p),
        ("column_values", c_void_p),
        ("column_states", c_void_p),
        ("matrix_totals", c_void_p),
        ("matrix_values", c_void_p),
        ("matrix_states", c_void_p),
        ("row_stride", c_int64),
        ("column_stride", c_int64),
        ("matrix_stride", c_int64),
    )


class Stage(Structure):
    """What a stage reads and writes."""

    _fields_ = (
        ("rows", c_void_p),
        ("positions", c_void_p),
        ("wide", c_void_p),
        ("totals", c_void_p),
        ("over_all", c_void_p),
        ("sizes", c_void_p),
        ("total_size", c_double),
        ("values", c_void_p),
        ("states", c_void_p),
        ("shared", c_void_p),
        ("shared_new", c_void_p),
        ("leader", c_int64),
        ("lines", c_void_p),  # read by rules with lines only
    )


class LineStage(Structure):
    """A stage of lines: the stage, and the pieces in which they are worked on."""

    _fields_ = (("stage", c_void_p), ("pieces", c_void_p))


class StageJob(Structure):
    """A stage's function, and what it is called with."""

    _fields_ = (("stage", c_void_p), ("argument", c_void_p))


class Reduction(Structure):
    """Segments of terms, and where their totals go."""

    _fields_ = (
        ("terms", c_void_p),
        ("stride", c_int64),
        ("apart", c_int64),
        ("starts", c_void_p),
        ("ends", c_void_p),
        ("places", c_void_p),
        ("from", c_void_p),
        ("to", c_void_p),
        ("largest", c_void_p),
        ("columns", c_int64),
        ("out", c_void_p),
        ("out_stride", c_int64),
        ("out_apart", c_int64),
    )


class ColumnReduction(Structure):
    """Terms of columns of matrices, and where their totals go."""

    _fields_ = (
        ("terms", c_void_p),
        ("pieces", c_void_p),
        ("largest", c_void_p),
        ("columns", c_int64),
        ("out", c_void_p),
        ("out_stride", c_int64),
        ("out_apart", c_int64),
        ("out_first", c_int64),
    )


class FiniteJob(Structure):
    """What the search for infinities and NaNs reads."""

    _fields_ = (("pointers", c_void_p), ("chunks", c_void_p), ("n_buffers", c_int64), ("found", c_void_p))


class Library:
    """The loaded library, its functions with their types."""

    def __init__(self) -> None:
        folder = Path(__file__).parent
        loaded = load({name: (folder / name).read_text(encoding="utf-8") for name in SOURCES})
        self.run = loaded.sg_pool_run
        self.run.argtypes = (c_void_p, c_void_p, c_void_p, c_int64, c_int32)
        self.run.restype = None
        self.workers = loaded.sg_pool_workers
        self.workers.argtypes = ()
        self.workers.restype = c_int32
        self._retire = loaded.sg_pool_retire
        self._retire.argtypes = ()
        self._retire.restype = None
        self.finite = {
            name: function_address(getattr(loaded, f"sg_finite_{name}"))
            for name in ("float32", "float64", "bfloat16", "float16")
        }
        self.reduce = function_address(loaded.sg_reduce)
        self.reduce_columns = function_address(loaded.sg_reduce_columns)
        self.run_stage = function_address(loaded.sg_run_stage)
        # Called with the GIL held: it reads Python's objects.
        holding = ctypes.PyDLL(loaded._name, handle=loaded._handle)
        self.gather = holding.sg_gather
        self.gather.argtypes = (POINTER(Python), POINTER(Gather), py_object)
        self.gather.restype = c_int64
        self.python = _python()
        self.head = array_head()
        self._lock = ProcessLock()
        self._mask: frozenset[int] | None = None

    def helpers(self) -> int:
        """How many threads may help this one, as things are now.

        Asked when a launch is prepared, and kept by it: finding out costs more than a small step. What
        changes afterwards (affinity, quota, ``$SOLVERGEN_NUM_THREADS``) counts for launches that are
        prepared later. Workers keep the CPU affinity under which they were made, so when another is found
        here they are let go: the next job makes new ones.
        """
        count, mask = thread_count(), affinity()
        if count > 1:
            with self._lock.held():
                if self._mask is not None and self._mask != mask:
                    self._retire()
                self._mask = mask
        return count - 1


@lru_cache(maxsize=1)
def library() -> Library:
    """The library, compiled or loaded at the first call.

    Raises:
        BackendUnavailable: there is no C compiler that works.
        NativeBuildError: it can't be compiled or loaded.
    """
    return Library()


def function_address(function: Any) -> int:
    """The address of a function of a loaded library."""
    address = ctypes.cast(function, c_void_p).value
    assert address is not None
    return address


def _python() -> Python:
    api = ctypes.pythonapi
    return Python(
        function_address(api.PyList_GetItem),
        function_address(api.PyObject_GetBuffer),
        function_address(api.PyBuffer_Release),
        function_address(api.PyErr_Clear),
        function_address(api.PyObject_Type),
        function_address(api.Py_DecRef),
        id(np.ndarray),
        id(np.memmap),
    )


class _Fields(Structure):
    """The head of NumPy's array after Python's own (``PyArrayObject_fields``)."""

    _fields_ = (
        ("data", c_void_p),
        ("ndim", ctypes.c_int),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("base", c_void_p),
        ("dtype", c_void_p),
        ("flags", ctypes.c_int),
    )


def array_head() -> int:
    """Where NumPy's fields begin in an array object, or 0 if they don't lie where they should.

    The layout is part of NumPy's binary interface. It is compared with what Python says about arrays of
    several kinds all the same, and where anything differs, arrays are read through the buffer protocol only.
    """
    head = object.__basicsize__
    if np.ndarray.__basicsize__ < head + ctypes.sizeof(_Fields):
        return 0
    base = np.arange(60, dtype=np.float32)
    scalar, empty = np.array(1.5), np.empty((0, 3))
    frozen = base.copy()
    frozen.flags.writeable = False
    samples = (base, base[1:], base[::2], base.reshape(3, 4, 5).T, scalar, empty, frozen)
    return head if all(_reads_right(array, head) for array in samples) else 0


def _reads_right(array: Any, head: int) -> bool:
    fields = _Fields.from_address(id(array) + head)
    type_ = c_void_p.from_address(id(array) + head - ctypes.sizeof(c_void_p))
    if type_.value != id(type(array)) or fields.dtype != id(array.dtype) or fields.ndim != array.ndim:
        return False
    sizes = ctypes.c_ssize_t * array.ndim
    flags = array.flags
    return bool(
        fields.data == array.__array_interface__["data"][0]
        and (array.base is None) == (fields.base is None)
        and (array.ndim == 0 or tuple(sizes.from_address(fields.shape)) == array.shape)
        and (array.ndim == 0 or tuple(sizes.from_address(fields.strides)) == array.strides)
        and bool(fields.flags & 0x1) == flags.c_contiguous
        and bool(fields.flags & 0x100) == flags.aligned
        and bool(fields.flags & 0x400) == flags.writeable
    )
