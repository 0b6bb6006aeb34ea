"""Which backend runs, what the NumPy one accepts, and what happens when a launch fails."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
import weakref
from dataclasses import replace

import numpy as np
import pytest

from solvergen.errors import ArrayError, BackendUnavailable, BackendWarning, CompilerBug, OptimizerError
from solvergen.runtime import backends
from solvergen.runtime.backends.base import LaunchPlan, TensorPlan
from solvergen.runtime.backends.numpy import NumpyBackend
from solvergen.runtime.plan import KEPT_PATTERNS
from solvergen.runtime.spans import Spans
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam

F = np.float32


def test_backends_by_name():
    assert backends.create("numpy").name == "numpy"
    assert Adam(np.ones(1, F), backend="numpy").backend == "numpy"


@pytest.mark.parametrize("name", ["nympy", "", "CPU", "auto "])
def test_unknown_backends(name):
    with pytest.raises(OptimizerError, match="no backend"):
        Adam(np.ones(1, F), backend=name)


def test_a_near_miss_is_suggested():
    with pytest.raises(OptimizerError, match="did you mean 'numpy'"):
        Adam(np.ones(1, F), backend="nympy")
    with pytest.raises(OptimizerError, match="did you mean 'cuda'"):
        Adam(np.ones(1, F), backend="gpu")


def without_compiler(monkeypatch):
    def create(name, create=backends.create):
        if name == "cpu":
            raise BackendUnavailable("backend 'cpu': no C compiler; install gcc")
        return create(name)

    monkeypatch.setattr(backends, "create", create)
    monkeypatch.setattr(backends, "_warned", False)


def test_without_a_compiler_auto_is_numpy_with_one_warning(monkeypatch):
    without_compiler(monkeypatch)
    with pytest.warns(BackendWarning, match="install gcc") as caught:
        opt = Adam(np.ones(1, F))
    assert opt.backend == "numpy"
    assert len(caught) == 1
    assert caught[0].filename == __file__  # it points at the line that made the optimizer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Adam(np.ones(1, F)).backend == "numpy"


class Mine(Adam):
    def __init__(self, params):
        super().__init__(params)


class Trainer:
    def __init__(self, of):
        self.optimizer = of(np.ones(1, F))


@pytest.mark.parametrize("of", [Adam, Mine])
def test_the_warning_points_at_the_program(monkeypatch, of):
    without_compiler(monkeypatch)
    with pytest.warns(BackendWarning) as caught:
        Trainer(of)
    assert caught[0].filename == __file__
    assert caught[0].lineno == Trainer.__init__.__code__.co_firstlineno + 1


def test_without_a_compiler_cpu_by_name_is_an_error(monkeypatch):
    without_compiler(monkeypatch)
    with pytest.raises(BackendUnavailable, match="install gcc"):
        Adam(np.ones(1, F), backend="cpu")


class OnGpu:
    __cuda_array_interface__ = {"data": (0, False)}  # noqa: RUF012


class DlpackOnly:
    """Offers DLPack and nothing else."""

    def __init__(self, device):
        self.device = device

    def __dlpack__(self, **_):
        raise AssertionError("not asked for")

    def __dlpack_device__(self):
        return (self.device, 0)


class RequiresGrad(DlpackOnly):
    """As torch's tensors on a GPU that require a gradient; ``__cuda_array_interface__`` there says more."""

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad")


class WontSay:
    def __dlpack_device__(self):
        raise RuntimeError("no")

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "array",
    [OnGpu(), DlpackOnly(2), DlpackOnly(13), RequiresGrad(2), WontSay()],
    ids=lambda a: type(a).__name__,
)
def test_auto_asks_for_cuda_where_an_array_lives_on_a_gpu(array, monkeypatch):
    asked = []

    def create(name):
        asked.append(name)
        raise BackendUnavailable("backend 'cuda': no GPU here")

    monkeypatch.setattr(backends, "create", create)
    with pytest.raises(BackendUnavailable, match="no GPU here"):
        Adam([np.ones(1, F), array])
    assert asked == ["cuda"]
    with pytest.raises(ArrayError, match="lives on a GPU"):
        Adam([array], backend=NumpyBackend())


@pytest.mark.parametrize("array", [DlpackOnly(1), DlpackOnly(3), RequiresGrad(1), 1.0, None])
def test_auto_asks_for_no_gpu_where_none_is_meant(array):
    # 3: page-locked memory of the host.
    with pytest.raises(ArrayError, match=r"not a numpy\.ndarray"):
        Adam([np.ones(1, F), array])


