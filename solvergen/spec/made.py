"""Nodes that no file has: what a form of the spec stands for, each at the place that it follows from."""

from __future__ import annotations

from collections.abc import Iterable

from solvergen.errors import Location
from solvergen.spec.core_schema import Value, resolve
from solvergen.spec.source import Source, Text
from solvergen.spec.tree import Mapping, Node, Scalar, Sequence


def text_at(text: str, place: Location, source: Source) -> Text:
    """``text`` as if all of it stood at ``place``."""
    return Text(text, place, source, ((place.line, place.column),) * (len(text) + 1))


def scalar_at(text: str, place: Location, source: Source) -> Scalar:
    """A single value, as YAML takes ``text``."""
    value: Value = resolve(text)
    return Scalar(text_at(text, place, source), value, True, place)


def mapping_at(entries: dict[str, str], place: Location, source: Source) -> Mapping:
    """A mapping of single values."""
    return Mapping(
        {k: (scalar_at(k, place, source), scalar_at(v, place, source)) for k, v in entries.items()}, place
    )


def with_update(tree: Mapping, key: Scalar, statements: Iterable[Node]) -> Mapping:
    """``tree`` with these statements as its update, which follows from what stands at ``key``."""
    place, source = key.location, key.text.source
    update = Sequence(tuple(statements), place)
    return Mapping({**tree.by_key, "update": (scalar_at("update", place, source), update)}, tree.location)


def with_declared(tree: Mapping, section: str, key: Scalar, entries: dict[str, dict[str, str]]) -> Mapping:
    """``tree`` with these entries of a section, those that it doesn't have itself, after its own."""
    place, source = key.location, key.text.source
    head, node = tree.by_key.get(section, (scalar_at(section, place, source), Mapping({}, place)))
    if isinstance(node, Scalar) and node.value is None:
        node = Mapping({}, node.location)
    if not entries or not isinstance(node, Mapping):
        return tree
    made = {
        name: (scalar_at(name, place, source), mapping_at(fields, place, source))
        for name, fields in entries.items()
    }
    section_with = Mapping(
        {**node.by_key, **{k: e for k, e in made.items() if k not in node.by_key}}, node.location
    )
    return Mapping({**tree.by_key, section: (head, section_with)}, tree.location)


def relocated(node: Node, place: Location, source: Source) -> Node:
    """``node``, of another file, as if all of it stood at ``place``."""
    if isinstance(node, Scalar):
        return Scalar(text_at(node.text.text, place, source), node.value, node.plain, place)
    if isinstance(node, Sequence):
        return Sequence(tuple(relocated(item, place, source) for item in node.items), place)
    moved = {}
    for name, (key, value) in node.by_key.items():
        head = Scalar(text_at(key.text.text, place, source), key.value, key.plain, place)
        moved[name] = (head, relocated(value, place, source))
    return Mapping(moved, place)


def whole_number(node: Node | None) -> int | None:
    """The whole number that ``node`` is to YAML, None if it is none."""
    value = node.value if isinstance(node, Scalar) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
