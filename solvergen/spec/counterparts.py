"""What a spec says of other libraries' versions of its rule: the names in it are its own names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from solvergen.errors import Diagnostic, Location
from solvergen.spec.names import DOTTED_PATTERN
from solvergen.spec.source import Source
from solvergen.spec.tree import Mapping, Scalar, Sequence, shorten


def check_counterparts(tree: Mapping, source: Source) -> Iterator[Diagnostic]:
    """Counterparts map, and lack, hyperparameters and options that there are, each once."""
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
        name = entry.get("name")
        text = name.value.strip() if isinstance(name, Scalar) and isinstance(name.value, str) else ""
        if name is not None and text and re.fullmatch(DOTTED_PATTERN, text, re.ASCII) is None:
            message = f"'{shorten(text)}' is no name to import"
            yield _found(source, "SG014", message, name.location, "write it like torch.optim.Adam")
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
