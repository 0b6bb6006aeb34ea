"""Keys that are missing or unknown and values of the wrong kind: what is said, and what is advised."""

from __future__ import annotations

import pytest

from tests.unit.spec.support import MINIMAL, codes, diagnostics, findings, only, read, section

GIVE_IT_ONE = "give it one after the colon, or remove it"


def hyper(value):
    return section("hyperparameters", f"lr: {{default: {value}}}")


@pytest.mark.parametrize(
    ("value", "written", "hint"),
    [
        ("abc", "the text 'abc'", "write a number, such as 0.001 or 1e-3"),
        ("1:30", "the text '1:30'", "numbers to the base 60 are no part of YAML 1.2"),
        ("12:30:1.5", "the text '12:30:1.5'", "numbers to the base 60 are no part of YAML 1.2"),
        ("1_701", "the text '1_701'", "write the number without _ and ,"),
        ('"0,1"', "the text '0,1'", "write the number without _ and ,"),
        ("0.1f", "the text '0.1f'", "write a number, such as 0.001 or 1e-3"),
        ("1/2", "the text '1/2'", "write the value as one number: nothing is calculated here"),
        ("2**-3", "the text '2**-3'", "write the value as one number: nothing is calculated here"),
        ('"0.1"', "the text '0.1'", "write the number without quotes"),
        ("nan", "the text 'nan'", "numbers must be finite; a bound that isn't needed is left out"),
        (
            "-Infinity",
            "the text '-Infinity'",
            "numbers must be finite; a bound that isn't needed is left out",
        ),
        ("true", "true", "write 1 or 0 if a number is meant"),
        ("False", "False", "write 1 or 0 if a number is meant"),
        ("[0.9, 0.999]", "a list", "write one number, such as 0.001 or 1e-3"),
        ("{a: 1}", "a mapping", "write one number, such as 0.001 or 1e-3"),
        ("2024-01-01", "the text '2024-01-01'", "write the value as one number: nothing is calculated here"),
    ],
)
def test_what_is_no_number(tmp_path, value, written, hint):
    found = only(tmp_path, hyper(value))
    assert (found.code, found.location.line, found.location.column) == ("SG012", 6, 17)
    assert found.message == f"hyperparameters.lr.default must be a number, not {written}"
    assert found.hint == hint


@pytest.mark.parametrize(
    ("value", "number"), [("1e-8", 1e-8), ("10000", 1e4), ("1e4", 1e4), (".5", 0.5), ("-0", 0.0)]
)
def test_what_is_a_number(tmp_path, value, number):
    default = read(tmp_path, hyper(value)).hyperparameters[0].default
    assert default == number
    assert type(default) is float


@pytest.mark.parametrize(
    ("key", "place", "hint"),
    [
        ("defualt", "hyperparameters", "did you mean 'default'?"),
        ("Default", "hyperparameters", "did you mean 'default'?"),
        ("minimum", "hyperparameters", "did you mean 'min'?"),
        ("lt", "hyperparameters", "did you mean 'below'?"),
        ("initial", "state", "did you mean 'init'?"),
        ("if", "state", "did you mean 'when'?"),
        ("dеfault", "options", "its 'е' is not among the letters A to Z, whatever it looks like"),
        ("colour", "options", "the keys here are default, doc"),
    ],
)
def test_an_unknown_key_inside(tmp_path, key, place, hint):
    given = "default: 1, " if place == "hyperparameters" else ""
    found = only(tmp_path, section(place, f"x: {{{given}{key}: 1}}"))
    assert (found.code, found.message) == ("SG010", f"unknown key '{key}' in {place}.x")
    assert found.hint == hint


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("stat", "state"),
        ("States", "state"),
        ("hyperparams", "hyperparameters"),
        ("param_groups", "hyperparameters"),
        ("option", "options"),
        ("class", "class_name"),
        ("class-name", "class_name"),
        ("equations", "update"),
    ],
)
def test_an_unknown_key_at_the_top(tmp_path, key, meant):
    found = only(tmp_path, MINIMAL + f"{key}: 1\n")
    assert (found.code, found.location.line, found.hint) == ("SG010", 7, f"did you mean '{meant}'?")


def test_a_misspelt_key_isn_t_missing_as_well(tmp_path):
    assert codes(tmp_path, section("hyperparameters", "lr: {defualt: 0.1}")) == ["SG010"]
    assert codes(tmp_path, section("hyperparameters", "lr: {minn: 0.1}")) == ["SG011", "SG010"]
    assert codes(tmp_path, MINIMAL.replace("update:", "updates:")) == ["SG010"]


