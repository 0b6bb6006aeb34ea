"""How many threads there may be: affinity, quotas of both versions of control groups, the variable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from solvergen.errors import BackendUnavailable
from solvergen.runtime.backends.cpu import CpuBackend
from solvergen.runtime.native import threads
from solvergen.runtime.native.threads import cgroup_quota, thread_count
from tests.unit.native.support import adam_plan, values


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "250000 100000\n"}, 2.5),
        # The strictest above counts.
        (
            {
                "proc/self/cgroup": "0::/a/b/c\n",
                "sys/fs/cgroup/a/b/c/cpu.max": "max 100000\n",
                "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/a/cpu.max": "150000 50000\n",
            },
            3.0,
        ),
        # A container whose groups are mounted elsewhere than their names say.
        (
            {"proc/self/cgroup": "0::/../../docker/x\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"},
            0.5,
        ),
        (
            {
                "proc/self/cgroup": "5:memory:/m\n4:cpu,cpuacct:/docker/x\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            2.0,
        ),
        (
            {
                "proc/self/cgroup": "4:cpuacct,cpu:/x\n0::/\n",
                "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "700000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            7.0,
        ),
        ({"proc/self/cgroup": "4:cpuset:/x\nnonsense\n", "sys/fs/cgroup/cpu.max": "1 2 3"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "x y\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 0\n"}, None),
    ],
)
def test_quota(files: dict[str, str], quota: float | None, tmp_path: Path) -> None:
    assert cgroup_quota(tree(tmp_path, files)) == quota


@pytest.mark.parametrize(
    ("cpus", "quota", "variable", "expected"),
    [
        (8, None, None, 8),
        (8, "max", None, 8),
        (8, "250000", None, 2),
        (8, "300000", None, 3),
        (8, "10000", None, 1),
        (2, "900000", None, 2),
        (8, None, "3", 3),
        (8, None, " 1 ", 1),
        (2, None, "64", 2),
        (8, "200000", "4", 2),
        (8, "400000", "2", 2),
        (8, None, "", 8),
    ],
)
def test_thread_count(
    cpus: int,
    quota: str | None,
    variable: str | None,
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "affinity", lambda: frozenset(range(cpus)))
    if variable is not None:
        monkeypatch.setenv("SOLVERGEN_NUM_THREADS", variable)
    if quota is not None:
        tree(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": f"{quota} 100000\n"})
    assert thread_count(tmp_path) == expected


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1.5", "²", "1 2"])
def test_a_variable_that_means_nothing(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLVERGEN_NUM_THREADS", wrong)
    with pytest.raises(BackendUnavailable, match="SOLVERGEN_NUM_THREADS"):
        thread_count()


def test_the_variable_counts_for_new_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "affinity", lambda: frozenset(range(4)))
    monkeypatch.setattr(threads, "cgroup_quota", lambda root: None)
    plan = adam_plan([values((200000,), "float32")])
    helpers = []
    for number in ("1", "2", "3", None):
        if number is None:
            monkeypatch.delenv("SOLVERGEN_NUM_THREADS")
        else:
            monkeypatch.setenv("SOLVERGEN_NUM_THREADS", number)
        helpers.append(CpuBackend().prepare(plan)._helpers)
    assert helpers == [0, 1, 2, 3]


def test_small_jobs_wake_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "affinity", lambda: frozenset(range(4)))
    monkeypatch.setattr(threads, "cgroup_quota", lambda root: None)
    assert CpuBackend().prepare(adam_plan([values((30000,), "float32")]))._helpers == 0
    assert CpuBackend().prepare(adam_plan([values((40000,), "float32")]))._helpers >= 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no CPU affinity here")
def test_on_this_machine() -> None:
    assert 1 <= thread_count() <= len(os.sched_getaffinity(0))
