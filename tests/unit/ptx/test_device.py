"""The device that interprets: memory as a GPU's driver gives it, and kernels loaded and launched."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from solvergen.errors import KernelBuildError, KernelFault
from solvergen.runtime.ptx.device import Argument, Expected, PtxDevice
from solvergen.runtime.ptx.machine.launch import no_source
from tests.support.ptx import kernel_of

COPY = kernel_of(
    """
    .reg .b32 %r<5>; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r2, [%rd5]; st.global.u32 [%rd4], %r2;
    ret;
    """,
    ".param .u64 to, .param .u64 from",
).encode()


@pytest.fixture
def device() -> PtxDevice:
    return PtxDevice(90)


def test_memory(device: PtxDevice) -> None:
    one, two = device.allocate(64), device.allocate(32)
    assert one.ptr % 256 == two.ptr % 256 == 0
    numbers = np.arange(8, dtype=np.uint32)
    device.upload(one.ptr + 16, numbers)
    device.copy(two.ptr, one.ptr + 24, 24)
    back = np.zeros(6, np.uint32)
    device.synchronize()
    device.download(back, two.ptr)
    assert back.tolist() == [2, 3, 4, 5, 6, 7]
    assert one.written.tolist() == [False] * 16 + [True] * 32 + [False] * 16
    assert two.written.tolist() == [True] * 24 + [False] * 8
    device.copy(one.ptr + 16, one.ptr + 20, 16)  # overlapping
    device.download(back, one.ptr + 16)
    assert back.tolist() == [1, 2, 3, 4, 4, 5]
    assert len(device.staging(10)) == 10
    event = device.event()
    event.record()
    event.wait()


@pytest.mark.parametrize("offset", [-1, 33, 64, 10**9])
def test_memory_that_is_not_there(device: PtxDevice, offset: int) -> None:
    allocation = device.allocate(64)
    with pytest.raises(ValueError, match="no allocation has 32 bytes"):
        device.upload(allocation.ptr + offset, np.zeros(32, np.uint8))


def test_memory_that_was_given_back(device: PtxDevice) -> None:
    address = device.allocate(64).ptr
    gc.collect()
    with pytest.raises(ValueError, match="no allocation"):
        device.download(np.zeros(1, np.uint8), address)


def test_a_kernel_may_touch_what_is_allocated(device: PtxDevice) -> None:
    kernel = device.load(COPY + b"\0", "k")
    to, source = device.allocate(40), device.allocate(32)
    device.upload(source.ptr, np.arange(8, dtype=np.uint32))
    device.launch(kernel, 1, 8, (np.uint64(to.ptr), np.uint64(source.ptr)))
    assert to.bytes[:32].view(np.uint32).tolist() == list(range(8))
    assert to.written.tolist() == [True] * 32 + [False] * 8
    with pytest.raises(KernelFault, match="an allocation of 32 bytes"):
        device.launch(kernel, 1, 9, (np.uint64(to.ptr), np.uint64(source.ptr)))
    with pytest.raises(KernelFault, match="which nothing has written"):
        device.launch(kernel, 1, 10, (np.uint64(source.ptr), np.uint64(to.ptr)))


def test_a_kernel_may_touch_only_what_is_expected(device: PtxDevice) -> None:
    kernel = device.load(COPY, "k")
    memory = device.allocate(128)
    device.upload(memory.ptr, np.arange(16, dtype=np.uint32))
    addresses = np.uint64(memory.ptr + 64), np.uint64(memory.ptr)
    arguments = Argument("the result", 24, 4, writable=True), Argument("the source", 24, 4)
    with device.expecting(Expected((), arguments, no_source)):
        device.launch(kernel, 1, 6, addresses)
        with pytest.raises(KernelFault, match="right behind the end of the source") as caught:
            device.launch(kernel, 1, 7, addresses)
        assert caught.value.buffer == "the source"
    assert memory.bytes[64:88].view(np.uint32).tolist() == list(range(6))
    with (
        device.expecting(Expected((), (Argument("the target", 24, 4), arguments[1]), no_source)),
        pytest.raises(KernelFault, match="the target, from byte 0, which is only to be read"),
    ):
        device.launch(kernel, 1, 6, addresses)
    device.launch(kernel, 1, 7, addresses)  # and now everything again


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        (COPY.replace(b"ld.global.u32", b"ld.global.strange.u32"), "doesn't know .strange"),
        (COPY.replace(b"entry k", b"entry other"), "there is no kernel k; the text has other"),
        (COPY.replace(b".version 8.0", b"nonsense"), "PTX line"),
        (b"\x7fELF\xff", "can't be interpreted"),
    ],
)
def test_texts_that_can_not_be_interpreted(device: PtxDevice, image: bytes, problem: str) -> None:
    with pytest.raises(KernelBuildError, match=problem):
        device.load(image, "k")
