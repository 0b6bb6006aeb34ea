"""``solvergen check``: are the specs in order?"""

from __future__ import annotations

from typing import Annotated

import typer

from solvergen.cli import exit_codes, specs
from solvergen.cli.console import print_diagnostics, print_json, print_note


def check(
    paths: specs.Paths = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Report everything that is wrong with specs."""
    from solvergen.compiler import check as check_specs
    from solvergen.spec.report import as_data

    checked = check_specs(specs.own(paths))
    if as_json:
        found = [{"name": spec.name, "file": spec.path} for spec in checked.specs]
        print_json(
            {"specs": found, "diagnostics": [as_data(diagnostic) for diagnostic in checked.diagnostics]}
        )
    else:
        print_diagnostics(checked.diagnostics)
        if not checked.failed:
            count = len(checked.specs)
            print_note(f"{count} spec{'s' * (count != 1)} in order.")
    if checked.failed:
        raise typer.Exit(exit_codes.FINDINGS)
