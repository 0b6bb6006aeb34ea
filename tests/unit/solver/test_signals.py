"""Signals ask for what they were given as effects, one a call, and everything is put back."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from solvergen.solver.signals import SignalError, handled
from solvergen.solver.training.events import Action

ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = [signal.getsignal(number) for number in ALL]
    yield
    assert [signal.getsignal(number) for number in ALL] == before


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_caffes_effects() -> None:
    with handled() as requested:
        assert requested() is Action.NONE
        send(signal.SIGINT)
        assert [requested(), requested()] == [Action.STOP, Action.NONE]
        send(signal.SIGHUP)
        send(signal.SIGHUP)  # a flag, no counter
        assert [requested(), requested()] == [Action.SNAPSHOT, Action.NONE]
        send(signal.SIGTERM)
        assert [requested(), requested()] == [Action.STOP, Action.NONE]


def test_sighup_comes_first_and_one_is_answered_a_call() -> None:
    with handled(sigint="none", sighup="snapshot", sigterm="stop") as requested:
        for number in ALL:
            send(number)
        assert [requested() for _ in range(4)] == [Action.SNAPSHOT, Action.NONE, Action.STOP, Action.NONE]


def test_who_asked_to_stop() -> None:
    with handled() as requested:
        send(signal.SIGHUP)
        requested()
        assert requested.stopped_by is None
        send(signal.SIGTERM)
        assert requested.stopped_by is None
        requested()
        assert requested.stopped_by == signal.SIGTERM


def test_a_second_sigint_ends_at_once() -> None:
    with handled() as requested:
        send(signal.SIGINT)
        assert requested() is Action.STOP
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


@pytest.mark.parametrize("effect", ["snapshot", "none"])
def test_sigint_may_come_again_if_it_doesnt_stop(effect: str) -> None:
    with handled(sigint=effect) as requested:
        for _ in range(3):
            send(signal.SIGINT)
            assert requested() is Action(effect)


def test_other_signals_may_come_again() -> None:
    with handled() as requested:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert requested() is Action.STOP


def test_signals_that_were_ignored_are_handled_and_ignored_again() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with handled() as requested:
            send(signal.SIGHUP)
            assert requested() is Action.SNAPSHOT
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_not_twice() -> None:
    with handled(), pytest.raises(SignalError, match="handled already"), handled():
        pass
    with handled():
        pass


def test_no_such_effect() -> None:
    says = "sigterm_effect 'die': a signal's effect is stop, snapshot, none"
    with pytest.raises(SignalError, match=says), handled(sigterm="die"):
        pass


def test_only_in_the_main_thread() -> None:
    said: list[str] = []

    def elsewhere() -> None:
        try:
            with handled():
                pass
        except SignalError as error:
            said.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert said == ["signals can be handled in the main thread alone: train there, or without handlers"]
