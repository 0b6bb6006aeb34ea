"""The CUDA backend on real ``cupy.ndarray`` objects whose "GPU memory" is the host's; no driver is needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import generated
from solvergen import RowSparse
from solvergen.errors import ArrayError, BackendUnavailable, NonfiniteGradient
from solvergen.runtime.backends import cuda as cuda_backend
from solvergen.runtime.backends.cuda import CudaBackend
from solvergen.runtime.cuda import device as device_module
from solvergen.runtime.dtypes import STORAGE_TYPES, numpy_dtype
from solvergen.verify import find_disagreement
from tests.support import cuda_host
from tests.support.cuda_launch import bits_of

cupy = pytest.importorskip("cupy", reason="CuPy isn't installed")

pytestmark = pytest.mark.skipif(cuda_host.missing() is not None, reason=str(cuda_host.missing()))


class Device(cuda_host.HostDevice):
    """Hands out the host's guarded memory as CuPy would hand out the GPU's."""

    def allocate(self, nbytes: int) -> Any:
        memory = cuda_host.GuardedMemory(nbytes)
        return cupy.cuda.MemoryPointer(
            cupy.cuda.UnownedMemory(memory.ptr, max(nbytes, 1), memory, device_id=self.number), 0
        )


DEVICES = [Device(0), Device(1)]


@pytest.fixture
def backend() -> CudaBackend:
    return CudaBackend(devices=DEVICES.__getitem__, compiler=cuda_host.HostCompiler())


def on_gpu(array: np.ndarray, *, number: int = 0, offset: int = 0) -> Any:
    """A ``cupy.ndarray`` with these elements, ``offset`` bytes past a word."""
    memory = cuda_host.GuardedMemory(array.nbytes, alignment=256, offset=offset)
    memory.bytes[...] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    pointer = cupy.cuda.MemoryPointer(
        cupy.cuda.UnownedMemory(memory.ptr, max(1, array.nbytes), memory, device_id=number), 0
    )
    return cupy.ndarray(array.shape, array.dtype, memptr=pointer)


def elements(array: Any) -> np.ndarray:
    import ctypes

    host = np.empty(array.shape, array.dtype)
    ctypes.memmove(host.ctypes.data, array.data.ptr, array.nbytes)
    return host


@pytest.mark.parametrize(
    "mix", [("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float32"), ("float64", "float64")]
)
def test_a_users_steps_give_the_references_bits(mix: tuple[str, str], backend: CudaBackend) -> None:
    rng = np.random.default_rng(3)
    shapes = [(), (0,), (7,), (33, 5), (4097,)]
    host = [rng.standard_normal(shape).astype(numpy_dtype(mix[0])) for shape in shapes]
    params = [on_gpu(array, offset=i * array.itemsize % 16) for i, array in enumerate(host)]
    ours = generated.Adam(params, amsgrad=True, weight_decay=0.1, backend=backend)
    reference = generated.Adam(host, amsgrad=True, weight_decay=0.1, backend="numpy")
    for _ in range(3):
        gradients = [rng.standard_normal(shape).astype(numpy_dtype(mix[1])) for shape in shapes]
        ours.step([on_gpu(g, offset=2 * i * g.itemsize % 16) for i, g in enumerate(gradients)])
        reference.step(gradients)
    assert ours.backend == "cuda"
    for param, wanted in zip(params, host, strict=True):
        assert (bits_of(elements(param)) == bits_of(wanted)).all()
    for name in generated.Adam.definition.array_states:
        for tensor in map(str, range(len(shapes))):
            state = ours.state[name][tensor]
            assert type(state) is cupy.ndarray
            assert (bits_of(elements(state)) == bits_of(reference.state[name][tensor])).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("indices_on_gpu", [False, True])
def test_gradients_by_rows(dtype: str, indices_on_gpu: bool, backend: CudaBackend) -> None:
    """On GPU 1, beside a tensor on GPU 0 that has a dense gradient; rows occur several times, or never."""
    rng = np.random.default_rng(3)
    real = numpy_dtype(dtype)
    host = [rng.standard_normal(shape).astype(real) for shape in ((50, 7), (5,), (40, 2, 3))]
    params = [on_gpu(array, number=i % 2) for i, array in enumerate(host)]
    ours = generated.Adam(params, lr=0.1, backend=backend)
    reference = generated.Adam(host, lr=0.1, backend="numpy")
    for count in (30, 0, 100):
        indices = rng.integers(0, 40, count).astype(np.int32)
        rows = [rng.standard_normal((count, *shape)).astype(real) for shape in ((7,), (2, 3))]
        dense = rng.standard_normal(5).astype(real)
        given = [RowSparse(on_gpu(indices) if indices_on_gpu else indices, on_gpu(part)) for part in rows]
        ours.step([given[0], on_gpu(dense, number=1), given[1]])
        reference.step([RowSparse(indices, rows[0]), dense, RowSparse(indices, rows[1])])
    for param, wanted in zip(params, host, strict=True):
        assert (bits_of(elements(param)) == bits_of(wanted)).all()
    for name in ("exp_avg", "exp_avg_sq"):
        for tensor in "012":
            state = ours.state[name][tensor]
            assert (bits_of(elements(state)) == bits_of(reference.state[name][tensor])).all()


@pytest.mark.parametrize(
    ("indices", "rows", "why"),
    [
        ([1], lambda: on_gpu(np.ones((1, 7), np.float32)), "a list, not a cupy.ndarray"),
        (np.ma.masked_array([1]), lambda: on_gpu(np.ones((1, 7), np.float32)), "a numpy.ma.*MaskedArray"),
        (np.array([1]), lambda: np.ones((1, 7), np.float32), "a numpy.ndarray, not a cupy.ndarray"),
        (
            np.array([1]),
            lambda: on_gpu(np.ones((1, 7), np.float32), number=1),
            "on GPU 1, the parameter is on GPU 0",
        ),
        (np.array([1, 2]), lambda: on_gpu(np.ones((2, 14), np.float32))[:, ::2], "not C-contiguous"),
        (np.array([1]), lambda: on_gpu(np.ones((1, 7), np.float64)), "dtype float64; for a float32"),
        (np.array([50]), lambda: on_gpu(np.ones((1, 7), np.float32)), "indices from 50 to 50"),
    ],
)
def test_rows_that_can_not_be(indices: Any, rows: Any, why: str, backend: CudaBackend) -> None:
    param = on_gpu(np.ones((50, 7), np.float32))
    made = generated.SGD({"emb": param}, lr=1.0, backend=backend)
    with pytest.raises(ArrayError, match=f"the gradient of 'emb'.*{why}"):
        made.step({"emb": RowSparse(indices, rows())})
    assert (elements(param) == 1).all()
    assert made.t == 0


def test_a_parameter_is_kept_as_it_is(backend: CudaBackend) -> None:
    array = on_gpu(np.ones((2, 3), np.float32))
    assert backend.adopt("p", array) is array
    assert backend.dtype_of(array) == "float32"
    assert backend.span_of(array) == (array.data.ptr, array.data.ptr + 24)
    assert backend.dtype_of(on_gpu(np.ones(2, numpy_dtype("bfloat16")))) == "bfloat16"


class ReadOnly:
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (4096, True), "shape": (1,), "typestr": "<f4", "version": 3}


class WontShare:
    def __dlpack__(self, **_: object) -> object:
        raise BufferError("no")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


jax_array = type("ArrayImpl", (), {"__module__": "jaxlib._jax"})


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.ones(3, np.float32), r"numpy\.ndarray, not a cupy\.ndarray"),
        ([1.0], "is a list, not a cupy"),
        (None, "NoneType, which shares no GPU memory"),
        (ReadOnly(), "read-only"),
        (WontShare(), "WontShare, whose memory CuPy can't share"),
        (jax_array(), "JAX"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_is_no_parameter_on_a_gpu(array: object, why: str, backend: CudaBackend) -> None:
    with pytest.raises(ArrayError, match=f"'layer.w'.*{why}"):
        backend.adopt("layer.w", array)


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (lambda: on_gpu(np.ones(3, np.int32)), "dtype int32; supported are float32"),
        (lambda: on_gpu(np.ones(3, np.complex64)), "complex64"),
        (lambda: on_gpu(np.ones((3, 4), np.float32)).T, "not C-contiguous"),
        (lambda: on_gpu(np.ones(6, np.float32))[::2], "not C-contiguous"),
        (lambda: on_gpu(np.ones(4, np.float32), offset=2), "misaligned"),
    ],
)
def test_parameters_that_cannot_be_updated(array: Any, why: str, backend: CudaBackend) -> None:
    with pytest.raises(ArrayError, match=f"'w'.*{why}"):
        backend.adopt("w", array())


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_gradients_of_other_libraries_that_are_not_finite(
    policy: str, backend: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tensor:
        def __init__(self, host: np.ndarray) -> None:
            self.array = on_gpu(host)

        def __dlpack__(self) -> None: ...

    monkeypatch.setattr(cupy, "from_dlpack", lambda tensor, **_: tensor.array)
    good, bad = np.ones(3, np.float32), np.array([1, np.nan, 1], np.float32)
    params = {name: on_gpu(good) for name in "abc"}
    optimizer = generated.Adam(params, backend=backend, nonfinite=policy)
    gradients = {"a": Tensor(good), "b": Tensor(bad), "c": None}
    if policy == "skip":
        assert optimizer.step(gradients) is False
    else:
        with pytest.raises(NonfiniteGradient, match="gradient of 'b' is not finite") as raised:
            optimizer.step(gradients)
        assert raised.value.names == ("b",)
    assert all((elements(param) == good).all() for param in params.values())
    assert optimizer.t == 0


@pytest.mark.parametrize("knows_copies", [True, False])
def test_tensors_of_other_libraries_are_taken_by_dlpack(
    knows_copies: bool, backend: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exchange itself needs a driver: here CuPy's side of it is played."""

    class Tensor:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self) -> None: ...

    def from_dlpack(tensor: Tensor, **keywords: Any) -> Any:
        if keywords and not knows_copies:
            raise TypeError("unexpected keyword argument 'copy'")
        assert keywords == ({"copy": False} if knows_copies else {})
        return tensor.array

    monkeypatch.setattr(cupy, "from_dlpack", from_dlpack)
    host, gradient = np.ones(9, np.float32), np.full(9, 0.5, np.float32)
    param = on_gpu(host)
    ours = generated.Adam([Tensor(param)], backend=backend)
    for _ in range(3):
        ours.step([Tensor(on_gpu(gradient))])
    wanted = [host]
    reference = generated.Adam(wanted, backend="numpy")
    for _ in range(3):
        reference.step([gradient])
    assert (bits_of(elements(param)) == bits_of(host)).all()
    with pytest.raises(ArrayError, match="shape"):
        ours.step([Tensor(on_gpu(gradient[:3]))])


