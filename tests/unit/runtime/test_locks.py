"""Locks and forks."""

from __future__ import annotations

import os
import threading

import pytest

from solvergen.runtime.locks import ProcessLock


def exit_code_of_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def taken(lock):
    """Whether another thread gets it within a while."""
    got = threading.Event()

    def take():
        with lock.held():
            got.set()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return not got.wait(0.2)


def test_one_thread_at_a_time_and_that_again_and_again():
    lock = ProcessLock()
    with lock.held(), lock.held():
        assert taken(lock)
    assert not taken(lock)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_takes_what_a_thread_of_its_parent_holds():
    lock, held, done = ProcessLock(), threading.Event(), threading.Event()

    def hold():
        with lock.held():
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert taken(lock)

        def work():
            assert not taken(lock)

        assert exit_code_of_child(work) == 7
        assert taken(lock)
    finally:
        done.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_by_the_holder_goes_on():
    lock = ProcessLock()
    block = lock.held()
    block.__enter__()

    def work():
        block.__exit__(None, None, None)
        assert not taken(lock)

    assert exit_code_of_child(work) == 7
    block.__exit__(None, None, None)
    assert not taken(lock)
