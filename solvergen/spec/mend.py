"""As much of a spec as can be made out of a file that departs from a spec's shape.

What was complained about is left out, or takes a neutral value, so that the equations can be looked
at in the same run. Nothing is reported from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from pydantic import BaseModel, ValidationError

from solvergen.spec.build import build_spec
from solvergen.spec.document import (
    ConstraintDocument,
    HyperparameterDocument,
    OptionDocument,
    SpecDocument,
    StateDocument,
    StatementDocument,
)
from solvergen.spec.model import Spec
from solvergen.spec.names import problem_with_name, problem_with_spec_name
from solvergen.spec.source import Source, Text
from solvergen.spec.suggest import SWITCH_WORDS, instead_of_key
from solvergen.spec.tree import Mapping, Node, Scalar, Sequence

_DECLARING: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "hyperparameters": (HyperparameterDocument, {"default": 0.0}),
    "options": (OptionDocument, {}),
    "state": (StateDocument, {}),
}
"""Sections of named entries, and what an entry can't do without."""

_LISTING = ("constraints", "update")


def mend(tree: Mapping, source: Source) -> Spec | None:
    """The spec that is meant, as far as it can be told; None if nothing can be told of its update.

    ``Spec.incomplete`` says which sections lack something, ``Spec.unclear`` which names may be
    declared or assigned in what was left out.
    """
    return _Mender(tree, source).spec()


