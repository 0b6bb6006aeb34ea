"""verify notices wrong kernels and wrong host programs: every fault that is another program.

Each spec is made wrong in one place, and the runs that verify draws by default are tried on it, on the
processor and in the PTX that NVRTC emits. In a usual run some mutants of each kind are tried, the same ones
each time; SOLVERGEN_MUTATIONS=all tries every one (``nox -s mutations``), a number so many of each kind.
"""

from __future__ import annotations

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

PER_KIND = os.environ.get("SOLVERGEN_MUTATIONS", "2")

SPECS = (
    "specs/adam.yaml",
    "specs/sgd.yaml",
    "specs/lion.yaml",
    "specs/caffe_adadelta.yaml",
    "tests/support/specs/everything.yaml",
    "tests/support/specs/selections.yaml",
    "tests/support/specs/functions.yaml",
)

_MISSING = {name: why_unavailable(name) for name in ("cpu", "ptx")}
TARGETS = [
    pytest.param(name, marks=pytest.mark.skipif(reason is not None, reason=str(reason)))
    for name, reason in _MISSING.items()
]


def outcomes(spec: str, target: str) -> list[Outcome]:
    """What became of the mutants, tried by a process that forks."""
    command = [sys.executable, "-m", "tests.support.mutating", spec, target, PER_KIND]
    # Threads of other libraries wouldn't live on in the forked processes.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return [Outcome.from_json(json.loads(line)) for line in run.stdout.splitlines()]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("spec", SPECS, ids=[Path(spec).stem for spec in SPECS])
def test_every_fault_is_noticed(spec: str, target: str) -> None:
    found = outcomes(spec, target)
    score = Score.of(found, {o.mutant.key for o in found if reason_of(o.mutant) is not None})
    print(f"\n{Path(spec).stem} on {target}: {score.noticed} noticed, {len(score.survivors)} survived")
    for kind, *numbers in (
        ("kind", "noticed", "survived", "equivalent", "same code", "refused"),
        *score.rows(),
    ):
        print(f"  {kind:16}" + "".join(f"{number:>11}" for number in numbers))
    wrong = [f"{o.mutant}  ({o.how})" for o in found if o.verdict == "noticed" and reason_of(o.mutant)]
    assert not wrong, "said to compute the same, and doesn't:\n" + "\n".join(wrong)
    survivors = [f"{o.mutant}  {o.how}" for o in score.survivors]
    assert not survivors, f"{len(survivors)} faults that verify doesn't notice:\n" + "\n".join(survivors)
    assert score.noticed > 0


@pytest.mark.skipif(_MISSING["cpu"] is not None, reason=str(_MISSING["cpu"]))
def test_there_are_faults_of_every_kind() -> None:
    """On the two specs with most features, so that no kind is lost by a change of the templates."""
    with built_from(
        [ROOT / "specs" / "adam.yaml", ROOT / "tests/support/specs/everything.yaml"]
    ) as optimizers:
        kinds = set()
        for optimizer in optimizers.values():
            kinds |= {mutant.kind for mutant in Experiment(subject(optimizer, examples=1), cpu()).mutants}
    assert kinds == set(KINDS) - {"lanes"}  # which only CUDA has
