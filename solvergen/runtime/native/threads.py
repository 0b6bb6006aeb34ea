"""How many threads a kernel may use: what the scheduler, the container and the user allow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from solvergen.errors import BackendUnavailable

VARIABLE = "SOLVERGEN_NUM_THREADS"


def thread_count(root: Path = Path("/")) -> int:
    """Threads for a kernel started by this thread, at least 1: ``cores``, at most ``$SOLVERGEN_NUM_THREADS``.

    ``root`` stands for the root of the file system.

    Raises:
        BackendUnavailable: the variable is not a positive whole number.
    """
    count = cores(root)
    chosen = os.environ.get(VARIABLE)
    if chosen is not None and chosen.strip():
        if not chosen.strip().isdecimal() or int(chosen) < 1:
            raise BackendUnavailable(f"{VARIABLE} is {chosen!r}; it must be a whole number, 1 or more")
        count = min(count, int(chosen))
    return count


def cores(root: Path = Path("/")) -> int:
    """CPUs that this thread may use at once, at least 1.

    Those in its affinity mask, no more than the CPU quota of its control groups (rounded down: a thread that
    a quota suspends holds up the others). ``root`` stands for the root of the file system.
    """
    count = len(affinity()) or os.cpu_count() or 1
    quota = cgroup_quota(root)
    return count if quota is None else min(count, max(1, int(quota + 1e-6)))


def affinity() -> frozenset[int]:
    """The CPUs that this thread may run on; empty where the system doesn't say."""
    if not hasattr(os, "sched_getaffinity"):
        return frozenset()
    return frozenset(os.sched_getaffinity(0))


def cgroup_quota(root: Path = Path("/")) -> float | None:
    """The CPU quota in CPUs (1.5: one and a half) of this process's control groups, None if unlimited.

    The strictest of the group and all above it counts, in both versions of control groups. Inside a
    container the groups may be mounted elsewhere than their names say, so the mount's root is looked at too.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    quotas = [quota for line in groups.splitlines() for quota in _quotas_of(line, root / "sys/fs/cgroup")]
    return min(quotas, default=None)


def _quotas_of(line: str, mount: Path) -> Iterator[float]:
    hierarchy, _, rest = line.partition(":")
    controllers, _, group = rest.partition(":")
    if hierarchy == "0" and controllers == "":
        for folder in _upwards(mount, group):
            quota = _version_2(folder)
            if quota is not None:
                yield quota
    elif "cpu" in controllers.split(","):
        for name in dict.fromkeys((controllers, "cpu")):
            for folder in _upwards(mount / name, group):
                quota = _version_1(folder)
                if quota is not None:
                    yield quota


def _upwards(mount: Path, group: str) -> Iterator[Path]:
    relative = PurePosixPath(group.lstrip("/"))
    for path in (relative, *relative.parents):
        if ".." not in path.parts:
            yield mount / path


def _version_2(folder: Path) -> float | None:
    words = _read_words(folder / "cpu.max")
    if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]) > 0:
        return int(words[0]) / int(words[1])
    return None  # "max 100000": no limit


def _version_1(folder: Path) -> float | None:
    words = [*_read_words(folder / "cpu.cfs_quota_us"), *_read_words(folder / "cpu.cfs_period_us")]
    if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]) > 0:
        return int(words[0]) / int(words[1])
    return None  # a quota of -1: no limit


def _read_words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return []
