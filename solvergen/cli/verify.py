"""``solvergen verify``: do all backends compute the same bits?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from solvergen.cli import exit_codes, signals, specs
from solvergen.cli.console import print_json, print_table, progress
from solvergen.cli.optimizers import optimizers, selected
from solvergen.cli.replay import replay
from solvergen.cli.static import static

if TYPE_CHECKING:
    from solvergen.verify import Progress, Report

DEFAULT_BACKENDS = "numpy,cpu,ptx,cuda"
HEADS = ("optimizer", "backend", "outcome", "examples", "seconds", "detail")


def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAMES", help="Optimizers to verify. Default: all", show_default=False),
    ] = None,
    folder: specs.Folder = None,
    backends: Annotated[
        str | None,
        typer.Option(
            "--backends",
            metavar="LIST",
            help=f"Backends, separated by commas. Default: {DEFAULT_BACKENDS}, as far as they work here.",
            show_default=False,
        ),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(
            "--examples",
            "-n",
            metavar="NUMBER",
            min=1,
            help="Runs to draw for each. Default: 100",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="NUMBER", help="Another seed draws other runs. Default: 0", show_default=False
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="NUMBER",
            min=1,
            help="Processes that share the optimizers. Default: as many as there are cores to use.",
            show_default=False,
        ),
    ] = None,
    replay_file: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="FILE",
            help="Run the finding again that an earlier run saved in FILE.",
            parser=specs.folder_or_file,
            show_default=False,
        ),
    ] = None,
    replays: Annotated[
        Path | None,
        typer.Option(
            "--replay-dir",
            metavar="DIR",
            help="Folder in which findings are saved. Default: $SOLVERGEN_REPLAY_DIR, else one beside "
            "the compiled kernels.",
            parser=specs.folder_or_file,
            show_default=False,
        ),
    ] = None,
    is_wrapped: Annotated[
        bool, typer.Option("--wrapped", help="Verify the optimizers with wrappers (clipping, averages ...).")
    ] = False,
    static_checks: Annotated[
        bool,
        typer.Option("--static", help="Inspect the compiled kernels instead, without running them."),
    ] = False,
    architectures: Annotated[
        str | None,
        typer.Option(
            "--arch",
            metavar="LIST",
            help="With --static: compute capabilities. Default: 75,80,90,100,120",
            show_default=False,
        ),
    ] = None,
    dtypes: Annotated[
        str | None,
        typer.Option(
            "--dtypes",
            metavar="LIST",
            help="With --static: types, such as float32,bfloat16/float32 (parameter/gradient), or all for "
            "all mixes. Default: the four in which parameter and gradient have the same type",
            show_default=False,
        ),
    ] = None,
    bandwidth: Annotated[
        float | None,
        typer.Option(
            "--bandwidth",
            metavar="GB/S",
            min=0.001,
            help="With --static: memory bandwidth, to estimate times. Default: that of one card of each "
            "capability",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check that every backend computes the same bits.

    Draws whole training runs (shapes, values, dtypes, hyperparameters, options, missing gradients), runs
    them on each backend and compares parameters and state with the NumPy reference, bit by bit, after each
    step. Exits with 1 if any differ, or if a backend given by --backends can't run here.
    """
    from solvergen.runtime.native import threads
    from solvergen.verify import verify_all, wrapped_of

    drawing = (("--examples", examples), ("--seed", seed), ("--replay-dir", replays), ("--jobs", jobs))
    if static_checks:
        _refuse((("--replay", replay_file), *drawing), "goes with runs, and --static runs nothing")
        with optimizers(folder, wrap=is_wrapped) as found:
            chosen = selected(found, names or [], specs.folder_or_shipped(folder))
            static(
                wrapped_of(chosen) if is_wrapped else chosen,
                parts=() if backends is None else _backends(backends),
                architectures=architectures,
                dtypes=dtypes,
                bandwidth=bandwidth,
                as_json=as_json,
            )
        return
    looking = (("--arch", architectures), ("--dtypes", dtypes), ("--bandwidth", bandwidth))
    _refuse(looking, "goes with --static")
    asked = _backends(DEFAULT_BACKENDS if backends is None else backends)
    if replay_file is not None:
        if names:
            raise typer.BadParameter("a replay file says itself which optimizer it is about")
        _refuse(drawing, "goes with runs that are drawn, and --replay has one")
        _refuse((("--wrapped", is_wrapped or None),), "a replay file says itself what it is about")
        replay(replay_file, folder, () if backends is None else asked, as_json)
        return
    with optimizers(folder, wrap=is_wrapped) as found, progress("verifying") as bar:
        chosen = selected(found, names or [], specs.folder_or_shipped(folder))
        if is_wrapped:
            chosen = wrapped_of(chosen)
        done: dict[int, int] = {}  # examples of each row; one that is made counts as all of them

        def tell(at: Progress) -> None:
            stop_if_asked()
            now = at.done if at.row is None else at.examples
            done[at.position] = max(now, done.get(at.position, 0))
            bar(f"{at.optimizer} on {at.backend}", sum(done.values()), at.total * at.examples)

        with signals.held() as stop_if_asked:
            report = verify_all(
                chosen,
                asked,
                examples=100 if examples is None else examples,
                seed=seed or 0,
                progress=tell,
                replays=replays,
                jobs=threads.cores() if jobs is None else jobs,
            )
    if as_json:
        print_json(report.as_json())
    else:
        _print(report, asked)
    if not report.ok or (backends is not None and not report.complete):
        raise typer.Exit(exit_codes.FINDINGS)


def _refuse(options: Sequence[tuple[str, object]], reason: str) -> None:
    """A usage error if one of these options was given."""
    for option, given in options:
        if given is not None:
            raise typer.BadParameter(reason, param_hint=f"'{option}'")


def _backends(given: str) -> list[str]:
    """The backends that a list on the command line names, each once."""
    from solvergen.verify import BACKENDS

    asked = list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if not asked:
        raise typer.BadParameter(
            f"names no backend; there are {', '.join(BACKENDS)}", param_hint="'--backends'"
        )
    for name in asked:
        if name not in BACKENDS:
            raise specs.unknown("backend", name, BACKENDS, hint="'--backends'")
    return asked


def _print(report: Report, backends: Sequence[str]) -> None:
    from solvergen.verify.replaying.reproducer import how_to_reproduce

    for row in report.failures:
        finding: object = row.detail if row.disagreement is None else row.disagreement
        print(f"{row.optimizer} on {row.backend}:\n{finding}\n", file=sys.stderr)
        if row.disagreement is not None:
            print(f"{how_to_reproduce(row.disagreement, row.replay)}\n", file=sys.stderr)
    if not sys.stdout.isatty():
        rows = [
            (
                r.optimizer,
                r.backend,
                r.outcome,
                str(r.examples),
                f"{r.seconds:.2f}",
                " ".join(r.detail.split()),
            )
            for r in report.rows
        ]
        print_table(HEADS, rows)
        return
    cells: dict[str, dict[str, str]] = {}
    reasons: dict[str, str] = {}
    for row in report.rows:
        cell: str = row.outcome
        if row.outcome == "passed":
            cell = f"same bits, {row.examples} runs"
        elif row.outcome == "not run":
            reasons[row.backend] = row.detail
        cells.setdefault(row.optimizer, {})[row.backend] = cell
    print_table(
        ("optimizer", *backends), [(name, *(row[b] for b in backends)) for name, row in cells.items()]
    )
    for backend, reason in reasons.items():
        print(f"{backend} was not run: {reason}")
