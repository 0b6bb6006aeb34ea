"""Reading a solver's prototxt: protobuf parses it, and every complaint has its line and column."""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

from solvergen.errors import Location
from solvergen.runtime.naming import printable, quoted, shortened
from solvergen.solver.parameters.error import SolverParametersError, read_bytes
from solvergen.solver.parameters.findings import Finding
from solvergen.solver.parameters.forks import FIELDS
from solvergen.solver.parameters.hints import meant
from solvergen.solver.parameters.model import SolverParameters
from solvergen.solver.parameters.net_state import NetState
from solvergen.solver.parameters.prefix import completed_prefix
from solvergen.solver.parameters.proto.messages import message, message_class, require
from solvergen.solver.parameters.scan import Entry, Token, scan, with_signs_joined, without_comments

_NETS = ("net_param", "train_net_param", "test_net_param")
_ONLY_IN_YAML = dict.fromkeys(
    ("blocks", "constraints"), "it can only be given in YAML, in a solver file that ends in .yaml"
)
_SETTINGS = {"hyperparameter": "hyperparameters", "policy_setting": "policy"}
_STRAY = {
    "/": "comments begin with #",
    "=": 'a value follows a colon, as in base_lr: 0.1, and a string has quotes, as in type: "SGD"',
    **dict.fromkeys("\u201c\u201d\u2018\u2019", "quotes are straight ones, \" or '"),
}
"""What is often written, and what to write instead."""

_PLACE = re.compile(r"^\d+:\d+ : ")
_LINE_AND_REST = re.compile(r"^'.*': ", re.DOTALL)


def read_prototxt(path: str | os.PathLike[str]) -> SolverParameters:
    """The parameters that the file holds, not yet checked against each other.

    Raises:
        SolverParametersError: protobuf can't parse it, or a value isn't one that its field can have.
        UnreadableParameters: the file can't be read.
    """
    return parse_prototxt(read_bytes(path), path)


def parse_prototxt(text: str | bytes, path: str | os.PathLike[str] | None = None) -> SolverParameters:
    """The parameters that a text holds, as ``read_prototxt``; ``path`` is the file it is said to be of."""
    written = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
    return _Text(written.removeprefix("\ufeff"), path).parameters()


def state_in_net(text: str) -> NetState | None:
    """The state that a net's text gives itself; None if it gives none.

    Raises ValueError where protobuf can't parse the text; what fields it has is all the same.
    """
    net = message("NetParameter")
    text_format = require("text_format")
    plain = without_comments(text)
    if re.search("[\ud800-\udfff]", plain):
        raise ValueError("isn't UTF-8")
    try:
        text_format.Parse(with_signs_joined(plain), net, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeError, RecursionError) as error:
        why = "braces are nested too deeply" if isinstance(error, RecursionError) else printable(str(error))
        raise ValueError(f"can't be parsed: {why}") from None
    return _state(net.state) if net.HasField("state") else None


