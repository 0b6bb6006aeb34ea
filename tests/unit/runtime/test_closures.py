"""Steps that are given a function, and rules that evaluate the gradient several times in one."""

from __future__ import annotations

import ctypes
import functools
import math
import signal
import threading
from dataclasses import replace
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from solvergen.errors import ArrayError, BackendUnavailable, CompilerBug, NonfiniteGradient, OptimizerError
from solvergen.runtime import backends
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam, closures
from tests.support.handwritten.closures import Ahead, Heun, TwiceSAM
from tests.support.packages import built_package
from tests.support.reductions import reduction, reduction_over_all, total
from tests.support.rules import spec_text
from tests.support.shipped import CLASSES

BF16 = np.dtype(ml_dtypes.bfloat16)
F, D, H = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)

SHAPES = {"a": (5,), "b": (4100,), "c": (), "d": (0, 2), "e": (3, 7), "f": (260,)}
DTYPES = {"a": F, "b": F, "c": D, "d": F, "e": BF16, "f": H}


@functools.cache
def unavailable(backend):
    try:
        backends.create(backend)
    except BackendUnavailable as problem:
        return str(problem)
    return None


@pytest.fixture(params=["numpy", "cpu", "ptx"])
def backend(request):
    if (reason := unavailable(request.param)) is not None:
        pytest.skip(reason)
    return request.param


@pytest.fixture(scope="session")
def kernels(tmp_path_factory):
    """The rules of ``closures``, with kernels."""
    return {rule: closures.with_kernels(rule, tmp_path_factory.mktemp("rule")) for rule in closures.ALL}


def wide(array):
    """A copy in the compute type."""
    return array.astype(np.float64 if array.dtype == D else np.float32)


def slope(param, dtype):
    """The gradient at a parameter. Not linear, so that it matters where it is taken."""
    x = wide(param)
    return (x * x - x).astype(dtype)


class Problem:
    """A function for ``step``. It hands out the same arrays each time, overwritten.

    ``hooks`` has by the number of the evaluation, counted over all steps, what happens in it: a function of
    the gradients, which returns others or None. ``seen`` has the parameters at each.
    """

    def __init__(self, params, grad_dtypes=None, absent=()):
        self.params = params
        dtypes = grad_dtypes or {k: p.dtype for k, p in params.items()}
        self.gradients = {k: None if k in absent else np.zeros(p.shape, dtypes[k]) for k, p in params.items()}
        self.seen = []
        self.hooks = {}

    def __call__(self):
        self.seen.append({k: p.copy() for k, p in self.params.items()})
        for k, gradient in self.gradients.items():
            if gradient is not None:
                gradient[...] = slope(self.params[k], gradient.dtype)
        hook = self.hooks.get(len(self.seen))
        changed = hook(dict(self.gradients)) if hook else None
        return f"loss {len(self.seen)}", self.gradients if changed is None else changed


def made(seed=1, names=SHAPES):
    rng = np.random.default_rng(seed)
    return {k: np.array(rng.uniform(0.25, 2.0, SHAPES[k])).astype(DTYPES[k]) for k in names}


def copied(params):
    return {k: p.copy() for k, p in params.items()}


def floats(array):
    return array.astype(np.float64).reshape(-1).tolist()


def at(value, dtype):
    """A parameter as it is stored, in the compute type again."""
    return wide(np.asarray(value).astype(dtype))


def plain(problem):
    """A rule's oracle works on these: parameters in the compute type, and their gradients there."""
    dtypes = {k: p.dtype for k, p in problem.params.items()}
    taking_part = [k for k, g in problem.gradients.items() if g is not None]

    def gradients(values):
        return {k: wide(slope(values[k].astype(dtypes[k]), problem.gradients[k].dtype)) for k in taking_part}

    return dtypes, taking_part, {k: wide(problem.params[k]) for k in taking_part}, gradients


def norm_of_all(problem, gradients):
    totals = [total("norm2", floats(gradients[k])) if k in gradients else 0.0 for k in problem.params]
    return reduction_over_all("norm2", totals, 0)


