"""Flags on a GPU that leave steps out: nothing waits for them before somebody asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import generated
from solvergen.errors import ArrayError
from solvergen.runtime.backends.cuda import CudaBackend
from tests.support import cuda_host
from tests.support.bits import assert_same_bits
from tests.unit.cuda.test_backend import elements, on_gpu
from tests.unit.cuda.test_launcher import DeferredDevice

cupy = pytest.importorskip("cupy", reason="CuPy isn't installed")

pytestmark = pytest.mark.skipif(cuda_host.missing() is not None, reason=str(cuda_host.missing()))


class Device(DeferredDevice):
    """Hands out the host's memory as CuPy would hand out the GPU's, and works when somebody waits."""

    def allocate(self, nbytes: int) -> Any:
        memory = cuda_host.GuardedMemory(nbytes)
        return cupy.cuda.MemoryPointer(
            cupy.cuda.UnownedMemory(memory.ptr, max(nbytes, 1), memory, device_id=self.number), 0
        )


@pytest.fixture
def devices() -> list[Device]:
    return [Device(0), Device(1)]


@pytest.fixture
def backend(devices: list[Device]) -> CudaBackend:
    return CudaBackend(devices=devices.__getitem__, compiler=cuda_host.HostCompiler())


def test_a_step_waits_for_nothing(backend: CudaBackend, devices: list[Device]) -> None:
    rng = np.random.default_rng(1)
    start = rng.standard_normal(5000).astype(np.float32)
    expected, param = start.copy(), on_gpu(start)
    ours = generated.RAdam([param], lr=0.1, backend=backend)
    reference = generated.RAdam([expected], lr=0.1, backend="numpy")
    device, kept = devices[0], [on_gpu(start)]  # a real GPU's allocator keeps the order, the test the memory
    reference.step([start])
    ours.step(kept)  # launches are prepared, which waits
    device.synchronize()
    for number, flag in enumerate((0.0, 1.0, 0.0, 1.0, 1.0, 0.0)):
        gradient = rng.standard_normal(5000).astype(np.float32)
        kept += on_gpu(gradient), on_gpu(np.array([flag], np.float32))
        given = device.given
        assert ours.step([kept[-2]], found_inf=kept[-1])
        assert device.done <= given  # what it waits for is the flag of the step before, and never its own
        if flag == 0.0:
            reference.step([gradient])
        if number % 2:
            assert ours.t == reference.t
            assert device.queue  # the update itself isn't waited for
    assert ours.t == reference.t
    device.synchronize()
    assert_same_bits(elements(param), expected)


def test_the_update_is_not_waited_for(backend: CudaBackend, devices: list[Device]) -> None:
    param = on_gpu(np.ones(4, np.float32))
    opt = generated.SGD([param], lr=0.5, backend=backend)
    devices[0].synchronize()
    gradient, flag = on_gpu(np.ones(4, np.float32)), on_gpu(np.zeros((), np.int64))
    opt.step([gradient], found_inf=flag)
    assert opt.t == 1
    np.testing.assert_array_equal(elements(param), 1.0)  # it is under way still
    devices[0].synchronize()
    np.testing.assert_array_equal(elements(param), 0.5)


def test_numbers_are_known_at_once(backend: CudaBackend, devices: list[Device]) -> None:
    param, gradient = on_gpu(np.ones(4, np.float32)), on_gpu(np.ones(4, np.float32))
    opt = generated.SGD([param], lr=0.5, backend=backend)
    assert opt.step([gradient], found_inf=True) is False
    assert opt.step([gradient], found_inf=0.0) is True
    devices[0].synchronize()  # while the gradient is there


def test_flags_elsewhere(backend: CudaBackend) -> None:
    ones = np.ones(4, np.float32)
    opt = generated.SGD([on_gpu(ones)], backend=backend)
    for flag, why in (
        (on_gpu(np.ones(1, np.float32), number=1), "found_inf is on GPU 1, the parameters on GPU 0"),
        (np.ones(1, np.float32), r"found_inf is a numpy\.ndarray, not a cupy\.ndarray"),
        (on_gpu(ones), "not an array of 4"),
    ):
        with pytest.raises(ArrayError, match=why):
            opt.step([on_gpu(ones)], found_inf=flag)
    apart = generated.SGD([on_gpu(ones), on_gpu(ones, number=1)], backend=backend)
    with pytest.raises(ArrayError, match="on GPUs 0, 1, and found_inf on one: make an optimizer for each"):
        apart.step([on_gpu(ones), on_gpu(ones, number=1)], found_inf=on_gpu(np.ones(1, np.float32)))
