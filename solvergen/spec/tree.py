"""YAML text to a tree of values that know their places; nothing is constructed from it.

The tree is built from the parser's events, one after the other, so that a file which asks for more
than a spec may have (anchors and aliases, tags, several documents, endless nesting) is refused when
the event comes and not after something has been built from it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from solvergen.errors import CompilerBug, Diagnostic, Location
from solvergen.spec.characters import first_refused, is_refused, refusal
from solvergen.spec.core_schema import Value, resolve
from solvergen.spec.limits import MAX_DEPTH, MAX_TEXT, MAX_VALUES
from solvergen.spec.positions import align
from solvergen.spec.source import Source, Text


@dataclass(frozen=True, eq=False)
class Scalar:
    """A single value. ``text`` is what was written; ``value`` what YAML 1.2 takes it for.

    ``plain``: written without quotes or block indicators.
    """

    text: Text
    value: Value
    plain: bool
    location: Location


@dataclass(frozen=True, eq=False)
class Sequence:
    """A list."""

    items: tuple[Node, ...]
    location: Location


@dataclass(frozen=True, eq=False)
class Mapping:
    """A mapping in the order of the file, every key once (of repeated ones the first)."""

    by_key: dict[str, tuple[Scalar, Node]]
    location: Location

    @property
    def entries(self) -> tuple[tuple[Scalar, Node], ...]:
        """Keys and values."""
        return tuple(self.by_key.values())

    def get(self, key: str) -> Node | None:
        """The value under ``key``, None if there is none."""
        return self.by_key[key][1] if key in self.by_key else None

    def key(self, key: str) -> Scalar | None:
        """The key itself, as it stands in the file."""
        return self.by_key[key][0] if key in self.by_key else None


Node = Scalar | Sequence | Mapping


def parse_tree(source: Source) -> tuple[Node | None, list[Diagnostic]]:
    """The one document of ``source``, and what is wrong with it as YAML.

    The tree is None where it isn't whole; with some findings (repeated keys) there is a tree all
    the same.
    """
    builder = _Builder(source)
    tree = builder.document()
    return tree, builder.diagnostics


class _Stop(Exception):
    """Nothing more can be read."""


class _Builder:
    """Reads one document. ``broken`` is set once the tree can't be trusted any more."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = "\n".join(source.lines)
        self.diagnostics: list[Diagnostic] = []
        self.broken = False
        self.values = 0
        self.events: Iterator[Event] = YAML(typ="safe", pure=True).parse(self.text)

    def document(self) -> Node | None:
        try:
            self.check_directives()
            self.take()  # the start of the stream
            event = self.take()
            if isinstance(event, StreamEndEvent):
                self.report("SG007", "the file is empty", self.place(event), "a spec begins with 'name: ...'")
                return None
            assert isinstance(event, DocumentStartEvent)
            tree = self.node(self.take(), depth=0)
            assert isinstance(self.take(), DocumentEndEvent)
            event = self.take()
            if isinstance(event, DocumentStartEvent):
                self.report(
                    "SG007",
                    "a second document begins here",
                    self.place(event),
                    "a spec file holds one optimizer: give the other a file of its own",
                )
                return None
        except _Stop:
            return None
        if isinstance(tree, Scalar) and tree.plain and tree.value is None:
            self.report("SG007", "the file is empty", tree.location, "a spec begins with 'name: ...'")
            return None
        return None if self.broken else tree

    def node(self, event: Event, depth: int) -> Node:
        """The value that begins with ``event``."""
        self.values += 1
        if self.values > MAX_VALUES:
            self.report("SG003", f"there are more than {MAX_VALUES:,} values in the file", self.place(event))
            raise _Stop
        if depth > MAX_DEPTH:
            self.report("SG003", f"values are nested more than {MAX_DEPTH} deep", self.place(event))
            raise _Stop
        self.check_features(event)
        if isinstance(event, ScalarEvent):
            return self.scalar(event)
        if isinstance(event, SequenceStartEvent):
            return self.sequence(event, depth)
        if isinstance(event, MappingStartEvent):
            return self.mapping(event, depth)
        assert isinstance(event, AliasEvent)
        place = self.place(event)
        return Scalar(Text("", place, self.source, ((place.line, place.column),)), None, True, place)

    def scalar(self, event: ScalarEvent) -> Scalar:
        start, end = event.start_mark, event.end_mark
        style = event.style or None
        raw = self.text[start.index : end.index]
        if len(event.value) > MAX_TEXT:  # will be refused, so there is nothing to point at in it
            positions: tuple[tuple[int, int], ...] = ((start.line + 1, start.column + 1),) * (
                len(event.value) + 1
            )
        else:
            positions = align(event.value, raw, start.line + 1, start.column + 1, style)
        place = self.source.span(*positions[0], *positions[-1])
        text = Text(event.value, place, self.source, positions)
        refused = first_refused(event.value)  # only an escape can have brought one here
        if refused is not None:
            place = text.locate(refused, refused + 1)
            self.report("SG002", refusal(event.value[refused]), place, "remove the escape")
            self.broken = True
        value = resolve(event.value) if style is None else event.value
        return Scalar(text, value, style is None, self.place(event))

    def sequence(self, event: SequenceStartEvent, depth: int) -> Sequence:
        items = []
        while not isinstance(item := self.take(), SequenceEndEvent):
            items.append(self.node(item, depth + 1))
        return Sequence(tuple(items), self.place(event))

    def mapping(self, event: MappingStartEvent, depth: int) -> Mapping:
        entries: dict[str, tuple[Scalar, Node]] = {}
        while not isinstance(start := self.take(), MappingEndEvent):
            key = self.node(start, depth + 1)
            value = self.node(self.take(), depth + 1)
            name = self.key(key)
            if name is None:
                continue
            if name in entries:
                first = entries[name][0].location
                self.report(
                    "SG006",
                    f"the key '{shorten(name)}' is already given in line {first.line}",
                    key.location,
                    "a key may stand only once in a mapping; remove one of the two",
                )
                continue
            assert isinstance(key, Scalar)
            entries[name] = (key, value)
        return Mapping(entries, self.place(event))

    def key(self, key: Node) -> str | None:
        """The key's text; None, and a finding, if it is something else than text."""
        if isinstance(key, Scalar) and isinstance(key.value, str):
            if key.plain and key.value == "<<":
                self.feature("merge keys (<<)", key.location)
                return None
            return key.value
        if isinstance(key, Scalar):
            written = key.text.text
            what = {bool: "true or false", type(None): "null"}.get(type(key.value), "a number")
            message = f"the key '{shorten(written)}' is {what} to YAML, not a name"
            message = message if written else "a key is empty"
        else:
            message = "a list or mapping stands where a key is expected"
        self.report("SG008", message, key.location, "keys are names; choose one that starts with a letter")
        self.broken = self.broken or not isinstance(key, Scalar)
        return None

    def check_features(self, event: Event) -> None:
        """Refuse what a spec has no use for."""
        if isinstance(event, AliasEvent):
            hint = "write the value out; a text that begins with * needs quotes"
            self.feature(f"aliases (*{shorten(str(event.anchor))})", self.place(event), hint)
            return
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            hint = "write the value out where it is needed; a text that begins with & needs quotes"
            self.feature(f"anchors (&{shorten(str(anchor))})", self.place(event), hint)
        if getattr(event, "tag", None) is not None:
            start = event.start_mark.index
            written = self.text[start : start + 200].split(maxsplit=1)[0]
            hint = "nothing is made from tags; a text that begins with ! needs quotes"
            self.feature(f"tags ({shorten(written)})", self.place(event), hint)

    def check_directives(self) -> None:
        """Refuse lines that begin with % before the document, all but the version that is used."""
        for number, line in enumerate(self.source.lines, start=1):
            if line.startswith("%"):
                words = line.split("#")[0].split()
                if words != ["%YAML", "1.2"]:
                    place = Location(self.source.path, number, 1, len(line) + 1)
                    self.feature(f"{shorten(' '.join(words))}", place, "specs are YAML 1.2; remove the line")
                    raise _Stop
            elif line.strip() and not line.lstrip().startswith("#"):
                return

    def feature(self, what: str, place: Location, hint: str | None = None) -> None:
        self.report("SG005", f"{what} can't be used in a spec", place, hint)
        self.broken = True

    def take(self) -> Event:
        """The next event. Syntax errors end the reading."""
        try:
            return next(self.events)
        except MarkedYAMLError as error:
            self.syntax_error(error)
        except (ValueError, OverflowError):  # from chr(): ruamel.yaml takes any eight digits after \U
            self.escape_error()
        except AssertionError:  # ruamel.yaml asserts that a %YAML is 1.1 or 1.2
            self.directive_error()
        except YAMLError as error:
            self.report("SG004", f"this isn't YAML: {error}", Location(self.source.path, 1, 1, 2))
        raise _Stop

    def directive_error(self) -> None:
        """A version that no check before has seen: after the end of a document, or of an odd line."""
        for number, line in enumerate(self.source.lines, start=1):
            at = line.find("%YAML")
            if at >= 0 and line[at:].split()[1:2] != ["1.2"]:
                place = Location(self.source.path, number, at + 1, len(line) + 1)
                self.feature(shorten(line[at:].strip()), place, "specs are YAML 1.2; remove the line")
                return
        raise CompilerBug("an AssertionError from the YAML parser that isn't about a version")

    def escape_error(self) -> None:
        for number, line in enumerate(self.source.lines, start=1):
            for match in re.finditer(r"\\U([0-9A-Fa-f]{8})", line):
                if int(match.group(1), 16) > sys.maxunicode:
                    place = Location(self.source.path, number, match.start() + 1, match.end() + 1)
                    self.report("SG004", "this isn't YAML: there is no such character", place)
                    return
        raise CompilerBug("a ValueError from the YAML parser that isn't about an escape")

    def syntax_error(self, error: MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        if error.context_mark and re.search("end of stream|stream end", str(error.problem)):
            mark = error.context_mark  # where the quote or bracket was opened, not the end of the file
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = " ".join(str(error.problem or error.context or error).split())
        written = self.source.line(line)
        self.report(
            "SG004",
            f"this isn't YAML: {_plain_words(problem)}",
            self.source.span(line, column, line, column + 1),
            _syntax_hint(problem, written, column),
        )

    def place(self, event: Event) -> Location:
        start, end = event.start_mark, event.end_mark
        return self.source.span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)

    def report(self, code: str, message: str, place: Location, hint: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, place, hint, self.source.line_of(place)))


