"""The compiled form of caffe.proto says what its text says, and both say what Caffe's files hold."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from solvergen.solver.parameters.proto.messages import message, message_class

pytest.importorskip("google.protobuf")

_TYPES = {
    "int32": 5, "int64": 3, "float": 2, "double": 1, "bool": 8, "string": 9,
}  # fmt: skip
_FIELD = re.compile(r"(optional|repeated) (\w+) (\w+) = (\d+)(?: \[(.*)\])?;")


def _written() -> dict[str, dict[str, tuple[str, str, int, str]]]:
    """What the text declares, line by line: message -> field -> (label, type, number, options)."""
    text = (resources.files("solvergen.solver.parameters.proto") / "caffe.proto").read_text("utf-8")
    found: dict[str, dict[str, tuple[str, str, int, str]]] = {}
    within: list[str] = []
    for line in text.splitlines():
        stripped = line.split("//")[0].strip()
        if match := re.match(r"(message|enum) (\w+) \{", stripped):
            within.append(match[2])
            if match[1] == "message":
                found[".".join(within)] = {}
        elif stripped == "}":
            within.pop()
        elif match := _FIELD.match(stripped):
            found[".".join(within)][match[3]] = (match[1], match[2], int(match[4]), match[5] or "")
    return found


WRITTEN = _written()


@pytest.mark.parametrize("name", WRITTEN)
def test_the_compiled_form_has_the_fields_of_the_text(name):
    descriptor = message_class(name).DESCRIPTOR
    assert {field.name for field in descriptor.fields} == set(WRITTEN[name])
    for field in descriptor.fields:
        label, type_, number, options = WRITTEN[name][field.name]
        assert field.number == number
        assert field.is_repeated == (label == "repeated")
        assert field.is_packed == ("packed = true" in options)
        if type_ in _TYPES:
            assert field.type == _TYPES[type_]
        else:
            assert (field.enum_type or field.message_type).name == type_
        default = re.search(r"default = ([^,\]]+)", options)
        assert field.has_default_value == (default is not None)
        if default is not None:
            shown = field.default_value
            if field.enum_type is not None:
                shown = field.enum_type.values_by_number[shown].name
            if isinstance(shown, bool):
                shown = str(shown).lower()
            if isinstance(shown, float):
                assert shown == pytest.approx(float(default[1]), rel=1e-7)
            else:
                assert str(shown) == default[1].strip('"')


def test_bytes_are_those_of_the_format():
    """By hand from the tables of numbers and wire types."""
    state = message("SolverState")
    state.iter = 300
    state.learned_net = "m"
    blob = state.history.add()
    blob.shape.dim.extend([2, 1])
    blob.data.extend([1.0, -2.0])
    history = b"\x2a\x08\x00\x00\x80\x3f\x00\x00\x00\xc0" + b"\x3a\x04\x0a\x02\x02\x01"
    assert state.SerializeToString() == b"\x08\xac\x02\x12\x01m\x1a" + bytes([len(history)]) + history
