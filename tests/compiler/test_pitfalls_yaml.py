"""Traps of YAML into which compilers like this one fell (numbers 5 to 8 of the collection)."""

from __future__ import annotations

import time

import pytest

from solvergen.frontend.resolve import analyse
from solvergen.spec.reader import examine, read_spec

SPEC = """\
name: rule
summary: A rule.
hyperparameters:
  lr: {default: 0.1}
update:
  - param = param - lr*grad
"""


def findings(tmp_path, content):
    path = tmp_path / "rule.yaml"
    path.write_text(content, encoding="utf-8")
    spec, found = examine(path)
    return [*found, *(analyse(spec).diagnostics if spec is not None else ())]


def places(tmp_path, content):
    return [(d.code, d.location.line) for d in findings(tmp_path, content)]


def spec_of(tmp_path, content):
    assert findings(tmp_path, content) == []
    return read_spec(tmp_path / "rule.yaml")


# --- 5: loading YAML can run code


@pytest.mark.parametrize(
    "value",
    [
        '!!python/object/apply:os.system ["touch {}"]',
        "!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['{}']]",
        "!!python/object/new:subprocess.Popen [['touch', '{}']]",
        "!!python/name:os.system",
        "!!python/module:os",
        '!<tag:yaml.org,2002:python/object/apply:os.system> ["touch {}"]',
        "!!str x",
        "!local x",
        "! x",
    ],
)
@pytest.mark.parametrize("place", ["state: {}\n", "name: {}\n", "update: [{}]\n", "{}\n", "? {}\n: 1\n"])
def test_tags_make_nothing(tmp_path, value, place):
    trace = tmp_path / "trace"
    found = findings(tmp_path, place.format(value.format(trace)))
    assert "SG005" in {d.code for d in found}
    assert not trace.exists()


def test_a_redefined_tag_makes_nothing_either(tmp_path):
    trace = tmp_path / "trace"
    directive = "%TAG !p! tag:yaml.org,2002:python/object/apply:\n---\n"
    found = places(tmp_path, f'{directive}state: !p!os.system ["touch {trace}"]\n')
    assert found == [("SG005", 1)]
    assert not trace.exists()


def test_nine_levels_of_aliases(tmp_path):
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
    )
    start = time.process_time()
    found = findings(tmp_path, bomb)
    assert {d.code for d in found} == {"SG005"}
    assert time.process_time() - start < 10


def test_an_alias_to_itself(tmp_path):
    assert places(tmp_path, "a: &a [*a]\n") == [("SG005", 1)] * 2


# --- 6: numbers of YAML 1.1


@pytest.mark.parametrize("text", ["1e-8", "1E-08", "1.0e-8", "0.00000001", "10e-9", "+1e-8"])
@pytest.mark.parametrize("place", ["{{default: {}}}", "{{default: 1, min: {}}}", "{{default: 0, max: {}}}"])
def test_1e_8_is_a_number_in_every_place(tmp_path, text, place):
    entry = place.format(text)
    (found,) = spec_of(tmp_path, SPEC.replace("{default: 0.1}", entry)).hyperparameters
    assert 1e-8 in (found.default, found.min, found.max)


def test_1e_8_is_a_number_as_an_initial_value(tmp_path):
    update = "  - m = m + grad\n  - param = param - lr*m\n"
    content = SPEC[: SPEC.index("update")] + "state:\n  m: {init: 1e-8}\nupdate:\n" + update
    assert spec_of(tmp_path, content).state[0].init == 1e-8


@pytest.mark.parametrize("text", ["10000", "1e4", "1.0e4", "1E+4", "10000.0", "0x2710", "0o23420", "010000"])
def test_whole_and_other_spellings(tmp_path, text):
    default = spec_of(tmp_path, SPEC.replace("0.1", text)).hyperparameters[0].default
    assert default == 10000.0
    assert type(default) is float


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "1:30",
        "12:30",
        ".nan",
        ".NAN",
        ".inf",
        "-.inf",
        "true",
        "True",
        "1_701",
        "0.1f",
        "1/2",
        "nan",
        "inf",
        "1.0e+400",
        "1e-400",
        "(0.9, 0.999)",
        '"0.1"',
        "2024-01-01",
        "null",
        "~",
        "",
        "[0.1]",
        "08:00",
    ],
)
def test_what_is_no_number_is_refused_by_key_and_line(tmp_path, text):
    found = findings(tmp_path, SPEC.replace("0.1", text))
    first = found[0]
    assert first.code in ("SG012", "SG013")
    assert first.location.line == 4
    assert "default" in first.message


# --- 7: booleans and null of YAML 1.1