def test_the_configuration_keeps_what_was_asked_for(monkeypatch):
    without_compiler(monkeypatch)
    monkeypatch.setattr(backends, "_warned", True)
    opt = Adam(np.ones(1, F))
    assert opt.backend == "numpy"
    assert opt.get_config()["backend"] == "auto"


def test_importing_an_optimizer_loads_little():
    code = """
import sys
import numpy
before = set(sys.modules)
import tests.support.handwritten
new = {name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(sorted(new))
print('difflib' in sys.modules, 'solvergen.runtime.snapshots' in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["['solvergen', 'tests']", "False False"]


def plan(params, **options):
    tensors = tuple(
        TensorPlan(str(i), p, p.shape, (np.zeros_like(p), np.zeros_like(p), None))
        for i, p in enumerate(params)
    )
    settings = {"amsgrad": False, "maximize": False, **options}
    owned = Spans.over([a for t in tensors for a in (t.param, *t.states[:2])], NumpyBackend().span_of)
    return LaunchPlan(Adam.definition, settings, "float32", "float32", tensors, owned)


def test_binding_accepts_what_the_slow_check_accepts(tmp_path):
    np.ones(3, F).tofile(tmp_path / "g")
    good = [
        np.ones(3, F),
        np.ones((1, 3), F)[0],
        np.ones(6, F)[3:],
        np.memmap(tmp_path / "g", F, "r", shape=(3,)),
        np.frombuffer(np.ones(3, F).tobytes(), F),
    ]
    bad = [
        np.ones(3), np.ones(3, np.float16), np.ones(4, F), np.ones((3, 1), F), np.ones(6, F)[::2], [1.0] * 3,
        None, np.ones(3, np.dtype(F).newbyteorder()), np.ma.masked_array(np.ones(3, F)),
        np.zeros(13, np.uint8)[1:].view(F),
    ]  # fmt: skip
    backend, param = NumpyBackend(), np.zeros(3, F)
    launcher = backend.prepare(plan([param]))
    for gradient in good:
        backend.check_gradient("0", param, gradient)
        assert launcher.bind([gradient]) is True
    for gradient in bad:
        assert launcher.bind([gradient]) is False
        if (
            gradient is not None and getattr(gradient, "dtype", None) != np.float16
        ):  # that is for another plan
            with pytest.raises(ArrayError):
                backend.check_gradient("0", param, gradient)
    assert launcher.bind([]) is False
    assert launcher.bind([np.ones(3, F)] * 2) is False


def test_binding_sees_overlap_with_all_that_is_written():
    params = [np.zeros(4, F), np.zeros(4, F)]
    backend = NumpyBackend()
    p = plan(params)
    launcher = backend.prepare(p)
    good = np.ones(4, F)
    assert launcher.bind([good, good]) is True
    for array in (params[0], params[1], p.tensors[0].states[0], p.tensors[1].states[1]):
        assert launcher.bind([array, good]) is False
        assert launcher.bind([good, array[:]]) is False


class Failing(NumpyBackend):
    """Fails in the given method of its launchers."""

    def __init__(self, method):
        self.method = method

    def prepare(self, plan):
        launcher = super().prepare(plan)

        def fail(*_):
            raise MemoryError(self.method)

        setattr(launcher, self.method, fail)
        return launcher


@pytest.mark.parametrize("method", ["bind", "launch", "finite"])
def test_a_failing_backend_leaves_counts_alone(method):
    param = np.ones(3, F)
    opt = Adam(param, backend=Failing(method), nonfinite="skip")
    with pytest.raises(MemoryError):
        opt.step(np.ones(3, F))
    assert opt.t == 0
    assert_same_bits(param, np.ones(3, F))
    assert_same_bits(opt.state["m"][0], np.zeros(3, F))


def test_a_failing_host_program_changes_nothing():
    class Broken(Adam):
        definition = replace(Adam.definition, scalars=lambda **_: 1 / 0)

    param = np.ones(3, F)
    opt = Broken(param, backend="numpy")
    with pytest.raises(ZeroDivisionError):
        opt.step(np.ones(3, F))
    assert opt.t == 0
    assert_same_bits(param, np.ones(3, F))


def test_a_reference_that_promotes_is_a_bug_of_the_compiler():
    def update(param, grad, m, v, v_max, *rest):
        return param.astype(np.float64), m, v, v_max

    class Promoting(Adam):
        definition = replace(Adam.definition, update=update)

    param = np.ones(3, F)
    opt = Promoting(param, backend="numpy")
    with pytest.raises(CompilerBug, match="float32 was due"):
        opt.step(np.ones(3, F))
    assert opt.t == 0


def test_an_interrupt_during_a_launch_finds_the_step_done():
    # Python raises KeyboardInterrupt when a call into native code has returned.
    class Interrupted(NumpyBackend):
        def prepare(self, plan):
            launcher = super().prepare(plan)
            launch = launcher.launch

            def interrupted(table, rows):
                launch(table, rows)
                raise KeyboardInterrupt

            launcher.launch = interrupted
            return launcher

    param, alone = np.ones(3, F), np.ones(3, F)
    opt = Adam(param, backend=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        opt.step(np.ones(3, F))
    Adam(alone, backend="numpy").step(np.ones(3, F))
    assert_same_bits(param, alone)
    assert opt.t == 1


@pytest.mark.parametrize("backend", [None, 3, np, NumpyBackend])
def test_what_is_no_backend(backend):
    if backend is NumpyBackend:
        backend = object()
    with pytest.raises(OptimizerError, match="backend must be a name"):
        Adam(np.ones(1, F), backend=backend)


@pytest.mark.parametrize("nonfinite", ["propagate", "skip"])
@pytest.mark.parametrize("backend", ["numpy", "cpu"])
@pytest.mark.parametrize(("count", "size"), [(1, 1 << 21), (1000, 1000)])
def test_a_step_allocates_under_a_megabyte(count, size, backend, nonfinite):
    # Whatever the sizes: of parameters, of gradients in new arrays, of two dtypes, hence two launches.
    import tracemalloc

    dtypes = [F if i % 2 == 0 else np.float16 for i in range(count)]
    params = {f"layer{i}": np.ones(size, dtype) for i, dtype in enumerate(dtypes)}
    opt = Adam(params, backend=backend, amsgrad=True, nonfinite=nonfinite)
    opt.step({name: np.ones_like(p) for name, p in params.items()})
    peaks = []
    for _ in range(3):
        gradients = {name: np.ones_like(p) for name, p in params.items()}
        tracemalloc.start()
        try:
            assert opt.step(gradients)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert min(peaks) < 1_000_000  # the least: now and then the interpreter enlarges tables of its own


class Recording(NumpyBackend):
    """Takes kernels' tables and computes nothing."""

    table = "kernel"

    def __init__(self):
        self.tables = []

    def prepare(self, plan):
        return RecordingLauncher(self.tables)


