"""Steps of the cpu backend against NumPy's bits, and what it makes of arrays of all kinds."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvergen.errors import CompilerBug
from solvergen.runtime.backends import cpu
from solvergen.runtime.backends.cpu import CpuBackend, unit_table
from solvergen.runtime.kernel_interface import chunk_table
from solvergen.runtime.spans import Spans
from tests.unit.native.support import (
    DTYPES,
    adam_plan,
    assert_same_bits,
    check_steps,
    reference_step,
    step,
    table_at,
    values,
)

MIXES = [("float64", "float64"), *itertools.product(("float32", "bfloat16", "float16"), repeat=2)]
SHAPES = [(), (0,), (1,), (7,), (3, 5), (16,), (17,), (33, 31), (2, 0, 3), (1000,)]


@pytest.mark.parametrize(("param", "grad"), MIXES)
@pytest.mark.parametrize("options", [{}, {"amsgrad": True, "maximize": True}], ids=["plain", "options"])
def test_every_mix_of_dtypes_has_numpy_s_bits(param: str, grad: str, options: dict[str, bool]) -> None:
    plan = adam_plan([values(shape, param, i) for i, shape in enumerate(SHAPES)], grad, options=options)
    gradients = [[values(shape, grad, 100 * t + i) for i, shape in enumerate(SHAPES)] for t in range(4)]
    check_steps(plan, gradients)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype: str) -> None:
    info: Any = np.finfo(np.float32) if dtype == "bfloat16" else np.finfo(DTYPES[dtype])
    specials = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, float(info.smallest_subnormal), -float(info.tiny)]
    specials += [float(info.max), -float(info.max), float(info.tiny) * 1.5, 1e-8, 3e4]
    with np.errstate(all="ignore"):
        pairs = np.array(list(itertools.product(specials, repeat=2))).astype(DTYPES[dtype])
    param, grad = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    plan = adam_plan([param])
    check_steps(plan, [[grad], [grad[::-1].copy()], [-grad]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_several_threads_have_the_same_bits(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "CHUNK_SIZE", 1 << 10)
    monkeypatch.setattr(cpu, "SMALL", 0)
    sizes = [(5000,), (1,), (0,), (77, 33), (1024,), (1025,), (3,)]
    plan = adam_plan([values(shape, dtype, i) for i, shape in enumerate(sizes)])
    launcher = CpuBackend().prepare(plan)
    launcher._launch_arguments = (*launcher._launch_arguments[:4], 3)
    check_steps(
        plan, [[values(s, dtype, 50 * t + i) for i, s in enumerate(sizes)] for t in range(5)], launcher
    )
    assert launcher._library.workers() >= 3


def test_tensors_have_rows_of_their_own() -> None:
    params = [values((40,), "float32", i) for i in range(3)]
    plan = adam_plan([p.copy() for p in params])
    gradients = [values((40,), "float32", 9 + i) for i in range(3)]
    launcher = CpuBackend().prepare(plan)
    table = np.concatenate([table_at(1, plan), table_at(1000, plan)])
    expected = [reference_step(plan, gradients, t)[i] for i, t in enumerate((1000, 1, 1000))]
    assert launcher.bind(gradients)
    launcher.launch(table, np.array([1, 0, 1], np.int32))
    for tensor, result in zip(plan.tensors, expected, strict=True):
        assert_same_bits(tensor.param, result[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_unaligned_views(dtype: str) -> None:
    """bugs.tsv B49: vector accesses at an address that is a multiple of the element's size only."""
    n = 1000
    memory = values((4, n + 1), dtype)
    plan = adam_plan([memory[0][1:], memory[1][1:]])
    assert plan.tensors[0].param.ctypes.data % 16 != 0
    rest = [memory[0][0].copy(), memory[1][0].copy()]
    check_steps(plan, [[memory[2][1:], memory[3][1:]]])
    assert [memory[0][0], memory[1][0]] == rest


def test_empty_tensors_anywhere() -> None:
    """bugs.tsv B43: a group that ends in an empty tensor was skipped."""
    for shapes in ([(4,), (0,)], [(0,), (4,)], [(0,)], [(0, 3), (0,), (5,), (0,)]):
        params = [values(s, "float32", i) for i, s in enumerate(shapes)]
        before = [p.copy() for p in params]
        plan = adam_plan(params)
        check_steps(plan, [[values(s, "float32", 7) for s in shapes]])
        assert all(not np.array_equal(a, b) for a, b in zip(params, before, strict=True) if a.size)


