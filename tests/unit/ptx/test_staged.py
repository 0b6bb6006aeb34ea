"""Rules with reductions on the ptx backend, which is the CUDA launcher with a device that interprets.

The bits of the reference, as few launches as there are passes and stages, and faults in their kernels found.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvergen.errors import KernelFault, NonfiniteGradient
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.ptx import PtxBackend, PtxStarter
from solvergen.runtime.cuda import nvrtc, staged
from solvergen.runtime.cuda.kernels import Kernels
from solvergen.runtime.cuda.workspace import CudaWorkspace
from solvergen.runtime.ptx.compiler import ptx_compiler
from solvergen.runtime.ptx.device import PtxDevice
from solvergen.runtime.workspace import HostWorkspace
from tests.support.bits import assert_same_bits
from tests.support.ptx import COMPILERS, needs_nvrtc
from tests.support.staged_rule import numbers, text_of, weigher, with_text

pytestmark = needs_nvrtc

MIXES = (
    ("float32", "float32"),
    ("float64", "float64"),
    ("bfloat16", "bfloat16"),
    ("float16", "float32"),
    ("float32", "bfloat16"),
)
SIZES = (0, 1, 255, 257, 1025, 2047, 4095, 4096, 4097, 9001)

TARGETS = [
    pytest.param(compiler, n, id=f"{compiler.version[0]}-{n}")
    for compiler in COMPILERS
    for n in (75, 80, 90, 100, 120)
    if n in compiler.capabilities
]


def steps(
    cls: type[Any],
    backend: Any,
    mix: tuple[str, str],
    *,
    sizes: Sequence[int] = SIZES,
    misses: Sequence[int] = (0,),
    gradient_misses: Sequence[int] = (0,),
    count: int = 2,
    absent: Sequence[int] = (),
    groups: Sequence[dict[str, Any]] = (),
    **settings: Any,
) -> tuple[list[HostArray], dict[str, Any]]:
    """What some steps leave: the parameters and everything that a snapshot would hold."""
    params = numbers(sizes, mix[0], 1, misses)
    given: Any = params
    if groups:
        given = [{"params": params[i :: len(groups)], **group} for i, group in enumerate(groups)]
    optimizer = cls(given, backend=backend, **settings)
    for step in range(count):
        gradients: list[Any] = numbers(sizes, mix[1], 100 + step, gradient_misses)
        if step == 1:
            gradients = [None if i in absent else g for i, g in enumerate(gradients)]
        if groups:
            gradients = [gradients[i :: len(groups)] for i in range(len(groups))]
            gradients = [g for group in gradients for g in group]
        optimizer.step(gradients)
    names = [f"p{i}" for i in range(len(sizes))]
    kept: dict[str, Any] = {"shared": dict(optimizer.shared)}
    for state in ("m", "trust"):
        for tensor, value in optimizer.state[state].items():
            kept[f"{state} of {tensor}"] = np.array(value)
    return params, {"names": names, **kept}


def check(cls: type[Any], backend: PtxBackend, mix: tuple[str, str], **how: Any) -> None:
    """The bits of the reference, everywhere."""
    wanted, states = steps(weigher(), "numpy", mix, **how)
    got, found = steps(cls, backend, mix, **how)
    for a, b in zip(got, wanted, strict=True):
        assert_same_bits(a, b)
    assert found.keys() == states.keys()
    for name, value in states.items():
        if isinstance(value, np.ndarray):
            assert_same_bits(found[name], value)
        else:
            assert found[name] == value


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("mix", MIXES, ids="/".join)
def test_every_size(mix: tuple[str, str], bounded: bool) -> None:
    check(weigher(), PtxBackend(), mix, bounded=bounded)


@pytest.mark.parametrize(("compiler", "capability"), TARGETS)
def test_every_compiler_and_capability(compiler: nvrtc.Nvrtc, capability: int) -> None:
    mix = MIXES[capability % len(MIXES)]
    check(weigher(), PtxBackend(capability, compiler), mix, sizes=(5000, 7, 4096), bounded=True)


@pytest.mark.parametrize("mix", MIXES[:3], ids="/".join)
def test_tensors_that_begin_anywhere(mix: tuple[str, str]) -> None:
    """All alike, or each by itself: then there is no word that begins in all buffers."""
    sizes = (4097, 300, 5, 9000)
    check(
        weigher(), PtxBackend(), mix, sizes=sizes, misses=(1, 0, 3), gradient_misses=(1, 0, 3), bounded=True
    )
    check(weigher(), PtxBackend(), mix, sizes=sizes, misses=(0, 1), gradient_misses=(1, 0), bounded=True)


def test_tensors_without_gradients() -> None:
    """They add nothing, their states stay, and the first of the others leads."""
    sizes = (300, 4097, 20)
    for absent in ((0,), (1,), (0, 2), (0, 1, 2)):
        check(weigher(), PtxBackend(), MIXES[0], sizes=sizes, absent=absent, count=3, bounded=True)


def test_groups_of_other_options_and_values() -> None:
    """Two launches a step, one of which has no pass for the norm of all gradients."""
    groups = ({"bounded": True, "lr": 0.3}, {"bounded": False, "weigh": False})
    check(weigher(), PtxBackend(), MIXES[0], sizes=(300, 4097, 20, 5000), groups=groups, count=3)


def test_more_tensors_than_a_chunk_has_terms() -> None:
    """So that what is over all tensors takes two levels."""
    definition, count = weigher().definition, 4096 + 300
    device = PtxDevice(90)
    workspace = CudaWorkspace(
        definition, [(1,)] * count, PtxStarter(device), Kernels(ptx_compiler(COMPILERS[0]))
    )
    host = HostWorkspace(definition, [1] * count)
    rng = np.random.default_rng(1)
    totals = np.abs(rng.standard_normal((count, definition.n_reductions))) * 10.0 ** rng.integers(
        -9, 9, (count, 1)
    )
    host.totals[...] = totals
    device.upload(workspace.totals().address, totals)
    for number, one in enumerate(definition.passes):
        if "all" in one.over:
            workspace.combine(number)
            host.combine(number)
    found = np.zeros(definition.n_reductions)
    device.download(found, workspace.over_all().address)
    assert_same_bits(found, host.over_all)
    assert np.count_nonzero(found) == sum(one.over.count("all") for one in definition.passes)


def test_values_that_are_not_finite() -> None:
    results = []
    for backend in ("numpy", "ptx"):
        params = numbers((300, 4097), "float32", 1)
        optimizer = weigher()(params, backend=backend, bounded=True)
        for bad in (np.inf, np.nan):
            gradients = numbers((300, 4097), "float32", 2)
            gradients[1][4096] = bad
            optimizer.step(gradients)
        results.append([*params, np.array(optimizer.shared["furthest"])])
    for a, b in zip(*results, strict=True):
        assert_same_bits(a, b)
    assert np.isnan(results[0][0]).all()


@pytest.mark.parametrize("policy", ["skip", "raise"])
def test_policies(policy: str) -> None:
    params = numbers((300, 4097), "float32", 1)
    before = [p.copy() for p in params]
    optimizer = weigher()(params, backend="ptx", nonfinite=policy)
    gradients = numbers((300, 4097), "float32", 2)
    gradients[1][4096] = np.nan
    if policy == "raise":
        with pytest.raises(NonfiniteGradient):
            optimizer.step(gradients)
    else:
        optimizer.step(gradients)
    for a, b in zip(params, before, strict=True):
        assert_same_bits(a, b)
    assert optimizer.shared["furthest"] == 0.25


def test_states_go_in_and_out() -> None:
    """Half of the steps on each backend, over a snapshot."""
    sizes = (300, 4097)
    wanted = numbers(sizes, "float32", 1)
    params = [p.copy() for p in wanted]
    whole = weigher()(wanted, backend="numpy", bounded=True)
    parts = [weigher()(params, backend=name, bounded=True) for name in ("ptx", "numpy", "ptx")]
    for step in range(3):
        if step:
            parts[step].load_state_dict(parts[step - 1].state_dict())
        for optimizer in (whole, parts[step]):
            optimizer.step(numbers(sizes, "float32", 10 + step))
    for a, b in zip(params, wanted, strict=True):
        assert_same_bits(a, b)
    assert parts[2].shared["furthest"] == whole.shared["furthest"]


class Recording(PtxDevice):
    """Notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__(90)
        self.calls: list[str] = []

    def launch(self, kernel: Any, *arguments: Any) -> None:
        self.calls.append(kernel.program.kernel.name)
        super().launch(kernel, *arguments)

    def upload(self, address: int, source: HostArray) -> None:
        self.calls.append("upload")
        super().upload(address, source)

    def copy(self, address: int, source: int, nbytes: int) -> None:
        self.calls.append("copy")
        super().copy(address, source, nbytes)

    def download(self, target: HostArray, address: int) -> None:
        self.calls.append("download")
        super().download(target, address)

    def synchronize(self) -> None:
        self.calls.append("synchronize")