class _Text:
    """A prototxt, and what is found in it."""

    def __init__(self, text: str, path: str | os.PathLike[str] | None) -> None:
        self._text = text
        self._path = path
        self._name = os.fspath(path) if path is not None else "<prototxt>"
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._scan = scan(text)

    def parameters(self) -> SolverParameters:
        """Raises SolverParametersError."""
        self._check_encoding()
        parsed = message("SolverParameter")
        text_format = require("text_format")
        try:
            text_format.Parse(with_signs_joined(self._without_nets()), parsed)
        except (text_format.ParseError, UnicodeError, RecursionError) as error:
            raise SolverParametersError(self._complaints() or [self._of_protobuf(error)]) from None
        self._check_nets()
        self._check_settings(parsed)
        values = _values(parsed)
        nets = {name: [self._inside(e) for e in self._named(name)] for name in _NETS}
        for name, texts in nets.items():
            if texts:
                values[name] = texts if name == "test_net_param" else texts[0]
        return completed_prefix(
            SolverParameters(
                **values,
                source=None if self._path is None else Path(self._path),
                form="prototxt",
                locations=MappingProxyType(self._locations()),
            ),
            self._path,
        )

    def _check_encoding(self) -> None:
        """Comments may have bytes that aren't UTF-8, as they often do; the rest can't."""
        stray = re.search("[\0\ud800-\udfff]", without_comments(self._text))
        if stray is not None:
            token = Token("sign", stray[0], stray.start())
            said = "this byte is 0, as in UTF-16" if stray[0] == "\0" else "this byte isn't UTF-8"
            raise SolverParametersError([self._finding(token, said, "write the file in UTF-8")])

    def _named(self, name: str) -> list[Entry]:
        return [entry for entry in self._scan.entries if entry.name.text == name]

    def _inside(self, entry: Entry) -> str:
        start, end = entry.body or (0, 0)
        return self._text[start:end]

    def _without_nets(self) -> str:
        text = without_comments(self._text)
        pieces, done = [], 0
        for start, end in self._nets():
            pieces += [text[done:start], _blank(text[start:end])]
            done = end
        return "".join([*pieces, text[done:]])

    def _nets(self) -> Iterator[tuple[int, int]]:
        """Where the insides of nets are."""
        for entry in self._scan.entries:
            if entry.name.text in _NETS and entry.body is not None:
                yield entry.body

    def _check_nets(self) -> None:
        """A net's fields aren't ours to know, but it must be protobuf's text."""
        text_format = require("text_format")
        text = without_comments(self._text)
        for start, end in self._nets():
            alone = with_signs_joined(text[start:end])
            try:
                text_format.Parse(alone, message("NetParameter"), allow_unknown_field=True)
            except (text_format.ParseError, UnicodeError, RecursionError) as error:
                raise SolverParametersError([self._of_protobuf(error, start)]) from None

    def _check_settings(self, parsed: Any) -> None:
        """A setting has one value, and isn't given again: which of them counts wouldn't be plain."""
        found = []
        for field in _SETTINGS:
            places = [entry.name for entry in self._named(field)]
            seen: set[str] = set()
            for index, setting in enumerate(getattr(parsed, field)):
                at = places[index] if index < len(places) else Token("name", field, 0)
                given = [setting.HasField("flag"), setting.HasField("text"), bool(setting.value)]
                told = f"{field} {quoted(setting.name)}"
                if not setting.name:
                    found.append(self._finding(at, f"{field} has no name", None, field))
                elif setting.name in seen:
                    found.append(self._finding(at, f"{told} is given twice", None, field))
                elif sum(given) != 1:
                    said = "several kinds of values" if any(given) else "no value"
                    found.append(self._finding(at, f"{told} has {said}", "give one", field))
                seen.add(setting.name)
        if found:
            raise SolverParametersError(found)

    def _locations(self) -> dict[str, tuple[Location, ...]]:
        places: dict[str, list[Location]] = {}
        for entry in self._scan.entries:
            name = _SETTINGS.get(entry.name.text, entry.name.text)
            values = entry.values if entry.listed else ((entry.name,),)
            places.setdefault(name, []).extend(self._place(value[0], value[-1]) for value in values)
        return {name: tuple(found) for name, found in places.items()}

    def _place(self, first: Token, last: Token | None = None) -> Location:
        line, column = self._line_and_column(first.start)
        end = (last or first).end - self._starts[line - 1] + 1
        return Location(self._name, line, column, end)

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def _line(self, number: int) -> str:
        end = self._starts[number] if number < len(self._starts) else len(self._text)
        return self._text[self._starts[number - 1] : end].rstrip("\r\n")

    def _finding(self, token: Token, text: str, hint: str | None = None, field: str | None = None) -> Finding:
        place = self._place(token)
        return Finding(message=text, hint=hint, field=field, location=place, source=self._line(place.line))

    def _of_protobuf(self, error: Any, start: int = 0) -> Finding:
        """What protobuf says, where nothing better is known, of the text that begins at ``start``."""
        line = getattr(error, "GetLine", lambda: None)() or 1
        column = getattr(error, "GetColumn", lambda: None)() or 1
        first_line, first_column = self._line_and_column(start)
        line, column = line + first_line - 1, column + (first_column - 1 if line == 1 else 0)
        said = _LINE_AND_REST.sub("", _PLACE.sub("", str(error))).strip()
        said = printable(said.replace("solvergen.caffe.", "caffe."))
        if isinstance(error, RecursionError):
            said = "braces are nested too deeply"
        return Finding(
            message=said[:1].lower() + said[1:].rstrip("."),
            location=Location(self._name, line, column, column + 1),
            source=self._line(min(line, len(self._starts))),
        )

    # Why protobuf refuses a text, in the words of who wrote it.

    def _complaints(self) -> list[Finding]:
        conflicts = [
            self._finding(
                Token("sign", match[0], match.start()),
                "a marker of a merge conflict",
                "keep one of the two versions, and remove the markers",
            )
            for match in re.finditer(r"^(<{7}|={7}|>{7})(?= |$|\r)", self._text, re.MULTILINE)
        ]
        if conflicts:
            return conflicts
        found: list[Finding] = []
        known = message_class("SolverParameter").DESCRIPTOR.fields_by_name
        seen: dict[str, Entry] = {}
        for entry in self._scan.entries:
            name = entry.name.text
            if name not in known:
                other = _ONLY_IN_YAML.get(name.lower()) or FIELDS.get(name.lower())
                hint = other or meant(name, _written_names())
                found.append(self._finding(entry.name, f"no field {quoted(name)}", hint))
                continue
            field = known[name]
            if name in seen and not _repeats(field):
                first = self._place(seen[name].name)
                found.append(
                    self._finding(
                        entry.name,
                        f"{name} is given twice",
                        f"it stands in line {first.line} already, and takes one value",
                        name,
                    )
                )
            seen.setdefault(name, entry)
            found += self._of_values(entry, field)
        if self._scan.stopped is not None:
            found += self._of_stop(self._scan.stopped)
        return found

    def _of_values(self, entry: Entry, field: Any) -> list[Finding]:
        name = entry.name.text
        if field.message_type is not None:
            if entry.body is None:
                return [self._finding(entry.name, f"{name} is a message", f"write {name} {{ ... }}", name)]
            return []
        if entry.body is not None:
            return [self._finding(entry.name, f"{name} takes a value, no braces", None, name)]
        if entry.listed and not _repeats(field):
            hint = _one_value(name)
            return [self._finding(entry.name, f"{name} takes one value, not a list", hint, name)]
        found = []
        for value in entry.values:
            told = _wrong_value(name, field, value)
            if told is not None:
                found.append(self._finding(value[0], *told, name))
        return found

    def _of_stop(self, token: Token) -> list[Finding]:
        before = self._scan.entries[-1].name.text if self._scan.entries else ""
        if before == "device_id" and token.kind == "number":
            return [self._finding(token, "device_id takes one value", _one_value(before), before)]
        hint = _STRAY.get(token.text)
        return [self._finding(token, f"{quoted(token.text)} fits nowhere", hint)] if hint else []


