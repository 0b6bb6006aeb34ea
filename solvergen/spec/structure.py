"""A tree against the shape of a spec: pydantic judges, this module finds the places."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from solvergen.errors import Diagnostic, Location
from solvergen.spec.complaint import (
    AN_EQUATION,
    EXPECTED,
    Complaint,
    Path,
    colon_hint,
    describe,
    probably_meant,
)
from solvergen.spec.document import OTHER_TAG, SpecDocument
from solvergen.spec.source import Source
from solvergen.spec.tree import Mapping, Node, Scalar, Sequence, shorten

_MAY_BE_EMPTY = (
    "references",
    "conventions",
    "counterparts",
    "hyperparameters",
    "options",
    "state",
    "constraints",
)


def validate(tree: Node, source: Source) -> tuple[SpecDocument | None, list[Diagnostic]]:
    """The document that ``tree`` holds, or None; and every departure from the shape of a spec."""
    if not isinstance(tree, Mapping):
        hint = colon_hint(tree) or "it begins with 'name: ...'"
        message = f"a spec must be a mapping, not {describe(tree)}"
        return None, [Diagnostic("SG012", message, tree.location, hint, source.line_of(tree.location))]
    empty: dict[Path, Diagnostic] = {}
    plain = _plain(tree, (), source, empty)
    try:
        document = SpecDocument.model_validate(plain)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=True)
    else:
        return (None if empty else document), list(empty.values())
    complaints = [_complaint(details, tree) for details in errors]
    meant = {c.path[:-1]: c.instead for c in complaints if c.kind == "extra_forbidden"}
    wrong = {c.path for c in complaints if c.kind in EXPECTED}
    found = [d for path, d in empty.items() if not any(path[:n] in wrong for n in range(len(path)))]
    for complaint in complaints:
        if complaint.path in empty or (*complaint.path, complaint.wanted) in empty:
            continue
        if complaint.kind == "missing" and meant.get(complaint.path) in (complaint.wanted, AN_EQUATION):
            continue  # the key is there, misspelt, and has been complained about
        found.append(complaint.diagnostic(source))
    return None, found


def _plain(node: Node, path: Path, source: Source, empty: dict[Path, Diagnostic]) -> Any:
    """``node`` as plain Python values. Values that aren't there are reported in ``empty`` and left out."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        items = []
        for i, item in enumerate(node.items):
            if isinstance(item, Scalar) and item.value is None:
                place = (*path, i)
                empty[place] = _empty("an item of the list", item.location, source)
                items.append("-")  # keeps the others in their places
                continue
            items.append(_plain(item, (*path, i), source, empty))
        return items
    values = {}
    for key, value in node.entries:
        name = key.text.text
        if isinstance(value, Scalar) and value.value is None:
            # A section with nothing under it (all its lines may be comments) is no mistake.
            if path or name not in _MAY_BE_EMPTY:
                at = (*path, name)
                empty[at] = _empty(f"'{shorten(name)}'", key.location, source, is_key=name.isidentifier())
            continue
        values[name] = _plain(value, (*path, name), source, empty)
    return values


def _empty(what: str, location: Location, source: Source, *, is_key: bool = True) -> Diagnostic:
    hint = "give it one after the colon, or remove it"
    if not is_key:  # as in {do: v = max(v, w)}, which YAML cuts at the comma
        hint = "a text with , : [ ] { } in it needs quotes"
    return Diagnostic("SG012", f"{what} has no value", location, hint, source.line_of(location))


def _complaint(details: ErrorDetails, tree: Mapping) -> Complaint:
    kind, loc = details["type"], details["loc"]
    path, node, key, owner = _follow(tree, loc)
    return Complaint(
        kind=kind,
        context=details.get("ctx", {}),
        path=path,
        node=node,
        key=key,
        owner=owner,
        branch=loc[-1:] == (OTHER_TAG,),
        wanted=str(loc[-1]) if kind == "missing" else "",
        instead=probably_meant(path, node) if kind == "extra_forbidden" else None,
    )


def _follow(tree: Mapping, loc: tuple[int | str, ...]) -> tuple[Path, Node, Scalar | None, Scalar | None]:
    """Walk along a location of pydantic's, which also names branches of choices.

    Returns the path without those, the node there, its key if it is in a mapping, and the last key
    passed on the way.
    """
    path: list[str | int] = []
    node: Node = tree
    key: Scalar | None = None
    deepest: Scalar | None = None
    for step in loc:
        if isinstance(node, Mapping) and isinstance(step, str):
            value, name = node.get(step), node.key(step)
            if value is None:
                continue
            node, key, deepest = value, name, name
        elif isinstance(node, Sequence) and isinstance(step, int):
            node, key, deepest = node.items[step], None, None
        else:
            continue
        path.append(step)
    return tuple(path), node, key, deepest