def heun(problem, memory, lr=0.1):
    dtypes, names, start, gradients = plain(problem)
    first = gradients(start)
    ahead = {k: at(start[k] - lr * first[k], dtypes[k]) for k in names}
    second = gradients(ahead)
    return [ahead], {k: at(start[k] - lr / 2 * (first[k] + second[k]), dtypes[k]) for k in names}


def ahead(problem, memory, lr=0.1, beta=0.75):
    dtypes, names, start, gradients = plain(problem)
    for k in names:
        memory.setdefault(k, {"m": np.zeros_like(start[k]), "v": 0.0, "w": 1.0})
    first = gradients(start)
    there = {k: at(start[k] - (lr * beta) * memory[k]["m"], dtypes[k]) for k in names}
    second = gradients(there)
    largest = [total("max_abs", floats(second[k])) if k in second else 0.0 for k in problem.params]
    d = memory["shared"] = max(memory.get("shared", 0.0), reduction_over_all("max_abs", largest, 0))
    new = {}
    for k in names:
        own = memory[k]
        own["v"] = beta * own["v"] + reduction("norm2", floats(second[k]))
        own["w"] = own["w"] * beta
        own["m"] = np.asarray(beta * own["m"] + 0.5 * (first[k] + second[k]), start[k].dtype)
        new[k] = at(start[k] - lr / (1 + own["v"] + d) * (own["m"] / (1 - own["w"])), dtypes[k])
    return [there], new


def twice(problem, memory, lr=0.1, rho=0.25):
    dtypes, names, start, gradients = plain(problem)
    places, here = [], start
    for _ in range(2):
        up = gradients(here)
        scale = rho / norm_of_all(problem, up)
        here = {k: at(here[k] + scale * up[k], dtypes[k]) for k in names}
        places.append(here)
    last = gradients(here)
    return places, {k: at(start[k] - lr * last[k], dtypes[k]) for k in names}


ORACLES = {Heun: heun, Ahead: ahead, TwiceSAM: twice}


