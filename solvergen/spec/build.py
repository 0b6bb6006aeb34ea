"""A validated document and its tree to the frozen model."""

from __future__ import annotations

from solvergen.spec.digest import digest_of
from solvergen.spec.document import CounterpartDocument, ReferenceDocument, SpecDocument
from solvergen.spec.model import (
    Constraint,
    Counterpart,
    Hyperparameter,
    Option,
    Reference,
    Spec,
    State,
    Statement,
)
from solvergen.spec.names import class_name_of
from solvergen.spec.source import Source, Text
from solvergen.spec.tree import Mapping, Node, Scalar, Sequence


def build_spec(document: SpecDocument, tree: Mapping, source: Source) -> Spec:
    """The spec that ``document`` and ``tree``, two views of one file, describe."""
    hyperparameters = tuple(
        Hyperparameter(
            name=name,
            default=float(entry.default),
            min=entry.min,
            max=entry.max,
            above=entry.above,
            below=entry.below,
            integer=entry.integer,
            doc=_line(entry.doc),
            location=_key(tree, "hyperparameters", name).location,
        )
        for name, entry in document.hyperparameters.items()
    )
    options = tuple(
        Option(
            name=name,
            default=entry.default
            if isinstance(entry.default, bool)
            else _text(_entry(tree, "options", name).get("default")),
            doc=_line(entry.doc),
            location=_key(tree, "options", name).location,
        )
        for name, entry in document.options.items()
    )
    state = tuple(
        State(
            name=name,
            init=_text(_entry(tree, "state", name).get("init"))
            if isinstance(entry.init, str)
            else float(entry.init),
            shape=entry.shape,
            when=_optional_text(_entry(tree, "state", name).get("when")),
            output=entry.output,
            doc=_line(entry.doc),
            location=_key(tree, "state", name).location,
        )
        for name, entry in document.state.items()
    )
    constraints = tuple(
        Constraint(
            that=_text(entry.get("that")),
            message=_line(constraint.message),
            when=_optional_text(entry.get("when")),
        )
        for entry, constraint in zip(_mappings(tree.get("constraints")), document.constraints, strict=True)
    )
    update = tuple(statement for node in _items(tree.get("update")) for statement in _statements(node))
    references = (*((document.reference,) if document.reference else ()), *document.references)
    base = tree.get("extends") or tree.get("of")
    return Spec(
        name=document.name,
        class_name=document.class_name or class_name_of(document.name),
        summary=_line(document.summary),
        description=(document.description or "").strip(),
        references=tuple(_reference(reference) for reference in references),
        hyperparameters=hyperparameters,
        options=options,
        state=state,
        update=update,
        constraints=constraints,
        conventions=tuple(_line(convention) for convention in document.conventions),
        counterparts=tuple(_counterpart(counterpart) for counterpart in document.counterparts),
        digest=digest_of(document.name, hyperparameters, options, state, update, constraints),
        path=source.path,
        source=source,
        location=_text(tree.get("name")).location,
        base=document.extends or document.of or "",
        base_location=base.location if base is not None else None,
        penalty=_optional_text(tree.get("penalty")),
        project=_optional_text(tree.get("project")),
        transforms=tuple(_text(node) for node in _items(tree.get("transform"))),
    )


def _reference(document: ReferenceDocument) -> Reference:
    return Reference(
        title=_line(document.title),
        authors=_line(document.authors) or None,
        year=_line(None if document.year is None else str(document.year)) or None,
        arxiv=_line(document.arxiv) or None,
        doi=_line(document.doi) or None,
        url=_line(document.url) or None,
        note=_line(document.note) or None,
    )


def _counterpart(document: CounterpartDocument) -> Counterpart:
    return Counterpart(
        library=_line(document.library),
        name=_line(document.name),
        maps=tuple((ours, _line(theirs)) for ours, theirs in document.maps.items()),
        lacks=tuple(_line(name) for name in document.lacks),
        note=_line(document.note) or None,
    )


def _statements(node: Node) -> tuple[Statement, ...]:
    """One equation, or the equations of a ``when``/``do`` mapping under its condition."""
    if isinstance(node, Scalar):
        return (Statement(node.text),)
    assert isinstance(node, Mapping)
    when = _optional_text(node.get("when"))
    do = node.get("do")
    equations = do.items if isinstance(do, Sequence) else (do,)
    return tuple(Statement(_text(equation), when) for equation in equations)


def _line(prose: str | None) -> str:
    """Prose on one line, whatever way it was folded in the file."""
    return " ".join((prose or "").split())


def _text(node: Node | None) -> Text:
    assert isinstance(node, Scalar)
    return node.text


def _optional_text(node: Node | None) -> Text | None:
    return None if node is None else _text(node)


def _key(tree: Mapping, section: str, name: str) -> Scalar:
    entries = tree.get(section)
    assert isinstance(entries, Mapping)
    key = entries.key(name)
    assert key is not None
    return key


def _entry(tree: Mapping, section: str, name: str) -> Mapping:
    entries = tree.get(section)
    assert isinstance(entries, Mapping)
    entry = entries.get(name)
    assert isinstance(entry, Mapping)
    return entry


def _items(node: Node | None) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else ()


def _mappings(node: Node | None) -> tuple[Mapping, ...]:
    return tuple(item for item in _items(node) if isinstance(item, Mapping))