class RecordingLauncher:
    def __init__(self, tables):
        self.tables = tables

    def bind(self, gradients):
        return True

    def launch(self, table, rows):
        self.tables.append((table.copy(), rows.copy()))

    def release(self):
        pass


def test_a_kernel_s_table_holds_the_scalars_of_each_cohort():
    backend = Recording()
    params = [np.ones(1, F) for _ in range(4)]
    settings = {"lr": 0.5, "weight_decay": 0.25, "lr_mult": 3.0, "decay_mult": 0.1}
    opt = Adam([{"params": params[:2], **settings}, {"params": params[2:]}], backend=backend)
    grads = [np.ones(1, F)] * 4
    opt.step([None, *grads[1:]])
    opt.step(grads)
    table, rows = backend.tables[-1]
    for tensor, (t, effective) in enumerate(
        [
            (1, {"lr": 1.5, "weight_decay": 0.25 * 0.1}),
            (2, {"lr": 1.5, "weight_decay": 0.25 * 0.1}),
            (2, {}),
            (2, {}),
        ]
    ):
        hyperparameters = {h.name: h.default for h in Adam.definition.hyperparameters} | effective
        expected, _ = Adam.definition.scalars(**hyperparameters, amsgrad=False, maximize=False, t=float(t))
        assert_same_bits(table[rows[tensor]], np.array(expected).astype(F))


def test_a_kernel_s_table_is_rounded_once():
    backend = Recording()
    values = [1e300, 0.1, 1e-46, 1.0000000596046448, 1.0000000596046447, 3.4028235677973366e38]
    for value in values:
        opt = Adam([np.ones(1, F), np.ones(1)], backend=backend, lr=value)
        opt.step([np.ones(1, F), np.ones(1)])
    column = Adam.definition.table.index("lr")
    with np.errstate(all="ignore"):
        for value, single, double in zip(values, backend.tables[::2], backend.tables[1::2], strict=True):
            assert_same_bits(single[0][:, column], np.array([value]).astype(F))
            assert_same_bits(double[0][:, column], np.array([value]))


