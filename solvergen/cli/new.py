"""``solvergen new``: a commented spec to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from solvergen.cli import specs
from solvergen.cli.console import print_note

TEMPLATE = Path(__file__).with_name("new_spec.yaml")
PLACEHOLDER = "name: my_rule\n"


def new(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of the optimizer, such as my_rule.", show_default=False),
    ],
    folder: Annotated[
        Path,
        typer.Option(
            "--specs", metavar="PATH", parser=specs.folder_or_file, help="Folder to put NAME.yaml into."
        ),
    ] = Path("specs"),
) -> None:
    """Write a commented spec to start from. It is valid as it is; a file that exists is left alone."""
    from solvergen.files import write_atomically
    from solvergen.spec.names import class_name_of, problem_with_class_name, problem_with_spec_name

    problem = problem_with_spec_name(name) or problem_with_class_name(class_name_of(name))
    if problem:
        raise typer.BadParameter(f"an optimizer can't be called {name!r}: {problem[1]}", param_hint="'NAME'")
    path = folder / f"{name}.yaml"
    if path.exists() or path.is_symlink():
        raise typer.BadParameter(f"{path} exists already; it is left as it is", param_hint="'NAME'")
    text = TEMPLATE.read_text(encoding="utf-8").replace(PLACEHOLDER, f"name: {name}\n", 1)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode("utf-8"))
    print(path)
    print_note(
        f"Next: edit it, then\n"
        f"    solvergen check {path}\n"
        f"    solvergen build {path} --out my_optimizers\n"
        f"    solvergen show {name} --specs {folder} --stage cpu"
    )
