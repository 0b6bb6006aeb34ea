"""CUDA as people write it, compiled by NVRTC and executed: what is right gives the right numbers, and what is
wrong is told, with thread, line and buffer."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.runtime.buffers import address_of
from solvergen.runtime.ptx.machine.buffers import variable_buffers
from tests.support.ptx import COMPILERS, execute, fault_of, needs_nvrtc, program_of, ptx_of

pytestmark = needs_nvrtc

TARGETS = [(c.version, n) for c in COMPILERS for n in (75, 80, 90, 100, 120) if n in c.capabilities]
targets = pytest.mark.parametrize(("version", "capability"), TARGETS)

REDUCTION = """
__global__ void k(const double *x, double *out, int n) {
    __shared__ double part[128];
    int t = threadIdx.x;
    double sum = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    part[t] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
"""


@targets
def test_a_reduction_in_shared_memory(version: tuple[int, int], capability: int) -> None:
    x, out = np.arange(1000.0), np.zeros(3)
    execute(
        ptx_of(REDUCTION, capability, version), x, out, np.int32(1000), blocks=3, threads=128, read_only=(x,)
    )
    index = np.arange(1000) // 128 % 3
    assert out.tolist() == [x[index == block].sum() for block in range(3)]


def test_a_missing_barrier() -> None:
    text = REDUCTION.replace("        __syncthreads();\n", "", 1)
    x, out = np.arange(1000.0), np.zeros(3)
    fault = fault_of(
        lambda: execute(ptx_of(text), x, out, np.int32(1000), blocks=3, threads=128, source=text)
    )
    assert "with no barrier between them" in str(fault)
    assert "shared variable" in fault.buffer
    assert fault.block == 0
    assert out.tolist() == [0, 0, 0]


SHUFFLES = """
__global__ void k(const int *x, int *out) {
    int t = threadIdx.x, v = x[t];
    out[t] = __shfl_sync(~0u, v, 5);
    out[64 + t] = __shfl_up_sync(~0u, v, 3);
    out[128 + t] = __shfl_down_sync(~0u, v, 3, 8);
    out[192 + t] = __shfl_xor_sync(~0u, v, 6);
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    out[256 + t] = v;
    out[320 + t] = __ballot_sync(~0u, x[t] % 3 == 0);
    out[384 + t] = __any_sync(~0u, x[t] == 40) + 2 * __all_sync(~0u, x[t] < 32);
}
"""


@targets
def test_shuffles_and_votes(version: tuple[int, int], capability: int) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(448, np.int32)
    execute(ptx_of(SHUFFLES, capability, version), x, out, threads=64)
    got = out.reshape(7, 2, 32).tolist()
    assert got[0] == [[5] * 32, [37] * 32]
    assert got[1][1] == [32, 33, 34, *range(32, 61)]
    assert got[2][0] == [i + 3 if i % 8 < 5 else i for i in range(32)]
    assert got[3][1] == [32 + (i ^ 6) for i in range(32)]
    assert got[4] == [[sum(range(32))] * 32, [sum(range(32, 64))] * 32]
    ballots = [sum(1 << i for i in range(32) if (base + i) % 3 == 0) for base in (0, 32)]
    assert got[5] == np.array([[b] * 32 for b in ballots], np.uint32).view(np.int32).tolist()
    assert got[6] == [[2] * 32, [1] * 32]


def test_a_shuffle_that_not_all_come_to() -> None:
    text = """
__global__ void k(int *out) {
    int v = threadIdx.x;
    if (v < 20) v = __shfl_xor_sync(~0u, v, 1);
    out[threadIdx.x] = v;
}
"""
    out = np.zeros(32, np.int32)
    fault = fault_of(lambda: execute(ptx_of(text), out, threads=32))
    assert "waits for lanes 20, 21, 22" in str(fault)
    assert fault.instruction.startswith("shfl.sync")
    assert (fault.block, fault.thread) == (0, 0)


def test_shuffles_in_parts_of_a_warp() -> None:
    text = """
__global__ void k(int *out) {
    int v = threadIdx.x;
    if (v < 16) v = __shfl_xor_sync(0xffffu, v, 1); else v = __shfl_xor_sync(0xffff0000u, v, 2) + 100;
    out[threadIdx.x] = v;
}
"""
    out = np.zeros(32, np.int32)
    execute(ptx_of(text), out)
    assert out.tolist() == [i ^ 1 if i < 16 else (i ^ 2) + 100 for i in range(32)]


ATOMICS = """
__global__ void k(int *count, unsigned *bits, float *sum, unsigned long long *most, int *found,
                  unsigned *ring) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    found[t] = atomicAdd(count, t % 7);
    atomicOr(bits, 1u << t % 32);
    atomicAdd(sum, 0.5f);
    atomicMax(most, (unsigned long long)(t * 37 % 101));
    atomicInc(ring, 9);
}
"""


@targets
def test_atomics(version: tuple[int, int], capability: int) -> None:
    n = 96
    text = ATOMICS.replace("found[t] = ", "")
    count, bits, total = np.array([5], np.int32), np.zeros(1, np.uint32), np.zeros(1, np.float32)
    most, found, ring = np.zeros(1, np.uint64), np.zeros(n, np.int32), np.zeros(1, np.uint32)
    execute(ptx_of(text, capability, version), count, bits, total, most, found, ring, blocks=3)
    assert count[0] == 5 + sum(t % 7 for t in range(n))
    assert bits[0] == 0xFFFFFFFF
    assert total[0] == 48
    assert most[0] == max(t * 37 % 101 for t in range(n))
    assert ring[0] == 96 % 10


def test_what_an_atomic_finds_depends_on_the_order() -> None:
    n = 96
    arrays = [np.zeros(1, t) for t in ("i4", "u4", "f4", "u8")]
    found = np.zeros(n, np.int32)
    fault = fault_of(lambda: execute(ptx_of(ATOMICS), *arrays, found, np.zeros(1, np.uint32), blocks=3))
    assert "depend on the order of threads" in str(fault)
    assert fault.buffer == "argument 4"
    assert not found.any()


def test_a_float_sum_depends_on_the_order() -> None:
    text = "__global__ void k(float *sum, const float *x) { atomicAdd(sum, x[threadIdx.x]); }"
    sum_, x = np.zeros(1, np.float32), np.array([1e8, 1, -1e8, 1] * 8, np.float32)
    fault = fault_of(lambda: execute(ptx_of(text), sum_, x))
    assert "element 0 of argument 0 becomes" in str(fault)


PLAIN = """
__global__ void k(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        // x = 2*x      specs/double.yaml:7
        x[i] = 2 * x[i];
    }
}
"""


def test_out_of_bounds() -> None:
    x = np.ones(100, np.float32)
    source = 'extern "C" {\n' + PLAIN
    fault = fault_of(lambda: execute(ptx_of(PLAIN), x, np.int32(101), blocks=4, source=source))
    assert (fault.block, fault.thread, fault.buffer) == (3, 4, "argument 0")
    assert "right behind the end of argument 0 (400 bytes" in str(fault)
    assert "specs/double.yaml:7" in str(fault)
    assert "x[i] = 2 * x[i];" in str(fault)
    assert source.splitlines()[fault.source_line - 1].strip() == "x[i] = 2 * x[i];"
    assert x.tolist() == [1] * 100
    execute(ptx_of(PLAIN), x, np.int32(100), blocks=4)
    assert x.tolist() == [2] * 100


def test_between_two_arrays() -> None:
    text = "__global__ void k(float *x, long long i) { x[i] = 1; }"
    memory = np.zeros(30, np.float32)
    x, y = memory[:10], memory[20:]
    fault = fault_of(lambda: execute(ptx_of(text), x, np.int64(12), threads=1))
    assert "writes 4 bytes" in str(fault)
    assert "8 bytes behind the end of argument 0" in str(fault)
    fault = fault_of(lambda: execute(ptx_of(text), y, np.int64(-1), threads=1))
    assert "4 bytes before argument 0" in str(fault)


def test_misaligned() -> None:
    text = "__global__ void k(float4 *x) { x[threadIdx.x] = make_float4(1, 2, 3, 4); }"
    memory = np.zeros(300, np.float32)
    begin = next(i for i in range(4) if memory[i:].ctypes.data % 16 == 4)
    fault = fault_of(lambda: execute(ptx_of(text), memory[begin : begin + 256]))
    assert "is not a multiple of 16" in str(fault)
    assert fault.thread == 0
    aligned = memory[begin + 3 : begin + 3 + 128]
    execute(ptx_of(text), aligned)
    assert aligned.tolist() == [1, 2, 3, 4] * 32


def test_writing_what_is_read_only() -> None:
    x = np.ones(32, np.float32)
    fault = fault_of(lambda: execute(ptx_of(PLAIN), x, np.int32(32), read_only=(x,)))
    assert "which is only to be read" in str(fault)


def test_reading_what_nobody_wrote() -> None:
    x = np.ones(32, np.float32)
    fault = fault_of(lambda: execute(ptx_of(PLAIN), x, np.int32(32), unwritten=(x,)))
    assert "which nothing has written" in str(fault)
    text = "__global__ void k(float *x) { x[threadIdx.x] = 3; x[threadIdx.x] += 1; }"
    execute(ptx_of(text), x, unwritten=(x,))
    assert x.tolist() == [4] * 32


@pytest.mark.parametrize(("blocks", "threads"), [(1, 64), (2, 32), (64, 1)])
def test_a_race(blocks: int, threads: int) -> None:
    text = """
