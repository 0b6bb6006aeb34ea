"""Runs mutants in a process of its own, which has one thread: a line of JSON for each outcome.

    python -m tests.support.mutating SPEC TARGETS [PER_KIND [KIND...]]

SPEC is the path of a spec. TARGETS: cpu, ptx, or cuda, which is the CUDA text compiled by g++ for the host.
PER_KIND mutants of each kind, or of each KIND, are run, the same ones every time, and none that is known to
compute the same; all without it. Faults in text that all kernels share are left to the specs that show them
best.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path

from solvergen.verify.mutations import KINDS
from tests.property.equivalent_mutants import reason_of

SHARED = ("conversion", "lanes", "functions")
"""Kinds of faults in text that is the same in every kernel."""

ELSEWHERE = tuple(kind for kind in KINDS if kind not in SHARED)

ROUNDING = ("grouping", "contraction", "flush", "ulp", "flags")
"""Kinds of faults that change last digits, which terms damped by 1e-6 and 1e-9 don't show."""

KINDS_IN: Mapping[str, tuple[str, ...]] = {
    "everything": tuple(kind for kind in ELSEWHERE if kind not in ROUNDING),
    "selections": ("operator", "variable", "load", "store", "call", "branch", "buffer", "ulp", *SHARED),
    "functions": ("functions",),
    "reductions": ("reduction", "stage", "barriers", "order", "tables", "float32 scalar", "buffer", "option"),
}
"""What is mutated in a spec, where it isn't ``ELSEWHERE``."""

USUALLY: Mapping[str, tuple[str, ...]] = {
    "lamb": ("reduction", "order", "flush"),
    "sm3": ("lines", "reduction", "order", "tables"),
}
"""What is mutated in a usual run of specs whose kernels take long to compile: what others don't have."""


def host_cuda():
    """The CUDA text compiled by g++ for the host, kernels compared by the PTX that NVRTC makes of them."""
    from solvergen.runtime.cuda import nvrtc
    from solvergen.verify.mutations import Target
    from solvergen.verify.mutations.steps import OF_STEPS
    from solvergen.verify.mutations.tables import CHUNKS_ON_CUDA, ON_CUDA
    from tests.support.cuda_host import HostCudaBackend

    compiler = nvrtc.load()
    return Target(
        "cuda",
        "kernel.cu",
        HostCudaBackend,
        lambda text, defines: compiler.compile(text, "compute_90", defines).image,
        tables=ON_CUDA,
        staged_tables=(*CHUNKS_ON_CUDA, *OF_STEPS),
    )


def main(spec: str, targets: str, per_kind: str = "all", *kinds: str) -> None:
    from solvergen.verify import built_from
    from solvergen.verify.mutations import Experiment, cpu, ptx, sample, subject

    name = Path(spec).stem
    with built_from([spec]) as optimizers:
        mutated = subject(optimizers[name])
        for target in targets.split(","):
            experiment = Experiment(mutated, {"cpu": cpu, "ptx": ptx, "cuda": host_cuda}[target]())
            count = None if per_kind == "all" else int(per_kind)
            usual = USUALLY.get(name) if count is not None else None
            wanted = kinds or usual or KINDS_IN.get(name, ELSEWHERE)
            mutants = [
                mutant
                for mutant in experiment.mutants
                if mutant.kind in wanted and (count is None or reason_of(mutant, name) is None)
            ]
            shared = [mutant for mutant in mutants if mutant.kind in SHARED]
            own = [mutant for mutant in mutants if mutant.kind not in SHARED]
            # What all kernels share is tried here for all of them.
            chosen = [*sample(own, count), *sample(shared, count and 4 * count)]
            for outcome in experiment.run(chosen, jobs=len(os.sched_getaffinity(0))):
                print(json.dumps({"target": target, **outcome.as_json()}), flush=True)
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{sum(r.ru_utime + r.ru_stime for r in spent):.1f} seconds of processor time", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