def on(device: PtxDevice) -> PtxBackend:
    """A backend over a device of the test's."""
    backend = PtxBackend()
    backend._device = device
    return backend


@pytest.mark.parametrize("tensors", [1, 3, 50])
def test_as_many_launches_for_one_tensor_as_for_hundreds(tensors: int) -> None:
    """And one upload, and nothing that waits. With one tensor or many: the calls are the same."""
    device = Recording()
    sizes = [1 + 13 * (i % 7) for i in range(tensors)]
    sizes[0] = 9000
    optimizer = weigher()(numbers(sizes, "float32", 1), backend=on(device), bounded=True)
    optimizer.step(numbers(sizes, "float32", 2))
    for step in range(3):
        device.calls.clear()
        optimizer.step(numbers(sizes, "float32", 3 + step))
        assert device.calls == [
            "copy",  # totals become zero
            "copy",  # shared states that nobody assigns stay
            "upload",
            "sg_pass_0",
            "sg_reduce",
            "sg_reduce",  # over all tensors
            "sg_stage_1",
            "sg_pass_1",
            "sg_reduce",
            "sg_reduce",
            "sg_stage_2",
            "sg_pass_2",
        ]


class Deferred(PtxDevice):
    """Does nothing until somebody waits: whatever a step leaves to later happens later."""

    def __init__(self) -> None:
        super().__init__(90)
        self.queue: list[Callable[[], None]] = []
        self.done = 0
        self.kept: list[Any] = []

    def allocate(self, nbytes: int) -> Any:
        self.kept.append(super().allocate(nbytes))  # as a GPU's memory is there, whoever still refers to it
        return self.kept[-1]

    def work_until(self, position: int) -> None:
        while self.done < position:
            self.queue.pop(0)()
            self.done += 1

    def event(self) -> Any:
        return DeferredEvent(self)

    def upload(self, address: int, source: HostArray) -> None:
        self.queue.append(lambda: PtxDevice.upload(self, address, source))

    def copy(self, address: int, source: int, nbytes: int) -> None:
        self.queue.append(lambda: PtxDevice.copy(self, address, source, nbytes))

    def launch(self, *arguments: Any) -> None:
        expected = self._expected

        def later() -> None:
            assert expected is not None
            with self.expecting(expected):
                PtxDevice.launch(self, *arguments)

        self.queue.append(later)

    def download(self, target: HostArray, address: int) -> None:
        self.synchronize()
        super().download(target, address)

    def synchronize(self) -> None:
        self.work_until(self.done + len(self.queue))


