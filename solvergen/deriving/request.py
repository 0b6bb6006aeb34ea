"""What is asked for, as the texts of specs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from solvergen.errors import OptimizerError
from solvergen.spec.files import SUFFIXES

_LONGEST = 200
_DECLARING = ("hyperparameters", "options", "state")


@dataclass(frozen=True)
class Request:
    """Specs to be written: ``texts`` by name, the last of which is the optimizer.

    ``folder`` is that of the base, where it is given by a path: its specs are looked for there first.
    ``named_after``: the spec whose class gives the optimizer's its name, where the texts don't.
    """

    base: str
    name: str
    folder: Path | None
    texts: tuple[tuple[str, str], ...]
    named_after: str | None

    @staticmethod
    def of(base: str | os.PathLike[str], **arguments: Any) -> Request:
        """The request that ``derive`` was called with. Raises OptimizerError."""
        if meant := _spec_of_class(base):
            of_class = getattr(base, "__name__", base)
            raise OptimizerError(
                f"derive needs the name of a spec, not of a class: {meant!r}, not {of_class}"
            )
        if not isinstance(base, (str, os.PathLike)) or not isinstance(os.fspath(base), str) or base == "":
            raise OptimizerError(f"derive needs the name of a spec, or a path of one, not {base!r:.60}")
        path = Path(base)
        by_path = path.suffix in SUFFIXES or path.parent != Path()
        if by_path and not (path.suffix in SUFFIXES and path.is_file()):
            what = f"derive can't find the spec's file {os.fspath(base)!r:.200}"
            raise OptimizerError(what if path.suffix in SUFFIXES else f"{what}: a spec's file ends in .yaml")
        stem = path.stem if by_path else os.fspath(base)
        try:
            given = {key: _plain(value, key) for key, value in arguments.items()}
        except RecursionError:
            raise OptimizerError("an argument of derive holds itself, or is nested too deeply") from None
        called = given.pop("name")
        name = f"{stem}_derived" if called is None else _name(called)
        summary = given.pop("summary") or f"Derived from {stem}."
        transform, changes = given.pop("transform"), given.pop("changes")
        declared = {key: _mapping(given.pop(key), key) for key in _DECLARING}
        declared["hyperparameters"] = _defaults(declared["hyperparameters"], (int, float))
        declared["options"] = _defaults(declared["options"], (bool,))
        transforms = [transform] if isinstance(transform, str) else _list(transform, "transform")
        changed = {"change": _list(changes, "changes"), "constraints": given.pop("constraints")}
        class_name = given.pop("class_name")
        head = {"name": name, "class_name": class_name, "summary": summary}
        if not transforms:
            parts = [(name, {**head, "extends": stem, **declared, **changed, **given})]
        elif not any(changed.values()):
            parts = [(name, {**head, "of": stem, "transform": transforms, **declared, **given})]
        else:
            between = f"{name}_before"
            # Again, for what a transform declares is as the spec says that has the transform.
            again = {n: entry for n, entry in declared["hyperparameters"].items() if entry is not None}
            first = {"name": between, "summary": summary, "extends": stem, **declared, **changed}
            last = {**head, "of": between, "transform": transforms, "hyperparameters": again, **given}
            parts = [(between, first), (name, last)]
        texts = tuple((part, _text(document)) for part, document in parts)
        named_after = stem if called is None and class_name is None else None
        return Request(os.fspath(base), name, path.parent if by_path else None, texts, named_after)


def _spec_of_class(base: object) -> str | None:
    """The name of the spec that a class of optimizers was made of, given it or its name as it is imported."""
    if isinstance(base, str) and base[:1].isupper():
        from solvergen import optimizers

        base = getattr(optimizers, base) if base in optimizers.__all__ else None
    if not isinstance(base, type):
        return None
    name = getattr(getattr(base, "definition", None), "name", None)
    return name if isinstance(name, str) else None


def _text(document: Mapping[str, Any]) -> str:
    """``document`` as YAML: an entry a line, each as JSON has it."""
    lines = []
    for key, value in document.items():
        if value is None or value in ({}, []):
            continue
        if isinstance(value, dict):
            lines.append(f"{key}:")
            lines += [f"  {_json(name)}: {_json(entry)}" for name, entry in value.items()]
        elif isinstance(value, list):
            lines.append(f"{key}:")
            lines += [f"  - {_json(entry)}" for entry in value]
        else:
            lines.append(f"{key}: {_json(value)}")
    return "\n".join(lines) + "\n"


def _json(value: Any) -> str:
    # Characters as they are: what JSON escapes as two, YAML would take for two.
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Any, what: str) -> Any:
    """``value`` as JSON has it. Raises OptimizerError for anything else."""
    if isinstance(value, str):
        if not _encodes(value):
            raise OptimizerError(f"{what} of derive holds half of a surrogate pair: {value!r:.60}")
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if not math.isfinite(number):
            raise OptimizerError(f"{what} of derive has {number}; numbers in specs are finite")
        return number
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or not _encodes(key):
                raise OptimizerError(f"{what} of derive has the key {key!r:.60}; keys are names")
        return {key: _plain(entry, what) for key, entry in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return [_plain(entry, what) for entry in value]
    raise OptimizerError(f"{what} of derive has {value!r:.60}, which no spec can hold")


def _encodes(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _name(value: Any) -> str:
    """A name that a file can have; the compiler says what else keeps it from being a spec's."""
    if not isinstance(value, str) or not value.isidentifier() or len(value) > _LONGEST:
        raise OptimizerError(f"name of derive must be a name as specs have them, not {value!r:.60}")
    return value


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise OptimizerError(f"{what} of derive must be a mapping of names, not {value!r:.60}")
    return value or {}


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise OptimizerError(f"{what} of derive must be a list, not {value!r:.60}")
    return value


def _defaults(declared: Mapping[str, Any], kinds: Sequence[type]) -> dict[str, Any]:
    """Declarations, those that are but a value written out."""
    return {name: {"default": entry} if type(entry) in kinds else entry for name, entry in declared.items()}
