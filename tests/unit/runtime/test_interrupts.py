"""Ctrl-C and other signals during a step."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

from solvergen.runtime import interrupts
from solvergen.runtime.backends import create
from solvergen.runtime.backends.numpy import NumpyBackend
from solvergen.runtime.groups import Group
from solvergen.runtime.interrupts import uninterrupted
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam

F = np.float32


@pytest.fixture
def own_handler():
    """Sets a handler for the test; the one before is back afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM, signal.SIGTERM)}
    yield lambda handler, number=signal.SIGINT: signal.signal(number, handler)
    for number, handler in before.items():
        signal.signal(number, handler)


def raising(error):
    def handler(number, frame):
        raise error

    return handler


def interrupting(calls, number=signal.SIGINT):
    """Adam whose reference is interrupted whenever it is called, and notes that it was."""

    def update(*arguments):
        calls.append(None)
        signal.raise_signal(number)
        return Adam.definition.update(*arguments)

    class Interrupting(Adam):
        definition = replace(Adam.definition, update=update)

    return Interrupting


def test_an_interrupt_within_the_reference_finds_the_step_done():
    params = [np.ones(3, F), np.ones(40_000, F), np.ones(2)]  # two launches, several blocks
    alone = [p.copy() for p in params]
    gradients = [np.full_like(p, 0.5) for p in params]
    calls = []
    opt = interrupting(calls)(params, backend="numpy")
    with pytest.raises(KeyboardInterrupt):
        opt.step(gradients)
    assert len(calls) == 5
    Adam(alone, backend="numpy").step(gradients)
    for param, wanted in zip(params, alone, strict=True):
        assert_same_bits(param, wanted)
    assert set(opt.steps.values()) == {1}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_between_launches_finds_the_step_done():
    class Interrupted(NumpyBackend):
        def prepare(self, plan):
            launcher = super().prepare(plan)
            launch = launcher.launch

            def interrupted(table, rows):
                launch(table, rows)
                signal.raise_signal(signal.SIGINT)

            launcher.launch = interrupted
            return launcher

    params = [np.ones(3, F), np.ones(2)]
    opt = Adam(params, backend=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        opt.step([np.ones(3, F), np.ones(2)])
    assert all((p != 1.0).all() for p in params)
    assert set(opt.steps.values()) == {1}


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_an_exception_of_another_signals_handler_finds_the_step_done(own_handler, backend):
    own_handler(raising(TimeoutError), signal.SIGALRM)

    class Interrupted(type(create(backend))):
        def prepare(self, plan):
            launcher = super().prepare(plan)
            launch = launcher.launch

            def interrupted(table, rows):
                signal.raise_signal(signal.SIGALRM)
                launch(table, rows)
                signal.raise_signal(signal.SIGALRM)

            launcher.launch = interrupted
            return launcher

    shapes = [(3, F), (40_000, F), (2, np.float64)]
    params, alone = ([np.ones(*shape) for shape in shapes] for _ in range(2))
    opt, other = Adam(params, backend=Interrupted()), Adam(alone, backend=backend)
    handler = signal.getsignal(signal.SIGALRM)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            opt.step([np.full_like(p, 0.5) for p in params])
        other.step([np.full_like(p, 0.5) for p in params])
        assert dict(opt.steps) == dict(other.steps)
        for param, wanted in zip(params, alone, strict=True):
            assert_same_bits(param, wanted)
    assert signal.getsignal(signal.SIGALRM) is handler


def test_the_reference_is_not_left_in_the_middle_of_a_tensor(own_handler):
    own_handler(raising(TimeoutError), signal.SIGALRM)
    param, alone, calls = np.ones(40_000, F), np.ones(40_000, F), []
    opt = interrupting(calls, signal.SIGALRM)(param, backend="numpy")
    with pytest.raises(TimeoutError):
        opt.step(np.ones(40_000, F))
    Adam(alone, backend="numpy").step(np.ones(40_000, F))
    assert len(calls) == 3
    assert_same_bits(param, alone)
    assert opt.t == 1


def test_every_handler_is_called_and_set_again_though_all_raise(own_handler):
    errors = {
        signal.SIGALRM: TimeoutError("a"),
        signal.SIGTERM: ValueError("b"),
        signal.SIGINT: KeyError("c"),
    }
    handlers = {number: raising(error) for number, error in errors.items()}
    for number, handler in handlers.items():
        own_handler(handler, number)

    def work():
        for number in errors:
            signal.raise_signal(number)

    with pytest.raises(KeyError) as raised:
        uninterrupted(work)
    chain, error = [], raised.value
    while error is not None:
        chain.append(error)
        error = error.__context__
    assert chain == list(reversed(errors.values()))
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def test_handlers_are_set_again_though_those_that_are_raise_meanwhile(own_handler, monkeypatch):
    handlers = {number: raising(TimeoutError) for number in (signal.SIGINT, signal.SIGALRM, signal.SIGTERM)}
    for number, handler in handlers.items():
        own_handler(handler, number)

    class Arriving:
        getsignal = staticmethod(signal.getsignal)

        @staticmethod
        def signal(number, handler):
            before = signal.signal(number, handler)
            if handler is handlers.get(number):
                signal.raise_signal(number)
            return before

    monkeypatch.setattr(interrupts, "_signal", Arriving)
    done = []
    with pytest.raises(TimeoutError):
        uninterrupted(lambda: done.append(True))
    assert done == [True]
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def test_hyperparameters_of_all_groups_change_or_none(own_handler, monkeypatch):
    own_handler(raising(TimeoutError), signal.SIGALRM)
    opt = Adam([{"params": [np.ones(1, F)]}, {"params": [np.ones(1, F)]}], backend="numpy")
    check = Group.check

    def interrupted(group, changes):
        commit = check(group, changes)
        return lambda: (commit(), signal.raise_signal(signal.SIGALRM))

    monkeypatch.setattr(Group, "check", interrupted)
    with pytest.raises(TimeoutError):
        opt.set(lr=0.5)
    assert [group.lr for group in opt.groups] == [0.5, 0.5]


def test_a_programs_own_handler_is_called_when_the_step_is_done(own_handler):
    seen = []
    param = np.ones(3, F)
    own_handler(lambda number, frame: seen.append((number, param[0] != 1.0)))
    opt = interrupting([])(param, backend="numpy")
    assert opt.step(np.ones(3, F)) is True
    assert seen == [(signal.SIGINT, True)]


def test_a_handler_may_set_another(own_handler):
    own_handler(lambda number, frame: signal.signal(number, signal.SIG_IGN))
    uninterrupted(lambda: signal.raise_signal(signal.SIGINT))
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_interrupts_that_are_ignored_stay_so(own_handler):
    own_handler(signal.SIG_IGN)
    assert interrupting([])(np.ones(3, F), backend="numpy").step(np.ones(3, F)) is True
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_an_error_and_an_interrupt():
    def work():
        signal.raise_signal(signal.SIGINT)
        raise MemoryError

    with pytest.raises(KeyboardInterrupt) as raised:
        uninterrupted(work)
    assert isinstance(raised.value.__context__, MemoryError)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_in_other_threads_a_step_is_a_step():
    params, done = [np.ones(3, F)], []
    opt = Adam(params, backend="numpy")
    thread = threading.Thread(target=lambda: done.append(opt.step([np.ones(3, F)])))
    thread.start()
    thread.join()
    assert done == [True]


def test_an_interrupt_while_a_state_is_loaded_finds_it_loaded():
    class Interrupted(NumpyBackend):
        def copy_in(self, array, host):
            signal.raise_signal(signal.SIGINT)
            super().copy_in(array, host)

    source, target = [np.ones(3, F), np.ones(2)], [np.ones(3, F), np.ones(2)]
    given = Adam(source, backend="numpy", lr=0.5)
    given.step([np.ones(3, F), np.ones(2)])
    opt = Adam(target, backend=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        opt.load_state_dict(given.state_dict())
    assert (opt.lr, opt.t) == (0.5, 1)
    for i in range(2):
        assert_same_bits(opt.state["v"][i], given.state["v"][i])