class DeferredEvent:
    """Waiting for it does the work that was given before it was recorded, and no more."""

    def __init__(self, device: Deferred) -> None:
        self.device = device
        self.position = 0

    def record(self) -> None:
        self.position = self.device.done + len(self.device.queue)

    def wait(self) -> None:
        self.device.work_until(self.position)


def test_a_step_waits_for_nothing_and_disturbs_nothing_under_way() -> None:
    device = Deferred()
    sizes = (300, 4097, 0, 20)
    wanted = numbers(sizes, "float32", 1)
    params = [p.copy() for p in wanted]
    reference = weigher()(wanted, backend="numpy", bounded=True)
    optimizer = weigher()(params, backend=on(device), bounded=True)
    kept = []
    for step in range(6):
        kept.append(numbers(sizes, "float32", 10 + step))
        optimizer.lr = reference.lr = 0.1 * (step + 1)
        reference.step(kept[-1])
        before = device.done
        optimizer.step(kept[-1])
        # What a step waits for is the step before the last, never the last.
        assert device.done - before <= 12
        assert len(device.queue) >= (12 if step == 0 else 24)
    assert optimizer.shared["furthest"] == reference.shared["furthest"]  # this waits
    assert not device.queue
    for a, b in zip(params, wanted, strict=True):
        assert_same_bits(a, b)