@pytest.mark.parametrize(
    ("gradient", "why"),
    [
        (
            lambda p: on_gpu(np.ones(8, np.float64)),
            "float64; for a float32 parameter it must be float32 or bfloat16",
        ),
        (lambda p: on_gpu(np.ones((2, 4), np.float32)), r"shape \(2, 4\), the parameter \(8,\)"),
        (lambda p: on_gpu(np.ones(16, np.float32))[::2], "ascontiguousarray"),
        (lambda p: on_gpu(np.ones(8, np.float32), offset=1), "misaligned"),
        (lambda p: on_gpu(np.ones(8, np.float32), number=1), "on GPU 1, the parameter on GPU 0"),
        (lambda p: np.ones(8, np.float32), "not a cupy.ndarray"),
    ],
)
def test_gradients_that_cannot_be_read(gradient: Any, why: str, backend: CudaBackend) -> None:
    param = on_gpu(np.ones(8, np.float32))
    backend.check_gradient("w", param, on_gpu(np.ones(8, np.float32)))
    with pytest.raises(ArrayError, match=f"gradient of 'w'.*{why}"):
        backend.check_gradient("w", param, gradient(param))
    before = elements(param)
    optimizer = generated.Adam([param], backend=backend)
    with pytest.raises(ArrayError, match=why):
        optimizer.step([gradient(param)])
    assert (elements(param) == before).all()
    assert optimizer.t == 0


