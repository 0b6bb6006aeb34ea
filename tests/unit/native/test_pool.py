"""The thread pool: jobs whole whatever else happens, forks, floating-point control, signals, exit."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvergen.runtime.backends import cpu
from solvergen.runtime.backends.cpu import CpuBackend
from solvergen.runtime.native.build import load
from solvergen.runtime.native.compiler import find_compiler
from solvergen.runtime.native.library import function_address, library
from tests.unit.native.support import (
    ROOT,
    adam_plan,
    assert_same_bits,
    check_steps,
    reference_step,
    run_python,
    step,
    values,
)

NATIVE = ROOT / "solvergen/runtime/native"


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        (["-O2"], []),
        (["-O2"], ["fork"]),
        (["-O1", "-g", "-fsanitize=thread"], []),
        (["-O1", "-g", "-fsanitize=address,undefined"], []),
    ],
    ids=["plain", "forks", "races", "memory"],
)
def test_stress(options: list[str], argument: list[str], tmp_path: Path) -> None:
    program = str(tmp_path / "stress")
    sources = [str(NATIVE / "pool.c"), str(Path(__file__).with_name("stress.c"))]
    command = [
        *find_compiler().command,
        "-std=gnu11",
        *options,
        f"-I{NATIVE}",
        *sources,
        "-o",
        program,
        "-pthread",
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0 and "sanitize" in options[-1]:
        pytest.skip("the compiler has no such sanitizer")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program, *argument], capture_output=True, text=True, timeout=300, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the sanitizer doesn't run under this kernel")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def many_chunks(monkeypatch: pytest.MonkeyPatch, n: int = 20000, seed: int = 0) -> tuple[Any, Any, list[Any]]:
    """A plan, a launcher that has three helpers and many small units, and gradients."""
    monkeypatch.setattr(cpu, "CHUNK_SIZE", 256)
    plan = adam_plan([values((n,), "float32", seed), values((n // 3,), "float32", seed + 1)])
    launcher = CpuBackend().prepare(plan)
    launcher._launch_arguments = (*launcher._launch_arguments[:4], 3)
    return plan, launcher, [values((n,), "float32", seed + 2), values((n // 3,), "float32", seed + 3)]


def test_threads_that_step_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [many_chunks(monkeypatch, 9000 + i, 10 * i) for i in range(6)]
    failures: list[BaseException] = []

    def drive(case: tuple[Any, Any, list[Any]]) -> None:
        try:
            plan, launcher, gradients = case
            check_steps(plan, [gradients] * 25, launcher)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=drive, args=(case,)) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, launcher, gradients = many_chunks(monkeypatch)
    step(launcher, plan, gradients, 1)
    assert library().workers() >= 3
    expected = reference_step(plan, gradients, 2)
    stop = threading.Event()
    other = many_chunks(monkeypatch, 50000, 7)

    def busy() -> None:
        t = 1
        while not stop.is_set():
            step(other[1], other[0], other[2], t)
            t += 1

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(8):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    begins_empty = library().workers() == 0
                    step(launcher, plan, gradients, 2)
                    assert_same_bits(plan.tensors[0].param, expected[0][0])
                    code = 0 if begins_empty and library().workers() >= 3 else 2
                finally:
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        stop.set()
        thread.join()
    # The parent goes on as if nothing had been.
    step(launcher, plan, gradients, 2)
    assert_same_bits(plan.tensors[0].param, expected[0][0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_multiprocessing_children_step() -> None:
    done = run_python(
        """
import multiprocessing
from tests.unit.native.support import adam_plan, check_steps, values
def work(seed):
    plan = adam_plan([values((70000,), "float32", seed)])
    check_steps(plan, [[values((70000,), "float32", seed + 1)]] * 3)
    return seed