@pytest.mark.parametrize("rule", closures.ALL, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("grad_dtypes", [None, {"a": F, "b": BF16, "c": D, "d": F, "e": F, "f": BF16}])
def test_steps_to_the_bit(kernels, backend, rule, grad_dtypes):
    params = made()
    others = {k: params[k].copy() for k in params}
    opt = kernels[rule](params, backend=backend)
    memory = {}
    evaluations = 1 + len(rule.definition.evaluations)
    for t, absent in enumerate([(), ("a", "e"), ()]):
        problem, check = Problem(params, grad_dtypes, absent), Problem(others, grad_dtypes, absent)
        assert opt.step(problem) == "loss 1"
        places, wanted = ORACLES[rule](check, memory)
        assert len(problem.seen) == evaluations
        for k, old in others.items():
            assert_same_bits(problem.seen[0][k], old)
            for seen, place in zip(problem.seen[1:], places, strict=True):
                # A tensor without a gradient isn't moved.
                assert_same_bits(seen[k], place[k].astype(old.dtype) if k in place else old)
            if k in wanted:
                old[...] = wanted[k].astype(old.dtype)
            assert_same_bits(params[k], old)
        assert opt.t == t + 1
    assert dict(opt.steps) == {k: 2 if k in ("a", "e") else 3 for k in params}
    if rule is Ahead:
        for k in params:
            assert_same_bits(opt.state["m"][k], memory[k]["m"])
            assert opt.state["v"][k] == memory[k]["v"]
            assert opt.state["w"][k] == memory[k]["w"]
        assert opt.shared["d"] == memory["shared"]


def test_heun_is_of_second_order():
    # Once against what the formulas are for: x' = -x*x from 1, at time 1, whatever our own words for it.
    errors = []
    for steps in (20, 40):
        x = np.ones(1)
        opt = Heun([x], lr=1 / steps)
        for _ in range(steps):
            opt.step(lambda x=x: (None, [x * x]))
        errors.append(abs(float(x[0]) - 0.5))
    assert 3.5 < errors[0] / errors[1] < 4.5


def groups(backend, rule):
    a, b, c = made(names="abf").values()
    return [a, b, c], rule(
        [{"params": [a], "ahead": False}, {"params": [b], "lr": 0.5}, {"params": [c]}], backend=backend
    )


def test_groups_with_options_of_their_own(kernels, backend):
    params, opt = groups(backend, kernels[Ahead])
    others = [p.copy() for p in params]
    numpy_opt = Ahead(
        [{"params": [others[0]], "ahead": False}, {"params": [others[1]], "lr": 0.5}, {"params": [others[2]]}]
    )
    moved = []

    def closure_over(arrays):
        def closure():
            moved.append([p.copy() for p in arrays])
            return 0, [[slope(arrays[0], F)], [slope(arrays[1], F)], None]

        return closure

    for _ in range(2):
        opt.step(closure_over(params))
        numpy_opt.step(closure_over(others))
    for param, other in zip(params, others, strict=True):
        assert_same_bits(param, other)
    first, second = moved[4:6]  # of the second step, on the backend
    assert_same_bits(first[0], second[0])
    assert (first[1] != second[1]).all()
    assert_same_bits(first[2], second[2])
    assert opt.steps[2] == 0


def everything(opt, params):
    found = [*params.values()]
    memory = opt.state_dict()
    for tensor in memory["tensors"].values():
        found += [
            np.array(tensor["t"]),
            *tensor["arrays"].values(),
            *map(np.array, tensor["scalars"].values()),
        ]
    return [np.array(a) for a in (*found, *memory.get("shared", {}).values())]


class Trouble(Exception):
    pass


def raising(error):
    def hook(gradients):
        raise error

    return hook


def expect_undone(opt, problem, error, match=None, *, at_evaluation, returns=False):
    """Step by ``problem``, whose hook causes trouble in an evaluation: all is as before, and goes on as if it
    had never been."""
    before = everything(opt, problem.params)
    done = len(problem.seen)
    if returns:
        assert opt.step(problem) == f"loss {done + 1}"
    else:
        with pytest.raises(error, match=match):
            opt.step(problem)
    assert len(problem.seen) - done == at_evaluation
    for now, then in zip(everything(opt, problem.params), before, strict=True):
        assert_same_bits(now, then)


def with_memory(kernels, backend, rule, **settings):
    """An optimizer that has made two steps, its problem, and the parameters of one that made only these and a
    third."""
    params, others = made(names="aef"), made(names="aef")
    opt = kernels[rule](params, backend=backend, **settings)
    problem, check = Problem(params), Problem(others)
    alone = rule(others, backend="numpy", **settings)
    for _ in range(2):
        opt.step(problem)
    for _ in range(3):
        alone.step(check)
    return opt, problem, others, alone


def expect_as_alone(opt, problem, others, alone):
    problem.hooks.clear()
    opt.step(problem)
    for now, then in zip(everything(opt, problem.params), everything(alone, others), strict=True):
        assert_same_bits(now, then)


# The interpreter of PTX takes its time: what doesn't hang on kernels is tried on the others.
CASES = [
    *((backend, rule, n) for backend in ("numpy", "cpu") for rule, n in ((Heun, 2), (Ahead, 2))),
    *((backend, TwiceSAM, n) for backend in ("numpy", "cpu") for n in (1, 2, 3)),
    *(("ptx", TwiceSAM, n) for n in (2, 3)),
]
cases = pytest.mark.parametrize(
    ("backend", "rule", "number"),
    CASES,
    ids=[f"{backend}-{rule.__name__}-{number}" for backend, rule, number in CASES],
    indirect=["backend"],
)


@cases
def test_an_exception_undoes_the_step(kernels, backend, rule, number):
    opt, problem, others, alone = with_memory(kernels, backend, rule)
    problem.hooks[len(problem.seen) + number] = raising(Trouble())
    expect_undone(opt, problem, Trouble, at_evaluation=number)
    expect_as_alone(opt, problem, others, alone)


@pytest.mark.parametrize("backend", ["numpy", "cpu"], indirect=True)
@pytest.mark.parametrize("error", [SystemExit(3), StopIteration("here"), GeneratorExit()], ids=repr)
def test_any_exception(kernels, backend, error):
    rule, number = Ahead, 2
    opt, problem, others, alone = with_memory(kernels, backend, rule)
    problem.hooks[len(problem.seen) + number] = raising(error)
    expect_undone(opt, problem, type(error), at_evaluation=number)
    expect_as_alone(opt, problem, others, alone)


@cases
def test_ctrl_c_in_the_function(kernels, backend, rule, number):
    opt, problem, others, alone = with_memory(kernels, backend, rule)
    went_on = []

    def interrupt(gradients):
        signal.raise_signal(signal.SIGINT)
        went_on.append(True)

    problem.hooks[len(problem.seen) + number] = interrupt
    expect_undone(opt, problem, KeyboardInterrupt, at_evaluation=number)
    assert not went_on
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    expect_as_alone(opt, problem, others, alone)


def bad(change):
    """A hook that changes the dict of gradients."""

    def hook(gradients):
        change(gradients)
        return gradients

    return hook


OTHERS = {
    "none": (bad(lambda g: g.update(f=None)), "'f' has no gradient, but had one in the first evaluation"),
    "dtype": (
        bad(lambda g: g.update(f=g["f"].astype(BF16))),
        "'f' has dtype bfloat16, but had float16 in the first",
    ),
    "shape": (bad(lambda g: g.update(f=g["f"][:7])), r"the gradient of 'f' has shape \(7,\)"),
    "strides": (bad(lambda g: g.update(f=np.zeros((260, 2), H)[:, 0])), "'f' is not C-contiguous"),
    "missing": (bad(lambda g: g.pop("f")), "no gradient for 'f'"),
    "list": (lambda g: list(g.values()), "gradients are a mapping"),
    "nothing": (lambda g: [], "gradients are a mapping"),
}


@pytest.mark.parametrize("backend", ["numpy", "cpu"], indirect=True)
@pytest.mark.parametrize("kind", OTHERS)
def test_other_gradients_later(kernels, backend, kind):
    opt, problem, others, alone = with_memory(kernels, backend, Ahead)
    hook, match = OTHERS[kind]
    problem.hooks[len(problem.seen) + 2] = hook
    expect_undone(
        opt,
        problem,
        ArrayError,
        rf"(?s)^evaluation 2 of the step: .*{match}.*everything is as before the step",
        at_evaluation=2,
    )
    expect_as_alone(opt, problem, others, alone)


def test_a_gradient_more_later(kernels, backend):
    params = made(names="ab")
    opt = kernels[Heun](params, backend=backend)
    problem = Problem(params, absent=("a",))
    problem.hooks[2] = lambda g: {**g, "a": np.ones(5, F)}
    match = "'a' has a gradient, but had none in the first evaluation"
    expect_undone(opt, problem, ArrayError, match, at_evaluation=2)


def test_a_parameter_made_read_only_within_the_step(kernels, backend):
    params = made(names="ab")
    opt = kernels[Heun](params, backend=backend)
    problem = Problem(params)
    problem.hooks[2] = lambda g: params["a"].setflags(write=False)
    expect_undone(opt, problem, ArrayError, "'a' has been made read-only", at_evaluation=2)


@cases
@pytest.mark.parametrize("policy", ["skip", "raise"])
def test_gradients_that_are_not_finite(kernels, backend, rule, number, policy):
    opt, problem, others, alone = with_memory(kernels, backend, rule, nonfinite=policy)
    problem.hooks[len(problem.seen) + number] = bad(lambda g: g["f"].__setitem__(259, math.inf))
    expect_undone(
        opt, problem, NonfiniteGradient, "gradient of 'f'", at_evaluation=number, returns=policy == "skip"
    )
    expect_as_alone(opt, problem, others, alone)


def test_nan_in_the_parameters_comes_back(kernels, backend):
    for dtype, word in ((BF16, np.uint16), (H, np.uint16), (F, np.uint32), (D, np.uint64)):
        param = np.array([np.nan, -0.0, 0.0, np.inf, 1e-7, 1.5], dtype)
        payload = {BF16: 0x7FC5, H: 0x7E05, F: 0x7FC00005, D: 0x7FF8000000000005}[dtype]
        param.view(word)[0] = payload
        before = param.view(word).copy()
        opt = kernels[Heun]([param], backend=backend)
        calls = []

        def closure(param=param, calls=calls):
            calls.append(param.copy())
            if len(calls) == 2:
                raise Trouble
            return 0, [np.ones_like(param)]

        with pytest.raises(Trouble):
            opt.step(closure)
        assert (calls[1].view(word)[1:] != before[1:]).any()
        assert param.view(word).tolist() == before.tolist()


def test_a_rule_without_evaluations_takes_a_function(rng):
    param, other = np.ones(3, F), np.ones(3, F)
    gradient = rng.normal(size=3).astype(F)
    opt, alone = Adam([param], backend="numpy"), Adam([other], backend="numpy")
    calls = []

    def closure():
        calls.append(1)
        return {"any": "type"}, [gradient]

    assert opt.step(closure) == {"any": "type"}
    assert alone.step([gradient]) is True
    assert calls == [1]
    assert_same_bits(param, other)
    assert opt.t == 1


def test_what_its_function_raises_leaves_such_a_rule_as_it_was():
    param = np.ones(3, F)
    opt = Adam([param], backend="numpy", nonfinite="skip")
    with pytest.raises(Trouble):
        opt.step(lambda: raising(Trouble())(None))
    assert opt.step(lambda: (1.5, [np.array([1, np.nan, 1], F)])) == 1.5
    assert opt.t == 0
    assert param.tolist() == [1, 1, 1]
    opt.step([np.ones(3, F)])
    assert opt.t == 1


@pytest.mark.parametrize("given", [[np.ones(3, F)], (np.ones(3, F),), {"0": np.ones(3, F)}, None, 3])
def test_a_rule_with_evaluations_takes_no_gradients(given):
    param = np.ones(3, F)
    opt = Heun([param])
    with pytest.raises(
        OptimizerError, match=r"Heun evaluates the gradient several times.*\(loss, gradients\)"
    ):
        opt.step(given)
    assert param.tolist() == [1, 1, 1]
    assert opt.t == 0


RESULTS = [
    (None, "returned a NoneType, not a pair .*without a return"),
    (1.5, "returned a float, not a pair"),
    ([0.0, [np.ones(3, F)]], "returned a list, not a pair"),
    ((0.0, [np.ones(3, F)], 1), "returned 3 values, not a pair"),
    ((0.0,), "returned 1 values, not a pair|returned 1 value"),
]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(("result", "match"), RESULTS, ids=range(len(RESULTS)))
def test_what_a_function_must_return(result, match, number):
    param = np.ones(3, F)
    calls = []

    def closure():
        calls.append(1)
        return result if len(calls) == number else (0.0, [np.ones(3, F)])

    opt = Heun([param])
    with pytest.raises(OptimizerError, match=match):
        opt.step(closure)
    assert len(calls) == number
    assert param.tolist() == [1, 1, 1]
    assert opt.t == 0


def test_a_function_that_wants_arguments():
    with pytest.raises(TypeError, match="argument"):
        Heun([np.ones(3, F)]).step(lambda x: (0, [x]))


def test_callables_that_are_gradients():
    class Gradients(dict):
        def __call__(self):
            pytest.fail("these are gradients")

    params = {"a": np.ones(2, F)}
    opt = Adam(params, backend="numpy")
    assert opt.step(Gradients(a=np.ones(2, F))) is True


def test_nothing_takes_part():
    param = np.ones(2, F)
    opt = Heun([param])
    calls = []

    def closure():
        calls.append(1)
        return "loss", [None]

    assert opt.step(closure) == "loss"
    assert calls == [1]
    assert opt.t == 0
    assert Heun({"d": np.zeros((0, 2), F)}).step(lambda: (7, {"d": np.zeros((0, 2), F)})) == 7


def test_the_function_runs_under_the_callers_errstate():
    param = np.ones(2, F)
    states = []

    def closure():
        states.append(np.geterr())
        return 0, [np.ones(2, F)]

    with np.errstate(all="raise", under="print"):
        wanted = np.geterr()
        Heun([param]).step(closure)
    assert states == [wanted, wanted]


@pytest.mark.parametrize("number", [1, 2])
def test_what_can_be_seen_and_done_within(kernels, backend, number, tmp_path):
    params = {"a": np.ones(3, F)}
    opt = kernels[Ahead](params, backend=backend)
    opt.step(lambda: (0, {"a": np.full(3, 0.5, F)}))
    memory = opt.state_dict()
    before = everything(opt, {})
    calls = []

    def closure():
        calls.append(1)
        if len(calls) == number:
            assert opt.t == 1
            assert opt.state["v"]["a"] == memory["tensors"]["a"]["scalars"]["v"]
            assert_same_bits(opt.state["m"]["a"], before[1])
            assert opt.shared["d"] == 0.5
            for what in (
                lambda: opt.step(closure),
                lambda: opt.load_state_dict(memory),
                lambda: opt.save(tmp_path / "x.npz"),
                opt.state_dict,
            ):
                with pytest.raises(OptimizerError, match="a step is under way"):
                    what()
            Adam([np.ones(2, F)], backend="numpy").step([np.ones(2, F)])  # another may
        return 0, {"a": np.full(3, 0.5, F)}

    opt.step(closure)
    assert len(calls) == 2
    assert opt.t == 2
    opt.load_state_dict(memory)
    assert opt.t == 1


def test_in_another_thread(kernels, backend):
    params, others = made(names="ab"), made(names="ab")
    opt = kernels[TwiceSAM](params, backend=backend)
    thread = threading.Thread(target=opt.step, args=[Problem(params)])
    thread.start()
    thread.join()
    TwiceSAM(others).step(Problem(others))
    for k, param in params.items():
        assert_same_bits(param, others[k])


@pytest.mark.parametrize("backend", ["ptx"], indirect=True)
@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("kernel", ["sg_pass_0", "sg_pass_2"])
def test_an_observer_of_the_ptx_backend_raises_in_a_kernel(kernels, backend, kernel, raised):
    from solvergen.runtime.backends.ptx import PtxBackend

    armed = []

    def observe(event):
        if armed and event.kernel == kernel:
            raise raised

    params = {"a": np.ones(3, F)}
    opt = kernels[Ahead](params, backend=PtxBackend(observe=observe))
    problem = Problem(params)
    opt.step(problem)
    before = everything(opt, params)
    armed.append(True)
    with pytest.raises(raised):
        opt.step(problem)
    # A stage has run by the last pass: what lives beside the tensors may have its new value.
    for now, then in zip(everything(opt, params)[:3], before[:3], strict=True):
        assert_same_bits(now, then)
    assert opt.t == 1
    assert opt.shared["d"] == float(before[-1])


def test_numpy_keeps_every_gradient_though_they_come_in_one_array():
    def update(param, grad, lr, t, real, rounded):
        start, first = param, grad
        second = yield closures.gradient(0, rounded(start - lr * first))
        third = yield closures.gradient(1, rounded(start - lr * second))
        return (rounded(start - lr * (first + second + third)),)

    definition = replace(Heun.definition, update=update, evaluations=(1, 1))
    params, gradient = {"a": np.array([1.0, 2.0])}, np.zeros(2)

    def closure():
        gradient[...] = slope(params["a"], D)
        return 0, {"a": gradient}

    start = params["a"].copy()
    first = slope(start, D)
    second = slope(start - 0.1 * first, D)
    third = slope(start - 0.1 * second, D)
    type("Thrice", (Heun,), {"definition": definition})(params).step(closure)
    assert_same_bits(params["a"], start - 0.1 * (first + second + third))


def test_a_definition_with_evaluations_is_staged():
    assert not Adam.definition.is_staged
    assert replace(Adam.definition, evaluations=(0,)).is_staged


def test_references_that_ask_for_something_else():
    from solvergen.runtime.reference_math import gradient, over_all

    def with_update(update):
        return type("Wrong", (Heun,), {"definition": replace(Heun.definition, update=update)})

    def other_type(param, grad, lr, t, real, rounded):
        yield gradient(0, param.astype(np.float16))

    def unlike(param, grad, lr, t, real, rounded):
        if param.size == 2:
            yield gradient(0, param)
        yield over_all("sum", 0, param)

    for update, match in ((other_type, "asks for the gradient at"), (unlike, "1 of 2 tensors wait|2 of 2")):
        params = [np.ones(2, F), np.ones(3, F)]
        with pytest.raises(CompilerBug, match=match):
            with_update(update)(params).step(lambda: (0, [np.ones(2, F), np.ones(3, F)]))
        assert params[0].tolist() == [1, 1]


class HostMemory:
    """What puts parameters back on a GPU, for addresses of the host."""

    def copy(self, address, source, nbytes):
        ctypes.memmove(address, source, nbytes)

    def upload(self, address, source):
        ctypes.memmove(address, source.ctypes.data, source.nbytes)

    def download(self, target, address):
        ctypes.memmove(target.ctypes.data, address, target.nbytes)

    def synchronize(self):
        pass


@pytest.mark.parametrize("backend", ["ptx"], indirect=True)
def test_what_puts_back_on_a_gpu(kernels, backend, monkeypatch):
    from solvergen.runtime.backends.ptx import PtxStagedLauncher
    from solvergen.runtime.cuda.staged import StagedCudaLauncher

    called = []

    def put_back(launcher):
        starter, launcher._starter = launcher._starter, SimpleNamespace(device=HostMemory())
        StagedCudaLauncher.put_back(launcher)
        launcher._starter = starter
        called.append(launcher.plan.param_dtype)

    monkeypatch.setattr(PtxStagedLauncher, "put_back", put_back)
    params = made(names="acdef")
    opt = kernels[Heun](params, backend=backend)
    problem = Problem(params)
    problem.hooks[2] = raising(Trouble())
    expect_undone(opt, problem, Trouble, at_evaluation=2)
    assert any((problem.seen[1][k] != problem.seen[0][k]).any() for k in params)
    assert sorted(called) == ["bfloat16", "float16", "float32", "float64"]


SHIPPED = [rule for rule in CLASSES.values() if rule.definition.evaluations]


@pytest.mark.parametrize("backend", ["numpy", "cpu"], indirect=True)
@pytest.mark.parametrize("rule", SHIPPED, ids=lambda rule: rule.definition.name)
def test_what_a_shipped_rule_stores_before_its_last_evaluation(backend, rule):
    # Nothing but what can be put back.
    params, others = made(names="af"), made(names="af")
    opt, alone = rule(params, backend=backend), rule(others, backend="numpy")
    problem, check = Problem(params), Problem(others)
    evaluations = 1 + len(rule.definition.evaluations)
    for _ in range(2):
        opt.step(problem)
        alone.step(check)
    assert len(problem.seen) == 2 * evaluations
    for number in range(1, evaluations + 1):
        problem.hooks = {len(problem.seen) + number: raising(Trouble())}
        expect_undone(opt, problem, Trouble, at_evaluation=number)
    alone.step(check)
    expect_as_alone(opt, problem, others, alone)


@pytest.mark.parametrize("backend", ["numpy", "cpu", "ptx"], indirect=True)
@pytest.mark.parametrize("end", ["param = before - lr/n*grad", "unread = grad"])
def test_scalars_of_the_first_gradient_are_as_before(backend, tmp_path, end):
    update = f"""
    before = param
    n = n + norm2(grad)
    param = before - lr/n*grad
    gradient
    {end}
    """
    path = tmp_path / "rule.yaml"
    path.write_text(spec_text(update, state="n: {init: 0, shape: scalar}"), encoding="utf-8")
    params = made(names="a")
    opt = built_package([path], tmp_path / f"scalars_undone_{len(end)}").Rule(params, backend=backend)
    problem = Problem(params)
    opt.step(problem)
    kept = opt.state["n"]["a"]
    problem.hooks[4] = raising(Trouble())
    expect_undone(opt, problem, Trouble, at_evaluation=2)
    assert opt.state["n"]["a"] == kept > 0


@pytest.mark.parametrize("backend", ["numpy", "cpu"], indirect=True)
def test_a_gradient_that_nothing_reads_is_evaluated(backend, tmp_path):
    path = tmp_path / "rule.yaml"
    path.write_text(spec_text("param = param - lr*grad\ngradient\nunread = 2*grad"), encoding="utf-8")
    params = made(names="a")
    opt = built_package([path], tmp_path / "unread").Rule(params, backend=backend)
    problem = Problem(params)
    before = params["a"].copy()
    opt.step(problem)
    assert len(problem.seen) == 2
    assert_same_bits(problem.seen[1]["a"], params["a"])
    assert_same_bits(params["a"], before - F.type(opt.lr) * slope(before, F))