def test_a_gradient_that_shares_memory_with_what_the_optimizer_owns(backend: CudaBackend) -> None:
    params = [on_gpu(np.ones(8, np.float32)) for _ in range(2)]
    optimizer = generated.Adam(params, backend=backend)
    for gradient in (params[1], params[1][:8], optimizer.state["exp_avg_sq"][1]):
        with pytest.raises(ArrayError, match="gradient of '0' shares memory with the parameter '1'"):
            optimizer.step([gradient, None])
    assert optimizer.t == 0


@pytest.mark.parametrize("dtype", list(STORAGE_TYPES))
@pytest.mark.parametrize("init", [0.0, -0.0, 1e-40, 0.1, float("inf"), 1e300, "param"])
@pytest.mark.parametrize("size", [0, 1, 5, 10_000])
def test_states_begin_with_exact_bits(size: int, init: Any, dtype: str, backend: CudaBackend) -> None:
    """Also numbers that a kernel which flushes subnormals would lose, and copies of such parameters."""
    rng = np.random.default_rng(1)
    host = np.frombuffer(rng.bytes(size * numpy_dtype(dtype).itemsize), numpy_dtype(dtype))
    param = on_gpu(host, offset=host.itemsize)
    state = backend.allocate(param, init)
    compute = np.dtype(STORAGE_TYPES[dtype].compute)
    assert (state.dtype, state.shape) == (compute, (size,))
    with np.errstate(all="ignore"):
        wanted = host.astype(compute) if init == "param" else np.full(size, init, compute)
    assert (bits_of(elements(state)) == bits_of(wanted)).all()
    # One element past a word, like its parameter.
    assert not size or state.data.ptr % 16 == state.itemsize % 16


