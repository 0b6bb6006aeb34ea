"""Python processes whose kernels are built under sanitizers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from solvergen.errors import BackendUnavailable
from solvergen.runtime import native
from solvergen.runtime.native import sanitizers
from solvergen.runtime.native.compiler import find_compiler

ROOT = Path(__file__).parents[2]
ADDRESS = "address,undefined"
THREAD = "thread"


def reason_to_skip(names: str) -> str | None:
    """Why the tests can't be run here, None if they can."""
    if sys.platform != "linux":
        return "kernels run under sanitizers on Linux only"
    missing = native.available()
    if missing is not None:
        return missing
    try:
        sanitizers.environment(sanitizers.parsed(names), find_compiler().command)
    except BackendUnavailable as reason:
        return str(reason)
    return None


def python(
    names: str, *arguments: str, timeout: float = 900, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``python ARGUMENTS`` under the sanitizers ``names``; skips the test where they don't work."""
    reason = reason_to_skip(names)
    if reason is not None:
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-m", sanitizers.__name__, names, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer doesn't run under this kernel")
    return done
