"""The launcher: what it takes for a gradient, that a step waits for nothing, and more than one GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import generated
from solvergen.runtime.backends.base import LaunchPlan, TensorPlan
from solvergen.runtime.buffers import HostArrays, address_of
from solvergen.runtime.cuda.device import Kernel
from solvergen.runtime.cuda.launch import Access, CudaLauncher
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import compute_dtype, numpy_dtype, rounding
from solvergen.runtime.spans import Spans
from tests.support import cuda_host
from tests.support.cuda_launch import bits_of, defaults

pytestmark = pytest.mark.skipif(cuda_host.missing() is not None, reason=str(cuda_host.missing()))

ADAM: Definition = generated.Adam.definition
OPTIONS = {"amsgrad": False, "maximize": False}
H = defaults(ADAM, weight_decay=0.1)
ACTIVE = ADAM.active_state(**OPTIONS)


class DeferredEvent:
    """Waiting for it does the work that was given before it was recorded, and no more."""

    def __init__(self, device: DeferredDevice) -> None:
        self.device = device
        self.position = 0

    def record(self) -> None:
        self.position = self.device.given

    def wait(self) -> None:
        self.device.work_until(self.position)


class DeferredDevice(cuda_host.HostDevice):
    """A GPU that does nothing until somebody waits: whatever a step leaves to later happens later."""

    def __init__(self, number: int = 0) -> None:
        super().__init__(number)
        self.queue: list[Callable[[], None]] = []
        self.done = 0

    @property
    def given(self) -> int:
        return self.done + len(self.queue)

    def work_until(self, position: int) -> None:
        while self.done < position:
            self.queue.pop(0)()
            self.done += 1

    def event(self) -> Any:
        return DeferredEvent(self)

    def upload(self, address: int, source: np.ndarray) -> None:
        self.queue.append(lambda: cuda_host.HostDevice.upload(self, address, source))

    def launch(self, kernel: Kernel, blocks: int, threads: int, arguments: Sequence[np.generic]) -> None:
        self.queue.append(lambda: cuda_host.HostDevice.launch(self, kernel, blocks, threads, arguments))

    def fetch(self, target: np.ndarray, address: int) -> None:
        self.queue.append(lambda: cuda_host.HostDevice.fetch(self, target, address))

    def download(self, target: np.ndarray, address: int) -> None:
        self.synchronize()
        super().download(target, address)

    def synchronize(self) -> None:
        self.work_until(self.given)


class Case:
    """Some tensors, a launcher over them, and the reference run beside it."""

    def __init__(
        self,
        sizes: Sequence[int],
        mix: tuple[str, str] = ("float32", "float32"),
        devices: Sequence[cuda_host.HostDevice] = (),
        placed: Sequence[int] = (),
    ) -> None:
        self.mix = mix
        self.rng = np.random.default_rng(5)
        self.compute = compute_dtype(mix[0])
        self.devices = list(devices) or [cuda_host.HostDevice()]
        self.placed = list(placed) or [0] * len(sizes)
        self.where: dict[int, int] = {}
        self.params = [self.rng.standard_normal(size).astype(numpy_dtype(mix[0])) for size in sizes]
        self.states = [
            [np.zeros(size, self.compute) if name in ACTIVE else None for name in ADAM.array_states]
            for size in sizes
        ]
        self.wanted = [
            [p.astype(self.compute), *(None if s is None else s.copy() for s in states)]
            for p, states in zip(self.params, self.states, strict=True)
        ]
        for param, number in zip(self.params, self.placed, strict=True):
            self.where[address_of(param)] = number
        self.others = [np.zeros(100, np.float32), np.zeros(0, np.float32)]
        tensors = tuple(
            TensorPlan(str(i), p, p.shape, tuple(s))
            for i, (p, s) in enumerate(zip(self.params, self.states, strict=True))
        )
        owned = [a for t in tensors for a in (t.param, *t.states) if a is not None] + self.others
        spans = Spans.over(owned, HostArrays().span_of)
        self.plan = LaunchPlan(ADAM, OPTIONS, *mix, tensors, spans)
        access = Access(
            type=np.ndarray,
            facts=lambda a: (a.dtype, a.shape, self.where.get(address_of(a), 0), a.strides),
            contiguous=cuda_host.HOST_ACCESS.contiguous,
            address=address_of,
            view=cuda_host.HOST_ACCESS.view,
        )
        self.launcher = CudaLauncher(self.plan, self.devices.__getitem__, cuda_host.host_kernels(), access)

    def gradients(self) -> list[np.ndarray]:
        gradients = [self.rng.standard_normal(p.shape).astype(numpy_dtype(self.mix[1])) for p in self.params]
        for gradient, number in zip(gradients, self.placed, strict=True):
            self.where[address_of(gradient)] = number
        return gradients

    def step(self, gradients: list[np.ndarray], t: int, lrs: Sequence[float], rows: Sequence[int]) -> None:
        assert self.launcher.bind(gradients)
        table = [ADAM.scalars(**(H | {"lr": lr}), **OPTIONS, t=float(t))[0] for lr in lrs]
        self.launcher.launch(np.array(table).astype(self.compute), np.array(rows, np.int32))
        self.launcher.release()
        for wanted, gradient, row in zip(self.wanted, gradients, rows, strict=True):
            h = H | {"lr": lrs[row]}
            wanted[:] = ADAM.update(
                wanted[0],
                gradient.astype(self.compute),
                *wanted[1:],
                *(h[n] for n in ADAM.hyperparameter_names),
                float(t),
                *(OPTIONS[n] for n in ADAM.option_names),
                self.compute.type,
                rounding(self.mix[0]),
            )

    def check(self) -> None:
        for param, states, wanted in zip(self.params, self.states, self.wanted, strict=True):
            for got, want in zip([param, *states], wanted, strict=True):
                assert (got is None) == (want is None)
                if got is not None:
                    assert (bits_of(got) == bits_of(want.astype(got.dtype))).all()


@pytest.mark.parametrize("mix", [("float32", "float32"), ("bfloat16", "float16"), ("float64", "float64")])
def test_steps_with_tables_that_change(mix: tuple[str, str]) -> None:
    case = Case([3000, 0, 5, 1, 70_000], mix)
    for t, n_rows in enumerate((1, 3, 2, 5, 1), start=1):
        rows = [i % n_rows for i in range(5)]
        case.step(case.gradients(), t, [0.1 * (i + 1) for i in range(n_rows)], rows)
    case.check()


def test_a_step_waits_for_nothing_and_disturbs_nothing_under_way() -> None:
    """On a GPU that lags behind, each step's tables arrive as they were when the step was made."""
    device = DeferredDevice()
    case = Case([100, 3000, 7], devices=[device])
    kept = []
    backlog = []
    for t in range(1, 9):
        kept.append(case.gradients())  # a real GPU's allocator keeps the order, the test keeps the memory
        before = device.done
        case.step(kept[-1], t, [0.1 * t, 0.3], [0, 1, 0])
        backlog.append(len(device.queue))
        # What a step waits for is the launch before the last, never the last.
        assert device.done - before <= 2
    assert min(backlog[1:]) >= 4  # this step's copy and launch, and the last step's
    device.synchronize()
    case.check()