@pytest.mark.parametrize(
    "name", ["n", "y", "N", "Y", "on", "off", "yes", "no", "On", "NO", "nan", "inf", "e"]
)
def test_words_that_were_booleans_are_names(tmp_path, name):
    content = SPEC.replace("lr", name)
    assert spec_of(tmp_path, content).hyperparameters[0].name == name
    state = (
        f"state:\n  {name}: {{init: 0}}\nupdate:\n  - {name} = {name} + lr*grad\n  - param = param - {name}\n"
    )
    assert spec_of(tmp_path, SPEC[: SPEC.index("update")] + state).state[0].name == name
    option = (
        f"options:\n  {name}: {{default: false}}\nupdate:\n  - {{when: {name}, do: param = param - lr}}\n"
    )
    rest = "  - param = param - lr*grad\n"
    assert spec_of(tmp_path, SPEC[: SPEC.index("update")] + option + rest).options[0].name == name


@pytest.mark.parametrize("name", ["true", "True", "FALSE", "null", "Null", "~", "1", "1.5"])
def test_words_that_are_values_are_no_names(tmp_path, name):
    found = places(tmp_path, SPEC.replace("lr:", f"{name}:"))
    assert ("SG008", 4) in found
    quoted = places(tmp_path, SPEC.replace("lr:", f'"{name}":'))
    assert quoted[0] in (("SG021", 4), ("SG020", 4))


@pytest.mark.parametrize(
    "word", ["n", "no", "off", "N", "Off", "y", "yes", "on", "'false'", '"true"', "0", "1", "null"]
)
def test_only_true_and_false_are_switches(tmp_path, word):
    option = f"options:\n  nesterov: {{default: {word}}}\nupdate:\n  - g = where(nesterov, grad, -grad)\n"
    content = SPEC[: SPEC.index("update")] + option + "  - param = param - lr*g\n"
    assert places(tmp_path, content)[0] == ("SG012", 6)


def test_true_is_not_1(tmp_path):
    assert places(tmp_path, SPEC.replace("0.1", "true")) == [("SG012", 4)]
    assert places(tmp_path, SPEC.replace("0.1", "0, integer: 1")) == [("SG012", 4)]


# --- 8: YAML eats parts of an equation


def update(*lines):
    return SPEC[: SPEC.index("  - param")] + "".join(f"  {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("- param: param - lr*grad", "SG010"),
        ("- n: {a}", "SG010"),
        ("- param: *q", "SG005"),
        ("- *q", "SG005"),
        ("- k: !m", "SG005"),
        ("- |x| > 1", "SG004"),
        ("- param: >0", "SG004"),
        ("- 'm' + v", "SG004"),
        ("- param = where(grad > 0 ? 1 : 0)", "SG010"),
        ("- @param = 1", "SG004"),
        ("- `param` = 1", "SG004"),
        ("- %param = 1", "SG004"),
        ("- [m v]", "SG012"),
        ("- param:1", "SG044"),
        ("-param = 1", "SG012"),
        ("\t- param = 1", "SG004"),
        ("- {when: a, do: param = max(param, grad)}", "SG012"),
    ],
)
def test_an_equation_that_yaml_takes_for_something_else(tmp_path, line, code):
    found = findings(tmp_path, update(line))
    first = next(d for d in found if d.code == code)
    assert first.location.line in (5, 6)
    assert first.hint


def test_what_follows_a_number_sign_is_a_comment(tmp_path):
    (statement,) = spec_of(tmp_path, update("- param = param - lr*grad #step")).update
    assert statement.equation.text == "param = param - lr*grad"
    (found,) = findings(tmp_path, update("- param = param - lr*grad#step"))
    assert found.code == "SG043"


def test_repeated_keys_are_refused_wherever_they_are(tmp_path):
    assert ("SG006", 8) in places(tmp_path, SPEC + "name: b\nupdate: [a]\n")
    assert places(tmp_path, SPEC.replace("0.1}", "0.9, default: 0.99}")) == [("SG006", 4)]
    assert places(tmp_path, SPEC.replace("{default: 0.1}", "{default: 0.9}\n  lr: {default: 0.99}")) == [
        ("SG006", 5)
    ]
    assert places(tmp_path, SPEC.replace("{default: 0.1}", '{default: 0.9}\n  "lr": {default: 0.99}')) == [
        ("SG006", 5)
    ]
    two = "state: {m: {init: 0}, m: {init: 1}}\n"
    assert ("SG006", 7) in places(tmp_path, SPEC + two)


def test_a_section_may_not_be_a_list_with_a_word_in_it(tmp_path):
    assert places(tmp_path, SPEC + "state: [m v]\n") == [("SG012", 7)]


def test_a_missing_blank_after_a_colon(tmp_path):
    (found,) = findings(tmp_path, SPEC + "state: m:1\n")
    assert (found.code, found.hint) == ("SG012", "YAML wants a blank after the colon")


def test_two_documents(tmp_path):
    assert places(tmp_path, SPEC + "---\n" + SPEC) == [("SG007", 7)]
    assert spec_of(tmp_path, "---\n" + SPEC + "...\n").name == "rule"
