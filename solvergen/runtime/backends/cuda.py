"""The backend for NVIDIA GPUs: CuPy arrays, and any others on a GPU that can be seen as such."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from solvergen.errors import ArrayError, BackendUnavailable
from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.backends.base import LaunchPlan, RowWork
from solvergen.runtime.buffers import ARRAY_TYPES, converted, gradient_dtypes, state_dtype, type_name
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.cuda.device import Device, device, toolkit_major, unavailable
from solvergen.runtime.cuda.kernels import Kernels, shared_kernels
from solvergen.runtime.cuda.launch import Access, CudaLauncher
from solvergen.runtime.cuda.rows import DeviceRows
from solvergen.runtime.cuda.skipping import CudaFlags, CudaSkip
from solvergen.runtime.cuda.staged import StagedCudaLauncher
from solvergen.runtime.cuda.starting import Starter
from solvergen.runtime.cuda.tables import WORD, state_offset
from solvergen.runtime.cuda.workspace import CudaWorkspace
from solvergen.runtime.definition import Definition, Initial
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.naming import with_article
from solvergen.runtime.skipping import check_flag, plain_flag

if TYPE_CHECKING:
    import cupy


class CudaBackend:
    """See ``Backend``. Arrays are kept as ``cupy.ndarray``; those of other kinds as one over the same memory.

    Work goes to CuPy's current stream of each array's GPU.

    Raises:
        BackendUnavailable: CuPy, NVRTC, a driver or a GPU is missing.
    """

    name = "cuda"
    table: Literal["kernel", "reference"] = "kernel"

    def __init__(
        self, *, devices: Callable[[int], Device] | None = None, compiler: nvrtc.Compiler | None = None
    ) -> None:
        """Without arguments: the GPUs that CuPy sees, and the NVRTC of its version of CUDA."""
        if devices is None:
            problem = unavailable()
            if problem is not None:
                raise BackendUnavailable(f"backend 'cuda': {problem}")
        self._devices = device if devices is None else devices
        # Only the process's own GPUs and compiler are the same for every optimizer.
        if devices is None and compiler is None:
            self._kernels = shared_kernels(nvrtc.load(toolkit_major()))
        else:
            self._kernels = Kernels(compiler or nvrtc.load(toolkit_major()))

    def adopt(self, name: str, array: object) -> cupy.ndarray:
        """Check a parameter: on a GPU, of a supported dtype, C-contiguous, aligned, writable.

        Returns it as a ``cupy.ndarray`` over the same memory. Raises ArrayError.
        """
        what = f"parameter {name!r}"
        if type(array).__module__.split(".")[0] in ("jax", "jaxlib"):
            raise ArrayError(f"{what} is a JAX array, which can't change: pass a copy, cupy.array(x)")
        if _is_read_only(array):
            raise ArrayError(f"{what} is read-only, but is updated in place; pass a copy, cupy.array(x)")
        checked = _seen(what, array)
        if checked.dtype.name not in STORAGE_TYPES:
            raise ArrayError(f"{what} has dtype {checked.dtype}; supported are {', '.join(STORAGE_TYPES)}")
        if not checked.flags.c_contiguous:
            raise ArrayError(
                f"{what} is not C-contiguous (shape {checked.shape}, strides {checked.strides}); the update "
                "is in place, so keep the parameter itself in a contiguous array and take views of that"
            )
        _check_alignment(what, checked)
        return checked

    def dtype_of(self, array: object) -> str:
        """Name of the storage type, of an array of any kind that ``adopt`` or ``check_gradient`` passed."""
        name: str = _seen("the array", array).dtype.name
        return name

    def span_of(self, array: object) -> tuple[int, int]:
        """The addresses ``[start, end)``, unique over all GPUs, of an array of any kind."""
        seen = _seen("the array", array)
        start: int = seen.data.ptr
        return start, start + seen.nbytes

    def allocate(self, param: cupy.ndarray, init: Initial, dtype: str | None = None) -> cupy.ndarray:
        """A state: the parameter's shape and compute type (or ``dtype``), filled with ``init``. See
        ``state_offset``."""
        import cupy

        home = self._devices(param.data.device_id)
        chosen = state_dtype(param, dtype)
        offset = state_offset(param.data.ptr, param.dtype.itemsize, chosen.itemsize)
        memory = home.allocate(param.size * chosen.itemsize + WORD)
        state = cupy.ndarray(param.shape, chosen, memptr=memory + offset)
        if not param.size:
            return state
        if init == "param" and param.dtype == chosen:
            home.copy(state.data.ptr, param.data.ptr, state.nbytes)
        elif init == "param":
            self.copy_in(state, converted(self.to_host(param), chosen))
        else:
            with np.errstate(all="ignore"):
                _fill(home, state, np.array([init], chosen))
        return state

    def flags(self, params: Sequence[cupy.ndarray]) -> _Flags:
        """Flags on the parameters' GPU. Raises ArrayError if they lie on several."""
        numbers = sorted({param.data.device_id for param in params})
        if len(numbers) > 1:
            raise ArrayError(
                f"the parameters lie on GPUs {', '.join(map(str, numbers))}, and found_inf on one: make an "
                "optimizer for each GPU"
            )
        return _Flags(CudaFlags(self._devices(numbers[0] if numbers else 0), self._kernels))

    def workspace(
        self, definition: Definition, params: Sequence[cupy.ndarray], blocks: Sequence[int] | None = None
    ) -> CudaWorkspace:
        """A workspace on the parameters' GPU. Raises ArrayError if they lie on several."""
        numbers = sorted({param.data.device_id for param in params})
        if len(numbers) > 1:
            found = ", ".join(map(str, numbers))
            raise ArrayError(
                f"the parameters lie on GPUs {found}; {definition.name} has reductions, so it needs them all "
                "on one: make an optimizer for each GPU, or move them"
            )
        home = self._devices(numbers[0] if numbers else 0)
        shapes = [param.shape for param in params]
        return CudaWorkspace(definition, shapes, Starter(home), self._kernels, blocks)

    def upload(self, host: HostArray) -> cupy.ndarray:
        """A copy on GPU 0, C-contiguous, that begins at a word. Waits for the current stream."""
        import cupy

        array = cupy.ndarray(host.shape, host.dtype, memptr=self._devices(0).allocate(max(1, host.nbytes)))
        self.copy_in(array, host)
        return array

    def to_host(self, array: object) -> HostArray:
        """A copy in host memory of an array of any kind. Waits for the current stream."""
        seen = _seen("the array", array)
        host = np.empty(seen.shape, seen.dtype)
        if host.size:
            self._devices(seen.data.device_id).download(host.reshape(-1).view(np.uint8), seen.data.ptr)
        return host

    def copy_in(self, array: cupy.ndarray, host: HostArray) -> None:
        """Overwrite ``array``. Waits for the current stream."""
        if array.size:
            home = self._devices(array.data.device_id)
            home.upload(array.data.ptr, np.ascontiguousarray(host).reshape(-1).view(np.uint8))
            home.synchronize()

    def check_gradient(self, name: str, param: cupy.ndarray, gradient: object) -> None:
        """Raise ArrayError unless ``gradient`` can be read as the gradient of ``param``."""
        what = f"the gradient of {name!r}"
        checked = _seen(what, gradient)
        allowed = gradient_dtypes(param.dtype.name)
        if checked.dtype.name not in allowed:
            raise ArrayError(
                f"{what} has dtype {checked.dtype}; for a {param.dtype} parameter it must be "
                f"{' or '.join(allowed)}"
            )
        if checked.shape != param.shape:
            raise ArrayError(f"{what} has shape {checked.shape}, the parameter {param.shape}")
        if checked.data.device_id != param.data.device_id:
            raise ArrayError(
                f"{what} is on GPU {checked.data.device_id}, the parameter on GPU {param.data.device_id}"
            )
        if not checked.flags.c_contiguous:
            raise ArrayError(
                f"{what} is not C-contiguous (shape {checked.shape}, strides {checked.strides}); pass "
                "cupy.ascontiguousarray(gradient)"
            )
        _check_alignment(what, checked)

    def read_rows(
        self, what: str, param: cupy.ndarray, indices: object, rows: object
    ) -> tuple[HostArray, cupy.ndarray]:
        """Rows on the parameter's GPU; indices there, too, or in a NumPy array. Raises ArrayError."""
        seen = _seen(f"{what}: its array of rows", rows)
        here, there = seen.data.device_id, param.data.device_id
        if here != there:
            raise ArrayError(f"{what} has rows on GPU {here}, the parameter is on GPU {there}")
        if not seen.flags.c_contiguous:
            raise ArrayError(
                f"{what} has rows that are not C-contiguous (shape {seen.shape}, strides {seen.strides}); "
                "pass cupy.ascontiguousarray(rows)"
            )
        _check_alignment(what, seen)
        if type(indices) in ARRAY_TYPES:
            host: HostArray = indices  # type: ignore[assignment]
            return host, seen
        known = _seen(f"{what}: its array of indices", indices)
        if not known.flags.c_contiguous:
            raise ArrayError(
                f"{what} has indices that are not C-contiguous; pass cupy.ascontiguousarray(indices)"
            )
        return self.to_host(known), seen

    def rows(self, param: cupy.ndarray) -> RowWork:
        """By a kernel on the parameter's GPU."""
        home = self._devices(param.data.device_id)

        def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> cupy.ndarray:
            import cupy

            nbytes = math.prod(shape) * dtype.itemsize
            return cupy.ndarray(shape, dtype, memptr=home.allocate(max(1, nbytes)))

        return DeviceRows(Starter(home), self._kernels, empty, attrgetter("data.ptr"))

    def prepare(self, plan: LaunchPlan) -> CudaLauncher | StagedCudaLauncher:
        """Compile the kernels, or take them from the cache; load them; build the tables.

        Raises:
            KernelBuildError: the kernel doesn't compile, or the driver refuses it.
        """
        access = Access(
            type=_array_type(),
            facts=attrgetter("dtype", "shape", "data.device_id", "strides"),
            contiguous=attrgetter("flags.c_contiguous"),
            address=attrgetter("data.ptr"),
            view=_view,
        )
        if plan.definition.is_staged:
            home = self._devices(plan.tensors[0].param.data.device_id)
            return StagedCudaLauncher(plan, Starter(home), self._kernels, access)
        return CudaLauncher(plan, self._devices, self._kernels, access)


