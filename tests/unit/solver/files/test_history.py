"""The order of a history, and what a history of another solver looks like."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from solvergen import optimizers
from solvergen.errors import SnapshotWarning, SolverFileError
from solvergen.solver.files import SolverStateData, arranged, fitted, flattened, history_names
from solvergen.solver.files.history import OF_CAFFE, SPEC_OF_TYPE
from tests.unit.solver.files.caffe_bytes import array, same_bits

SHAPES = [(3, 40), (40,)]
TYPES = {
    "SGD": (optimizers.CaffeSGD, 1),
    "Nesterov": (optimizers.CaffeNesterov, 1),
    "AdaGrad": (optimizers.CaffeAdaGrad, 1),
    "RMSProp": (optimizers.CaffeRMSProp, 1),
    "AdaDelta": (optimizers.CaffeAdaDelta, 2),
    "Adam": (optimizers.CaffeAdam, 2),
}


@pytest.mark.parametrize("name", TYPES)
def test_the_six_of_caffe(name: str) -> None:
    kind, arrays = TYPES[name]
    names = history_names(kind)
    assert len(names) == arrays
    assert OF_CAFFE[SPEC_OF_TYPE[name]] == names
    assert set(names) == {state.name for state in kind.definition.state}


def test_any_other_optimizer_has_the_order_of_its_spec() -> None:
    assert history_names(optimizers.Adam, {"amsgrad": False, "maximize": False}) == ("exp_avg", "exp_avg_sq")
    assert history_names(optimizers.Adam) == ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


def test_all_of_the_first_state_come_first() -> None:
    first, second = [array(*s) for s in SHAPES], [array(*s, seed=1) ** 2 for s in SHAPES]
    names = history_names(optimizers.CaffeAdam)
    history = flattened({"history2": second, "history": first}, names)
    assert all(map(same_bits, history, [*first, *second]))
    found = arranged(SolverStateData(1, None, history), SHAPES, names, spec="caffe_adam", source="f")
    assert all(map(same_bits, found["history2"], second))


@pytest.mark.parametrize(
    ("count", "spec", "says"),
    [
        (4, "caffe_sgd", r"it has 4 arrays; caffe_sgd with 2 parameters needs 2 .*Adam or AdaDelta"),
        (
            2,
            "caffe_adam",
            r"it has 2 arrays; caffe_adam with 2 parameters needs 4 .*SGD, Nesterov, AdaGrad or RMSProp",
        ),
        (3, "caffe_sgd", r"incorrect length of history.*of another net, or of another solver type"),
        (0, "caffe_sgd", r"it has 0 arrays"),
    ],
)
def test_another_length(count: int, spec: str, says: str) -> None:
    state = SolverStateData(1, None, tuple(array(3, 40) for _ in range(count)))
    with pytest.raises(SolverFileError, match=f"the file: .*{says}"):
        arranged(state, SHAPES, OF_CAFFE[spec], spec=spec, source="the file")


@pytest.mark.parametrize("spec", OF_CAFFE)
@pytest.mark.parametrize("square", [False, True])
def test_numbers_that_look_like_another_solvers(spec: str, square: bool) -> None:
    """Caffe's files don't say of which solver they are; the signs do."""
    arrays = [array(*s, seed=i) ** (2 if square else 1) for i, s in enumerate(SHAPES)]
    squares = [array(*s) ** 2 for s in SHAPES]
    names = OF_CAFFE[spec]
    history = tuple(arrays if len(names) == 1 else [*arrays, *squares])
    odd = square == (spec in ("caffe_sgd", "caffe_nesterov", "caffe_adam"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        arranged(SolverStateData(1, None, history), SHAPES, names, spec=spec, source="f")
    assert [w.category for w in caught] == ([SnapshotWarning] if odd else [])


def test_few_numbers_prove_nothing() -> None:
    tiny = SolverStateData(1, None, (np.ones(3, np.float32),))
    zeros = SolverStateData(0, None, (np.zeros(300, np.float32),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arranged(tiny, [(3,)], ["history"], spec="caffe_sgd", source="f")
        arranged(zeros, [(300,)], ["history"], spec="caffe_sgd", source="f")
        arranged(zeros, [(300,)], ["history"], spec="caffe_adagrad", source="f")


@pytest.mark.parametrize(
    ("shape", "wanted", "fits"),
    [
        ((1, 1, 3, 4), (3, 4), True),
        ((1, 1, 1, 4), (4,), True),
        ((1, 1, 1, 1), (), True),
        ((1, 2, 3, 4), (2, 3, 4), True),
        ((1, 1, 4, 3), (3, 4), False),
        ((3, 4), (12,), False),
        ((1, 3, 4), (3, 4), False),
        ((1, 1, 1, 1, 4), (4,), False),
        ((4,), (1, 1, 1, 4), False),
    ],
)
def test_four_axes_fit_fewer(shape: tuple[int, ...], wanted: tuple[int, ...], fits: bool) -> None:
    values = array(*shape)
    if fits:
        assert same_bits(fitted(values, wanted, "it"), values.reshape(wanted))
    else:
        with pytest.raises(SolverFileError, match="it has the shape"):
            fitted(values, wanted, "it")