def test_tables_that_grow_while_the_last_are_in_use() -> None:
    device = DeferredDevice()
    case = Case([10] * 40, devices=[device])
    kept = []
    for t, n_rows in enumerate((1, 40, 2, 40, 1), start=1):
        kept.append(case.gradients())
        case.step(kept[-1], t, [0.01 * (i + 1) for i in range(n_rows)], [i % n_rows for i in range(40)])
    device.synchronize()
    case.check()


def test_tensors_on_several_gpus() -> None:
    devices = [DeferredDevice(0), cuda_host.HostDevice(1), cuda_host.HostDevice(2)]
    case = Case([100, 50, 0, 2000, 9], devices=devices, placed=[1, 0, 1, 0, 2])
    kept = [case.gradients(), case.gradients()]
    for t, gradients in enumerate(kept, start=1):
        case.step(gradients, t, [0.1, 0.2, 0.3], [2, 0, 1, 1, 0])
    devices[0].synchronize()
    case.check()
    gradients = case.gradients()
    case.where[address_of(gradients[0])] = 0  # on another GPU than its parameter
    assert not case.launcher.bind(gradients)


def test_nothing_to_do() -> None:
    case = Case([0, 0])
    case.step(case.gradients(), 1, [0.1], [0, 0])
    assert case.launcher.bind(case.gradients())
    assert case.launcher.finite()
    assert case.devices[0].words == 0


@pytest.mark.parametrize("mix", [("float32", "bfloat16"), ("float16", "float16"), ("float64", "float64")])
def test_finite(mix: tuple[str, str]) -> None:
    case = Case([1000, 0, 3, 20_000], mix)
    gradients = case.gradients()
    assert case.launcher.bind(gradients)
    assert case.launcher.finite()
    for tensor, element, value in ((0, 999, np.nan), (2, 0, np.inf), (3, 12_345, -np.inf)):
        bad = case.gradients()
        bad[tensor][element] = value
        assert case.launcher.bind(bad)
        assert not case.launcher.finite()
        assert case.launcher.bind(gradients)
        assert case.launcher.finite()  # the last answer isn't remembered
    case.step(gradients, 1, [0.1], [0] * 4)
    case.check()