__global__ void k(int *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[(i + 1) % 64] = x[i] + 1;
}
"""
    x = np.zeros(64, np.int32)
    fault = fault_of(lambda: execute(ptx_of(text), x, blocks=blocks, threads=threads))
    assert "with no barrier between them" in str(fault)
    assert fault.buffer == "argument 0"


def test_all_threads_writing_one_word_is_a_race_even_if_they_write_the_same() -> None:
    text = "__global__ void k(int *x) { *x = 1; }"
    fault = fault_of(lambda: execute(ptx_of(text), np.zeros(1, np.int32), blocks=2, threads=1))
    assert "thread 0 of block 0 writes" in str(fault) or "thread 0 of block 1 writes" in str(fault)
    execute(ptx_of(text), np.zeros(1, np.int32), threads=1)


def test_a_barrier_orders_what_threads_of_a_block_do_but_not_blocks() -> None:
    text = """
__global__ void k(int *x) {
    int t = threadIdx.x;
    x[t] = t;
    __syncthreads();
    int v = x[63 - t];
    __syncthreads();
    x[t] = v;
}
"""
    x = np.zeros(64, np.int32)
    execute(ptx_of(text), x, threads=64)
    assert x.tolist() == list(range(63, -1, -1))
    fault = fault_of(lambda: execute(ptx_of(text), x, blocks=2, threads=64))
    assert "of block" in str(fault)


WARP_SYNC = """
__global__ void k(int *x, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) {
        int v = 0;
        if (t % 32 < d) v = s[t] + s[t + d];
        __syncwarp();
        if (t % 32 < d) s[t] = v;
        __syncwarp();
    }
    out[t] = s[t / 32 * 32];
}
"""


@targets
def test_a_reduction_in_a_warp(version: tuple[int, int], capability: int) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    execute(ptx_of(WARP_SYNC, capability, version), x, out, threads=64)
    assert out.tolist() == [496] * 32 + [1520] * 32


def test_a_warp_barrier_orders_only_its_warp() -> None:
    text = WARP_SYNC.replace("t / 32 * 32", "0")
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    fault = fault_of(lambda: execute(ptx_of(text), x, out, threads=64))
    assert "with no barrier between them" in str(fault)
    lacking = WARP_SYNC.replace("s[t] = v;\n        __syncwarp();", "s[t] = v;")
    fault = fault_of(lambda: execute(ptx_of(lacking), x, out, threads=64))
    assert "shared variable" in fault.buffer


def test_a_barrier_of_half_a_warp_says_nothing_about_the_other_half() -> None:
    text = """