if __name__ == "__main__":
    work(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(sorted(pool.map(work, range(4))))
"""
    )
    assert done.returncode == 0, done.stderr
    assert "[0, 1, 2, 3]" in done.stdout


CONTROL = """\
#include <stdint.h>
#define EXPORT __attribute__((visibility("default")))
#if defined(__x86_64__)
EXPORT uint64_t get_control(void) { return __builtin_ia32_stmxcsr(); }
EXPORT void set_control(uint64_t x) { __builtin_ia32_ldmxcsr((unsigned)x); }
#elif defined(__aarch64__)
EXPORT uint64_t get_control(void) {
    uint64_t x;
    __asm__ volatile("mrs %0, fpcr" : "=r"(x));
    return x;
}
EXPORT void set_control(uint64_t x) { __asm__ volatile("msr fpcr, %0" : : "r"(x)); }
#else
#error "unknown processor"
#endif
"""
X86 = sys.platform != "win32" and os.uname().machine == "x86_64"
FLUSH = 0x8040 if X86 else 1 << 24
TOWARDS_ZERO = 0x6000 if X86 else 3 << 22


@pytest.mark.parametrize("mode", [FLUSH, TOWARDS_ZERO, FLUSH | TOWARDS_ZERO])
@pytest.mark.parametrize("helpers", [0, 3])
def test_floating_point_control_of_the_caller(
    mode: int, helpers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subnormals and rounding are the language's, whatever the program chose; and it keeps its choice."""
    control = load({"control.c": CONTROL})
    control.get_control.restype = ctypes.c_uint64
    control.set_control.argtypes = (ctypes.c_uint64,)
    library()._retire()  # new workers are made under the caller's mode
    plan, launcher, gradients = many_chunks(monkeypatch)
    launcher._launch_arguments = (*launcher._launch_arguments[:4], helpers)
    for tensor in plan.tensors:
        tensor.param[::3] = 1e-39
    for gradient in gradients:
        gradient[::2] = 1e-41
    expected = reference_step(plan, gradients, 1)
    assert launcher.bind(gradients)
    from tests.unit.native.support import table_at

    table, rows = table_at(1, plan), np.zeros(2, np.int32)
    launcher._use(table, rows)
    before = control.get_control()
    try:
        control.set_control(before | mode)
        chosen = control.get_control()
        launcher.launch(table, rows)
        after = control.get_control()
    finally:
        control.set_control(before)
    assert chosen & mode == mode
    assert after == chosen
    for tensor, (param, m, v, _) in zip(plan.tensors, expected, strict=True):
        assert_same_bits(tensor.param, param)
        assert_same_bits(tensor.states[0], m)
        assert_same_bits(tensor.states[1], v)
    assert (np.abs(expected[0][1][expected[0][1] != 0]) < np.finfo(np.float32).tiny).any(), (
        "no subnormal was made"
    )


def test_workers_made_under_another_affinity_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solvergen.runtime.native.library.thread_count", lambda: 4)
    masks = iter([frozenset({1, 2}), frozenset({1, 2}), frozenset({2, 3})])
    monkeypatch.setattr("solvergen.runtime.native.library.affinity", lambda: next(masks))
    pool = library()
    pool._mask = None
    assert pool.helpers() == 3
    many = many_chunks_at(3)
    many()
    assert pool.workers() >= 3
    assert pool.helpers() == 3
    assert pool.workers() >= 3
    assert pool.helpers() == 3
    assert pool.workers() == 0
    many()
    assert pool.workers() == 3
    pool._mask = None


def many_chunks_at(helpers: int) -> Any:
    """A job of no work with some units."""
    nothing = load({"slow.c": SLOW.replace("usleep(1000)", "usleep(1)")})
    units = np.arange(9, dtype=np.int64)
    return lambda: library().run(function_address(nothing.slow), None, units.ctypes.data, 8, helpers)


SLOW = """\
#include <stdint.h>
#include <unistd.h>
__attribute__((visibility("default"))) void slow(const void *job, int64_t first, int64_t last) {
    (void)job;
    for (int64_t i = first; i < last; ++i)
        usleep(1000);
}
"""


def test_a_signal_waits_for_the_job() -> None:
    """KeyboardInterrupt arrives in the thread that runs Python, after the step, and the pool lives on."""
    slow = load({"slow.c": SLOW})
    units = np.arange(201, dtype=np.int64)
    arguments = (function_address(slow.slow), None, units.ctypes.data, 200, 3)
    library().run(*arguments)
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))

    def run_interrupted() -> None:
        timer.start()
        library().run(*arguments)
        timer.join()

    # Where the tests were started in the background, SIGINT is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
    library().run(*arguments)


def test_the_interpreter_ends_while_workers_sleep_or_spin() -> None:
    done = run_python(
        """
import threading
from tests.unit.native.support import adam_plan, step, values
from solvergen.runtime.backends.cpu import CpuBackend
plan = adam_plan([values((200000,), "float32")])
launcher = CpuBackend().prepare(plan)
launcher._launch_arguments = (*launcher._launch_arguments[:4], 3)
gradients = [values((200000,), "float32", 1)]
step(launcher, plan, gradients, 1)
def forever():
    t = 2
    while True:
        step(launcher, plan, gradients, t)
        t += 1
threading.Thread(target=forever, daemon=True).start()
print("end")
"""
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_affinity() -> None:
    """Under a mask of one CPU there are no workers; when it has changed, workers follow it."""
    done = run_python(
        """
import os, sys
from tests.unit.native.support import adam_plan, check_steps, values
from solvergen.runtime.native.library import library
all_of_them = os.sched_getaffinity(0)
one = {min(all_of_them)}
def some(seed):
    plan = adam_plan([values((90000,), "float32", seed)])
    check_steps(plan, [[values((90000,), "float32", seed + 1)]] * 2)
def masks():
    return [os.sched_getaffinity(int(t)) for t in os.listdir("/proc/self/task")]
os.sched_setaffinity(0, one)
some(0)
print(library().workers())
os.sched_setaffinity(0, all_of_them)
some(1)
print(library().workers() == len(all_of_them) - 1)
os.sched_setaffinity(0, one)
some(2)
print(library().helpers())
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "True", "0"]
