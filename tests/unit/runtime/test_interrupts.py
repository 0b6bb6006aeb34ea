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
from solvergen.runtime.interrupts import interruptible, uninterrupted
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam
from tests.support.handwritten.closures import Heun

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


def test_a_window_in_what_is_not_interrupted(own_handler):
    seen = []
    own_handler(lambda number, frame: seen.append("handled"))

    def window():
        seen.append("open")
        signal.raise_signal(signal.SIGINT)
        seen.append("closing")
        return "result"

    def work():
        signal.raise_signal(signal.SIGINT)
        seen.append("held")
        seen.append(interruptible(window))
        signal.raise_signal(signal.SIGINT)
        seen.append("held")

    uninterrupted(work)
    assert seen == ["held", "handled", "open", "handled", "closing", "result", "held", "handled"]


def test_what_arrived_before_a_window_raises_instead_of_it():
    seen = []

    def work():
        signal.raise_signal(signal.SIGINT)
        try:
            interruptible(lambda: seen.append("open"))
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)  # held again
            seen.append("undone")
            raise

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    assert seen == ["undone"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_in_a_window_finds_signals_held_again():
    def window():
        raise MemoryError

    def work():
        try:
            interruptible(window)
        finally:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as raised:
        uninterrupted(work)
    assert isinstance(raised.value.__context__, MemoryError)


def test_signals_are_held_again_though_some_arrive_meanwhile(own_handler, monkeypatch):
    handlers = {number: raising(TimeoutError) for number in (signal.SIGINT, signal.SIGALRM, signal.SIGTERM)}
    for number, handler in handlers.items():
        own_handler(handler, number)
    opened = []

    class Arriving:
        getsignal = staticmethod(signal.getsignal)

        @staticmethod
        def signal(number, handler):
            if opened and handler is not handlers.get(number) and len(opened) < 4:
                opened.append(number)
                signal.raise_signal(number)
            return signal.signal(number, handler)

    monkeypatch.setattr(interrupts, "_signal", Arriving)
    after = []

    def work():
        try:
            interruptible(lambda: opened.append(0))
        finally:
            after.extend(signal.getsignal(number) not in handlers.values() for number in handlers)

    with pytest.raises(TimeoutError):
        uninterrupted(work)
    assert len(opened) == 4
    assert after == [True] * 3
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def test_handlers_that_are_set_in_a_window_stay(own_handler):
    seen = []
    own_handler(raising(TimeoutError))

    def window():
        signal.signal(signal.SIGINT, lambda number, frame: seen.append("new"))
        signal.signal(signal.SIGALRM, signal.SIG_IGN)

    own_handler(raising(TimeoutError), signal.SIGALRM)

    def work():
        interruptible(window)
        signal.raise_signal(signal.SIGINT)
        assert seen == []

    uninterrupted(work)
    assert seen == ["new"]
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_IGN


def test_a_window_within_a_window(own_handler):
    seen = []
    own_handler(lambda number, frame: seen.append("handled"))

    def inner():
        signal.raise_signal(signal.SIGINT)
        seen.append("held")

    def work():
        interruptible(lambda: uninterrupted(inner))
        signal.raise_signal(signal.SIGINT)
        seen.append("held")
        interruptible(lambda: seen.append("open"))

    uninterrupted(work)
    assert seen == ["held", "handled", "held", "handled", "open"]


def test_a_window_where_nothing_is_held_back(own_handler):
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: signal.raise_signal(signal.SIGINT))
    done = []

    def work():
        thread = threading.Thread(target=lambda: done.append(interruptible(lambda: 3)))
        thread.start()
        thread.join()
        signal.raise_signal(signal.SIGINT)
        done.append("held")

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    assert done == [3, "held"]


class InterruptedHeun(Heun):
    """Interrupted by its reference, when that has been called so often."""

    @classmethod
    def at(cls, call):
        def update(*arguments):
            work = Heun.definition.update(*arguments)
            asked = next(work)
            if call == 1:
                signal.raise_signal(signal.SIGINT)
            gradient = yield asked
            if call == 2:
                signal.raise_signal(signal.SIGINT)
            try:
                work.send(gradient)
            except StopIteration as end:
                return end.value

        return type("Interrupted", (Heun,), {"definition": replace(Heun.definition, update=update)})


def test_an_interrupt_before_the_last_evaluation_finds_the_step_not_begun():
    param, calls = np.ones(3, F), []
    opt = InterruptedHeun.at(1)([param])
    with pytest.raises(KeyboardInterrupt):
        opt.step(lambda: (calls.append(1), [np.ones(3, F)]))
    assert calls == [1]
    assert param.tolist() == [1, 1, 1]
    assert opt.t == 0


def test_an_interrupt_after_the_last_evaluation_finds_the_step_done():
    param, alone = np.ones(3, F), np.ones(3, F)
    opt = InterruptedHeun.at(2)([param])
    with pytest.raises(KeyboardInterrupt):
        opt.step(lambda: (0, [np.ones(3, F)]))
    Heun([alone]).step(lambda: (0, [np.ones(3, F)]))
    assert_same_bits(param, alone)
    assert opt.t == 1
