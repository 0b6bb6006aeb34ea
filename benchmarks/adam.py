"""float32 Adam as a user calls it, beside this machine's traffic limit and torch's fused Adam.

    python benchmarks/adam.py [--json FILE]

Two cases: one tensor of 32M elements, and 300 tensors of 3,333; new gradient arrays each step. The limit
is a loop in C that reads and writes the arrays that Adam reads and writes, with next to no arithmetic,
run by the same threads over the same chunks. All are interleaved in one run, since only ratios within a
run mean anything: another program on the machine slows down all of them alike. torch is left out if it
isn't installed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from generated import Adam  # noqa: E402
from solvergen.runtime.backends.base import LaunchPlan, TensorPlan  # noqa: E402
from solvergen.runtime.backends.cpu import CpuBackend, CpuLauncher  # noqa: E402
from solvergen.runtime.native.build import load  # noqa: E402
from solvergen.runtime.native.compiler import find_compiler  # noqa: E402
from solvergen.runtime.native.processor import processor  # noqa: E402
from solvergen.runtime.native.threads import thread_count  # noqa: E402
from solvergen.runtime.spans import Spans  # noqa: E402

TARGET_LIMIT = 1.15
TARGET_TORCH = 0.5


@dataclass(frozen=True)
class Case:
    """``tensors`` arrays of ``size`` elements; ``rounds`` interleaved rounds of ``steps`` steps each."""

    name: str
    tensors: int
    size: int
    rounds: int
    steps: int


CASES = (Case("1 x 32M", 1, 32 << 20, 15, 1), Case("300 x 3,333", 300, 3333, 60, 5))


class Contender:
    """Something that is timed: ``step(gradients)`` is, ``receive(gradients)`` before it is not."""

    def __init__(
        self, step: Callable[[list[Any]], object], receive: Callable[[list[Any]], None] | None = None
    ) -> None:
        self.step = step
        self.receive = receive
        self.rounds: list[list[float]] = []


def arrays(case: Case, seed: int) -> list[Any]:
    """Standard normal numbers, another set for each seed."""
    random = np.random.default_rng(seed)
    return [random.standard_normal(case.size, dtype=np.float32) for _ in range(case.tensors)]


def solvergen_adam(case: Case) -> Contender:
    """The shipped optimizer, by its public interface."""
    return Contender(Adam(arrays(case, 1), lr=1e-3, backend="cpu").step)


def traffic_limit(case: Case) -> Contender:
    """The loop without arithmetic, its arrays placed as the optimizer's. Its gradients' addresses are
    read before the clock starts."""
    library = load({"traffic.c": Path(__file__).with_name("traffic.c").read_text(encoding="utf-8")})
    definition, backend = Adam.definition, CpuBackend()
    options = dict.fromkeys(definition.option_names, False)
    tensors = tuple(
        TensorPlan(
            str(i), param, param.shape, (backend.allocate(param, 0.0), backend.allocate(param, 0.0), None)
        )
        for i, param in enumerate(arrays(case, 2))
    )
    owned = Spans.over([a for t in tensors for a in (t.param, *t.states) if a is not None], backend.span_of)
    launcher = CpuLauncher(LaunchPlan(definition, options, "float32", "float32", tensors, owned), library)
    table = np.zeros((1, len(definition.table)), np.float32)
    rows = np.zeros(case.tensors, np.int32)

    def receive(gradients: list[Any]) -> None:
        if not launcher.bind(gradients):
            raise RuntimeError("the gradients don't fit")

    return Contender(lambda _: launcher.launch(table, rows), receive)


def torch_adam(case: Case, threads: int) -> Contender | None:
    """torch.optim.Adam(fused=True), or None if torch isn't installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    params = [torch.nn.Parameter(torch.from_numpy(array)) for array in arrays(case, 3)]
    optimizer = torch.optim.Adam(params, lr=1e-3, fused=True)

    def receive(gradients: list[Any]) -> None:
        for param, gradient in zip(params, gradients, strict=True):
            param.grad = torch.from_numpy(gradient)

    return Contender(lambda _: optimizer.step(), receive)


