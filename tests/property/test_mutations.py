"""verify notices wrong kernels and wrong host programs: every fault that is another program.

Each spec is made wrong in one place, and the runs that verify draws by default are tried on it, on the
processor and in the PTX that NVRTC emits. In a usual run one mutant of each kind is tried for each spec and
target, the same one each time; SOLVERGEN_MUTATIONS=all tries all of them (``nox -s mutations``), a number so
many of each kind.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from solvergen.verify import built_from, why_unavailable
from solvergen.verify.mutations import KINDS, Experiment, Outcome, Score, cpu, subject
from tests.property.equivalent_mutants import reason_of

ROOT = Path(__file__).parents[2]

PER_KIND = os.environ.get("SOLVERGEN_MUTATIONS", "1")

SPECS = (
    "specs/adam.yaml",
    "specs/sgd.yaml",
    "specs/lion.yaml",
    "specs/caffe_adadelta.yaml",
    "specs/lamb.yaml",
    "specs/sm3.yaml",
    "tests/support/specs/everything.yaml",
    "tests/support/specs/selections.yaml",
    "tests/support/specs/functions.yaml",
    "tests/support/specs/reductions.yaml",
)

_MISSING = {name: why_unavailable(name) for name in ("cpu", "ptx")}
TARGETS = [
    pytest.param(name, marks=pytest.mark.skipif(reason is not None, reason=str(reason)))
    for name, reason in _MISSING.items()
]


@functools.cache
def outcomes(spec: str) -> list[tuple[str, Outcome]]:
    """Targets and what became of the mutants on them, tried by a process that forks."""
    targets = ",".join(name for name, reason in _MISSING.items() if reason is None)
    command = [sys.executable, "-m", "tests.support.mutating", spec, targets, PER_KIND]
    # Threads of other libraries wouldn't live on in the forked processes.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    print(f"\n{Path(spec).stem}: {run.stderr.strip()}")
    found = []
    for line in run.stdout.splitlines():
        data = json.loads(line)
        found.append((data.pop("target"), Outcome.from_json(data)))
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("spec", SPECS, ids=[Path(spec).stem for spec in SPECS])
def test_every_fault_is_noticed(spec: str, target: str) -> None:
    name = Path(spec).stem
    found = [outcome for place, outcome in outcomes(spec) if place == target]
    known = {o.mutant.key for o in found if reason_of(o.mutant, name) is not None}
    score = Score.of(found, known)
    print(f"\n{name} on {target}: {score.noticed} noticed, {len(score.survivors)} survived")
    for kind, *numbers in (
        ("kind", "noticed", "survived", "equivalent", "same code", "refused"),
        *score.rows(),
    ):
        print(f"  {kind:16}" + "".join(f"{number:>11}" for number in numbers))
    wrong = [f"{o.mutant}  ({o.how})" for o in found if o.verdict == "noticed" and o.mutant.key in known]
    assert not wrong, "said to compute the same, and doesn't:\n" + "\n".join(wrong)
    survivors = [f"{o.mutant}  {o.how}" for o in score.survivors]
    assert not survivors, f"{len(survivors)} faults that verify doesn't notice:\n" + "\n".join(survivors)
    assert score.noticed > len(found) / 3  # many are viable, and another program


@pytest.mark.skipif(_MISSING["cpu"] is not None, reason=str(_MISSING["cpu"]))
def test_there_are_faults_of_every_kind() -> None:
    """On the specs with most features, so that no kind is lost by a change of the templates."""
    torture = ROOT / "tests/support/specs"
    shipped = [ROOT / "specs" / name for name in ("adam.yaml", "sm3.yaml")]
    specs = [*shipped, torture / "everything.yaml", torture / "reductions.yaml"]
    with built_from(specs) as optimizers:
        kinds = set()
        for optimizer in optimizers.values():
            kinds |= {mutant.kind for mutant in Experiment(subject(optimizer, examples=1), cpu()).mutants}
    assert kinds == set(KINDS) - {"lanes", "barriers"}  # which only CUDA has
