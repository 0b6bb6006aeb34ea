"""Jinja, made strict: an undefined name is an error, and templates only place strings."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2

import solvergen

TEMPLATES = Path(solvergen.__file__).parent / "_data" / "templates"


@cache
def _environment(folder: Path) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(template: str, **context: Any) -> str:
    """The text of ``template`` (a path below ``templates/``) over frozen contexts."""
    return _environment(TEMPLATES).get_template(template).render(**context)
