"""Arrays in host memory: what is checked before a pointer to one may go to a kernel.

Both host backends share these checks. Parameters are updated in place, so what can't be updated in
place is refused rather than copied; gradients are only read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solvergen.errors import ArrayError
from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.definition import Definition, Initial
from solvergen.runtime.dtypes import STORAGE_TYPES, compute_dtype, numpy_dtype
from solvergen.runtime.naming import with_article
from solvergen.runtime.workspace import HostWorkspace

if TYPE_CHECKING:
    from solvergen.runtime.backends.base import Flags, LaunchPlan, RowWork

ARRAY_TYPES = (np.ndarray, np.memmap)
"""Exact types that count as host arrays. Other subclasses (masked arrays, matrices) mean something else
by their elements or operators."""


_CUDA_MEMORY = (2, 13)
"""DLPack's numbers of memory on a GPU, and of memory that GPU and host both see."""


def address_of(array: HostArray) -> int:
    """Where the first element lies."""
    address: int = array.__array_interface__["data"][0]
    return address


def type_name(value: object) -> str:
    """A type as a user would write it: ``torch.Tensor``, ``list``."""
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def lives_on_gpu(array: Any) -> bool:
    """Whether an array, of whatever library, says that it is in an NVIDIA GPU's memory. Raises nothing.

    DLPack is asked first: it answers also for tensors that won't be shared as they are, such as torch's
    that require a gradient.
    """
    if type(array) in ARRAY_TYPES:
        return False
    try:
        return int(array.__dlpack_device__()[0]) in _CUDA_MEMORY
    except Exception:
        pass  # it doesn't know DLPack, or won't say
    try:
        return hasattr(array, "__cuda_array_interface__")
    except Exception:  # whatever the library raises: only an array on a GPU gets so far
        return True


def gpu_of(array: Array) -> int | None:
    """The number of the GPU that an optimizer's array lies on; None of arrays in host memory."""
    return None if isinstance(array, np.ndarray) else int(array.data.device_id)


class HostRows:
    """See ``RowWork``. Everything goes through matrices: NumPy's ``add.at`` crashes beyond 32 axes."""

    def taken(self, whole: HostArray, places: HostArray, part: HostArray | None = None) -> HostArray:
        """See ``RowWork``."""
        if part is None:
            part = np.empty((len(places), *whole.shape[1:]), whole.dtype)
        _matrix(part)[...] = _matrix(whole)[places]
        return part

    def put(self, whole: HostArray, places: HostArray, part: HostArray) -> None:
        """See ``RowWork``."""
        _matrix(whole)[places] = _matrix(part)

    def summed(self, rows: HostArray, which: HostArray, count: int) -> HostArray:
        """See ``RowWork``."""
        compute = compute_dtype(rows.dtype.name)
        total = np.zeros((count, *rows.shape[1:]), compute)
        with np.errstate(all="ignore"):
            np.add.at(_matrix(total), which, _matrix(rows).astype(compute))
        return total


def _matrix(rows: HostArray) -> HostArray:
    """A contiguous array's own memory, with a row for each index of the first axis."""
    return rows.view(np.ndarray).reshape(len(rows), math.prod(rows.shape[1:]))


