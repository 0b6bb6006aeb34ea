"""What docs/solver.md shows works as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from solvergen.solver.policies import CAFFE, POLICIES

pytest.importorskip("google.protobuf")

PAGE = (Path(__file__).parents[3] / "docs" / "solver.md").read_text(encoding="utf-8")


def test_the_example_of_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = re.search(r"## Parameters\n\n((?:    .*\n)+)", PAGE)
    program = re.search(
        r"```python\n(from solvergen\.solver import SolverParameters\n.*?)```", PAGE, re.DOTALL
    )
    assert shown is not None
    assert program is not None
    Path("solver.prototxt").write_text(shown[1])
    names: dict[str, Any] = {}
    exec(program[1], names)  # noqa: S102
    assert names["params"].stepvalue == (4000, 6000)
    assert names["longer"].max_iter == 20000
    assert names["own"].check() == [] or all(f.severity == "warning" for f in names["own"].check())


def test_every_policy_has_its_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert [name for name in rows if name in POLICIES] == list(POLICIES)
    assert len(CAFFE) == 7


def test_the_settings_in_the_table_are_those_that_policies_take() -> None:
    from solvergen.solver import SolverParameters
    from solvergen.solver.policies.settings import Given

    for name in ("linear", "cosine", "one_cycle", "plateau", "piecewise"):
        (row,) = re.findall(rf"^\| `{name}` \|[^|]*\|(.*)\|$", PAGE, re.MULTILINE)
        written = set(re.findall(r"`(\w+)`", row))
        params = SolverParameters(base_lr=1, max_iter=10)
        given = Given(name, params, {"boundaries": (1,), "rates": (1, 2)} if name == "piecewise" else {}, 10)
        POLICIES[name](given)
        assert written == given._known, name
