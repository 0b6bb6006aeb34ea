"""The table of commands, and what becomes of errors."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from solvergen.cli import (
    bench,
    build,
    check,
    exit_codes,
    listing,
    new,
    schema,
    show,
    snapshot,
    solver,
    solver_plot,
    train,
    verify,
)
from solvergen.cli.console import print_error, print_json_error, visible_lines
from solvergen.cli.gflags import CaffeCommand
from solvergen.errors import CompilerBug, Diagnostic, SolvergenError, SpecError

EPILOG = (
    "Exit codes: 0 all is well; 1 findings (an invalid spec, drift, a disagreement, a file in the way); "
    "2 wrong usage; 3 a bug in solvergen; 128 + n ended by signal n."
)


@dataclass
class Settings:
    """What the options before the command's name say; filled in while they are read."""

    debug: bool = False


app = typer.Typer(
    name="solvergen",
    help="Compile optimizers: equations in YAML become fused kernels, a NumPy reference and snapshots.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("build")(build.build)
app.command("check")(check.check)
app.command("show")(show.show)
app.command("list")(listing.list_optimizers)
app.command("new")(new.new)
app.command("verify")(verify.verify)
app.command("bench")(bench.bench)
app.command("schema")(schema.schema)
app.command("train", cls=CaffeCommand)(train.train)
app.command("test", cls=CaffeCommand)(train.score_model)
app.command("time", cls=CaffeCommand)(train.time_net)
app.add_typer(snapshot.app, name="snapshot")
solver.app.command("plot")(solver_plot.plot)
app.add_typer(solver.app, name="solver")


def _print_version(wanted: bool) -> None:
    if wanted:
        from solvergen import __version__

        typer.echo(f"solvergen {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show Python's traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    context.obj.debug = debug


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: this process's) and return its exit code.

    Errors are printed to stderr as sentences, and with ``--json`` as a document on stdout too. With
    ``--debug`` they are raised instead.
    """
    settings = Settings()
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Looked for here, since an error may well come before the options have been read.
    as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
    try:
        app(args=words, prog_name="solvergen", obj=settings)
    except SystemExit as exit_:
        # Where the command line is wrong typer has printed why, and exits while it handles the error.
        usage = getattr(exit_.__context__, "format_message", None)
        if as_json and usage is not None:
            _tell_as_json(usage())
        return _code(exit_)
    except Exception as error:
        if settings.debug:
            raise
        code = _report(error)
        if as_json:
            _report_as_json(error)
        return code
    raise AssertionError("typer's applications end in SystemExit")


def _report_as_json(error: Exception) -> None:
    if isinstance(error, SpecError):
        from solvergen.spec.report import count

        _tell_as_json(count(error.diagnostics), error.diagnostics)
    else:
        _tell_as_json(_sentence(error))


def _tell_as_json(text: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
    with contextlib.suppress(OSError):  # stdout may be what is wrong
        print_json_error(text, diagnostics)


def _sentence(error: Exception) -> str:
    if isinstance(error, SolvergenError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror or error}"
    if isinstance(error, MemoryError):
        return "the machine hasn't enough memory for this" + (f": {error}" if str(error) else "")
    return f"{type(error).__name__}: {error}"


def _code(exit_: SystemExit) -> int:
    if isinstance(exit_.code, int):
        return exit_.code
    if exit_.code is None:
        return exit_codes.OK
    print(exit_.code, file=sys.stderr)  # as Python does
    return exit_codes.FINDINGS


def _report(error: Exception) -> int:
    if isinstance(error, SolvergenError) and not isinstance(error, CompilerBug):
        print_error(error)
        return exit_codes.FINDINGS
    if isinstance(error, OSError | MemoryError):
        print(f"solvergen: {visible_lines(_sentence(error))}", file=sys.stderr)
        return exit_codes.FINDINGS
    print(
        f"solvergen: {_sentence(error)}\n"
        "This is a bug in solvergen, not a mistake of yours. Please report it with the spec, the command, "
        "and what `solvergen --debug COMMAND ...` prints.",
        file=sys.stderr,
    )
    return exit_codes.BUG