def test_states_live_where_their_parameters_do(backend: CudaBackend) -> None:
    assert backend.allocate(on_gpu(np.ones(3, np.float32), number=1), 0.0).data.device_id == 1


@pytest.mark.parametrize("dtype", list(STORAGE_TYPES))
@pytest.mark.parametrize("shape", [(), (0, 3), (4, 5)])
def test_to_the_host_and_back(shape: tuple[int, ...], dtype: str, backend: CudaBackend) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype(numpy_dtype(dtype))
    array = on_gpu(np.zeros(shape, numpy_dtype(dtype)))
    backend.copy_in(array, np.asfortranarray(values))
    got = backend.to_host(array)
    assert (got.dtype, got.shape) == (values.dtype, shape)
    assert (bits_of(got) == bits_of(values)).all()
    if values.size:
        assert not np.shares_memory(got, values)


@pytest.mark.parametrize(
    "host", [np.arange(6.0).reshape(2, 3).T, np.zeros((0, 2), np.float16), np.array(2.5)]
)
def test_a_new_array(host: np.ndarray, backend: CudaBackend) -> None:
    array = backend.upload(host)
    assert type(array) is cupy.ndarray
    assert (array.shape, array.dtype, array.flags.c_contiguous) == (host.shape, host.dtype, True)
    assert array.data.ptr % 16 == 0
    assert (elements(array) == host).all()