def test_the_gradients_are_released_when_a_step_fails():
    released = []

    class Watching(Failing):
        def prepare(self, plan):
            launcher = super().prepare(plan)
            release = launcher.release

            def watch():
                released.append(True)
                release()

            launcher.release = watch
            return launcher

    opt = Adam(np.ones(3, F), backend=Watching("launch"))
    with pytest.raises(MemoryError):
        opt.step(np.ones(3, F))
    assert released


def test_step_calls_little_python_for_many_tensors():
    """A step like the one before runs no Python per tensor beside the backend's own work."""

    class Launcher:
        def __init__(self, plan):
            self.count = len(plan.tensors)

        def bind(self, gradients):
            return len(gradients) == self.count

        def launch(self, table, rows):
            assert table.shape == (1, 10)
            assert table.dtype == F
            assert rows.shape == (self.count,)
            assert rows.dtype == np.int32

        def finite(self):
            return True

        def release(self):
            pass

    class Idle(NumpyBackend):
        table = "kernel"

        def prepare(self, plan):
            return Launcher(plan)

    def events(count, as_mapping):
        params = [np.ones(1, F) for _ in range(count)]
        grads = [np.ones(1, F) for _ in range(count)]
        if as_mapping:
            params, grads = ({str(i): a for i, a in enumerate(x)} for x in (params, grads))
        opt = Adam(params, backend=Idle())
        opt.step(grads)
        seen = 0

        def trace(frame, event, argument):
            nonlocal seen
            seen += 1
            return trace

        sys.settrace(trace)
        try:
            opt.step(grads)
        finally:
            sys.settrace(None)
        return seen

    for as_mapping in (False, True):
        assert events(300, as_mapping) == events(3, as_mapping) < 250


def test_scalars_that_depend_on_options_are_kept_apart():
    def scalars(*, amsgrad, **_):
        return (float(amsgrad),) * len(Adam.definition.table), {}

    class ByOption(Adam):
        definition = replace(Adam.definition, scalars=scalars)

    backend = Recording()
    opt = ByOption([{"params": np.ones(1, F), "amsgrad": on} for on in (False, True)], backend=backend)
    opt.step([np.ones(1, F)] * 2)
    assert [table[rows[0], 0] for table, rows in backend.tables] == [0.0, 1.0]


def test_launches_of_old_patterns_are_dropped():
    class Counting(NumpyBackend):
        alive = weakref.WeakSet()  # noqa: RUF012

        def prepare(self, plan):
            launcher = super().prepare(plan)
            self.alive.add(launcher)
            return launcher

    opt = Adam([np.ones(1, F) for _ in range(8)], backend=Counting())
    for bits in range(1, 256):
        opt.step([np.ones(1, F) if bits >> i & 1 else None for i in range(8)])
    gc.collect()
    assert len(Counting.alive) <= KEPT_PATTERNS


class Checking(NumpyBackend):
    """Counts how often something is prepared, and how many gradients go the slow way."""

    def __init__(self):
        self.prepared = self.checked = 0

    def prepare(self, plan):
        self.prepared += 1
        return super().prepare(plan)

    def check_gradient(self, name, param, gradient):
        self.checked += 1
        super().check_gradient(name, param, gradient)


def test_gradients_of_changing_dtypes_take_the_quick_way():
    backend = Checking()
    opt = Adam([np.ones(2, F), np.ones(3, F)], backend=backend)
    some = [[np.ones(2, a), np.ones(3, b)] for a in (F, np.float16) for b in (F, np.float16)]
    for gradients in some:
        opt.step(gradients)
    prepared, checked = backend.prepared, backend.checked
    for gradients in some * 3:
        opt.step(gradients)
    assert (backend.prepared, backend.checked) == (prepared, checked)


def test_the_pattern_that_was_used_least_recently_is_dropped():
    backend = Checking()
    opt = Adam([np.ones(1, F) for _ in range(8)], backend=backend)

    def step(bits):
        opt.step([np.ones(1, F) if bits >> i & 1 else None for i in range(8)])

    step(1)
    for bits in range(2, 2 * KEPT_PATTERNS):
        step(bits)
        step(1)
    prepared = backend.prepared
    step(1)
    assert backend.prepared == prepared == 2 * KEPT_PATTERNS - 1
    step(2)
    assert backend.prepared == prepared + 1
