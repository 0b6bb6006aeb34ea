"""Streams, memory, policies, other libraries' arrays, more than one card: what only a driver can show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import generated
from solvergen.errors import ArrayError, NonfiniteGradient
from solvergen.runtime.backends.cuda import CudaBackend
from tests.gpu.conftest import Gpu
from tests.support.cuda_launch import bits_of

RNG = np.random.default_rng(11)


def randoms(*sizes: int) -> list[np.ndarray]:
    return [RNG.standard_normal(size).astype(np.float32) for size in sizes]


def test_the_backend_is_chosen_by_where_the_arrays_live(gpu: Gpu) -> None:
    optimizer = generated.Adam([gpu.array(a) for a in randoms(10)])
    assert optimizer.backend == "cuda"


def test_a_step_goes_to_the_current_stream_and_returns_before_it_is_done(gpu: Gpu) -> None:
    import cupy

    host = randoms(1000)
    gradients = [randoms(1000) for _ in range(20)]
    params = [gpu.array(a) for a in host]
    moved = [[gpu.array(g) for g in step] for step in gradients]
    ours, reference = generated.Adam(params, backend=gpu.backend), generated.Adam(host, backend="numpy")
    ours.step(moved[0])  # the kernel is loaded
    cupy.cuda.Device(0).synchronize()
    big = cupy.cuda.alloc(2 << 30)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(40):  # some ten milliseconds of copying
            cupy.cuda.runtime.memcpyAsync(big.ptr, big.ptr + (1 << 30), 1 << 30, 3, stream.ptr)
        ours.step(moved[1])
        behind = not stream.done
        for step in moved[2:]:
            ours.step(step)
        stream.synchronize()
    assert behind
    for step in gradients:
        reference.step(step)
    assert (bits_of(gpu.host(params[0])) == bits_of(host[0])).all()


def test_steps_allocate_nothing(gpu: Gpu) -> None:
    import cupy

    params = [gpu.array(a) for a in randoms(100_000, 5, 777)]
    gradients = [gpu.array(a) for a in randoms(100_000, 5, 777)]
    optimizer = generated.Adam(params, backend=gpu.backend)
    for _ in range(3):
        optimizer.step(gradients)
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes(), pool.total_bytes()
    for _ in range(20):
        optimizer.step(gradients)
    assert (pool.used_bytes(), pool.total_bytes()) == before


def test_policies_for_gradients_that_are_not_finite(gpu: Gpu) -> None:
    params = [gpu.array(a) for a in randoms(5000, 3)]
    before = [gpu.host(p) for p in params]
    good, bad = [gpu.array(a) for a in randoms(5000, 3)], randoms(5000, 3)
    bad[0][4999] = np.inf
    moved = [gpu.array(a) for a in bad]
    skipping = generated.Adam(params, nonfinite="skip", backend=gpu.backend)
    assert skipping.step(moved) is False
    raising = generated.Adam(params, nonfinite="raise", backend=gpu.backend)
    with pytest.raises(NonfiniteGradient):
        raising.step(moved)
    for param, host in zip(params, before, strict=True):
        assert (bits_of(gpu.host(param)) == bits_of(host)).all()
    assert skipping.step(good) is True
    assert (gpu.host(params[0]) != before[0]).any()


def test_a_snapshot_goes_from_the_card_to_numpy_and_back(gpu: Gpu) -> None:
    start, steps = randoms(300), [randoms(300) for _ in range(6)]
    wanted = [start[0].copy()]
    straight = generated.Adam(wanted, backend="numpy")
    for gradients in steps:
        straight.step(gradients)
    param = gpu.array(start[0])
    first = generated.Adam([param], backend=gpu.backend)
    for gradients in steps[:2]:
        first.step([gpu.array(gradients[0])])
    host = [gpu.host(param)]
    second = generated.Adam(host, backend="numpy")
    second.load_state_dict(first.state_dict())
    for gradients in steps[2:4]:
        second.step(gradients)
    again = gpu.array(host[0])
    third = generated.Adam([again], backend=gpu.backend)
    third.load_state_dict(second.state_dict())
    for gradients in steps[4:]:
        third.step([gpu.array(gradients[0])])
    assert (bits_of(gpu.host(again)) == bits_of(wanted[0])).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_torch_tensors_are_updated_in_place(dtype: str, backend: CudaBackend) -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    if not torch.cuda.is_available():
        pytest.skip("this torch sees no GPU")
    values, grads = torch.randn(777), [torch.randn(777) for _ in range(3)]
    kind = getattr(torch, dtype)
    param = values.to(kind).cuda()
    from solvergen.runtime.dtypes import numpy_dtype

    host = values.to(kind).double().numpy().astype(numpy_dtype(dtype))
    address = param.data_ptr()
    ours = generated.Adam([param], lr=0.01, backend="auto")
    reference = generated.Adam([host], lr=0.01, backend="numpy")
    assert ours.backend == "cuda"
    for grad in grads:
        ours.step([grad.to(kind).cuda()])
        reference.step([grad.to(kind).double().numpy().astype(numpy_dtype(dtype))])
    assert param.data_ptr() == address
    assert (param.double().cpu().numpy() == host.astype(np.float64)).all()
    with pytest.raises(ArrayError, match="detach"):
        generated.Adam([torch.zeros(3, device="cuda", requires_grad=True)], backend=backend)


def test_arrays_by_the_cuda_array_interface(gpu: Gpu) -> None:
    class Foreign:
        def __init__(self, array: Any) -> None:
            self.array = array

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            interface: dict[str, Any] = self.array.__cuda_array_interface__
            return interface

    host, gradients = randoms(50), randoms(50)
    param = gpu.array(host[0])
    generated.Adam([Foreign(param)], backend=gpu.backend).step([Foreign(gpu.array(gradients[0]))])
    generated.Adam(host, backend="numpy").step(gradients)
    assert (bits_of(gpu.host(param)) == bits_of(host[0])).all()


def test_gradients_on_the_host_are_refused(gpu: Gpu) -> None:
    optimizer = generated.Adam([gpu.array(a) for a in randoms(10)], backend=gpu.backend)
    with pytest.raises(ArrayError, match="not a cupy"):
        optimizer.step(randoms(10))


def test_parameters_on_two_cards(backend: CudaBackend) -> None:
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one GPU")
    cards = [Gpu(backend, 0), Gpu(backend, 1)]
    host, steps = randoms(1000, 33), [randoms(1000, 33) for _ in range(3)]
    params = [card.array(a) for card, a in zip(cards, host, strict=True)]
    ours, reference = generated.Adam(params, backend=backend), generated.Adam(host, backend="numpy")
    for gradients in steps:
        ours.step([card.array(a) for card, a in zip(cards, gradients, strict=True)])
        reference.step(gradients)
    for card, param, want in zip(cards, params, host, strict=True):
        assert (bits_of(card.host(param)) == bits_of(want)).all()
    with pytest.raises(ArrayError, match="GPU 0, the parameter on GPU 1"):
        ours.step([cards[0].array(a) for a in steps[0]])
