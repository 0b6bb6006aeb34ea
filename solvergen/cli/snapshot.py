"""``solvergen snapshot``: looking into snapshots, comparing and converting them."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from solvergen.cli import exit_codes
from solvergen.cli.console import print_json, print_table, visible, visible_lines

if TYPE_CHECKING:
    from solvergen.solver.choice import Chosen
    from solvergen.solver.files.contents import Contents
    from solvergen.solver.files.request import TorchFiles

app = typer.Typer(
    help="Look into snapshots, compare and convert them.", no_args_is_help=True, rich_markup_mode=None
)

_CAFFES_NAME = re.compile(r"\.(caffemodel|solverstate)(\.h5)?$", re.IGNORECASE)
_ENDINGS = ".caffemodel, .solverstate, both with .h5, .safetensors, .h5, .pt, .pth"

SolverFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help=f"Model, solver's state or snapshot ({_ENDINGS}).", show_default=False
    ),
]


@app.callback()
def _group() -> None:
    """Look into snapshots, compare and convert them."""


@app.command("show")
def show(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Snapshot (.h5, .hdf5 or .safetensors).", show_default=False),
    ],
) -> None:
    """Verify an optimizer's snapshot and print what it holds, as JSON."""
    from solvergen.errors import SnapshotError
    from solvergen.runtime import snapshots
    from solvergen.solver.files.file_names import is_of_torch

    os.stat(file)  # a file that isn't there has no other fault
    caffes = _CAFFES_NAME.search(file.name)
    looks = "`solvergen snapshot inspect` looks into it"
    if is_of_torch(file.name) or (caffes is not None and caffes[2] is None):
        whose = "torch's" if caffes is None else "Caffe's"
        raise SnapshotError(f"{file}: by its name one of {whose} files, not an optimizer's snapshot: {looks}")
    try:
        described = snapshots.describe(file)
    except SnapshotError as error:
        if caffes is None:
            raise
        raise SnapshotError(f"{error}; by its name this is a file of Caffe's: {looks}") from error
    print_json(described)


