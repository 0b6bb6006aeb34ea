"""What a spec says of other libraries' versions of its rule: the names in it are its own names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from solvergen.errors import Diagnostic, Location
from solvergen.spec.names import DOTTED_PATTERN
from solvergen.spec.source import Source
from solvergen.spec.tree import Mapping, Node, Scalar, Sequence, shorten


def check_counterparts(tree: Mapping, source: Source) -> Iterator[Diagnostic]:
    """Counterparts are in their libraries; they map, and lack, what there is in the spec, each once."""
    known = tuple(
        name
        for section in ("hyperparameters", "options")
        if isinstance(entries := tree.get(section), Mapping)
        for name in entries.by_key
    )
    listed = tree.get("counterparts")
    for entry in listed.items if isinstance(listed, Sequence) else ():
        if not isinstance(entry, Mapping):
            continue
        yield from _check_name(entry, source)
        mentioned: set[str] = set()
        for word, place in _mentioned(entry):
            if word not in known:
                near = get_close_matches(word[:100], known, n=1, cutoff=0.7)
                message = f"'{shorten(word)}' is no hyperparameter or option of this spec"
                hint = f"did you mean '{near[0]}'?" if near else "our name stands first: {ours: theirs}"
                yield _found(source, "SG028", message, place, hint)
            elif word in mentioned:
                message = f"{word} is mentioned twice"
                yield _found(source, "SG015", message, place, "what a counterpart lacks can't be mapped")
            mentioned.add(word)


def _check_name(entry: Mapping, source: Source) -> Iterator[Diagnostic]:
    """A counterpart's name is one to import, from the library that it is said to be of."""
    place, name, library = entry.get("name"), _text(entry.get("name")), _text(entry.get("library"))
    if place is None or not name:
        return
    if re.fullmatch(DOTTED_PATTERN, name, re.ASCII) is None:
        message = f"'{shorten(name)}' is no name to import"
        yield _found(source, "SG014", message, place.location, "write it like torch.optim.Adam")
    elif library and not name.startswith(f"{library}."):
        message = f"'{shorten(name)}' isn't in the library '{shorten(library)}'"
        hint = "a library is the package to import: {library: torch, name: torch.optim.Adam}"
        yield _found(source, "SG029", message, place.location, hint)


def _text(node: Node | None) -> str:
    return node.value.strip() if isinstance(node, Scalar) and isinstance(node.value, str) else ""


def _mentioned(entry: Mapping) -> Iterator[tuple[str, Location]]:
    """Names of this spec in a counterpart, with their places."""
    maps, lacks = entry.get("maps"), entry.get("lacks")
    if isinstance(maps, Mapping):
        for key, _ in maps.entries:
            yield key.text.text, key.location
    if isinstance(lacks, Sequence):
        for item in lacks.items:
            if isinstance(item, Scalar) and isinstance(item.value, str):
                yield item.value.strip(), item.location


def _found(source: Source, code: str, message: str, place: Location, hint: str) -> Diagnostic:
    return Diagnostic(code, message, place, hint, source.line_of(place))