def run(case: Case, contenders: dict[str, Contender], rounds: int) -> None:
    """Fill in the contenders' times. The order turns from round to round."""
    source = arrays(case, 4)
    names = list(contenders)
    for number in range(-2, rounds):  # the first two rounds warm up
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            contender, times = contenders[name], []
            for _ in range(case.steps):
                gradients = [array.copy() for array in source]
                if contender.receive is not None:
                    contender.receive(gradients)
                begin = time.perf_counter()
                contender.step(gradients)
                times.append(time.perf_counter() - begin)
            if number >= 0:
                contender.rounds.append(times)


def result(case: Case, contenders: dict[str, Contender]) -> dict[str, Any]:
    """Medians, and ratios as the median over rounds, so that a disturbance of some rounds doesn't count."""

    def ratio(name: str, base: str) -> float:
        pairs = zip(contenders[name].rounds, contenders[base].rounds, strict=True)
        return statistics.median(statistics.median(a) / statistics.median(b) for a, b in pairs)

    ours, limit, rival = "solvergen adam", "traffic limit", "torch adam, fused"
    ratios = {"to the limit": ratio(ours, limit)}
    if rival in contenders:
        ratios["to torch"] = ratio(ours, rival)
        ratios["of torch to the limit"] = ratio(rival, limit)
    times = {name: sorted(t for r in c.rounds for t in r) for name, c in contenders.items()}
    return {
        "case": asdict(case),
        "median_ms": {name: 1e3 * statistics.median(t) for name, t in times.items()},
        "fastest_ms": {name: 1e3 * t[0] for name, t in times.items()},
        "ratios": ratios,
    }


def conditions(threads: int) -> dict[str, str]:
    """Where and with what this ran."""
    model = [line.partition(":")[2].strip() for line in processor().splitlines() if "model name" in line]
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    if "torch" in sys.modules:
        versions["torch"] = sys.modules["torch"].__version__
    return {
        "processor": (model or [platform.machine()])[0],
        "threads": str(threads),
        "load": f"{os.getloadavg()[0]:.1f} before the run",
        "compiler": find_compiler().version.splitlines()[0],
        **versions,
    }


def show(results: Sequence[dict[str, Any]], about: dict[str, str]) -> None:
    """A plain table."""
    print("; ".join(f"{key} {value}" for key, value in about.items()))
    for each in results:
        print(f"\n{each['case']['name']:<24}{'median ms':>12}{'fastest ms':>12}")
        for name, median in each["median_ms"].items():
            print(f"  {name:<22}{median:>12.3f}{each['fastest_ms'][name]:>12.3f}")
        for name, value in each["ratios"].items():
            print(f"  ratio {name:<22}{value:>6.2f}")
    ratios = [each["ratios"] for each in results]
    print(
        f"\n{results[0]['case']['name']}: at most {TARGET_LIMIT} x the limit: {ratios[0]['to the limit']:.2f}"
    )
    if "to torch" in ratios[-1]:
        print(f"{results[-1]['case']['name']}: at most {TARGET_TORCH} x torch: {ratios[-1]['to torch']:.2f}")


def main() -> int:
    """Run all cases."""
    parser = argparse.ArgumentParser(description="float32 Adam beside the traffic limit and torch")
    parser.add_argument("--json", type=Path, help="also write everything to this file")
    parser.add_argument(
        "--rounds", type=float, default=1.0, help="this many times the usual number of rounds"
    )
    arguments = parser.parse_args()
    threads = thread_count()
    load_before = conditions(threads)
    results = []
    for case in CASES:
        contenders = {"traffic limit": traffic_limit(case), "solvergen adam": solvergen_adam(case)}
        torch = torch_adam(case, threads)
        if torch is not None:
            contenders["torch adam, fused"] = torch
        run(case, contenders, max(3, round(case.rounds * arguments.rounds)))
        results.append(result(case, contenders))
    about = {**conditions(threads), "load": load_before["load"]}
    show(results, about)
    if arguments.json:
        arguments.json.write_text(json.dumps({"conditions": about, "results": results}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