def _written_names() -> list[str]:
    return list(message_class("SolverParameter").DESCRIPTOR.fields_by_name)


def _repeats(field: Any) -> bool:
    """Whether it is a repeated field: both protobuf's newer word for it, and its older one."""
    new = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if new is None else new)


def _one_value(name: str) -> str | None:
    if name == "device_id":
        return "one solver runs on one device: give its number alone"
    return None


def _wrong_value(name: str, field: Any, value: tuple[Token, ...]) -> tuple[str, str | None] | None:
    """What is wrong with a value that is written like this, and what to write."""
    written = "".join(token.text for token in value)
    shown = shortened(written)
    kind = value[-1].kind
    if field.enum_type is not None:
        names = field.enum_type.values_by_name
        if written in names or (kind == "number" and _whole(written) in field.enum_type.values_by_number):
            return None
        unquoted = f"write {name}: {shown[1:-1]}, without quotes" if kind == "string" else None
        return f"{name} can't be {shown}", unquoted or meant(written, names)
    if field.type == field.TYPE_STRING:
        if kind != "string":
            return f"{name} is a string", f'write {name}: "{shown}"'
        return _wrong_text(name, value)
    if field.type == field.TYPE_BOOL:
        if written in ("true", "false", "True", "False", "t", "f", "0", "1"):
            return None
        near = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(written.strip("\"'").lower())
        plain = written.strip("\"'").lower()
        near = near or (plain if plain in ("true", "false") else None)
        return f"{name} is true or false, not {shown}", f"write {name}: {near}" if near else None
    if kind == "string":
        return f"{name} is a number", f"write {name}: {shown[1:-1]}, without quotes"
    if field.type in (field.TYPE_INT32, field.TYPE_INT64):
        return _wrong_whole(name, field, written)
    if kind == "name" and written.lstrip("-").lower() not in ("inf", "infinity", "nan"):
        return f"{name} is a number, not {shown}", None
    return None