class HostArrays:
    """The part of a backend's protocol that is about arrays, for NumPy arrays."""

    def adopt(self, name: str, array: object) -> HostArray:
        """Check a parameter: a NumPy array of a supported dtype, C-contiguous, aligned and writable.

        Returns the array itself. Raises ArrayError that says what is wrong and what to do.
        """
        what = f"parameter {name!r}"
        checked = self._checked(what, array)
        if checked.dtype.name not in STORAGE_TYPES:
            raise ArrayError(f"{what} has dtype {checked.dtype}; supported are {', '.join(STORAGE_TYPES)}")
        self._check_layout(what, checked)
        if not checked.flags.writeable:
            raise ArrayError(
                f"{what} is read-only, but is updated in place; pass an array that may be written "
                "(array.copy() is one, if the update need not reach the original)"
            )
        return checked

    def check_gradient(self, name: str, param: HostArray, gradient: object) -> None:
        """Raise ArrayError unless ``gradient`` can be read as the gradient of ``param``."""
        what = f"the gradient of {name!r}"
        checked = self._checked(what, gradient)
        allowed = gradient_dtypes(param.dtype.name)
        if checked.dtype.name not in allowed:
            raise ArrayError(
                f"{what} has dtype {checked.dtype}; for a {param.dtype} parameter it must be "
                f"{' or '.join(allowed)}: convert it with gradient.astype(parameter.dtype)"
            )
        if checked.shape != param.shape:
            raise ArrayError(f"{what} has shape {checked.shape}, the parameter {param.shape}")
        self._check_layout(what, checked, copied="gradient")

    def dtype_of(self, array: HostArray) -> str:
        """Name of the storage type."""
        name: str = array.dtype.name
        return name

    def span_of(self, array: HostArray) -> tuple[int, int]:
        """The addresses ``[start, end)`` of a contiguous array."""
        start = address_of(array)
        return start, start + array.nbytes

    def allocate(self, param: HostArray, init: Initial, dtype: str | None = None) -> HostArray:
        """A new array of the parameter's shape, filled with ``init``; of its compute type, or ``dtype``."""
        return self._filled(param, init, state_dtype(param, dtype))

    def _filled(self, param: HostArray, init: Initial, dtype: np.dtype[Any]) -> HostArray:
        if init == "param":
            return np.array(converted(param, dtype), order="C", copy=True, subok=False)
        if init == 0.0 and math.copysign(1.0, init) > 0.0:
            return np.zeros(param.shape, dtype)  # pages of large arrays are touched only by the first step
        with np.errstate(all="ignore"):
            return np.full(param.shape, init, dtype)

    def flags(self, params: Sequence[HostArray]) -> Flags:
        """Flags are read where they lie."""
        from solvergen.runtime.skipping import HostFlags

        return HostFlags()

    def read_rows(
        self, what: str, param: HostArray, indices: object, rows: object
    ) -> tuple[HostArray, HostArray]:
        """NumPy arrays both; the rows as C-contiguous and aligned as any gradient. Raises ArrayError."""
        for name, array in (("indices", indices), ("rows", rows)):
            if type(array) not in ARRAY_TYPES:
                raise ArrayError(
                    f"{what} has {name} that are {with_article(type_name(array))}, not a numpy.ndarray"
                )
        self._check_layout(f"{what}: its array of rows", rows, copied="rows")  # type: ignore[arg-type]
        return indices, rows  # type: ignore[return-value]

    def rows(self, param: HostArray) -> RowWork:
        """By NumPy."""
        return HostRows()

    def workspace(
        self, definition: Definition, params: Sequence[HostArray], blocks: Sequence[int] | None = None
    ) -> HostWorkspace:
        """A workspace of NumPy arrays."""
        shapes = [param.shape for param in params]
        return HostWorkspace(definition, [param.size for param in params], shapes, blocks)

    def upload(self, host: HostArray) -> HostArray:
        """A copy."""
        return np.array(host, order="C", copy=True, subok=False)

    def to_host(self, array: HostArray) -> HostArray:
        """A copy."""
        return np.array(array, order="C", copy=True, subok=False)

    def copy_in(self, array: HostArray, host: HostArray) -> None:
        """Overwrite ``array``."""
        array[...] = host

    def _checked(self, what: str, array: object) -> HostArray:
        """``array`` if it is a NumPy array in this machine's byte order."""
        if type(array) not in ARRAY_TYPES:
            raise ArrayError(f"{what} {_why_not_an_array(array)}")
        checked: HostArray = array  # type: ignore[assignment]
        if not checked.dtype.isnative:
            raise ArrayError(
                f"{what} has the byte order of other machines (dtype {checked.dtype.str!r}); convert it with "
                "array.astype(array.dtype.newbyteorder('='))"
            )
        return checked

    def _check_layout(self, what: str, array: HostArray, *, copied: str | None = None) -> None:
        """``copied``: what messages call the array, if a copy of it does as well; a parameter's does not."""
        if not array.flags.c_contiguous:
            raise ArrayError(
                f"{what} is not C-contiguous (shape {array.shape}, strides {array.strides}); "
                + (_contiguity_advice(array) if copied is None else f"pass np.ascontiguousarray({copied})")
            )
        if array.nbytes and address_of(array) % array.dtype.itemsize:
            raise ArrayError(
                f"{what} is misaligned: its address isn't a multiple of its item size "
                f"{array.dtype.itemsize}; "
                + ("keep the parameter in an array of its own" if copied is None else f"pass {copied}.copy()")
            )