@app.command("inspect")
def inspect(
    file: SolverFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Look into models and solver states, Caffe's and the Solver's own, snapshots, and files of torch's."""
    from solvergen.solver.files.contents import described

    with _warned():
        found = described(_contents(file))
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if name != "arrays":
            print(visible(f"{name}: {_text(value)}"))
    heads = ("array", "shape", "dtype", "min", "max", "rms", "nonfinite")
    rows = [
        (
            array["name"],
            "x".join(map(str, array["shape"])) or "one number",
            array["dtype"],
            *("" if array[key] is None else f"{array[key]:.6g}" for key in ("min", "max", "rms")),
            str(array["nonfinite"]),
        )
        for array in found["arrays"]
    ]
    if rows:
        print_table(heads, rows, numbers=("min", "max", "rms", "nonfinite"))


@app.command("diff")
def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help=f"A file ({_ENDINGS}).", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other one.", show_default=False)],
    rtol: Annotated[float, typer.Option(help="How far numbers may be apart, relative to B's.", min=0)] = 0.0,
    atol: Annotated[float, typer.Option(help="How far numbers may be apart.", min=0)] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Compare two files of one kind, whatever their formats; exit code 1 if anything differs."""
    from solvergen.solver.files.contents import differences

    with _warned():
        found = list(differences(_contents(a), _contents(b), rtol=rtol, atol=atol))
    if as_json:
        print_json({"a": str(a), "b": str(b), "differences": found})
    else:
        for line in found:
            print(visible(line))
    if found:
        raise typer.Exit(exit_codes.FINDINGS)


@app.command("convert")
def convert(
    source: Annotated[Path, typer.Argument(metavar="FILE", help=f"A file ({_ENDINGS}).", show_default=False)],
    target: Annotated[
        Path,
        typer.Argument(metavar="TARGET", help="What to write; its ending is the format.", show_default=False),
    ],
    before: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SPEC",
            help="The optimizer whose state it is, such as caffe_sgd.",
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="SPEC",
            help="The optimizer to convert the state for, such as sgd.",
            show_default=False,
        ),
    ] = None,
    lr: Annotated[
        str | None,
        typer.Option(
            metavar="RATE[,RATE...]",
            help="Learning rate of the last steps, including lr_mult; one rate, or one for each parameter.",
            show_default=False,
        ),
    ] = None,
    momentum: Annotated[
        float | None,
        typer.Option(help="Momentum (beta1), to convert between sums and means.", show_default=False),
    ] = None,
    start_missing: Annotated[
        bool, typer.Option("--start-missing", help="Start with zeros where a state can't be derived.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORM",
            help="What TARGET is: solver, optimizer (for Optimizer.load) or torch (a state_dict). Default: "
            "torch if it ends in .pt or .pth, else solver.",
            show_default=False,
        ),
    ] = None,
    solver: Annotated[
        Path | None,
        typer.Option(
            "--solver",
            metavar="FILE",
            help="The solver file that gives rule and hyperparameters, if FILE doesn't.",
            show_default=False,
        ),
    ] = None,
    iteration: Annotated[
        int | None,
        typer.Option(
            "--iter",
            metavar="N",
            min=0,
            max=2**31 - 1,
            help="The number of updates so far, if a torch file doesn't say.",
            show_default=False,
        ),
    ] = None,
    shared: Annotated[
        list[str] | None,
        typer.Option(
            "--shared",
            metavar="LAYER/N=LAYER/N",
            help="The owner of a blob that layers share, if Caffe's file doesn't say; may be repeated.",
            show_default=False,
        ),
    ] = None,
    alone: Annotated[bool, typer.Option("--alone", help="Don't convert the state's model.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write a model, or a state with its model, in another format or another rule's conventions.

    Files may be the Solver's, in any of its formats, snapshots of Optimizer.save, and torch's state_dicts.
    """
    from solvergen.solver.files.converting import convert as written
    from solvergen.solver.files.file_names import is_of_torch
    from solvergen.solver.files.request import Conventions, Request
    from solvergen.solver.files.sharing import pairs_of

    if after is None and (lr is not None or momentum is not None or start_missing):
        raise typer.BadParameter("--lr, --momentum and --start-missing belong to --to")
    from_torch, to_torch = is_of_torch(source.name), is_of_torch(target.name)
    if before is not None and after is None and form in (None, "solver") and not (from_torch or to_torch):
        raise typer.BadParameter("--from belongs to --to, to files of torch's, or to --as optimizer")
    if solver is not None and form in (None, "solver") and not to_torch:
        raise typer.BadParameter("--solver belongs to --as optimizer and to targets of torch's")
    if iteration is not None and not from_torch:
        raise typer.BadParameter("--iter is for sources of torch's: others count")
    if form not in (None, "solver", "optimizer", "torch"):
        raise typer.BadParameter(f"{form!r}: solver, optimizer or torch", param_hint="'--as'")
    conventions = None
    if after is not None:
        conventions = Conventions(before, after, _rates(lr), momentum, start_missing)
    wanted = Request(
        form=form,  # type: ignore[arg-type]
        conventions=conventions,
        alone=alone,
        force=force,
        spec=before,
        chosen=None if solver is None else _chosen(solver),
        iteration=iteration,
        shared=pairs_of(shared or ()),
        torch=_torch_files,
    )
    with _warned():
        said = written(str(source), str(target), wanted)
    for line in said:
        print(visible(line))


def _contents(file: Path) -> Contents:
    from solvergen.solver.files.file_names import is_of_torch

    if is_of_torch(file.name):
        from solvergen.adapters import torch_contents

        return torch_contents.contents(str(file))
    from solvergen.solver.files.contents import contents

    return contents(file)


def _chosen(solver: Path) -> Chosen:
    from solvergen.solver.choice import optimizer_of
    from solvergen.solver.parameters.model import SolverParameters

    return optimizer_of(SolverParameters.from_file(solver))


def _torch_files() -> TorchFiles:
    from solvergen.adapters import torch_files

    return torch_files


def _rates(text: str | None) -> float | list[float] | None:
    if text is None:
        return None
    try:
        rates = [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--lr {text!r}: a number, or numbers with commas between them") from None
    return rates[0] if len(rates) == 1 else rates


def _text(value: Any) -> str:
    return "-" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@contextmanager
def _warned() -> Iterator[None]:
    """Say warnings about snapshots as sentences on stderr."""
    from solvergen.errors import SnapshotWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SnapshotWarning)
        try:
            yield
        finally:
            for warning in caught:
                print(f"solvergen: warning: {visible_lines(str(warning.message))}", file=sys.stderr)