class _Flags:
    """See ``Flags``."""

    def __init__(self, flags: CudaFlags) -> None:
        self._flags = flags

    def read(self, flag: object) -> bool | CudaSkip:
        """What it says, of a flag that is a number; else what kernels ask."""
        plain = plain_flag(flag)
        if plain is not None:
            return plain
        seen = _seen("found_inf", flag)
        check_flag(seen.size, seen.dtype)
        if seen.data.device_id != self._flags.number:
            raise ArrayError(
                f"found_inf is on GPU {seen.data.device_id}, the parameters on GPU {self._flags.number}"
            )
        return self._flags.skip(seen.data.ptr, seen.dtype)


def _fill(home: Device, state: cupy.ndarray, pattern: HostArray) -> None:
    """Fill by copying what is there already, twice as much each time: exact bits, and no kernel of CuPy's."""
    first = np.repeat(pattern, min(state.size, 4096)).view(np.uint8)
    home.upload(state.data.ptr, first)
    home.synchronize()  # `first` goes away
    done = first.nbytes
    while done < state.nbytes:
        step = min(done, state.nbytes - done)
        home.copy(state.data.ptr + done, state.data.ptr, step)
        done += step


@functools.cache
def _array_type() -> type[Any]:
    import cupy

    return cupy.ndarray  # type: ignore[no-any-return]


