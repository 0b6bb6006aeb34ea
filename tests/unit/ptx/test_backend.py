"""The ptx backend, and what it tells of a kernel that goes wrong. (tests/property holds every optimizer on it
to the bits of its rule; here are each compiler and compute capability.)
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import generated
from solvergen.errors import (
    ArrayError,
    BackendUnavailable,
    KernelBuildError,
    KernelFault,
    NonfiniteGradient,
    OptimizerError,
)
from solvergen.runtime import backends
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.ptx import PtxBackend
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.ptx.machine.launch import LIMIT
from solvergen.runtime.ptx.observe import Event
from solvergen.verify.agreement import find_disagreement
from tests.support.ptx import COMPILERS, needs_nvrtc

pytestmark = needs_nvrtc

TARGETS = [
    (compiler, capability)
    for compiler in COMPILERS
    for capability in (75, 80, 90, 100, 120)
    if capability in compiler.capabilities
]


def named(target: tuple[nvrtc.Nvrtc, int]) -> str:
    (major, minor), capability = target[0].version, target[1]
    return f"{major}.{minor}-compute_{capability}"


@pytest.mark.parametrize("target", TARGETS, ids=named)
@pytest.mark.parametrize("name", ["Adam", "CaffeAdaDelta"])
def test_every_compute_capability_and_compiler(name: str, target: tuple[nvrtc.Nvrtc, int]) -> None:
    compiler, capability = target
    backend = PtxBackend(capability, compiler)
    found = find_disagreement(getattr(generated, name), backend, examples=8, seed=capability)
    assert found is None, found.describe()


def steps(
    backend: str | PtxBackend, params: dict[str, HostArray], count: int = 3, **settings: object
) -> Optimizer:
    generator = np.random.default_rng(5)
    optimizer: Optimizer = generated.Adam(params, backend=backend, **settings)  # type: ignore[arg-type]
    for _ in range(count):
        optimizer.step(
            {name: generator.standard_normal(p.shape).astype(p.dtype) for name, p in params.items()}
        )
    return optimizer


def test_by_its_name() -> None:
    assert "ptx" in backends.NAMES
    results = []
    for backend in ("numpy", "ptx"):
        params = {
            "w": np.linspace(-1, 1, 5000, dtype=np.float32).reshape(50, 100),
            "b": np.ones(3, np.float32),
        }
        optimizer = steps(backend, params, weight_decay=0.1)
        results.append([params["w"], params["b"], *(optimizer.state["exp_avg"][n] for n in params)])
    for expected, found in zip(*results, strict=True):
        assert expected.tobytes() == found.tobytes()


def test_gradients_that_are_one_array() -> None:
    params = {"a": np.ones(40, np.float32), "b": np.full(40, 2, np.float32)}
    gradient = np.linspace(-1, 1, 40, dtype=np.float32)
    optimizer = generated.SGD(params, lr=0.5, backend="ptx")
    optimizer.step({"a": gradient, "b": gradient})
    assert params["a"].tobytes() == (np.float32(1) - np.float32(0.5) * gradient).tobytes()
    assert params["b"].tobytes() == (np.float32(2) - np.float32(0.5) * gradient).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("where", [None, 0, 700, 1499])
def test_gradients_that_are_not_finite(dtype: str, where: int | None) -> None:
    kind = numpy_dtype(dtype)
    params = {"a": np.ones(1500, kind), "empty": np.ones(0, kind)}
    optimizer = generated.SGD(params, backend="ptx", nonfinite="raise")
    gradient = np.full(1500, 0.5, kind)
    if where is None:
        optimizer.step({"a": gradient, "empty": params["empty"].copy()})
        return
    gradient[where] = np.inf if where else np.nan
    with pytest.raises(NonfiniteGradient):
        optimizer.step({"a": gradient, "empty": params["empty"].copy()})
    assert (params["a"] == 1).all()


def test_arrays_are_checked_as_on_other_backends() -> None:
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ArrayError, match="read-only"):
        generated.SGD([frozen], backend="ptx")
    optimizer = generated.SGD([np.ones(3, np.float32)], backend="ptx")
    with pytest.raises(ArrayError, match="shape"):
        optimizer.step([np.ones(4, np.float32)])


class TestUnavailable:
    def test_without_nvrtc(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(nvrtc.LIBRARY_VARIABLE, "/nowhere/libnvrtc.so")
        with pytest.raises(BackendUnavailable, match=r"backend 'ptx': .*solvergen\[cuda12\]"):
            backends.create("ptx")

    def test_a_capability_that_the_compiler_does_not_know(self) -> None:
        with pytest.raises(BackendUnavailable, match=r"compute capability 20; it knows .*90"):
            PtxBackend(20)


class TestObserving:
    def test_every_instruction_is_told_with_its_threads_and_results(self) -> None:
        events: list[Event] = []
        params = {"w": np.linspace(1, 2, 7, dtype=np.float32)}
        gradient = np.linspace(-1, 1, 7, dtype=np.float32)
        before = params["w"].copy()
        optimizer = generated.SGD(params, lr=0.25, backend=PtxBackend(observe=events.append))
        optimizer.step({"w": gradient})
        opcodes = [event.instruction.opcode for event in events]
        assert opcodes[-1] == "ret"
        assert "bra" in opcodes
        assert {event.kernel for event in events} == {"sg_kernel"}
        loaded = [e for e in events if e.instruction.opcode == "ld" and "f32" in e.instruction.modifiers]
        everything = np.concatenate([r for e in loaded for r in e.results.values()])
        for value in [*before, *gradient]:
            assert value in everything
        products = [e for e in events if e.instruction.name == "mul.rn.f32"]
        assert all(len(e.thread) == len(r) for e in products for r in e.results.values())
        assert all((e.block == 0).all() for e in events)
        assert re.match(r"\d+: mul\.rn\.f32 %f\d+", str(products[0]))
        assert params["w"].tobytes() == (before - np.float32(0.25) * gradient).tobytes()

    def test_the_lines_are_those_of_the_kernel(self) -> None:
        events: list[Event] = []
        optimizer = generated.SGD([np.ones(5, np.float32)], backend=PtxBackend(observe=events.append))
        optimizer.step([np.ones(5, np.float32)])
        text = Path(generated.SGD.definition.folder, "kernel.cu").read_text().splitlines()
        sources = {text[e.place.source - 1] for e in events if e.instruction.opcode in ("mul", "sub")}
        assert any("param_new = " in line for line in sources)


def broken(
    tmp_path: Path, *changes: tuple[str, str], of: type[Optimizer] = generated.Adam
) -> type[Optimizer]:
    """An optimizer whose kernel is another: each ``(old, new)`` must be there."""
    folder = tmp_path / "kernel"
    shutil.copytree(of.definition.folder, folder)
    text = (folder / "kernel.cu").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "kernel.cu").write_text(text)

    class Broken(of):  # type: ignore[valid-type,misc]
        definition = replace(of.definition, folder=str(folder))

    return Broken


def fault_of(optimizer: type[Optimizer], *sizes: int, offset: int = 0) -> KernelFault:
    """The fault of a step over tensors w0, w1 ... of these sizes, which lie apart."""
    params = {f"w{i}": np.ones(size + offset, np.float32)[offset:] for i, size in enumerate(sizes)}
    made = optimizer(params, backend="ptx")
    copies = {name: p.copy() for name, p in params.items()}
    with pytest.raises(KernelFault) as caught:
        made.step({name: np.full(p.shape, 0.5, np.float32) for name, p in params.items()})
    for name, p in params.items():
        assert p.tobytes() == copies[name].tobytes()
    assert caught.value.kernel == "sg_kernel"
    return caught.value


class TestFaults:
    def test_a_tail_that_is_too_long(self, tmp_path: Path) -> None:
        change = ("const int sg_singles = sg_this.count - ", "const int sg_singles = 1 + sg_this.count - ")
        fault = fault_of(broken(tmp_path, change), 10, 7)
        # With all tensors one past their end, reads come first, of the parameter, gradient or state.
        assert re.search(r"'w[01]'", fault.buffer)
        assert "right behind the end of" in str(fault)
        assert "sg_s" in str(fault)

    def test_stores_past_the_end_name_the_state(self, tmp_path: Path) -> None:
        change = (
            "sg_store(sg_at.sg_exp_avg_sq_at + sg_first, ",
            "sg_store(sg_at.sg_exp_avg_sq_at + sg_first + 1, ",
        )
        fault = fault_of(broken(tmp_path, change), 3, 1)
        assert fault.buffer.startswith("state exp_avg_sq of 'w")
        fault = fault_of(broken(tmp_path / "2", change), 4096)
        assert "of which 4 lie behind the end of state exp_avg_sq of 'w0'" in str(fault)

    def test_writing_the_gradient(self, tmp_path: Path) -> None:
        change = ("sg_store(sg_at.sg_param_at + ", "sg_store(sg_at.sg_grad_at + ")
        fault = fault_of(broken(tmp_path, change), 10)
        assert fault.buffer == "the gradient of 'w0'"
        assert "which is only to be read" in str(fault)

    def test_chunks_that_overlap_race(self, tmp_path: Path) -> None:
        # Every chunk but the first of a tensor begins a word early.
        change = ("+ sg_this.start;", "+ (sg_this.start ? sg_this.start - SG_LANES : 0);")
        fault = fault_of(broken(tmp_path, change), 3000)
        assert "with no barrier between them" in str(fault)
        assert re.search(r"which thread \d+ of block \d+ (read|wrote)", str(fault))

    def test_elements_that_two_threads_take_race(self, tmp_path: Path) -> None:
        change = ("sg_head_count + sg_w * SG_LANES", "sg_head_count + sg_w / 2 * SG_LANES")
        fault = fault_of(broken(tmp_path, change), 3000)
        assert "with no barrier between them" in str(fault)

    def test_loads_that_are_not_aligned(self, tmp_path: Path) -> None:
        change = ("return (sg_address & 15u) == 0 && sg_head < sg_count ? sg_head : sg_count;", "return 0;")
        fault = fault_of(broken(tmp_path, change), 3000, offset=1)
        assert "is not a multiple of 16" in str(fault)

    def test_a_table_read_past_its_end(self, tmp_path: Path) -> None:
        change = ("chunks[sg_c]", "chunks[sg_c + 1]")
        fault = fault_of(broken(tmp_path, change), 10)
        assert fault.buffer == "the table of chunks"
        change = ("rows[sg_this.tensor]", "rows[sg_this.tensor + 1]")
        fault = fault_of(broken(tmp_path / "2", change), 10)
        assert fault.buffer == "the table of rows"
        change = ("sg_values[8]", "sg_values[9]")
        fault = fault_of(broken(tmp_path / "3", change), 10)
        assert fault.buffer == "the table of scalars"
        change = ("(sg_i64)sg_this.tensor * SG_BUFFERS", "(sg_i64)(sg_this.tensor + 1) * SG_BUFFERS")
        fault = fault_of(broken(tmp_path / "4", change), 10)
        assert fault.buffer == "the table of pointers"

    def test_a_loop_without_end(self, tmp_path: Path) -> None:
        optimizer = broken(tmp_path, ("sg_s += blockDim.x)", "sg_s += 0 * blockDim.x)"))
        made = optimizer([np.ones(5, np.float32)], backend=PtxBackend(limit=5000))
        with pytest.raises(KernelFault, match="5000 instructions"):
            made.step([np.ones(5, np.float32)])

    def test_an_endless_loop_is_given_up_before_one_loses_patience(self, tmp_path: Path) -> None:
        assert LIMIT <= 200_000, "a loop that reads memory takes a minute for each million"

    def test_wrong_arguments(self) -> None:
        for wrong in (0, -1, 2.5, "5", None, True):
            with pytest.raises(OptimizerError, match="limit is a number of instructions"):
                PtxBackend(limit=wrong)  # type: ignore[arg-type]
        with pytest.raises(OptimizerError, match="observe is a function"):
            PtxBackend(observe=3)  # type: ignore[arg-type]

    @pytest.mark.parametrize("what", [KeyError, KeyboardInterrupt, SystemExit])
    def test_what_an_observer_raises_leaves_all_as_it_was(self, what: type[BaseException]) -> None:
        def raising(event: object) -> None:
            raise what

        param = np.ones(5, np.float32)
        made = generated.Adam([param], backend=PtxBackend(observe=raising))
        with pytest.raises(what):
            made.step([np.ones(5, np.float32)])
        assert made.t == 0
        assert param.tolist() == [1.0] * 5

    def test_the_equation_is_named(self, tmp_path: Path) -> None:
        lines = Path(generated.Adam.definition.folder, "kernel.cu").read_text()
        change = ("const sg_real exp_avg_new = ", "if (sg_first > 1) __trap(); const sg_real exp_avg_new = ")
        assert change[0] in lines
        fault = fault_of(broken(tmp_path, change), 5)
        assert "executes trap" in str(fault)
        place = next(line.split()[-1] for line in lines.splitlines() if "// exp_avg = " in line)
        assert f"equation: exp_avg = beta1*exp_avg + (1 - beta1)*g  ({place})" in str(fault)

    def test_an_instruction_whose_result_is_not_known(self, tmp_path: Path) -> None:
        change = ("return __fsqrt_rn(x);", 'asm("sqrt.approx.f32 %0, %0;" : "+f"(x)); return x;')
        made = broken(tmp_path, change)([np.ones(3, np.float32)], backend="ptx")
        with pytest.raises(KernelBuildError, match=r"can't be interpreted: PTX line \d+: .*approximation"):
            made.step([np.ones(3, np.float32)])


def test_a_million_elements_take_less_than_a_second() -> None:
    params = {"w": np.ones(1_000_000, np.float32)}
    optimizer = generated.Adam(params, backend="ptx")
    gradients = {"w": np.linspace(-1, 1, 1_000_000, dtype=np.float32)}
    optimizer.step(gradients)  # compiles, and touches its memory for the first time
    spent = []
    for _ in range(3):
        begin = time.process_time()
        optimizer.step(gradients)
        spent.append(time.process_time() - begin)
    assert min(spent) < 1