def test_a_dropped_optimizer_waits_for_its_copies() -> None:
    device = Deferred()
    gradients = numbers((300,), "float32", 2)
    params = numbers((300,), "float32", 1)
    optimizer = weigher()(params, backend=on(device))
    optimizer.step(gradients)
    assert device.queue
    del optimizer
    gc.collect()
    assert not device.queue


def test_a_missing_barrier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is there for nothing, but for the last of pass 0: with one reduction, who reads a total is who
    writes there next. (It is there for blocks that take several chunks.)"""
    monkeypatch.setattr(staged, "MAX_BLOCKS", 1)
    text = text_of()
    barriers = list(re.finditer(r"__syncthreads\(\);", text))
    assert len(barriers) == 8  # two where terms change hands, three in each of the two passes with reductions
    for number, barrier in enumerate(barriers):
        if number == 4:
            continue
        cls = with_text(text[: barrier.start()] + text[barrier.end() :], tmp_path)
        with pytest.raises(KernelFault, match="with no barrier between them") as caught:
            steps(cls, PtxBackend(), MIXES[0], sizes=(8192,), count=1, bounded=True)
        assert "shared variable" in caught.value.buffer


WRONG = {
    "a lane that takes its neighbour's in every other row": (
        "const int sg_i = sg_j * SG_THREADS + sg_thread;",
        "const int sg_i = sg_j * SG_THREADS + (sg_thread ^ (sg_j & 1));",
    ),
    "lanes by threads": (
        "sg_shared[sg_i % SG_LANES * SG_ROW + sg_i / SG_LANES]",
        "sg_shared[sg_j * SG_ROW + sg_thread]",
    ),
    "the last element is its first thread's": (
        "sg_behind + ((sg_thread - sg_behind) & (SG_THREADS - 1))",
        "sg_behind + sg_thread",
    ),
    "a round is dropped": (
        "sg_b < sg_words; sg_b += SG_THREADS",
        "sg_b < sg_words - 255; sg_b += SG_THREADS",
    ),
    "a term is dropped": ("if (sg_i < sg_count)", "if (sg_i < sg_count - 1)"),
    "the last halving is dropped": ("sg_half > 0; sg_half /= 2", "sg_half > 1; sg_half /= 2"),
    "halving from below": (
        "sg_half = SG_THREADS / 2; sg_half > 0; sg_half /= 2",
        "sg_half = 1; sg_half < SG_THREADS; sg_half *= 2",
    ),
    "a partial is dropped": ("if (sg_thread == 0) {", "if (sg_thread == 0 && sg_c) {"),
    "partials of another chunk": ("sg_partials[sg_c * ", "sg_partials[(sg_c ^ 1) * "),
    "in float32": ("(double)sg_x * (double)sg_x", "(double)(sg_x * sg_x)"),
    "a total of another tensor": ("sg_reduced + sg_position * SG_TOTALS", "sg_reduced + sg_i * SG_TOTALS"),
    "whoever comes first leads": ("sg_position == sg_leader", "sg_position == 0"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_shows(what: str, tmp_path: Path) -> None:
    right, wrong = WRONG[what]
    text = text_of().replace(right, wrong)
    assert text != text_of()
    cls = with_text(text, tmp_path)
    found = False
    for mix in MIXES[1::-1]:  # sums of float32 numbers are often exact, whatever the order
        try:
            check(cls, PtxBackend(), mix, sizes=(3, 4601, 300), bounded=True, absent=(0,))
        except (KernelFault, AssertionError):
            found = True
            break
    assert found


def test_a_partial_that_was_never_written(tmp_path: Path) -> None:
    text = text_of().replace("if (sg_thread == 0) {", "if (sg_thread == 0 && sg_c) {")
    with pytest.raises(KernelFault, match="which nothing has written") as caught:
        steps(with_text(text, tmp_path), PtxBackend(), MIXES[0], sizes=(9001,))
    assert caught.value.buffer == "the chunks' totals"


def test_a_stage_that_reads_beyond_its_tables(tmp_path: Path) -> None:
    text = text_of().replace(
        "sg_reduced + sg_position * SG_TOTALS", "sg_reduced + (sg_position + 1) * SG_TOTALS"
    )
    with pytest.raises(KernelFault, match="the end of the tensors' totals") as caught:
        steps(with_text(text, tmp_path), PtxBackend(), MIXES[0], sizes=(30, 40))
    assert caught.value.buffer == "the tensors' totals"
