"""Keywords that nothing takes: errors of ours that are TypeErrors too. Signatures are as they are written."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle

import numpy as np
import pytest

import solvergen
from generated import Adam
from solvergen import Wrappers
from solvergen.errors import OptimizerError, UnknownArgument
from solvergen.runtime.keywords import checked_keywords, stray
from solvergen.runtime.optimizer import Optimizer


def params():
    return [np.zeros(3, np.float32)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Adam(params(), lrr=1), "Adam takes no argument 'lrr'; did you mean 'lr'?"),
        (
            lambda: Adam(params(), learning_rate=1),
            "Adam takes no argument 'learning_rate'; did you mean 'lr'?",
        ),
        (lambda: Adam(param=params()), "Adam takes no argument 'param'; did you mean 'params'?"),
        (
            lambda: Adam(params(), xyz=1, wrappers=Wrappers()),
            "Adam takes no argument 'xyz'; there are 'params'",
        ),
        (
            lambda: Wrappers(clip_norm=1),
            "Wrappers takes no argument 'clip_norm'; did you mean 'clip_grad_norm'?",
        ),
        (
            lambda: dataclasses.replace(Wrappers(), unscal=1),
            "Wrappers takes no argument 'unscal'; did you mean 'unscale'",
        ),
    ],
)
def test_a_misspelt_keyword(call, said):
    with pytest.raises(UnknownArgument) as raised:
        call()
    assert str(raised.value).startswith(said)
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, OptimizerError)


def test_what_python_says_of_other_calls_stays():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'params'"):
        Adam()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'base'"):
        solvergen.derive()


def test_classes_of_the_users_take_what_they_say():
    class Mine(Adam):
        def __init__(self, params, *, speed):
            super().__init__(params, lr=speed)

    class Any(Adam):
        def __init__(self, params, **settings):
            super().__init__(params, lr=settings["anything"])

    assert Mine(params(), speed=0.5).lr == 0.5
    assert Any(params(), anything=0.25).lr == 0.25
    with pytest.raises(UnknownArgument, match="Mine takes no argument 'sped'; did you mean 'speed'"):
        Mine(params(), sped=0.5)


def test_classes_of_the_users_that_pass_on_what_they_are_given():
    class Mine(Adam):
        def __init__(self, *args, **kwargs):
            self._own = kwargs.pop("own", None)
            super().__init__(*args, **kwargs)

    class Strange(Adam):
        def __init__(self, params, *, speed):
            super().__init__(params, sped=speed)

    assert Mine(params(), lr=0.5, own=3).lr == 0.5
    with pytest.raises(UnknownArgument, match="Adam takes no argument 'lrr'; did you mean 'lr'"):
        Mine(params(), lrr=0.5, own=3)
    with pytest.raises(UnknownArgument, match="Adam takes no argument 'sped'"):
        Strange(params(), speed=0.5)
    with pytest.raises(UnknownArgument, match="Optimizer takes no argument 'blok'; did you mean 'blocks'"):
        Optimizer.__init__(Adam(params()), params(), hyperparameters={}, options={}, blok=1)


def test_signatures_stay():
    class Mine(Adam):
        def __init__(self, params, *, speed):
            """What it says."""
            super().__init__(params, lr=speed)

    assert list(inspect.signature(Mine).parameters) == ["params", "speed"]
    assert Mine.__init__.__doc__ == "What it says."
    assert list(inspect.signature(Adam).parameters)[:2] == ["params", "lr"]
    assert list(inspect.signature(Wrappers).parameters) == [f.name for f in dataclasses.fields(Wrappers)]
    assert list(inspect.signature(solvergen.derive).parameters)[:2] == ["base", "name"]
    assert solvergen.derive.__doc__.startswith("The class of an optimizer")


def test_wrappers_are_copied_as_before():
    wrappers = Wrappers(l1=0.5, bounds=(0, 1))
    assert pickle.loads(pickle.dumps(wrappers)) == copy.deepcopy(wrappers) == wrappers  # noqa: S301


def test_functions():
    def positional(a, /, b, *, c=0, **rest):
        return a, b, c, rest

    @checked_keywords
    def plain(a, *, b=2):
        return a, b

    assert stray(["x"], positional) == (None, ())
    assert stray(["x"], print) == (None, ())
    assert plain(1) == (1, 2)
    assert plain(a=1, b=3) == (1, 3)
    with pytest.raises(UnknownArgument, match="plain takes no argument 'c'; there are 'a' and 'b'"):
        plain(1, c=2)
