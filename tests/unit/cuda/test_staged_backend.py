"""Rules with reductions on the CUDA backend: real ``cupy.ndarray`` objects, and a device that interprets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import generated
from generated import LAMB
from solvergen.constraints import MaxNorm, MinMax
from solvergen.errors import ArrayError
from solvergen.runtime.backends.cuda import CudaBackend
from solvergen.runtime.ptx.compiler import ptx_compiler
from solvergen.runtime.ptx.device import PtxDevice
from solvergen.runtime.wrappers import Wrappers
from tests.support.bits import assert_same_bits
from tests.support.ptx import COMPILERS, needs_nvrtc
from tests.support.staged_rule import numbers, weigher

cupy = pytest.importorskip("cupy", reason="CuPy isn't installed")

pytestmark = needs_nvrtc


class Device(PtxDevice):
    """Hands out its memory as CuPy would hand out a GPU's."""

    def allocate(self, nbytes: int) -> Any:
        memory = super().allocate(max(1, nbytes))
        held = cupy.cuda.UnownedMemory(memory.ptr, max(1, nbytes), memory, device_id=self.number)
        return cupy.cuda.MemoryPointer(held, 0)


@pytest.fixture
def devices() -> list[Device]:
    return [Device(90, number=0), Device(90, number=1)]


@pytest.fixture
def backend(devices: list[Device]) -> CudaBackend:
    return CudaBackend(devices=devices.__getitem__, compiler=ptx_compiler(COMPILERS[0]))


def on_gpu(device: Device, host: np.ndarray) -> Any:
    """A ``cupy.ndarray`` with these elements."""
    array = cupy.ndarray(host.shape, host.dtype, memptr=device.allocate(host.nbytes))
    if host.size:
        device.upload(array.data.ptr, host.reshape(-1).view(np.uint8))
    return array


@pytest.mark.parametrize(("param", "grad"), [("float32", "float32"), ("bfloat16", "float32")])
def test_a_users_steps_give_the_references_bits(
    param: str, grad: str, backend: CudaBackend, devices: list[Device]
) -> None:
    sizes = (300, 0, 4097, 7)
    host = numbers(sizes, param, 1)
    params = [on_gpu(devices[0], array) for array in host]
    ours = weigher()(params, backend=backend, bounded=True)
    reference = weigher()(host, backend="numpy", bounded=True)
    for step in range(2):
        gradients = numbers(sizes, grad, 2 + step)
        ours.step([on_gpu(devices[0], g) for g in gradients])
        reference.step(gradients)
    for array, wanted in zip(params, host, strict=True):
        assert_same_bits(backend.to_host(array), wanted)
    assert ours.shared["furthest"] == reference.shared["furthest"]
    for tensor in range(len(sizes)):
        assert ours.state["trust"][str(tensor)] == reference.state["trust"][str(tensor)]


def test_parameters_on_another_gpu_than_the_first(backend: CudaBackend, devices: list[Device]) -> None:
    """All that the rule keeps is there, too."""
    host = numbers((300,), "float32", 1)
    params = [on_gpu(devices[1], host[0])]
    ours = weigher()(params, backend=backend)
    gradient = numbers((300,), "float32", 2)
    ours.step([on_gpu(devices[1], gradient[0])])
    weigher()(host, backend="numpy").step(gradient)
    assert_same_bits(backend.to_host(params[0]), host[0])


def test_parameters_on_several_gpus(backend: CudaBackend, devices: list[Device]) -> None:
    params = [on_gpu(device, np.ones(3, np.float32)) for device in devices]
    with pytest.raises(ArrayError, match=r"on GPUs 0, 1; weigher has reductions.*make an optimizer for each"):
        weigher()(params, backend=backend)


def test_constraints_of_real_arrays(backend: CudaBackend, devices: list[Device]) -> None:
    """Their parameters are read in other shapes, where they are."""
    rng = np.random.default_rng(5)
    host = {"w": rng.normal(size=(3, 2, 20)).astype(np.float32), "v": rng.normal(size=70).astype(np.float32)}
    params = {name: on_gpu(devices[0], array) for name, array in host.items()}
    ours = generated.SGD(params, lr=0.1, backend=backend)
    reference = generated.SGD(host, lr=0.1, backend="numpy")
    ours.constraint = reference.constraint = {"w": MaxNorm(0.5, axis=[0, 1]), "v": MinMax(-0.5, None)}
    gradients = {name: rng.normal(size=array.shape).astype(np.float32) for name, array in host.items()}
    ours.step({name: on_gpu(devices[0], gradient) for name, gradient in gradients.items()})
    reference.step(gradients)
    for name, wanted in host.items():
        assert_same_bits(backend.to_host(params[name]), wanted)


def test_steps_that_a_flag_leaves_out_and_copies(backend: CudaBackend, devices: list[Device]) -> None:
    host = numbers((300, 7), "float32", 1)
    params = [on_gpu(devices[0], array) for array in host]
    wraps = Wrappers(clip_grad_norm=1.0, shadow="float16")
    ours = LAMB(params, lr=0.1, backend=backend, wrappers=wraps)
    reference = LAMB(host, lr=0.1, backend="numpy", wrappers=wraps)
    own = on_gpu(devices[0], np.zeros(300, np.float16))
    ours.shadows = {"0": own}
    for step, flag in enumerate((1, 0, 1, 0)):
        gradients = numbers((300, 7), "float32", 2 + step)
        given = [on_gpu(devices[0], g) for g in gradients]
        assert ours.step(given, found_inf=on_gpu(devices[0], np.full(1, flag, np.float32)))
        reference.step(gradients, found_inf=bool(flag))
        assert ours.shared["wrap_norm"] == reference.shared["wrap_norm"]
    assert ours.t == reference.t == 2
    assert ours.shadows["0"] is own
    for i, wanted in enumerate(host):
        assert_same_bits(backend.to_host(params[i]), wanted)
        assert_same_bits(backend.to_host(ours.shadows[i]), reference.shadows[i])
    elsewhere = on_gpu(devices[1], np.zeros(300, np.float16))
    with pytest.raises(ArrayError, match="the copy of '0' is on another GPU than its parameter"):
        ours.shadows = {"0": elsewhere}