def _view(array: object) -> Array | None:
    """``array`` as a ``cupy.ndarray`` over the same memory, or None if that can't be."""
    try:
        return _seen("", array)
    except ArrayError:
        return None


def _seen(what: str, array: Any) -> cupy.ndarray:
    """``array`` as a ``cupy.ndarray`` over the same memory. Raises ArrayError if that can't be."""
    import cupy

    if type(array) is _array_type():
        return array
    named = f"{what} is {with_article(type_name(array))}"
    if isinstance(array, (cupy.ndarray, np.ndarray, np.generic, int, float, list, tuple)):
        advice = "a plain view" if isinstance(array, cupy.ndarray) else "cupy.asarray(x), and keep that"
        raise ArrayError(f"{named}, not a cupy.ndarray; pass {advice}")
    try:
        if hasattr(array, "__dlpack__"):
            return _from_dlpack(array)
        if hasattr(array, "__cuda_array_interface__"):
            return cupy.asarray(array)
    except Exception as problem:  # whatever the exporting library raises: it says why it won't share
        raise ArrayError(f"{named}, whose memory CuPy can't share: {problem}") from problem
    raise ArrayError(f"{named}, which shares no GPU memory (neither DLPack nor __cuda_array_interface__)")


def _from_dlpack(array: object) -> cupy.ndarray:
    import cupy

    try:
        return cupy.from_dlpack(array, copy=False)
    except TypeError:  # an exporter from before DLPack knew copies, which therefore makes none
        return cupy.from_dlpack(array)


def _is_read_only(array: object) -> bool:
    if type(array) is _array_type():
        return False
    try:
        return bool(array.__cuda_array_interface__["data"][1])  # type: ignore[attr-defined]
    except Exception:  # it has none, or won't say; whether it can be shared at all is asked elsewhere
        return False


def _check_alignment(what: str, array: cupy.ndarray) -> None:
    if array.size and array.data.ptr % array.dtype.itemsize:
        raise ArrayError(
            f"{what} is misaligned: its address isn't a multiple of its item size {array.dtype.itemsize}"
        )
