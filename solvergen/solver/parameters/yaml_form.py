"""Reading a solver's parameters from YAML: the same names, and ours as mappings."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from solvergen.errors import Location
from solvergen.runtime.naming import printable, quoted
from solvergen.solver.parameters.error import SolverParametersError, read_bytes
from solvergen.solver.parameters.findings import Finding
from solvergen.solver.parameters.forks import FIELDS
from solvergen.solver.parameters.hints import meant
from solvergen.solver.parameters.model import CONVERSIONS, SolverParameters
from solvergen.solver.parameters.prefix import completed_prefix

_BY_NAME = ("blocks", "constraints")
"""What says something of single parameters of the net."""


def read_yaml(path: str | os.PathLike[str]) -> SolverParameters:
    """The parameters that the file holds, not yet checked against each other.

    Raises:
        SolverParametersError: it isn't YAML, or not a mapping of parameters to values that they can have.
        UnreadableParameters: the file can't be read.
    """
    return parse_yaml(read_bytes(path), path)


def parse_yaml(text: str | bytes, path: str | os.PathLike[str] | None = None) -> SolverParameters:
    """The parameters that a text holds, as ``read_yaml``; ``path`` is the file that it is said to be of."""
    name = os.fspath(path) if path is not None else "<yaml>"
    document = _document(text, name)
    lines = _decoded(text).splitlines()

    def finding(key: Any, message: str, hint: str | None = None) -> Finding:
        place = _place(document, key, name)
        line = lines[place.line - 1] if place.line <= len(lines) else None
        return Finding(message=message, hint=hint, field=str(key), location=place, source=line)

    unknown = [
        finding(
            key,
            f"no parameter {quoted(key)}",
            FIELDS.get(str(key).lower()) or meant(key, CONVERSIONS),
        )
        for key in document
        if key not in CONVERSIONS
    ]
    empty = [
        finding(key, f"{key} has no value", "give it one, or leave the line out")
        for key, value in document.items()
        if value is None and key in CONVERSIONS
    ]
    if unknown or empty:
        raise SolverParametersError([*unknown, *empty])
    params = SolverParameters(
        **document,
        source=None if path is None else Path(path),
        form="yaml",
        locations=MappingProxyType(dict(_places(document, name))),
    )
    return completed_prefix(params, path)


def _document(written: str | bytes, name: str) -> Any:
    """The mapping that the text is, with the places of its keys."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.reader import ReaderError

    def refused(said: str, line: int = 1, column: int = 1, hint: str | None = None) -> SolverParametersError:
        place = Location(name, line, column, column + 1)
        source = next(iter(text.splitlines()[line - 1 : line]), None)
        return SolverParametersError([Finding(message=said, hint=hint, location=place, source=source)])

    text = _decoded(written)
    try:
        document = YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = str(error.problem or error.context or "isn't YAML").strip()
        if said.startswith("but "):  # the second half of a sentence
            said = f"{str(error.context or '').strip()}, {said}"
        if mark is None:
            raise refused(said) from None
        raise refused(said, mark.line + 1, mark.column + 1) from None
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        character = ord(text[error.position])
        if 0xDC80 <= character <= 0xDCFF:
            raise refused("this byte isn't UTF-8", line, column, "write the file in UTF-8") from None
        raise refused(f"the character U+{character:04X} can't be in YAML", line, column) from None
    except RecursionError:
        raise SolverParametersError([Finding(message=f"{name}: it is nested too deeply")]) from None
    except MemoryError:
        raise
    except Exception as error:  # the library lets all kinds escape
        said = f"{name} can't be read as YAML: {printable(str(error))}"
        raise SolverParametersError([Finding(message=said)]) from None
    if document is None:
        raise refused("holds nothing: a solver has at least a base_lr, an lr_policy and a net")
    if not isinstance(document, Mapping):
        raise refused("must be a mapping of parameters to values")
    return document


def _decoded(text: str | bytes) -> str:
    """The text, with surrogates for bytes that aren't UTF-8."""
    if isinstance(text, str):
        return text
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return text.decode("utf-16", "replace")
    return text.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def _places(document: Any, name: str) -> Iterator[tuple[str, tuple[Location, ...]]]:
    """Where each parameter stands, and of those that go by names what is said of each."""
    for key, value in document.items():
        yield key, (_place(document, key, name),)
        if key in _BY_NAME and hasattr(value, "lc") and isinstance(value, Mapping):
            for entry in value:
                yield f"{key}.{entry}", (_place(value, entry, name),)


def _place(document: Any, key: Any, name: str) -> Location:
    try:
        line, column = document.lc.key(key)
    except KeyError:  # from a merge key: it stands elsewhere
        line, column = 0, 0
    return Location(name, line + 1, column + 1, column + 1 + len(str(key)))