def test_what_is_required(tmp_path):
    found = diagnostics(tmp_path, "description: nothing else\n")
    assert [(d.code, d.message) for d in found] == [
        ("SG011", f"the spec has no '{key}'") for key in ("name", "summary", "update")
    ]
    assert all(d.hint and d.hint.startswith("add ") for d in found)
    assert findings(tmp_path, MINIMAL + "references: [{year: 2015}]\n") == [("SG011", 7, 14)]
    assert findings(tmp_path, section("constraints", "- that: lr < 1")) == [("SG011", 8, 5)]
    assert findings(tmp_path, section("update", "- param = param - lr*grad\n- when: a")) == [("SG011", 7, 5)]


@pytest.mark.parametrize(
    ("content", "code", "message", "hint"),
    [
        (
            "state: [m v]",
            "SG012",
            "state must be a mapping, not a list",
            "its entries have names: m: {init: 0}",
        ),
        (
            "state: m:1",
            "SG012",
            "state must be a mapping, not the text 'm:1'",
            "YAML wants a blank after the colon",
        ),
        ("state: {m: 0}", "SG012", "state.m must be a mapping, not the number 0", "write m: {init: 0}"),
        ("options: {a: true}", "SG012", "options.a must be a mapping, not true", "write a: {default: true}"),
        (
            "state: {m: zeros}",
            "SG012",
            "state.m must be a mapping, not the text 'zeros'",
            "write it like this: m: {init: 0}",
        ),
        (
            "state: {m: {init: true}}",
            "SG012",
            "state.m.init must be a number or an expression, not true",
            "write 1 or 0 if a number is meant",
        ),
        (
            "state: {m: {init: [0]}}",
            "SG012",
            "state.m.init must be a number or an expression, not a list",
            "write one number, such as 0.001 or 1e-3",
        ),
        (
            "state: {m: {shape: scaler}}",
            "SG014",
            "state.m.shape must be 'param', 'scalar', 'shared', 'rows', 'columns', 'matrices', 'leading', "
            "'trailing' or 'blocks', not the text 'scaler'",
            None,
        ),
        (
            "state: {m: {when: true}}",
            "SG012",
            "state.m.when must be text, not true",
            "leave the 'when' out if this is always to be there",
        ),
        (
            "state: {m: {when: {a: 1}}}",
            "SG012",
            "state.m.when must be text, not a mapping",
            "a text with : , [ ] { } in it needs quotes",
        ),
        (
            "options: {a: {default: 1}}",
            "SG012",
            "options.a.default must be true, false or a condition, not the number 1",
            "write true or false, without quotes",
        ),
        (
            "options: {a: {default: ''}}",
            "SG014",
            "options.a.default is empty",
            "write something, or remove it",
        ),
        (
            "options: {a: {default: '  '}}",
            "SG014",
            "options.a.default is empty",
            "write something, or remove it",
        ),
        (
            "constraints: {that: a}",
            "SG012",
            "constraints must be a list, not a mapping",
            'write it like this: - {that: "a < b", message: "a must be below b"}',
        ),
        (
            "constraints: [a < b]",
            "SG012",
            "constraints[1] must be a mapping, not the text 'a < b'",
            'write it like this: - {that: "a < b", message: "a must be below b"}',
        ),
        (
            "reference: 1412.6980",
            "SG012",
            "reference must be a mapping, not the number 1412.6980",
            "write it like this: reference: {title: ...}",
        ),
        (
            "reference: {title: A, arxiv: 1412.6980}",
            "SG012",
            "reference.arxiv must be text, not the number 1412.6980",
            "put it in quotes: as a number it would lose its last zeros",
        ),
        (
            "reference: {title: A, year: 2015.5}",
            "SG012",
            "reference.year must be a whole number or text, not the number 2015.5",
            "write a whole number",
        ),
        (
            "reference: {title: A, year: true}",
            "SG012",
            "reference.year must be a whole number or text, not true",
            "write a whole number",
        ),
        ("description: 5", "SG012", "description must be text, not the number 5", "put it in quotes: '5'"),
        ("conventions: it depends", "SG012", "conventions must be a list, not the text 'it depends'", None),
        (
            "conventions: [5]",
            "SG012",
            "conventions[1] must be text, not the number 5",
            "put it in quotes: '5'",
        ),
        (
            "counterparts: [{name: a.b}]",
            "SG011",
            "counterparts[1] has no 'library'",
            "add 'library: ...', the library that has it",
        ),
        (
            "counterparts: [{library: a}]",
            "SG011",
            "counterparts[1] has no 'name'",
            "add 'name: ...', the class or function as one imports it",
        ),
        (
            "counterparts: [{library: a, name: a.b, maps: {lr: 1}}]",
            "SG012",
            "counterparts[1].maps.lr must be text, not the number 1",
            "put it in quotes: '1'",
        ),
        (
            "counterparts: [{library: a, name: a.b, map: {lr: x}}]",
            "SG010",
            "unknown key 'map' in counterparts[1]",
            "did you mean 'maps'?",
        ),
        (
            "counterparts: {torch: torch.optim.SGD}",
            "SG012",
            "counterparts must be a list, not a mapping",
            "write it like this: - {library: torch, name: torch.optim.Adam}",
        ),
        ("description: ''", "SG014", "description is empty", "write something, or remove it"),
        ("state:\n  m:", "SG012", "'m' has no value", GIVE_IT_ONE),
        ("state: {m: {init}}", "SG012", "'init' has no value", GIVE_IT_ONE),
        ("state: {m: {init: null}}", "SG012", "'init' has no value", GIVE_IT_ONE),
        ("state: {m: {init: ~}}", "SG012", "'init' has no value", GIVE_IT_ONE),
        ("description:", "SG012", "'description' has no value", GIVE_IT_ONE),
        ("conventions: [a, ]\nreference:", "SG012", "'reference' has no value", GIVE_IT_ONE),
        ("conventions:\n  -\n  - a", "SG012", "an item of the list has no value", GIVE_IT_ONE),
    ],
)
def test_values_of_the_wrong_kind(tmp_path, content, code, message, hint):
    found = only(tmp_path, MINIMAL + content + "\n")
    assert (found.code, found.message, found.hint) == (code, message, hint)
    assert found.location.line >= 7