def _float64(g: list[Any], case: Case) -> None:
    g[1] = g[1].astype(np.float64)


def _big_endian(g: list[Any], case: Case) -> None:
    g[1] = g[1].astype(">f4")


def _shape(g: list[Any], case: Case) -> None:
    g[1] = g[1].reshape(10, -1)


def _short(g: list[Any], case: Case) -> None:
    g[1] = g[1][:-1]


def _strided(g: list[Any], case: Case) -> None:
    g[1] = np.repeat(g[1], 2)[::2]


def _misaligned(g: list[Any], case: Case) -> None:
    g[1] = np.frombuffer(bytearray(g[1].nbytes + 1), np.uint8)[1:].view(np.float32)


def _a_list(g: list[Any], case: Case) -> None:
    g[1] = g[1].tolist()


def _nothing(g: list[Any], case: Case) -> None:
    g[1] = None


def _one_too_few(g: list[Any], case: Case) -> None:
    g.pop()


def _its_parameter(g: list[Any], case: Case) -> None:
    g[1] = case.params[1]


def _a_part_of_anothers_parameter(g: list[Any], case: Case) -> None:
    g[2] = case.params[0][97:]


def _what_another_launch_writes(g: list[Any], case: Case) -> None:
    g[1] = case.others[0][5:35]


def _a_state(g: list[Any], case: Case) -> None:
    g[1] = case.states[1][1]


REFUSED = [
    _float64,
    _big_endian,
    _shape,
    _short,
    _strided,
    _misaligned,
    _a_list,
    _nothing,
    _one_too_few,
    _its_parameter,
    _what_another_launch_writes,
    _a_part_of_anothers_parameter,
    _a_state,
]


@pytest.mark.parametrize("spoil", REFUSED, ids=lambda f: f.__name__)
def test_what_is_not_as_planned_is_refused_and_changes_nothing(
    spoil: Callable[[list[Any], Case], None],
) -> None:
    case = Case([100, 30, 3])
    good = case.gradients()
    assert case.launcher.bind(good)
    bad: list[Any] = case.gradients()
    spoil(bad, case)
    assert not case.launcher.bind(bad)
    case.step(good, 1, [0.1], [0] * 3)
    case.check()


def test_other_kinds_over_the_same_memory_are_taken(tmp_path: Any) -> None:
    case = Case([100, 30])
    gradients = case.gradients()
    mapped = np.memmap(tmp_path / "gradient", np.float32, "w+", shape=(100,))
    mapped[...] = gradients[0]
    case.step([mapped, gradients[1]], 1, [0.1], [0, 0])
    case.check()


def test_strides_along_axes_of_length_one_mean_nothing() -> None:
    case = Case([1, 30])
    one = np.lib.stride_tricks.as_strided(np.zeros(5, np.float32), (1,), (20,))
    assert case.launcher.bind([one, case.gradients()[1]])
    many = np.zeros((30, 5), np.float32)[:, 3]
    assert not case.launcher.bind([one, many])


def test_release_lets_go_of_the_gradients() -> None:
    import gc
    import weakref

    case = Case([4])
    gradient = case.gradients()[0]
    reference = weakref.ref(gradient)
    assert case.launcher.bind([gradient])
    del gradient
    assert reference() is not None  # until the step is done
    case.launcher.release()
    gc.collect()
    assert reference() is None


def test_the_search_for_infinities_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up reads a file and makes a digest of it."""
    case = Case([4, 3])
    kernels, asked = cuda_host.host_kernels(), []
    find = kernels.finite

    def finite(*arguments: Any) -> Kernel:
        asked.append(arguments)
        return find(*arguments)

    monkeypatch.setattr(kernels, "finite", finite)
    for _ in range(3):
        assert case.launcher.bind(case.gradients())
        assert case.launcher.finite()
    assert len(asked) == 1


def test_a_dropped_launcher_waits_for_its_copies() -> None:
    """Its page-locked memory would be given to others while the GPU still reads it."""
    device = DeferredDevice()
    case = Case([100], devices=[device])
    gradients = case.gradients()
    case.step(gradients, 1, [0.1], [0])
    assert device.queue
    del case.launcher
    assert not device.queue
    case.check()