__global__ void k(int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = t;
    if (t < 16) __syncwarp(0xffffu); else __syncwarp(0xffff0000u);
    out[t] = s[(t + OTHER) % 32];
}
"""
    out = np.zeros(32, np.int32)
    fault = fault_of(lambda: execute(ptx_of(text.replace("OTHER", "16")), out))
    assert "with no barrier between them" in str(fault)
    execute(ptx_of(text.replace("OTHER", "0")), out)
    assert out.tolist() == list(range(32))
    whole = text.replace("if (t < 16) __syncwarp(0xffffu); else __syncwarp(0xffff0000u);", "__syncwarp();")
    execute(ptx_of(whole.replace("OTHER", "16")), out)
    assert out.tolist() == [*range(16, 32), *range(16)]


def test_a_barrier_in_a_branch() -> None:
    text = """
__global__ void k(int *x) {
    if (threadIdx.x < 40) { x[threadIdx.x] = 1; __syncthreads(); }
    x[threadIdx.x] = 2;
}
"""
    fault = fault_of(lambda: execute(ptx_of(text), np.zeros(64, np.int32), threads=64))
    assert "only 40 of its block's 64 threads reach: thread 40 has ended" in str(fault)
    text = text.replace(
        "}\n    x[", "} else { x[threadIdx.x] = 3; __syncthreads(); x[threadIdx.x] = 4; }\n    x["
    )
    fault = fault_of(lambda: execute(ptx_of(text), np.zeros(64, np.int32), threads=64))
    assert "waits at another barrier" in str(fault)


def test_a_loop_without_end() -> None:
    text = "__global__ void k(volatile int *x) { while (x[threadIdx.x] == 0) {} }"
    fault = fault_of(lambda: execute(ptx_of(text), np.zeros(32, np.int32), limit=10_000))
    assert "10000 instructions" in str(fault)


def test_a_trap() -> None:
    text = "__global__ void k(int *x) { if (x[threadIdx.x] == 9) __trap(); x[threadIdx.x] += 1; }"
    x = np.arange(9, dtype=np.int32)
    execute(ptx_of(text), x, threads=9)
    assert x.tolist() == list(range(1, 10))
    fault = fault_of(lambda: execute(ptx_of(text), x, threads=9))
    assert "executes trap" in str(fault)
    assert fault.thread == 8


@targets
def test_two_dimensions_local_arrays_constants_and_generic_addresses(
    version: tuple[int, int], capability: int
) -> None:
    text = """