def writable(array: Array, what: str) -> Array:
    """An array that could be written when it was adopted. Raises ArrayError if it can't be any more."""
    # CuPy's arrays have no such flag, and gradients of other libraries no flags.
    if not getattr(getattr(array, "flags", None), "writeable", True):
        raise ArrayError(
            f"{what} has been made read-only; nothing was changed (array.flags.writeable = True undoes it)"
        )
    return array


def may_be_written(plan: LaunchPlan) -> bool:
    """Whether all that a launch over NumPy arrays writes still can be."""
    return all(array.flags.writeable for array in plan.written)


class KeptParameters:
    """The parameters of a launch over NumPy arrays, and where its kernels keep them as they were.

    What a step has begun to write can be put back though it has been made read-only since: these are views
    that were made before.
    """

    def __init__(self, plan: LaunchPlan) -> None:
        self._pairs = [
            (tensor.param.view(np.ndarray).reshape(-1), tensor.carried[0].reshape(-1))
            for tensor in plan.tensors
            if tensor.carried
        ]

    def put_back(self) -> None:
        """Overwrite the parameters."""
        for param, kept in self._pairs:
            param[...] = narrowed(kept, param.dtype)


def state_dtype(param: Array, dtype: str | None) -> np.dtype[Any]:
    """The dtype of a state's array: the parameter's compute type unless ``dtype`` is another's name."""
    return compute_dtype(param.dtype.name) if dtype is None else numpy_dtype(dtype)


def converted(values: HostArray, dtype: np.dtype[Any]) -> HostArray:
    """``values`` rounded to ``dtype``, as kernels do it: of float64 to half the width of float32 by way of
    float32 (NumPy alone would round float16 once, and bfloat16 twice)."""
    with np.errstate(all="ignore"):
        if values.dtype == np.float64 and dtype.itemsize == 2:
            values = values.astype(np.float32)
        return values.astype(dtype, copy=False)


def narrowed(kept: HostArray, dtype: np.dtype[Any]) -> HostArray:
    """Elements of ``dtype`` that were widened, as they were: NaNs too, which ``ml_dtypes`` makes alike."""
    if dtype.name == "bfloat16":
        halves: HostArray = (kept.view(np.uint32) >> 16).astype(np.uint16).view(dtype)
        return halves
    with np.errstate(all="ignore"):
        return kept.astype(dtype, copy=False)


def gradient_dtypes(param_dtype: str) -> tuple[str, ...]:
    """The dtypes that a gradient may have: those computed in the parameter's compute type."""
    compute = STORAGE_TYPES[param_dtype].compute
    return tuple(s.name for s in STORAGE_TYPES.values() if s.compute == compute)


def _why_not_an_array(value: Any) -> str:
    named = f"is {with_article(type_name(value))}, not a numpy.ndarray"
    if isinstance(value, np.generic):
        return f"{named}: a NumPy scalar has no memory of its own; make it a 0-d array with np.array(x)"
    if lives_on_gpu(value):
        return f"{named}: it lives on a GPU; use backend='cuda' with all arrays there, or copy it to the host"
    if isinstance(value, np.ndarray):
        return f"{named}: pass a plain view of it, array.view(numpy.ndarray), if that is what you mean"
    if hasattr(type(value), "named_parameters"):
        return f"{named}: pass {{name: p.detach().numpy() for name, p in model.named_parameters()}}"
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        if str(value.dtype) == "torch.bfloat16":
            view = "x.detach().view(torch.int16).numpy().view(ml_dtypes.bfloat16)"
        else:
            view = "x.detach().numpy()"
        return f"{named}: pass {view}, which shares its memory"
    if hasattr(type(value), "__dlpack__") or hasattr(type(value), "__array__"):
        return f"{named}: pass np.asarray(x), and see that it shares memory where that matters"
    if isinstance(value, (int, float, list, tuple)):
        return f"{named}: pass np.array(x, dtype=np.float32)"
    return named


def _contiguity_advice(array: HostArray) -> str:
    # The update is in place: a contiguous copy would be updated instead of the array that was meant.
    if array.T.flags.c_contiguous:
        return "pass its transpose array.T, which is, and transpose its gradients too"
    return (
        "np.ascontiguousarray(array) won't help, since the copy would be updated in its stead: keep the "
        "parameter itself in a contiguous array and take views of that where you need them"
    )
