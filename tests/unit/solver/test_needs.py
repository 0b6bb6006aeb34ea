"""What the parameters need to be installed, and what they load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from solvergen.errors import SolvergenError
from solvergen.solver import SolverParameters, policy_of
from solvergen.solver.parameters.proto import messages
from solvergen.solver.policies.picture import draw_schedule
from solvergen.solver.policies.schedule import schedule
from tests.integration.test_imports import FORBIDDEN

ROOT = Path(__file__).parents[3]


def test_without_protobuf_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    messages.message_class.cache_clear()
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    for name in [name for name in sys.modules if name.startswith("google.protobuf.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SolvergenError, match=r'pip install "solvergen\[solver\]"'):
        SolverParameters.parse_prototxt("base_lr: 1")


def test_without_matplotlib_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    policy = policy_of(SolverParameters(base_lr=1, lr_policy="fixed", max_iter=3))
    with pytest.raises(SolvergenError, match=r'pip install "solvergen\[solver\]"'):
        draw_schedule(tmp_path / "x.svg", schedule(policy, 3, samples=3), "x")


def test_parameters_in_python_load_neither_protobuf_nor_any_tool() -> None:
    code = (
        "from solvergen.solver import SolverParameters, policy_of\n"
        "policy_of(SolverParameters(base_lr=1, lr_policy='fixed'))\n"
        "import sys; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert set(done.stdout.split()) & {*FORBIDDEN, "google.protobuf", "matplotlib"} == set()
