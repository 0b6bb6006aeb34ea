"""``solvergen solver``: what a solver's parameters mean, before anything is trained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from solvergen.cli import exit_codes
from solvergen.cli.console import print_json, print_table, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from solvergen.solver.choice import Choice
    from solvergen.solver.parameters.findings import Finding
    from solvergen.solver.parameters.model import SolverParameters
    from solvergen.solver.policies.base import Policy
    from solvergen.solver.policies.schedule import Schedule

app = typer.Typer(help="Look into a solver's parameters.", no_args_is_help=True, rich_markup_mode=None)

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Parameters of a solver: Caffe's prototxt, or YAML.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

_SAMPLES = 21
_DRAWN = 1001


@app.callback()
def _group() -> None:
    """Look into a solver's parameters."""


@app.command("show")
def show(file: File, as_json: Json = False) -> None:
    """Print the effective parameters, what optimizer and policy they mean, and what to know about them.

    Exits with 1 where Caffe would refuse them.
    """
    from solvergen.solver.parameters.findings import errors_of

    params = _read(file, as_json)
    findings = params.check()
    wrong = errors_of(findings)
    choice, policy = (None, None) if wrong else _meaning(params)
    if as_json:
        print_json(_as_data(params, findings, choice, policy))
    else:
        _print(params, choice, policy)
        _print_findings(findings)
        for warning in choice.warnings if choice is not None else ():
            print(f"warning: {warning}", file=sys.stderr)
    if wrong:
        raise typer.Exit(exit_codes.FINDINGS)


@app.command("lr")
def lr(
    file: File,
    as_json: Json = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="PICTURE", help="Draw the schedule to an .svg, .png or .pdf file."),
    ] = None,
    every: Annotated[
        int | None, typer.Option("--every", metavar="N", min=1, help="List every Nth iteration.")
    ] = None,
) -> None:
    """List the learning rate from the first iteration to the last: where it jumps, or some on its way."""
    from solvergen.solver.parameters.error import SolverParametersError
    from solvergen.solver.policies.schedule import schedule
    from solvergen.solver.policies.table import policy_of

    params = _read(file, as_json)
    try:
        policy = policy_of(params)
    except SolverParametersError as error:
        _refuse(error.findings, as_json)
    length = params.max_iter
    listed = schedule(policy, length, samples=_SAMPLES, every=every)
    if plot is not None:
        from solvergen.solver.policies.picture import draw_schedule

        draw_schedule(plot, schedule(policy, length, samples=_DRAWN), f"{file.name}: {policy.name}")
    if as_json:
        print_json(
            {
                "file": str(file),
                "policy": policy.name,
                "iterations": length,
                "rates": [[at, _number(rate)] for at, rate in listed.points],
                "warnings": _told(policy, listed),
            }
        )
        return
    print_table(
        ("iteration", "lr"),
        [(str(at), f"{rate:.6g}") for at, rate in listed.points],
        numbers=("iteration", "lr"),
    )
    for text in _told(policy, listed):
        print(f"warning: {text}", file=sys.stderr)


def _read(file: Path, as_json: bool) -> SolverParameters:
    """What the file says. Ends the command where it can't be read as parameters at all."""
    from solvergen.solver.parameters.error import SolverParametersError
    from solvergen.solver.parameters.model import SolverParameters

    try:
        return SolverParameters.read(file)
    except SolverParametersError as error:
        _refuse(error.findings, as_json)


def _refuse(findings: tuple[Finding, ...], as_json: bool) -> NoReturn:
    """Print what is wrong, and end the command."""
    if as_json:
        from solvergen.solver.parameters.report import finding_as_data

        print_json({"error": str(findings[0].sentence), "findings": list(map(finding_as_data, findings))})
    _print_findings(findings)
    raise typer.Exit(exit_codes.FINDINGS)


def _print_findings(findings: Iterable[Finding]) -> None:
    from solvergen.solver.parameters.report import explained

    for finding in findings:
        print(
            explained(finding).encode("utf-8", "surrogateescape").decode("utf-8", "replace"), file=sys.stderr
        )


def _meaning(params: SolverParameters) -> tuple[Choice, Policy]:
    from solvergen.solver.choice import chosen
    from solvergen.solver.policies.table import policy_of

    return chosen(params), policy_of(params)


def _print(params: SolverParameters, choice: Choice | None, policy: Policy | None) -> None:
    from solvergen.solver.parameters.report import described_source, described_state, effective

    print("\n".join(map(visible, effective(params))))
    if choice is None or policy is None:
        return
    print(f"\noptimizer: {_optimizer(choice)}")
    print(f"policy: {policy.name}: {_course(params, policy)}")
    print(f"backend: {choice.backend}")
    print(f"train: {described_source(params.train_net_source)}, {described_state(params.train_net_state)}")
    for i, test in enumerate(params.test_net_sources):
        print(
            f"test {i}: {described_source(test.source)}, {described_state(test.state)}, "
            f"{test.iterations} iterations"
        )


def _optimizer(choice: Choice) -> str:
    from solvergen.solver.parameters.kinds import shortest

    given = [f"{name}={shortest(value)}" for name, value in choice.hyperparameters.items()]
    given += [f"{name}={value}" for name, value in choice.options.items()]
    if choice.wrappers is not None:
        given.append(f"wrappers={choice.wrappers!r}")
    return f"{choice.optimizer_class.__name__}({', '.join(given)})"


def _course(params: SolverParameters, policy: Policy) -> str:
    """The first rates and the last, in one line."""
    from solvergen.solver.policies.schedule import schedule

    points = schedule(policy, params.max_iter, samples=5).points
    shown = points if len(points) <= 6 else (*points[:4], None, points[-1])
    return ", ".join("..." if point is None else f"{point[1]:.6g} at {point[0]}" for point in shown)


def _as_data(
    params: SolverParameters, findings: list[Finding], choice: Choice | None, policy: Policy | None
) -> dict[str, Any]:
    from dataclasses import asdict

    from solvergen.solver.parameters.report import as_data, finding_as_data

    source = params.train_net_source
    return {
        "file": str(params.source),
        "parameters": as_data(params),
        "given": list(params.given),
        "optimizer": None
        if choice is None
        else {
            "name": choice.optimizer_class.__name__,
            "hyperparameters": dict(choice.hyperparameters),
            "options": dict(choice.options),
            "wrappers": None if choice.wrappers is None else choice.wrappers.get_config(),
        },
        "policy": None if policy is None else policy.name,
        "backend": None if choice is None else choice.backend,
        "train": None if source is None else {**asdict(source), "state": asdict(params.train_net_state)},
        "tests": [asdict(test) for test in params.test_net_sources],
        "findings": [
            *map(finding_as_data, findings),
            *({"severity": "warning", "message": text} for text in (choice.warnings if choice else ())),
        ],
    }


def _told(policy: Policy, listed: Schedule) -> list[str]:
    told = list(listed.notices)
    if policy.name == "plateau":
        told.append(
            "lr_policy 'plateau' lowers the rate by what is measured: listed is a run without plateaus"
        )
    return told


def _number(value: float) -> float | str:
    return value if value - value == 0 else str(value)
