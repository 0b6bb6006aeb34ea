"""``solvergen schema``: the JSON Schema of specs, by which editors complete and check them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from solvergen.cli import exit_codes, specs


def schema(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            parser=specs.folder_or_file,
            help="File to write. Default: print it.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if the file is not up to date.")
    ] = False,
) -> None:
    """Print or write the JSON Schema of specs."""
    from solvergen.files import write_atomically
    from solvergen.spec.schema import schema_text

    if check and out is None:
        raise typer.BadParameter("--check needs --out: the file to compare with", param_hint="'--check'")
    text = schema_text()
    if out is None:
        sys.stdout.write(text)
        return
    data = text.encode("utf-8")
    if out.is_file() and out.read_bytes() == data:
        return
    if check:
        print(f"solvergen: {out} is not up to date; run `solvergen schema --out {out}`", file=sys.stderr)
        raise typer.Exit(exit_codes.FINDINGS)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, data)