def test_many_tensors() -> None:
    random = np.random.default_rng(1)
    shapes = [(int(n),) for n in random.integers(0, 300, 2000)]
    plan = adam_plan([values(s, "float32", i) for i, s in enumerate(shapes)])
    check_steps(plan, [[values(s, "float32", 5000 + i) for i, s in enumerate(shapes)]])


def test_indices_past_2_31(monkeypatch: pytest.MonkeyPatch) -> None:
    """bugs.tsv B53, without the memory: the tables are made for a tensor of 2**32 + 100 elements, then
    only its last chunk is run, at pointers that lie where the tensor would begin."""
    size, tail = 2**32 + 100, 100
    chunks = chunk_table(np.array([size]), cpu.CHUNK_SIZE, np.zeros(1, np.int64))
    assert int(chunks["count"].astype(np.int64).sum()) == size
    assert int(chunks["start"][-1]) == 2**32
    assert int(chunks["count"][-1]) == tail

    param, gradient = values((tail,), "float32"), values((tail,), "float32", 1)
    plan = adam_plan([param])
    launcher = CpuBackend().prepare(plan)
    expected = reference_step(plan, [gradient], 1)[0]
    assert launcher.bind([gradient])
    launcher._chunks["start"] = 2**32
    offset = np.uintp(4 * 2**32)
    launcher._pointers[launcher._pointers != 0] -= offset
    launcher.launch(table_at(1, plan), np.zeros(1, np.int32))
    assert_same_bits(param, expected[0])


def test_chunks_cover_every_element_once() -> None:
    random = np.random.default_rng(2)
    for sizes in ([0], [1], [], [64, 65, 0, 63, 1, 0], list(random.integers(0, 1000, 50))):
        sizes = np.array(sizes, np.int64)
        for heads in (np.zeros(len(sizes), np.int64), random.integers(0, 16, len(sizes))):
            seen = [np.zeros(n, int) for n in sizes]
            for tensor, count, start in chunk_table(sizes, 64, heads).tolist():
                assert 0 < count <= 64
                assert start + count <= sizes[tensor]
                assert start == 0 or start % 64 == heads[tensor]
                seen[tensor][start : start + count] += 1
            assert all((s == 1).all() for s in seen)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("init", [0.0, -0.0, 0.25, "param"])
def test_large_states_lie_apart_and_are_aligned_with_their_parameter(dtype: str, init: Any) -> None:
    """Else they compete for the same places of the first cache."""
    memory = values((200_003,), dtype)
    for param in (memory[:200_000], memory[3:], memory[1:200_001].reshape(40, 5000)):
        backend = CpuBackend()
        states = [backend.allocate(param, init) for _ in range(3)]
        expected = param if init == "param" else np.full(param.shape, init)
        head = cpu.elements_before_line(param)
        assert (param.ctypes.data + head * param.itemsize) % cpu.LINE == 0
        places = {(param.ctypes.data + head * param.itemsize) % cpu.PAGE}
        for state in states:
            assert_same_bits(state, expected.astype(state.dtype))
            assert state.flags.c_contiguous
            assert state.flags.writeable
            line = state.ctypes.data + head * state.itemsize
            assert line % cpu.LINE == 0
            places.add(line % cpu.PAGE)
        assert len(places) == 4
    # Small ones cost nothing more.
    assert CpuBackend().allocate(memory[:1000], 0.0).base is None


def test_units_cover_every_chunk_and_weigh_alike() -> None:
    random = np.random.default_rng(3)
    for counts in ([1], [64] * 5, [64, 1, 1, 1, 64], list(random.integers(1, 65, 500)), [1] * 1000):
        units = unit_table(np.array(counts), 64)
        assert units[0] == 0
        assert units[-1] == len(counts)
        assert (np.diff(units) > 0).all()
        costs = [sum(counts[a:b]) + cpu.TENSOR_COST * (b - a) for a, b in itertools.pairwise(units)]
        assert max(costs) <= 2 * (64 + cpu.TENSOR_COST)
    assert unit_table(np.array([], np.int64), 64).tolist() == [0]


