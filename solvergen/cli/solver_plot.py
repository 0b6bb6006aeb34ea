"""``solvergen solver plot``: the curves of a training's log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from solvergen.cli.console import visible

_MOST_WARNINGS = 10


def plot(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG", help="A log: JSON lines, or Caffe's lines, Caffe's own too.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The picture: .png, .svg or .pdf. Default: LOG with the ending .svg",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Draw losses, other outputs and the learning rate over the iterations."""
    from solvergen.solver.logs.plot import check_drawing, draw
    from solvergen.solver.logs.reading import read_log

    picture = out or Path(f"{log}.svg" if not log.name else log.with_suffix(".svg"))
    check_drawing(picture)
    read = read_log(log)
    for warning in read.warnings[:_MOST_WARNINGS]:
        print(f"solvergen: {visible(str(log))}: {warning}", file=sys.stderr)
    if (more := len(read.warnings) - _MOST_WARNINGS) > 0:
        print(f"solvergen: {visible(str(log))}: {more} more warnings like these", file=sys.stderr)
    draw(picture, read)
    print(visible(str(picture)))
