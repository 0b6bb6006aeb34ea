"""``solvergen list``: which optimizers there are, and what each costs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from solvergen.cli import specs
from solvergen.cli.console import print_code, print_json, print_note, print_table

HEADS = ("optimizer", "state", "moved", "passes", "source")


def list_optimizers(
    folder: specs.Folder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print a page with all that the specs say (docs/optimizers.md)."),
    ] = False,
) -> None:
    """List optimizers and what each costs.

    state and moved are bytes for each float32 parameter under the default options: what the optimizer
    keeps, and what a step reads and writes in all. State of rows, columns and the like, and of whole
    tensors, is small beside that and isn't counted.
    """
    if as_json and markdown:
        raise typer.BadParameter("--json and --markdown exclude each other")
    if markdown:
        from solvergen.catalogue import catalogue

        print_code(catalogue([specs.folder_or_shipped(folder)]), "markdown")
        return
    from solvergen.summary import summarise

    summaries = summarise([specs.folder_or_shipped(folder)])
    if as_json:
        print_json([asdict(summary) for summary in summaries])
        return
    rows = [
        (
            summary.name,
            str(summary.state_bytes),
            str(summary.moved_bytes),
            str(summary.passes),
            summary.source,
        )
        for summary in summaries
    ]
    print_table(HEADS, rows, numbers=("state", "moved", "passes"))
    print_note("state, moved: bytes for each float32 parameter, under the default options")
