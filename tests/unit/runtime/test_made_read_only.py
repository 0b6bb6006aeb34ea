"""Arrays that an optimizer writes, and that are made read-only or given another shape meanwhile."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from generated import LAMB, SAM, SGD, Adam
from solvergen import RowSparse, Wrappers
from solvergen.constraints import MaxNorm
from solvergen.errors import ArrayError
from solvergen.runtime.native.library import library
from solvergen.verify import why_unavailable
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS, stepped

F = np.float32
every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)


def array(seed):
    return np.random.default_rng(seed).normal(size=(4, 5)).astype(F)


def gradients():
    return {"a": array(3), "b": array(4)}


def made(rule, backend, **more):
    return rule({"a": array(1), "b": array(2)}, lr=0.1, backend=backend, **more)


def everything(opt):
    found = {name: np.array(param) for name, param in opt.params.items()}
    for state in opt.state:
        found |= {f"{state} {name}": np.array(value) for name, value in opt.state[state].items()}
    if opt.options.get("wrap_keep_bfloat16"):
        found |= {f"copy {name}": np.array(copy) for name, copy in opt.shadows.items()}
    return found | {"t": np.array(opt.t, F)}


def refused(opt, what, call, problem="has been made read-only; nothing was changed"):
    before = everything(opt)
    with pytest.raises(ArrayError, match=f"{what} {problem}"):
        call()
    after = everything(opt)
    for name in before:
        assert_same_bits(after[name], before[name])


@every_backend
@pytest.mark.parametrize("after_a_step", [False, True])
@pytest.mark.parametrize(
    ("rule", "state"), [(Adam, "exp_avg_sq"), (LAMB, "exp_avg"), (SAM, "momentum_buffer")]
)
def test_a_state(backend, rule, state, after_a_step):
    more = {"momentum": 0.9} if rule is SAM else {}
    opt = made(rule, backend, **more)
    if after_a_step:
        stepped(opt, gradients())
    kept = opt.state_dict()
    frozen = opt.state[state]["b"]
    frozen.flags.writeable = False
    refused(opt, f"state '{state}' of 'b'", lambda: stepped(opt, gradients()))
    refused(opt, f"state '{state}' of 'b'", lambda: opt.load_state_dict(kept))
    stepped(opt, {**gradients(), "b": None})  # which it isn't written for
    frozen.flags.writeable = True
    before = frozen.copy()
    stepped(opt, gradients())
    assert not np.array_equal(frozen, before)


def test_a_state_where_arrays_are_not_read_directly(monkeypatch):
    if (reason := why_unavailable("cpu")) is not None:
        pytest.skip(reason)
    monkeypatch.setattr(library(), "head", 0)
    opt = made(Adam, "cpu")
    opt.step(gradients())
    opt.state["exp_avg"]["b"].flags.writeable = False
    refused(opt, "state 'exp_avg' of 'b'", lambda: opt.step(gradients()))


@every_backend
def test_a_state_of_which_some_rows_are_updated(backend):
    opt = made(Adam, backend)
    opt.step(gradients())
    opt.state["exp_avg"]["b"].flags.writeable = False
    rows = RowSparse(np.array([1, 3]), array(5)[:2])
    refused(opt, "state 'exp_avg' of 'b'", lambda: opt.step({"a": array(3), "b": rows}))
    opt.state["exp_avg"]["b"].flags.writeable = True
    assert opt.step({"a": array(3), "b": rows})


@every_backend
def test_a_state_in_the_middle_of_a_step(backend):
    opt = made(SAM, backend, momentum=0.9)
    frozen, calls = opt.state["momentum_buffer"]["b"], []

    def closure():
        calls.append(None)
        frozen.flags.writeable = len(calls) != 2
        return None, gradients()

    def step():
        opt.step(closure)

    before = everything(opt)
    with pytest.raises(ArrayError, match="evaluation 2 of the step: state 'momentum_buffer' of 'b' has been"):
        step()
    for name, found in everything(opt).items():
        assert_same_bits(found, before[name])
    step()


@every_backend
@pytest.mark.parametrize("after_a_step", [False, True])
def test_a_copy_in_another_type(backend, after_a_step):
    opt = made(Adam, backend, wrappers=Wrappers(shadow="bfloat16"))
    kept = opt.state_dict()
    if after_a_step:
        opt.step(gradients())
        opt.refresh_shadows()
    opt.shadows["b"].flags.writeable = False
    mine = opt.shadows["a"].copy()
    for call in (
        lambda: opt.step(gradients()),
        lambda: opt.load_state_dict(kept),
        opt.refresh_shadows,
        lambda: setattr(opt, "shadows", {"a": mine}),
        lambda: setattr(opt, "constraint", MaxNorm(0.1)),
    ):
        refused(opt, "the copy of 'b'", call)
    assert opt.constraint is None
    opt.shadows["b"].flags.writeable = True
    opt.constraint = MaxNorm(0.1)
    opt.step(gradients())
    opt.shadows["b"].flags.writeable = False
    refused(opt, "the copy of 'b'", lambda: opt.step(gradients()))


@every_backend
def test_sums_and_averages(backend):
    opt = made(Adam, backend, wrappers=Wrappers(accumulate=2, average=0.5))
    for state in ("wrap_sum", "wrap_average"):
        if state == "wrap_sum":
            opt.state[state]["b"].flags.writeable = False
            refused(opt, f"state '{state}' of 'b'", lambda: opt.step(gradients()))
            opt.state[state]["b"].flags.writeable = True
        opt.step(gradients())  # summed up
        opt.state[state]["b"].flags.writeable = False
        refused(opt, f"state '{state}' of 'b'", lambda: opt.step(gradients()))
        refused(opt, f"state '{state}' of 'b'", opt.flush)
        opt.state[state]["b"].flags.writeable = True
        opt.step(gradients())
    assert opt.t == 2


@every_backend
def test_a_state_that_a_call_does_not_write_hides_no_other_mistake(backend):
    opt = made(Adam, backend, wrappers=Wrappers(accumulate=2))
    opt.freeze("a")
    opt.state["exp_avg"]["a"].flags.writeable = False
    with pytest.raises(ArrayError, match="the gradient of 'b' has shape"):
        opt.step({"a": array(3), "b": array(4)[:3]})


@every_backend
def test_a_constraint_of_a_parameter_that_is_read_only(backend):
    opt = made(SGD, backend)
    opt.params["b"].flags.writeable = False
    refused(opt, "parameter 'b'", lambda: setattr(opt, "constraint", MaxNorm(0.1)))
    opt.params["b"].flags.writeable = True
    opt.constraint = MaxNorm(0.1)
    opt.step(gradients())
    assert np.linalg.norm(opt.params["b"], axis=0).max() < 0.11


def reshape(array, shape):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's
        array.shape = shape


@every_backend
@pytest.mark.parametrize("after_a_step", [False, True])
@pytest.mark.parametrize("which", ["parameter", "state 'exp_avg' of"])
def test_an_array_of_another_shape(backend, which, after_a_step, tmp_path):
    """What was made ready for the shape that it had goes on; what isn't says what is wrong."""
    opt = made(Adam, backend, wrappers=Wrappers(average=0.5))
    if after_a_step:
        opt.step(gradients())
    plain = tmp_path / "plain.safetensors"
    opt.save(plain)
    changed = opt.params["b"] if which == "parameter" else opt.state["exp_avg"]["b"]
    reshape(changed, (20,))
    path = tmp_path / "reshaped.safetensors"
    opt.save(path)
    assert path.read_bytes() == plain.read_bytes()
    problem = r"had the shape \(4, 5\) when the optimizer was made, and has \(20,\) now; nothing was changed"
    calls = [
        lambda: opt.step({"a": array(3), "b": array(4).reshape(20)}),
        lambda: opt.step({"a": array(3), "b": RowSparse(np.array([1]), array(4)[:1])}),
        lambda: opt.load(path),
    ]
    if which == "parameter":
        calls.append(lambda: opt.averaged().__enter__())
    for call in calls:
        refused(opt, f"{which} 'b'", call, problem)
    reshape(changed, (4, 5))
    assert opt.step(gradients())