@pytest.mark.parametrize(
    ("update", "code", "message", "hint"),
    [
        (
            "update: m = 3",
            "SG012",
            "update must be a list, not the text 'm = 3'",
            "equations are a list, each after '- '",
        ),
        (
            "update: {m: a}",
            "SG012",
            "update must be a list, not a mapping",
            "equations are a list: - m = ...",
        ),
        (
            "update: []",
            "SG014",
            "update has nothing in it",
            "add 'update:' with the equations under it, each after '- '",
        ),
        (
            "update: [5]",
            "SG012",
            "update[1] must be an equation or a mapping with 'do', not the number 5",
            "equations are a list, each after '- '",
        ),
        (
            "update: [[a]]",
            "SG012",
            "update[1] must be an equation or a mapping with 'do', not a list",
            "equations are a list, each after '- '",
        ),
        ("update: ['']", "SG014", "update[1] is empty", "write something, or remove it"),
        (
            "update:\n  - m: beta*m + g",
            "SG010",
            "unknown key 'm' in update[1]",
            "an equation has a '=': - m = beta*m + g",
        ),
        (
            "update:\n  - {when: a, do: []}",
            "SG014",
            "update[1].do has nothing in it",
            "add 'do: ...' with the equation",
        ),
        (
            "update:\n  - {when: a, do: 5}",
            "SG012",
            "update[1].do must be an equation or a list of them, not the number 5",
            "equations are a list, each after '- '",
        ),
        (
            "update:\n  - {when: a, do: {b: c}}",
            "SG012",
            "update[1].do must be an equation or a list of them, not a mapping",
            "equations are a list: - b = ...",
        ),
        (
            "update:\n  - {when: a, do: [b = c, 5]}",
            "SG012",
            "update[1].do[2] must be text, not the number 5",
            "put it in quotes: '5'",
        ),
        (
            "update:\n  - {when: a, then: b = c}",
            "SG010",
            "unknown key 'then' in update[1]",
            "did you mean 'do'?",
        ),
    ],
)
def test_updates_of_the_wrong_kind(tmp_path, update, code, message, hint):
    found = only(tmp_path, "name: rule\nsummary: A rule.\n" + update + "\n")
    assert (found.code, found.message, found.hint) == (code, message, hint)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("abc", "the text 'abc'"),
        ("- a", "a list"),
        ("5", "the number 5"),
        ("true", "true"),
        ("name:x", "the text 'name:x'"),
    ],
)
def test_a_spec_is_a_mapping(tmp_path, content, what):
    found = only(tmp_path, content)
    assert (found.code, found.message) == ("SG012", f"a spec must be a mapping, not {what}")


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n", "---\n", "null", "~", "--- # nothing\n...\n"])
def test_an_empty_file(tmp_path, content):
    found = only(tmp_path, content)
    assert (found.code, found.message) == ("SG007", "the file is empty")


@pytest.mark.parametrize("key", ["true", "1", "null", "~", "1.5", "[a]", "{a: b}", "? [a, b]\n  "])
def test_keys_are_text(tmp_path, key):
    assert "SG008" in codes(tmp_path, MINIMAL + f"state:\n  {key}: {{init: 0}}\n")


def test_a_long_text_is_shown_in_part(tmp_path):
    found = only(tmp_path, hyper("x" * 3000))
    assert len(found.message) < 120
    assert found.message.endswith("…'")


def test_a_text_may_be_so_long(tmp_path):
    assert codes(tmp_path, MINIMAL + "description: " + "x" * 4000 + "\n") == []
    assert codes(tmp_path, MINIMAL + "description: " + "x" * 4001 + "\n") == ["SG003"]