__constant__ int weights[4] = {1, 10, 100, 1000};
__device__ int tally = 7;
__global__ void k(int *out, int which) {
    __shared__ int shared[32];
    int local[8];
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    for (int i = 0; i < 8; ++i) local[(i * 3 + x) % 8] = i + y;
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    shared[t] = x;
    __syncthreads();
    int *from = which == 0 ? local : which == 1 ? shared : out + 1000;
    int v = from[(t + which) % 8];
    out[y * gridDim.x * blockDim.x + x] = v + weights[x % 4] + tally * 10000;
}
"""
    for which in (0, 1, 2):
        out = np.zeros(1010, np.int32)
        out[1000:] = np.arange(50, 60)
        execute(ptx_of(text, capability, version), out, np.int32(which), blocks=(3, 2), threads=(8, 4))
        for y in range(8):
            for x in range(24):
                t = y % 4 * 8 + x % 8
                local = {(i * 3 + x) % 8: i + y for i in range(8)}
                v = (
                    local[t % 8],
                    (x // 8) * 8 + (t + 1) % 8,
                    50 + (t + 2) % 8,
                )[which]
                assert out[y * 24 + x] == v + 10 ** (x % 4) + 70000


def test_dynamic_shared_memory() -> None:
    text = """
extern __shared__ int s[];
__global__ void k(int *x, int n) {
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[n - threadIdx.x];
}
"""
    x = np.arange(32, dtype=np.int32)
    execute(ptx_of(text), x, np.int32(31), shared=128)
    assert x.tolist() == list(range(31, -1, -1))
    fault = fault_of(lambda: execute(ptx_of(text), x, np.int32(32), shared=128))
    assert "right behind the end of dynamic shared memory" in str(fault)
    fault = fault_of(lambda: execute(ptx_of(text), x, np.int32(31)))
    assert "writes 4 bytes" in str(fault)
    fault = fault_of(lambda: execute(ptx_of(text), x, np.int32(32), shared=160))
    assert "which nothing has written" in str(fault)


def test_a_variable_keeps_its_value_for_the_next_launch() -> None:
    text = "__device__ int calls = 3; __global__ void k(int *x) { calls += 1; *x = calls; }"
    x = np.zeros(1, np.int32)
    variables = variable_buffers(program_of(ptx_of(text)))
    for expected in (4, 5):
        execute(ptx_of(text), x, threads=1, variables=variables)
        assert x[0] == expected


def test_what_is_read_as_constant_must_stay_so() -> None:
    """``const __restrict__`` lets the compiler read by ``ld.global.nc``, which may miss what is written."""
    text = """
__global__ void k(const float *__restrict__ x, float *__restrict__ y) {
    y[threadIdx.x] = 2 * x[threadIdx.x];
}
"""
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    assert "ld.global.nc.f32" in ptx_of(text)
    execute(ptx_of(text), x, y)
    assert y.tolist() == [2 * i for i in range(32)]
    fault = fault_of(lambda: execute(ptx_of(text), x, np.uint64(address_of(x))))
    assert "read as constant, although what .nc reads must not change" in str(fault)