def _refused(gradient: Any, *, shape: tuple[int, ...] = (6, 5), dtype: str = "float32") -> bool:
    plan = adam_plan([values(shape, dtype), values((3,), dtype)])
    launcher = CpuBackend().prepare(plan)
    return not launcher.bind([gradient, values((3,), dtype)])


GOOD: list[Any] = [
    lambda: values((6, 5), "float32"),
    lambda: values((12, 5), "float32")[6:],
    lambda: values((5, 6), "float32").T.copy(order="C"),
    lambda: np.broadcast_to(values((6, 5), "float32"), (6, 5)),
    lambda: np.lib.stride_tricks.as_strided(values((6, 5), "float32"), (6, 5), (20, 4)),
    lambda: values((6, 5), "float32").view(np.dtype("float32", metadata={"a": 1})),
]
BAD: list[Any] = [
    lambda: values((6, 5), "float64"),
    lambda: values((6, 5), "float16"),
    lambda: values((6, 5), "bfloat16"),
    lambda: values((5, 6), "float32"),
    lambda: values((30,), "float32"),
    lambda: values((6, 5, 1), "float32"),
    lambda: values((5, 6), "float32").T,
    lambda: values((6, 10), "float32")[:, ::2],
    lambda: values((6, 5), "float32")[::-1],
    lambda: np.broadcast_to(np.float32(1), (6, 5)),
    lambda: values((6, 5), "float32").astype(">f4"),
    lambda: values((6, 5), "float32").view(np.int32),
    lambda: values((6, 5), "float32").view(np.uint32),
    lambda: np.ma.MaskedArray(values((6, 5), "float32")),
    lambda: np.frombuffer(bytes(121), np.uint8)[1:].view(np.float32).reshape(6, 5),
    lambda: memoryview(values((6, 5), "float32")),
    lambda: values((6, 5), "float32").tolist(),
    lambda: None,
    lambda: 1.0,
    lambda: object(),
    lambda: values((6, 5), "float32").astype([("x", "f4")]),
]