class _Mender:
    """One file being mended: plain values for the document, and the same as a tree."""

    def __init__(self, tree: Mapping, source: Source) -> None:
        self.tree = tree
        self.source = source
        self.incomplete: set[str] = set()
        self.unclear: set[str] = set()

    def spec(self) -> Spec | None:
        sections = self._sections()
        name = self._name()
        plain: dict[str, Any] = {"name": name.value, "summary": "-"}
        entries: dict[str, tuple[Scalar, Node]] = {"name": (name, name)}
        for section in (*_DECLARING, *_LISTING):
            if section not in sections:
                continue
            key, node = sections[section]
            read = self._declarations if section in _DECLARING else self._listing
            plain[section], mended = read(section, node)
            entries[section] = (key, mended)
        names = [n for section in _DECLARING for n in plain.get(section, {})]
        if len(set(names)) < len(names) or any(problem_with_name(n) is not None for n in names):
            return None  # what such a name means in an equation is anybody's guess
        try:
            document = SpecDocument.model_validate(plain)
        except ValidationError:  # no update, or more of something than a spec may have
            return None
        spec = build_spec(document, Mapping(entries, self.tree.location), self.source)
        return replace(spec, incomplete=frozenset(self.incomplete), unclear=frozenset(self.unclear))

    def _sections(self) -> dict[str, tuple[Scalar, Node]]:
        """The sections by their right names."""
        known = tuple(SpecDocument.model_fields)
        found = {k: entry for k, entry in self.tree.by_key.items() if k in known}
        for written, (key, node) in self.tree.by_key.items():
            if written in known:
                continue
            meant = instead_of_key(written, known)
            if meant in _DECLARING:
                self.incomplete.add(str(meant))
            if meant is not None and meant not in found:
                found[meant] = (key, node)
                continue
            first_key, first = found.get(str(meant), (key, node))
            if meant in _DECLARING and isinstance(node, Mapping) and isinstance(first, Mapping):
                both = {**node.by_key, **first.by_key}
                found[str(meant)] = (first_key, Mapping(both, first.location))
            elif not isinstance(node, Scalar):
                self._leave_out("", node)
        return found

    def _name(self) -> Scalar:
        """The spec's name; that of the file where none is given."""
        given = self.tree.get("name")
        if isinstance(given, Scalar) and isinstance(given.value, str):
            if problem_with_spec_name(given.value) is not None:
                self.incomplete.add("name")
            return given
        self.incomplete.add("name")
        stem, place = PurePosixPath(self.source.path).stem, self.tree.location
        text = Text(stem, place, self.source, ((place.line, place.column),) * (len(stem) + 1))
        return Scalar(text, stem, True, place)

    def _declarations(self, section: str, node: Node) -> tuple[dict[str, Any], Node]:
        """Every name that is declared, with what can be understood of what is said of it."""
        model, needed = _DECLARING[section]
        if not isinstance(node, Mapping):
            if not _is_nothing(node):
                self._leave_out(section, node)
            return {}, node
        plain: dict[str, Any] = {}
        entries: dict[str, tuple[Scalar, Node]] = {}
        for name, (key, entry) in node.by_key.items():
            kept = self._fields(section, entry, model, needed)
            if section == "options" and _is_switch_word(kept.get("default")):
                self.incomplete.add(section)
                kept = Mapping({k: v for k, v in kept.by_key.items() if k != "default"}, kept.location)
            plain[name] = {**needed, **_plain(kept)}
            if plain[name].keys() - kept.by_key.keys():
                self.incomplete.add(section)
            entries[name] = (key, kept)
        return plain, Mapping(entries, node.location)

    def _listing(self, section: str, node: Node) -> tuple[list[Any], Node]:
        """Those items of constraints or of the update that can be understood."""
        items: list[Node] = []
        plain: list[Any] = []
        if not isinstance(node, Sequence):
            if not _is_nothing(node):
                self._leave_out(section, node)
            return [], Sequence((), node.location)
        for item in node.items:
            kept, value = self._item(section, item)
            if kept is None:
                self._leave_out(section, item)
            else:
                items.append(kept)
                plain.append(value)
        return plain, Sequence(tuple(items), node.location)

    def _item(self, section: str, item: Node) -> tuple[Node | None, Any]:
        if isinstance(item, Scalar):
            usable = section == "update" and isinstance(item.value, str) and item.value.strip()
            return (item, item.value) if usable else (None, None)
        if not isinstance(item, Mapping):
            return None, None
        if section == "update":
            kept = self._fields(section, item, StatementDocument, {"do": "-"})
            return (kept, _plain(kept)) if kept.get("do") is not None else (None, None)
        kept = self._fields(section, item, ConstraintDocument, {"that": "-", "message": "-"})
        return (kept, {"message": "-", **_plain(kept)}) if kept.get("that") is not None else (None, None)

    def _fields(self, section: str, entry: Node, model: type[BaseModel], needed: dict[str, Any]) -> Mapping:
        """Those fields of an entry that ``model`` accepts, by their right names."""
        if not isinstance(entry, Mapping):
            self.incomplete.add(section)
            return Mapping({}, entry.location)
        kept: dict[str, tuple[Scalar, Node]] = {}
        known = tuple(model.model_fields)
        for name, (key, node) in entry.by_key.items():
            meant = name if name in known else instead_of_key(name, known)
            if meant != name:
                self.incomplete.add(section)
            if meant is None or (meant != name and (meant in kept or meant in entry.by_key)):
                self._leave_out(section, key)
                continue
            try:
                model.model_validate({**needed, meant: _plain(node)})
            except ValidationError:
                self._leave_out(section, node)
            else:
                kept[meant] = (key, node)
        return Mapping(kept, entry.location)

    def _leave_out(self, section: str, node: Node) -> None:
        """Remember that ``node`` is missing from ``section``, and the names that it may have given."""
        self.incomplete.add(section)
        if section == "update":
            self.unclear.update(_targets(node))
        elif not isinstance(node, Scalar):
            self.unclear.update(n for text in _texts(node) for n in re.findall(r"[A-Za-z_]\w*", text))


def _texts(node: Node) -> Iterator[str]:
    """All keys and values in ``node``."""
    if isinstance(node, Scalar):
        yield node.text.text
        return
    if isinstance(node, Mapping):
        yield from node.by_key
        for _, value in node.entries:
            yield from _texts(value)
        return
    for item in node.items:
        yield from _texts(item)


def _targets(node: Node) -> Iterator[str]:
    """Names that ``node``, something that should have been equations, may assign."""
    for text in _texts(node):
        found = re.match(r"\s*([A-Za-z_]\w*)\s*(=|$)", text)
        if found is not None:
            yield found[1]


def _is_nothing(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _is_switch_word(node: Node | None) -> bool:
    return (
        isinstance(node, Scalar)
        and str(node.value).strip().lower() in SWITCH_WORDS
        and not isinstance(node.value, bool)
    )


def _plain(node: Node) -> Any:
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [_plain(item) for item in node.items]
    return {name: _plain(value) for name, (_, value) in node.by_key.items()}
