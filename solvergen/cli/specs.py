"""Which specs a command line means."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

import solvergen
from solvergen.runtime.naming import did_you_mean

Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="SPECS",
        help="Folders of specs, or spec files. Default: specs/",
        exists=True,
        show_default=False,
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--specs",
        help="Folder of specs. Default: specs/ if there is one, else the specs that come with solvergen.",
        exists=True,
        file_okay=False,
        show_default=False,
    ),
]

SUFFIXES = (".yaml", ".yml")


def shipped() -> Path:
    """The folder of the specs that come with solvergen, wherever it is installed."""
    return Path(solvergen.__file__).parent / "_data" / "specs"


def folder_or_shipped(given: Path | None) -> Path:
    """The folder to look names up in: as given, else ``specs/`` here, else the shipped one."""
    if given is not None:
        return given
    return Path("specs") if Path("specs").is_dir() else shipped()


def own(given: list[Path] | None) -> list[Path]:
    """Paths of specs to work on: as given, else ``specs/`` here."""
    if given:
        return given
    if Path("specs").is_dir():
        return [Path("specs")]
    raise typer.BadParameter(
        "there is no folder specs/ here; name a folder or files, or make a first spec: solvergen new NAME",
        param_hint="'SPECS'",
    )


def find(name: str, folder: Path) -> Path:
    """The spec file that ``name`` means: a path to one, or the name of a spec in ``folder``."""
    if name.endswith(SUFFIXES) or "/" in name:
        if not Path(name).is_file():
            raise typer.BadParameter(f"there is no file {name}", param_hint="'NAME'")
        return Path(name)
    files = {path.stem: path for suffix in SUFFIXES for path in sorted(folder.glob(f"*{suffix}"))}
    if name in files:
        return files[name]
    raise unknown("spec", name, files, where=f" in {folder}")


def unknown(
    kind: str, name: str, known: Iterable[str], *, where: str = "", hint: str = "'NAME'"
) -> typer.BadParameter:
    """The usage error for a name that isn't one of ``known``, with the nearest or else with all of them."""
    suggestion = did_you_mean(name, sorted(known)) or "; there is none"
    return typer.BadParameter(f"no {kind} {name!r}{where}{suggestion}", param_hint=hint)