@pytest.mark.parametrize("make", GOOD)
@pytest.mark.parametrize("direct", [True, False])
def test_gradients_that_fit(make: Any, direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not direct:
        monkeypatch.setattr(cpu.library(), "head", 0)
    assert not _refused(make())


@pytest.mark.parametrize("make", BAD)
@pytest.mark.parametrize("direct", [True, False])
def test_gradients_that_do_not_fit(make: Any, direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not direct:
        monkeypatch.setattr(cpu.library(), "head", 0)
    assert _refused(make())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("direct", [True, False])
def test_all_dtypes_by_both_ways_of_reading(
    dtype: str, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not direct:
        monkeypatch.setattr(cpu.library(), "head", 0)
    plan = adam_plan([values((6, 5), dtype), values((), dtype), values((0,), dtype)])
    check_steps(plan, [[values((6, 5), dtype, 1), values((), dtype, 2), values((0,), dtype)]])
    words = values((6, 5), dtype).view(f"u{values((), dtype).itemsize}")
    launcher = CpuBackend().prepare(plan)
    assert not launcher.bind([words, values((), dtype), values((0,), dtype)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_mapped_gradients(dtype: str, tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "g", DTYPES[dtype], "w+", shape=(6, 5))
    mapped[...] = values((6, 5), dtype, 3)
    check_steps(adam_plan([values((6, 5), dtype)]), [[mapped]])


def test_a_dtype_object_of_the_same_meaning() -> None:
    import pickle  # to make an array whose dtype object is another one, as multiprocessing does

    gradient = pickle.loads(pickle.dumps(values((6, 5), "bfloat16")))  # noqa: S301
    gradient = gradient.view(np.dtype(gradient.dtype, metadata={"a": 1}))
    check_steps(adam_plan([values((6, 5), "bfloat16")]), [[gradient]])


def test_wrong_number_of_gradients() -> None:
    plan = adam_plan([values((4,), "float32"), values((5,), "float32")])
    launcher = CpuBackend().prepare(plan)
    good = [values((4,), "float32"), values((5,), "float32")]
    assert not launcher.bind(good[:1])
    assert not launcher.bind([*good, good[0]])
    assert launcher.bind(good)
    assert launcher.bind(tuple(good))


def test_gradients_that_overlap_what_is_written() -> None:
    params = [values((50,), "float32", i) for i in range(40)]
    plan = adam_plan(params)
    launcher = CpuBackend().prepare(plan)
    good = [values((50,), "float32", i) for i in range(40)]
    assert launcher.bind(good)
    for i in (0, 7, 39):
        for tensor in (plan.tensors[0], plan.tensors[20], plan.tensors[39]):
            for array in (tensor.param, tensor.states[0], tensor.states[1]):
                bad = list(good)
                bad[i] = array
                assert not launcher.bind(bad)
    assert launcher.bind(good)
    # A neighbour in the same memory is none of them, whichever side it lies on.
    memory = values((150,), "float32")
    plan = adam_plan([memory[50:100]])
    launcher = CpuBackend().prepare(plan)
    for start in range(0, 101):
        assert launcher.bind([memory[start : start + 50]]) == (start == 0 or start == 100)


def test_gradients_that_overlap_what_other_launches_write() -> None:
    other = values((50,), "float64")
    plan = adam_plan([values((50,), "float32")])
    arrays = [*plan.tensors[0].states[:2], plan.tensors[0].param, other, np.empty(0)]
    plan = replace(plan, owned=Spans.over(arrays, CpuBackend().span_of))
    launcher = CpuBackend().prepare(plan)
    assert launcher.bind([values((50,), "float32")])
    assert not launcher.bind([other.view(np.float32)[50:]])


def test_one_gradient_for_several_tensors() -> None:
    gradient = values((50,), "float32", 5)
    plan = adam_plan([values((50,), "float32", 1), values((50,), "float32", 2)])
    check_steps(plan, [[gradient, gradient]])


def test_read_only_gradients() -> None:
    gradient = values((50,), "float32", 5)
    gradient.flags.writeable = False
    check_steps(adam_plan([values((50,), "float32", 1)]), [[gradient]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_finite(dtype: str, bad: float) -> None:
    shapes = [(3,), (0,), (), (40000,), (17,)]
    plan = adam_plan([values(s, dtype, i) for i, s in enumerate(shapes)])
    launcher = CpuBackend().prepare(plan)
    gradients = [values(s, dtype, i) for i, s in enumerate(shapes)]
    largest = 65504.0 if dtype == "float16" else 3.3e38
    gradients[0][0] = largest
    assert launcher.bind(gradients)
    assert launcher.finite()
    for tensor, index in ((0, 1), (2, ()), (3, 0), (3, 12345), (3, 39999), (4, 16)):
        old = gradients[tensor][index]
        gradients[tensor][index] = bad
        assert not launcher.finite(), (tensor, index)
        gradients[tensor][index] = old
        assert launcher.finite()


def test_a_launch_needs_gradients_and_tables_that_fit() -> None:
    plan = adam_plan([values((4,), "float32")])
    launcher = CpuBackend().prepare(plan)
    table, rows = table_at(1, plan), np.zeros(1, np.int32)
    with pytest.raises(CompilerBug):
        launcher.launch(table, rows)
    assert launcher.bind([values((4,), "float32")])
    for wrong in (
        (table.astype(np.float64), rows),
        (table[:, 1:], rows),
        (table, rows.astype(np.int64)),
        (table[0], rows),
    ):
        with pytest.raises(CompilerBug):
            launcher.launch(*wrong)
    with pytest.raises(CompilerBug):
        launcher.launch(table, np.zeros(2, np.int32))
    launcher.launch(table, rows)
    launcher.release()
    with pytest.raises(CompilerBug):
        launcher.launch(table, rows)


def test_gradients_are_let_go() -> None:
    import sys

    gradient = values((4,), "float32")
    plan = adam_plan([values((4,), "float32")])
    launcher = CpuBackend().prepare(plan)
    before = sys.getrefcount(gradient)
    step(launcher, plan, [gradient], 1)
    assert sys.getrefcount(gradient) == before


def test_no_memory_that_grows() -> None:
    import tracemalloc

    plan = adam_plan([values((3333,), "float32", i) for i in range(300)])
    launcher = CpuBackend().prepare(plan)
    gradients = [values((3333,), "float32", i) for i in range(300)]
    step(launcher, plan, gradients, 1)
    tracemalloc.start()
    try:
        for t in range(2, 12):
            step(launcher, plan, gradients, t)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