def shorten(text: str, limit: int = 40) -> str:
    """``text`` on one line, at most ``limit`` characters long and fit to be seen, for use in a message."""
    text = " ".join("".join("?" if is_refused(c) else c for c in text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _plain_words(problem: str) -> str:
    """The parser's complaint without the names of its tokens."""
    for theirs, ours in (
        ("<block end>", "the end of the indented block"),
        ("<block mapping start>", "a mapping"),
        ("<block sequence start>", "a list"),
        ("'<scalar>'", "a text"),
        ("<scalar>", "a text"),
        ("<document start>", "the beginning of the document"),
        ("<stream end>", "the end of the file"),
        ("unexpected end of stream", "the end of the file before the end of a quoted text"),
    ):
        problem = problem.replace(f"'{theirs}'", ours).replace(theirs, ours)
    return problem


def _syntax_hint(problem: str, written: str, column: int) -> str | None:
    """What probably went wrong, judged by the complaint and the line it points to."""
    if "\\t" in problem or "\t" in written[:column]:
        return "YAML is indented with spaces; there is a tab in this line"
    if "mapping values are not allowed" in problem:
        return "a text with ': ' in it needs quotes, and keys of one mapping begin in the same column"
    if "indentation indicator" in problem:
        return "a text that begins with | or > needs quotes"
    if "cannot start any token" in problem:
        return "put the text in quotes"
    if re.search(r"(^|[-:{,\[]\s+)['\"].*['\"]\s*[^\s,}\]#]", written):
        return "put the whole text in quotes, not only its beginning"
    if "block end" in problem or "could not find expected ':'" in problem:
        return "check the indentation here and above, and that quotes and brackets are closed"
    if "unexpected end of stream" in problem:
        return "close the quote"
    if "," in problem and ("]" in problem or "}" in problem):
        return "a bracket isn't closed, or a text with : , [ ] { } in it needs quotes"
    return None


__all__ = ["Mapping", "Node", "Scalar", "Sequence", "parse_tree", "shorten"]
