"""``solvergen show``: one spec at any stage of its way to the kernels."""

from __future__ import annotations

from typing import Annotated

import typer

from solvergen.cli import specs
from solvergen.cli.console import print_code, print_json

# How a terminal colours each stage; a stage that is missing here prints as it is.
LANGUAGES = {
    "sympy": "python",
    "latex": "latex",
    "cuda": "cuda",
    "cpu": "c",
    "numpy": "python",
    "scalars": "python",
}


def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of a spec, or a path to one.", show_default=False)
    ],
    stage: Annotated[
        str,
        typer.Option(
            "--stage",
            "-s",
            metavar="STAGE",
            help="doc: what it is; parsed, typed, optimised or scheduled IR; wrapped: scheduled, "
            "with what wraps an update; sympy, latex; cuda, cpu, numpy or scalars text.",
        ),
    ] = "scheduled",
    folder: specs.Folder = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print name, stage, file and text as JSON.")
    ] = False,
) -> None:
    """Print one spec at one stage of its compilation."""
    path = specs.find(name, specs.folder_or_shipped(folder))
    from solvergen import stages

    if stage not in stages.STAGES:
        raise specs.unknown("stage", stage, stages.STAGES, hint="'--stage'")
    text = stages.show(path, stage)
    if as_json:
        from solvergen.spec.reader import read_spec

        print_json({"name": read_spec(path).name, "file": path.as_posix(), "stage": stage, "text": text})
    else:
        print_code(text, LANGUAGES.get(stage, "text"))
