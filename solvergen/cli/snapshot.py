"""``solvergen snapshot``: looking into snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from solvergen.cli.console import print_json

app = typer.Typer(help="Look into snapshots.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """Look into snapshots."""


@app.command("show")
def show(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Snapshot (.h5, .hdf5 or .safetensors).", show_default=False),
    ],
) -> None:
    """Verify a snapshot's checksums and print what it holds, as JSON."""
    from solvergen.runtime import snapshots

    print_json(snapshots.describe(file))