def _wrong_text(name: str, value: tuple[Token, ...]) -> tuple[str, str | None] | None:
    """A string's escapes may be of bytes, or of halves of characters, that are no text."""
    text_encoding = require("text_encoding")
    try:
        b"".join(text_encoding.CUnescape(token.text[1:-1]) for token in value).decode()
    except ValueError:
        return f"{name} has an escape that stands for no text in UTF-8", "a backslash itself is written \\\\"
    return None


def _wrong_whole(name: str, field: Any, written: str) -> tuple[str, str | None] | None:
    bits = 32 if field.type == field.TYPE_INT32 else 64
    whole = _whole(written)
    if whole is not None:
        if -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
            return None
        return f"{name} can't be {shortened(written)}", f"it holds numbers up to {2 ** (bits - 1) - 1}"
    try:
        number = float(written)
    except ValueError:
        return f"{name} is a whole number, not {shortened(written)}", None
    hint = f"write {name}: {shortened(str(int(number)))}" if number.is_integer() else None
    return f"{name} is a whole number, not {shortened(written)}", hint


def _whole(written: str) -> int | None:
    try:
        # A leading 0 is octal to protobuf, as it is in C.
        plain = written.lstrip("-")
        if len(plain) > 1 and plain[0] == "0" and plain.isdigit():
            return int(written, 8)
        return int(written, 0)
    except ValueError:
        return None


def _values(parsed: Any) -> dict[str, Any]:
    """The fields that a message has, as ``SolverParameters`` takes them. Nets are left out."""
    values: dict[str, Any] = {}
    for field, value in parsed.ListFields():
        name = field.name
        if name in _NETS:
            continue
        if name in _SETTINGS:
            values[_SETTINGS[name]] = {setting.name: _setting(setting) for setting in value}
        elif name == "train_state":
            values[name] = _state(value)
        elif name == "test_state":
            values[name] = tuple(map(_state, value))
        elif field.enum_type is not None:
            values[name] = field.enum_type.values_by_number[value].name
        else:
            values[name] = tuple(value) if _repeats(field) else value
    return values


def _setting(setting: Any) -> Any:
    if setting.HasField("flag"):
        return setting.flag
    if setting.HasField("text"):
        return setting.text
    numbers = tuple(int(number) if number.is_integer() else number for number in setting.value)
    return numbers[0] if len(numbers) == 1 else numbers


def _state(state: Any) -> NetState:
    phase = "TEST" if state.phase else "TRAIN"
    return NetState(
        phase=phase if state.HasField("phase") else None,  # type: ignore[arg-type]
        level=state.level if state.HasField("level") else None,
        stage=tuple(state.stage),
    )


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
