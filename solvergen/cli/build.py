"""``solvergen build``: from specs to a package."""

from __future__ import annotations

import keyword
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from solvergen.cli import exit_codes, specs
from solvergen.cli.console import print_code, print_diagnostics, print_json, print_note, progress

if TYPE_CHECKING:
    from solvergen.output import Comparison


def build(
    paths: specs.Paths = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            parser=specs.folder_or_file,
            help="Folder of the generated package.",
        ),
    ] = Path("generated"),
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Write nothing; show how the folder differs, and exit with 1 if it does."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that were edited by hand or aren't solvergen's.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say what was done as JSON.")] = False,
) -> None:
    """Compile specs into an importable package.

    The package holds exactly the optimizers of the specs given: what an earlier build wrote and this one
    doesn't is removed. Only files whose content changes are written.
    """
    from solvergen import output, rebuild

    if check and force:
        raise typer.BadParameter(
            "--check writes nothing, so there is nothing to force", param_hint="'--force'"
        )
    own = specs.own(paths)
    key = None if check else rebuild.fingerprint(own)
    nothing = rebuild.find(key, out) if key is not None else None
    if nothing is not None:
        print_diagnostics(nothing.warnings)
        _warn_of_name(out)
        _print_written(nothing.comparison, as_json)
        return
    from solvergen.compiler import build as compile_specs  # which takes its time to import

    with progress("compiling") as report:
        compiled = compile_specs(own, progress=report)
    print_diagnostics(compiled.warnings)
    if check:
        comparison = output.compare(out, compiled.artifacts)
        _warn_of_name(out)
        _print_drift(comparison, as_json)
        if comparison.differs:
            raise typer.Exit(exit_codes.FINDINGS)
        return
    comparison = output.write(out, compiled.artifacts, force=force)
    rebuild.keep(key, own, comparison, compiled.warnings)
    _warn_of_name(out)
    _print_written(comparison, as_json)


def _print_written(comparison: Comparison, as_json: bool) -> None:
    if as_json:
        print_json(_as_json(comparison))
        return
    for word in ("created", "changed", "removed"):
        for path in getattr(comparison, word):
            print(f"{word:8}{comparison.folder / path}")
    print_note(_sentence(comparison))


def _warn_of_name(out: Path) -> None:
    name = out.absolute().name
    if not name.isidentifier() or keyword.iskeyword(name):
        print(
            f"solvergen: note: no import statement can name the package {name!r}, since that isn't a name in "
            "Python; --out my_optimizers would do",
            file=sys.stderr,
        )


def _print_drift(comparison: Comparison, as_json: bool) -> None:
    from solvergen.output import changes, unified_diff

    if as_json:
        print_json({**_as_json(comparison), "diff": unified_diff(comparison)})
    elif comparison.differs:
        for word in ("created", "removed"):
            for path in getattr(comparison, word):
                print(f"would be {word:8}{comparison.folder / path}")
        if comparison.changed:
            print_code(changes(comparison), "diff")
        if not comparison.folder.exists():
            print(
                f"solvergen: there is no folder {comparison.folder}. Build the package with "
                "`solvergen build`, without --check, or say with --out where it is.",
                file=sys.stderr,
            )
            return
        count = len(comparison.created) + len(comparison.changed) + len(comparison.removed)
        print(
            f"solvergen: {comparison.folder} is not what its specs say: "
            f"{count} {'file differs' if count == 1 else 'files differ'}. "
            "Run `solvergen build` without --check to bring it up to date.",
            file=sys.stderr,
        )
    else:
        print_note(f"{comparison.folder} is up to date.")


def _as_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "folder": str(comparison.folder),
        "created": list(comparison.created),
        "changed": list(comparison.changed),
        "removed": list(comparison.removed),
        "unchanged": list(comparison.unchanged),
    }


def _sentence(comparison: Comparison) -> str:
    counts = [
        (len(getattr(comparison, word)), word) for word in ("created", "changed", "removed", "unchanged")
    ]
    return f"{comparison.folder}: " + ", ".join(f"{count} {word}" for count, word in counts if count) + "."
