"""A history in another optimizer's words: the run goes on as if it had always been that optimizer's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from solvergen import optimizers
from solvergen.errors import SolverFileError
from solvergen.runtime.definition import Definition
from solvergen.solver.files.conventions import STATES, convert
from tests.unit.solver.files.caffe_bytes import array

LR, MOMENTUM = 0.125, 0.75

CASES: dict[tuple[str, str], tuple[type[Any], dict[str, float], type[Any], dict[str, float]]] = {
    ("caffe_sgd", "sgd"): (
        optimizers.CaffeSGD,
        {"momentum": MOMENTUM},
        optimizers.SGD,
        {"momentum": MOMENTUM},
    ),
    ("caffe_nesterov", "sgd"): (
        optimizers.CaffeNesterov,
        {"momentum": MOMENTUM},
        optimizers.SGD,
        {"momentum": MOMENTUM, "nesterov": True},
    ),
    ("caffe_adagrad", "adagrad"): (optimizers.CaffeAdaGrad, {"delta": 1e-10}, optimizers.Adagrad, {}),
    ("caffe_rmsprop", "rmsprop"): (optimizers.CaffeRMSProp, {}, optimizers.RMSprop, {}),
    ("caffe_adadelta", "adadelta"): (
        optimizers.CaffeAdaDelta,
        {"momentum": 0.9, "delta": 1e-6},
        optimizers.Adadelta,
        {"rho": 0.9},
    ),
    ("caffe_adam", "adam"): (
        optimizers.CaffeAdam,
        {"momentum": 0.9, "delta": 0.0},  # where delta is 0 the two are the same rule
        optimizers.Adam,
        {"eps": 0.0},
    ),
}


def steps(optimizer: Any, first: int, last: int) -> None:
    for t in range(first, last):
        optimizer.step(
            {"w": array(5, 4, seed=t, dtype="float64"), "b": array(4, seed=100 + t, dtype="float64")}
        )


@pytest.mark.parametrize(("before", "after"), [*CASES, *((b, a) for a, b in CASES)])
def test_a_run_goes_on(before: str, after: str) -> None:
    """Ten steps of one, then ten of the other with the converted state, are twenty of either."""
    turned = (before, after) not in CASES
    caffe, own, other, theirs = CASES[(after, before) if turned else (before, after)]
    first, settings, second, then = (other, theirs, caffe, own) if turned else (caffe, own, other, theirs)

    def params() -> dict[str, Any]:
        return {"w": array(5, 4, seed=900, dtype="float64"), "b": array(4, seed=901, dtype="float64")}

    straight, parts = params(), params()
    steps(second(straight, lr=LR, backend="numpy", **then), 0, 20)
    one = first(parts, lr=LR, backend="numpy", **settings)
    steps(one, 0, 10)
    rest = {name: values.copy() for name, values in parts.items()}
    two = second(rest, lr=LR, backend="numpy", **then)

    names = list(STATES[before])
    history = [np.array(one.state[name][tensor]) for name in names for tensor in ("w", "b")]
    carried = convert(history, before, after, lr=LR, momentum=MOMENTUM)
    state = two.state_dict()
    for place, name in enumerate(STATES[after]):
        for index, tensor in enumerate(state["tensors"].values()):
            tensor["arrays"][name] = carried.history[2 * place + index]
    for tensor in state["tensors"].values():
        tensor["t"] = 10
    two.load_state_dict(state)
    steps(two, 10, 20)
    for name in rest:
        np.testing.assert_allclose(rest[name], straight[name], rtol=1e-12, atol=1e-13)


def test_the_states_are_those_of_the_specs() -> None:
    classes = {
        kind.definition.name: kind
        for kind in vars(optimizers).values()
        if isinstance(getattr(kind, "definition", None), Definition)
    }
    for spec, states in STATES.items():
        if spec in classes:
            known = [state.name for state in classes[spec].definition.state]
            assert [name for name in known if name in states] == list(states)


def test_what_follows_and_what_does_not() -> None:
    history = [array(4), array(3)]
    same = convert(history, "caffe_sgd", "caffe_nesterov")
    assert [a.tobytes() for a in same.history] == [a.tobytes() for a in history]
    assert same.said == ("history: history as it is",)
    buffers = convert(history, "caffe_sgd", "sgd", lr=[0.5, 0.25])  # lr_mult: a rate of its own each
    np.testing.assert_array_equal(buffers.history[1], history[1] * 4)
    means = convert(history, "sgd", "adam", momentum=0.5, start_missing=True)
    np.testing.assert_array_equal(means.history[0], history[0] * np.float32(0.5))
    assert not means.history[2].any()
    assert means.said[1] == "exp_avg_sq: begun with zeros, sgd has no mean square"
    back = convert(means.history, "caffe_adam", "caffe_sgd", lr=0.5, momentum=0.5)
    np.testing.assert_array_equal(back.history[0], history[0] * np.float32(0.5))
    squares = convert([a**2 for a in [*history, *history]], "caffe_adadelta", "caffe_rmsprop")
    np.testing.assert_array_equal(squares.history[0], history[0] ** 2)
    for before, after in [
        ("caffe_adagrad", "caffe_rmsprop"),
        ("caffe_sgd", "caffe_adagrad"),
        ("sgd", "adam"),
    ]:
        with pytest.raises(SolverFileError, match="doesn't follow from what"):
            convert(history, before, after, lr=1.0, momentum=0.5)


@pytest.mark.parametrize(
    ("before", "after", "settings", "says"),
    [
        ("caffe_sgd", "sgd", {}, "give lr"),
        ("caffe_sgd", "sgd", {"lr": 0.0}, "above 0"),
        ("caffe_sgd", "sgd", {"lr": float("nan")}, "above 0"),
        ("caffe_sgd", "sgd", {"lr": [0.1]}, "1 learning rates for 2 parameters"),
        ("caffe_sgd", "adam", {"lr": 0.1}, "give momentum"),
        ("caffe_sgd", "adam", {"lr": 0.1, "momentum": 1.0}, r"must be in \[0, 1\)"),
        ("caffe_sgd", "lion", {}, "no conventions are known of the optimizer 'lion'"),
        ("sdg", "sgd", {}, "did you mean 'sgd'"),
    ],
)
def test_what_must_be_given(before: str, after: str, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SolverFileError, match=says):
        convert([array(4), array(3)], before, after, **settings)


def test_a_history_that_is_no_multiple() -> None:
    with pytest.raises(SolverFileError, match="a history of 3 isn't one"):
        convert([array(2)] * 3, "caffe_adam", "adam")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_a_type_cant_hold_is_an_error(dtype: str) -> None:
    history = (np.array([1.0, -2.0, np.inf], dtype),)
    with pytest.raises(SolverFileError, match=f"divided by 1e-320, are beyond {dtype}"):
        convert(history, "caffe_sgd", "sgd", lr=1e-320)
    carried = convert(history, "caffe_sgd", "sgd", lr=0.5).history[0]
    assert carried.tolist() == [2.0, -4.0, np.inf]