@pytest.mark.parametrize("name", ["Adam", "SGD"])
def test_drawn_runs(name: str, backend: CudaBackend) -> None:
    """What tests/gpu does on a card."""
    disagreement = find_disagreement(getattr(generated, name), backend, examples=10)
    assert disagreement is None, str(disagreement)


def test_a_snapshots_state_goes_in_and_out(backend: CudaBackend) -> None:
    rng = np.random.default_rng(8)
    start = rng.standard_normal(50).astype(np.float32)
    steps = [rng.standard_normal(50).astype(np.float32) for _ in range(4)]
    straight = on_gpu(start)
    optimizer = generated.Adam([straight], backend=backend)
    for gradient in steps:
        optimizer.step([on_gpu(gradient)])
    first = on_gpu(start)
    before = generated.Adam([first], backend=backend)
    for gradient in steps[:2]:
        before.step([on_gpu(gradient)])
    resumed = on_gpu(elements(first))
    after = generated.Adam([resumed], backend=backend)
    after.load_state_dict(before.state_dict())
    for gradient in steps[2:]:
        after.step([on_gpu(gradient)])
    assert (bits_of(elements(resumed)) == bits_of(elements(straight))).all()


def test_a_state_dict_in_another_byte_order(backend: CudaBackend) -> None:
    """As one comes that was stored by a machine of the other kind."""
    source, target = np.ones((3, 2), np.float32), on_gpu(np.ones((3, 2), np.float32))
    given = generated.Adam([source], backend="numpy")
    given.step([np.full((3, 2), 0.5, np.float32)])
    stored = given.state_dict()
    arrays = stored["tensors"]["0"]["arrays"]
    arrays.update({name: a.astype(a.dtype.newbyteorder()) for name, a in arrays.items()})
    optimizer = generated.Adam([target], backend=backend)
    optimizer.load_state_dict(stored)
    for name in optimizer.state:
        assert (bits_of(elements(optimizer.state[name][0])) == bits_of(given.state[name][0])).all()


def test_optimizers_share_loaded_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel is compiled and loaded once a process, not once an optimizer."""
    loads = []

    class Counting(Device):
        def load(self, image: bytes, name: str) -> Any:
            loads.append(name)
            return super().load(image, name)

    device, compiler = Counting(0), cuda_host.HostCompiler()
    monkeypatch.setattr(cuda_backend, "unavailable", lambda: None)
    monkeypatch.setattr(cuda_backend, "toolkit_major", lambda: 12)
    monkeypatch.setattr(cuda_backend, "device", lambda number: device)
    monkeypatch.setattr(cuda_backend.nvrtc, "load", lambda major: compiler)
    for _ in range(3):
        generated.Lion([on_gpu(np.ones(3, np.float32))], backend="cuda").step(
            [on_gpu(np.ones(3, np.float32))]
        )
    assert loads == ["sg_kernel"]


class TestUnavailable:
    """What is missing is named, with what to install."""

    @pytest.fixture(autouse=True)
    def forget(self) -> Iterator[None]:
        device_module.unavailable.cache_clear()
        yield
        device_module.unavailable.cache_clear()

    def test_without_cupy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "cupy", None)
        with pytest.raises(BackendUnavailable, match=r"CuPy.*solvergen\[cuda12\]") as raised:
            CudaBackend()
        assert "CUDA_PATH" not in str(raised.value)  # which would bring no CuPy

    def test_without_a_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def count() -> int:
            raise cupy.cuda.runtime.CUDARuntimeError(35)

        monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", count)
        with pytest.raises(BackendUnavailable, match="finds no usable GPU"):
            CudaBackend()

    def test_without_a_gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 0)
        with pytest.raises(BackendUnavailable, match="there is no GPU"):
            generated.Adam([np.ones(3, np.float32)], backend="cuda")


def test_importing_the_backend_imports_no_cupy() -> None:
    script = "import sys; import solvergen.runtime.backends.cuda; assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
