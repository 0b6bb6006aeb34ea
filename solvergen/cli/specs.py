"""Which specs a command line means."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from solvergen.errors import SpecError
from solvergen.runtime.naming import did_you_mean
from solvergen.spec.files import shipped_folder


def folder_or_file(text: str) -> Path:
    """A path on the command line; a usage error if it is empty, which to Path means the folder one is in."""
    if not text:
        raise typer.BadParameter("a path can't be empty; write . for this folder")
    return Path(text)


def _existing(text: str) -> Path:
    path = folder_or_file(text)
    if not path.exists():
        raise typer.BadParameter(f"there is no file or folder {text!r}")
    return path


def _existing_folder(text: str) -> Path:
    path = _existing(text)
    if not path.is_dir():
        raise typer.BadParameter(f"{text!r} is a file; the folder that it is in was meant")
    return path


Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="SPECS",
        help="Folders of specs, or spec files. Default: specs/",
        parser=_existing,
        show_default=False,
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--specs",
        help="Folder of specs. Default: specs/ if there is one, else the specs that come with solvergen.",
        metavar="PATH",
        parser=_existing_folder,
        show_default=False,
    ),
]

SUFFIXES = (".yaml", ".yml")


def shipped() -> Path:
    """The folder of the specs that come with solvergen, wherever it is installed."""
    return shipped_folder()


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
    """The spec file that ``name`` means: a path to one, or the name that a spec in ``folder`` gives itself.

    Raises SpecError if there are several of the name, or no specs at all.
    """
    from solvergen.spec.files import spec_files
    from solvergen.spec.reader import check_folder, examine

    if name.endswith(SUFFIXES) or "/" in name:
        if not Path(name).is_file():
            raise typer.BadParameter(f"there is no file {name}", param_hint="'NAME'")
        return Path(name)
    files, problem = spec_files(folder)
    if problem is not None:
        raise SpecError((problem,))
    read = {file: examine(file)[0] for file in files}
    found = {file: spec for file, spec in read.items() if spec is not None and spec.name == name}
    if len(found) > 1:
        raise SpecError(tuple(check_folder(found.values())))
    if found:
        return Path(next(iter(found)))
    # A file in which no name can be made out has its own: whoever asks for it learns what is wrong with it.
    unnamed = {Path(file).stem: Path(file) for file, spec in read.items() if spec is None}
    if name in unnamed:
        return unnamed[name]
    where = f" in {folder}"
    for file, spec in read.items():
        if spec is not None and Path(file).stem == name:
            where += f" ({file} calls itself {spec.name!r})"
    names = [spec.name for spec in read.values() if spec is not None]
    raise unknown("spec", name, [*names, *unnamed], where=where, more=elsewhere(folder))


def elsewhere(folder: Path) -> str:
    """What to know where a name isn't found in ``folder``, which was looked into without being asked for."""
    if folder != Path("specs"):
        return ""
    return f" (specs/ here hides the specs that come with solvergen; --specs {shipped()} uses those)"


def unknown(
    kind: str, name: str, known: Iterable[str], *, where: str = "", more: str = "", hint: str = "'NAME'"
) -> typer.BadParameter:
    """The usage error for a name that isn't one of ``known``: the nearest or all of them, then ``more``."""
    suggestion = did_you_mean(name, sorted(known)) or "; there is none"
    return typer.BadParameter(f"no {kind} {name!r}{where}{suggestion}{more}", param_hint=hint)
