"""``solvergen verify --static``: what can be said of compiled kernels without running them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from solvergen.cli import exit_codes, signals, specs
from solvergen.cli.console import print_json, print_table, progress

if TYPE_CHECKING:
    from solvergen.verify.collect import Optimizers
    from solvergen.verify.static import StaticReport

CUDA_HEADS = (
    "optimizer",
    "options",
    "dtypes",
    "target",
    "registers",
    "spills",
    "shared",
    "width",
    "loads",
    "stores",
    "occupancy",
    "in flight",
    "bytes",
    "ms",
    "outcome",
)
CPU_HEADS = (
    "optimizer",
    "options",
    "dtypes",
    "target",
    "vector operations",
    "contracted",
    "loads",
    "stores",
    "outcome",
)
_NUMBERS = (*CUDA_HEADS[4:14], *CPU_HEADS[4:8])


def static(
    optimizers: Optimizers,
    *,
    parts: Sequence[str],
    architectures: str | None,
    dtypes: str | None,
    bandwidth: float | None,
    as_json: bool,
) -> None:
    """Print a table of kernels and, before it on stderr, what is wrong with them.

    ``architectures`` and ``dtypes`` as they were given on the command line. Exits with 1 if anything is
    wrong, or if what was asked for can't be looked at here.
    """
    from solvergen.verify.static import PARTS, TARGETS, static_report

    for part in parts:
        if part not in PARTS:
            raise typer.BadParameter(
                f"there are static checks of {' and '.join(PARTS)}, not of {part}", param_hint="'--backends'"
            )
    if bandwidth is not None and not math.isfinite(bandwidth):
        raise typer.BadParameter("isn't a number of GB/s", param_hint="'--bandwidth'")
    capabilities = TARGETS if architectures is None else _capabilities(architectures)
    pairs = _pairs(dtypes)
    with progress("looking at kernels") as bar, signals.held() as stop_if_asked:

        def tell(name: str, done: int, total: int) -> None:
            stop_if_asked()
            bar(name, done, total)

        report = static_report(
            optimizers,
            capabilities=capabilities,
            dtypes=pairs,
            parts=parts or PARTS,
            bandwidth=bandwidth,
            progress=tell,
        )
    if as_json:
        print_json(report.as_json())
    else:
        _print(report)
    if not report.ok or not report.complete:
        raise typer.Exit(exit_codes.FINDINGS)


def _capabilities(given: str) -> list[int]:
    from solvergen.verify.static.capabilities import CAPABILITIES

    numbers = []
    for text in given.split(","):
        number = text.strip().removeprefix("sm_").replace(".", "")
        if number not in map(str, CAPABILITIES):
            known = ", ".join(map(str, CAPABILITIES))
            raise typer.BadParameter(
                f"no compute capability {text.strip()!r}; there are {known}", param_hint="'--arch'"
            )
        numbers.append(int(number))
    return numbers


def _pairs(given: str | None) -> Sequence[tuple[str, str]]:
    from solvergen.verify.dtypes import PAIRS

    names = {param if param == grad else f"{param}/{grad}": (param, grad) for param, grad in PAIRS}
    if given is None:
        return [pair for pair in PAIRS if pair[0] == pair[1]]
    if given.strip() == "all":
        return PAIRS
    pairs = []
    for text in given.split(","):
        param, _, grad = text.strip().partition("/")
        name = param if grad in ("", param) else f"{param}/{grad}"
        if name not in names:
            raise specs.unknown("mix of dtypes", text.strip(), names, hint="'--dtypes'")
        pairs.append(names[name])
    return list(dict.fromkeys(pairs))


def _print(report: StaticReport) -> None:
    from solvergen.verify.static.cuda import Measured
    from solvergen.verify.static.report import PARAMETERS

    for row in report.failures:
        found = "\n".join(str(finding) for finding in row.findings)
        print(f"{row}:\n{found}\n", file=sys.stderr)
    cuda: list[tuple[str, ...]] = []
    cpu: list[tuple[str, ...]] = []
    for row in report.rows:
        m = row.measured
        target = f"{row.target} {row.kernel.removeprefix('sg_')}".rstrip()
        start = (row.optimizer, row.chosen, row.dtypes, target)
        outcome = ", ".join(dict.fromkeys(finding.check for finding in row.findings)) or "passed"
        if isinstance(m, Measured):
            cuda.append(
                (
                    *start,
                    str(m.registers),
                    str(m.spills),
                    str(m.shared),
                    str(m.width),
                    f"{m.loads:g}/{m.loads_needed}",
                    f"{m.stores:g}/{m.stores_needed}",
                    f"{m.occupancy.share:.0%}",
                    f"{m.in_flight // 1024} KB",
                    str(m.nbytes),
                    f"{m.milliseconds(PARAMETERS, row.bandwidth):.2f}",
                    outcome,
                )
            )
        elif m is not None:
            traffic = (f"{m.loads}/{m.loads_needed}", f"{m.stores}/{m.stores_needed}")
            cpu.append((*start, str(m.packed), str(m.fused), *traffic, outcome))
        else:
            (cpu if row.target == "cpu" else cuda).append(
                (*start, *[""] * (4 if row.target == "cpu" else 10), outcome)
            )
    if cuda:
        print_table(CUDA_HEADS, cuda, numbers=_NUMBERS)
        if sys.stdout.isatty():
            many = f"{PARAMETERS / 1e9:g}e9 parameters"
            print(f"bytes: moved for each parameter. ms: for {many} at {_bandwidths(report)}")
    if cuda and cpu:
        print()
    if cpu:
        print_table(CPU_HEADS, cpu, numbers=_NUMBERS)
    for part, reason in report.not_run.items():
        print(f"the static checks of {part} were not done: {reason}", file=sys.stderr)


def _bandwidths(report: StaticReport) -> str:
    """What times were computed with."""
    used = dict.fromkeys((row.target, row.card, row.bandwidth) for row in report.rows if row.bandwidth)
    cards = [f"{card} {bandwidth:g} ({target})" for target, card, bandwidth in used if card]
    if cards:
        return f"the bandwidth in GB/s of {', '.join(cards)}"
    return f"{next(iter(used))[2]:g} GB/s"
