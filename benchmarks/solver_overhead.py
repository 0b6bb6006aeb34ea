"""What the Solver adds to an iteration, beside the passes of the net and the optimizer's step.

    python benchmarks/solver_overhead.py [--iterations 2000] [--log]

The net does nothing, so that an iteration is the Solver's own work and the step; the same step is then timed
alone. With --log every event is written as a line of JSON-like text to nowhere, as a run with a log does.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time

import numpy as np

from solvergen.solver import SolverParameters
from solvergen.solver.net.protocol import Blob, LayerBlobs, Output
from solvergen.solver.training.events import Event
from solvergen.solver.training.solver import Solver

LIMIT = 100e-6
REPEATS = 7


class Nothing:
    """A net of eight parameters whose passes cost nothing."""

    name = "nothing"

    def __init__(self) -> None:
        self.learnable = tuple(
            Blob(f"p{i}", np.zeros(100, np.float32), np.ones(100, np.float32), layer=f"l{i}")
            for i in range(8)
        )
        self.layers = tuple(LayerBlobs(b.layer, "InnerProduct", (b,)) for b in self.learnable)
        self._outputs = (Output("loss", np.zeros((), np.float32), 1.0),)

    def clear_diffs(self) -> None:
        """Nothing."""

    def forward(self) -> tuple[Output, ...]:
        """Nothing."""
        return self._outputs

    def forward_backward(self) -> float:
        """Nothing."""
        return 0.0

    def outputs(self) -> tuple[Output, ...]:
        """A loss."""
        return self._outputs


def per_call(work, count: int) -> float:
    """The median over repeats of the seconds that ``work(count)`` takes for each of ``count``."""
    work(10)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work(count)
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times)


def main() -> int:
    """Measure, print, and say by the exit status whether the limit holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--log", action="store_true")
    parser.add_argument("--backend", default="cpu")
    args = parser.parse_args()
    nowhere = io.StringIO()

    def listen(event: Event) -> None:
        nowhere.seek(0)
        nowhere.write(repr(event))

    params = SolverParameters(
        type="Adam", base_lr=0.01, lr_policy="inv", gamma=1e-4, power=0.75, momentum=0.9, display=100,
        average_loss=20, solver_mode="CPU",
    )  # fmt: skip
    solver = Solver(params, Nothing(), backend=args.backend, log=listen if args.log else None)
    gradients = {blob.name: blob.diff for blob in solver.net.learnable}
    rate = [0.01]

    def steps(count: int) -> None:
        for _ in range(count):
            rate[0] *= 1 - 1e-9  # "inv" has another rate each time too
            solver.optimizer.set(lr=rate[0])
            solver.optimizer.step(gradients)

    whole = per_call(solver.step, args.iterations)
    step = per_call(steps, args.iterations)
    overhead = whole - step
    print(f"iteration {whole * 1e6:8.1f} microseconds")
    print(f"step      {step * 1e6:8.1f}")
    print(f"overhead  {overhead * 1e6:8.1f}  (limit {LIMIT * 1e6:.0f})")
    return 0 if overhead < LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())
