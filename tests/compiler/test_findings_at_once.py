"""A mistake in the shape of a spec doesn't hide those in its equations, and brings no others with it."""

from __future__ import annotations

import random

import pytest

from solvergen.compiler import build, check
from solvergen.errors import SpecError
from solvergen.spec.reader import examine, read_spec, read_specs

RULE = """\
name: rule
summary: A rule.
hyperparameters:
  lr: {default: 0.1, min: 0}
  mu: {default: 0.9, min: 0, below: 1}
options:
  nesterov: {default: false}
state:
  m: {init: 0}
  scale: {init: 1, shape: scalar}
constraints:
  - {that: mu > 0, when: nesterov, message: nesterov needs mu}
update:
  - scale = scale*mu
  - m = mu*m + grad
  - {when: nesterov, do: "m = m + mu*grad"}
  - step_size = lr*scale
  - param = param - step_size*m
"""
LAST = "  - param = param - step_size*m\n"
WRONG = "  - param = param - step_size*m*grads\n"

# What is written instead of what, and the findings about that.
MISTAKES = {
    "unknown key": ("lr: {default: 0.1, min: 0}", "lr: {default: 0.1, minimum: 0}", [("SG010", 4, 22)]),
    "no summary": ("summary: A rule.\n", "# no summary\n", [("SG011", 1, 1)]),
    "no name": ("name: rule\n", "# no name\n", [("SG011", 2, 1)]),
    "number for an entry": ("lr: {default: 0.1, min: 0}", "lr: 1", [("SG012", 4, 7)]),
    "no default": ("lr: {default: 0.1, min: 0}", "lr: {min: 0}", [("SG011", 4, 3)]),
    "text for a number": ("{default: 0.1,", "{default: small,", [("SG012", 4, 17)]),
    "nothing for an entry": ("lr: {default: 0.1, min: 0}", "lr:", [("SG012", 4, 3)]),
    "unknown section": ("hyperparameters:", "hyperparams:", [("SG010", 3, 1)]),
    "section nobody knows": ("state:", "quux:", [("SG010", 8, 1)]),
    "list of options": ("  nesterov: {default: false}", "  - nesterov", [("SG012", 7, 3)]),
    "option by a word": ("{default: false}", "{default: no}", [("SG012", 7, 23)]),
    "option as text": ("nesterov: {default: false}", "nesterov: off", [("SG012", 7, 13)]),
    "state by its value": ("m: {init: 0}", "m: 0", [("SG012", 9, 6)]),
    "unknown shape": ("shape: scalar", "shape: number", [("SG014", 10, 27)]),
    "number as constraint": ("that: mu > 0", "that: 1", [("SG012", 12, 12)]),
    "no message": (", message: nesterov needs mu", "", [("SG011", 12, 5)]),
    "constraint as text": (
        "{that: mu > 0, when: nesterov, message: nesterov needs mu}",
        "mu > 0",
        [("SG012", 12, 5)],
    ),
    "other keys of a statement": (
        "{when: nesterov, do:",
        "{if: nesterov, then:",
        [("SG010", 16, 6), ("SG010", 16, 20)],
    ),
    "equation as key": ("step_size = lr*scale", "step_size: lr*scale", [("SG010", 17, 5)]),
    "number for an equation": ("  - scale = scale*mu", "  - 3", [("SG012", 14, 5)]),
    "spec's name": ("name: rule", "name: my-rule", [("SG020", 1, 7)]),
}  # fmt: skip


def write(tmp_path, content):
    path = tmp_path / "rule.yaml"
    path.write_text(content, encoding="utf-8")
    return path


def places(path):
    return sorted((d.code, d.location.line, d.location.column) for d in check([path]).diagnostics)


def changed(content, before, after):
    assert content.count(before) == 1
    return content.replace(before, after)


def test_the_rule_itself_is_fine(tmp_path):
    assert places(write(tmp_path, RULE)) == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_shape_is_reported_alone(tmp_path, mistake):
    before, after, wanted = MISTAKES[mistake]
    assert places(write(tmp_path, changed(RULE, before, after))) == sorted(wanted)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_and_with_what_is_wrong_in_the_equations(tmp_path, mistake):
    before, after, wanted = MISTAKES[mistake]
    path = write(tmp_path, changed(changed(RULE, before, after), LAST, WRONG))
    assert places(path) == sorted([*wanted, ("SG060", 18, 33)])
    for refuses in (read_spec, read_specs, lambda path: build([path])):
        with pytest.raises(SpecError):
            refuses(path)


def test_several_mistakes_of_shape_at_once(tmp_path):
    chosen = ("no summary", "unknown key", "state by its value", "option by a word", "constraint as text")
    content, wanted = changed(RULE, LAST, WRONG), [("SG060", 18, 33)]
    for mistake in chosen:
        before, after, found = MISTAKES[mistake]
        content = changed(content, before, after)
        wanted += found
    assert places(write(tmp_path, content)) == sorted(wanted)


def test_everything_is_still_said_where_only_prose_is_missing(tmp_path):
    content = changed(RULE, "summary: A rule.\n", "# no summary\n")
    content = changed(content, "  - step_size = lr*scale\n", "  - step_size = scale\n")
    assert places(write(tmp_path, content)) == [("SG011", 1, 1), ("SG064", 4, 3)]


def test_constraints_and_initial_values_are_read_as_well(tmp_path):
    content = changed(RULE, "lr: {default: 0.1, min: 0}", "lr: 1")
    content = changed(content, "that: mu > 0", "that: nu > 0")
    content = changed(content, "m: {init: 0}", "m: {init: 1 +}")
    assert [code for code, *_ in places(write(tmp_path, content))] == ["SG012", "SG052", "SG060"]


def test_use_before_assignment_is_found_beside_a_wrong_hyperparameter(tmp_path):
    content = changed(RULE, "lr: {default: 0.1, min: 0}", "lr: 1")
    content = changed(content, "  - m = mu*m + grad\n", "  - m = mu*m + grad*step_size\n")
    assert places(write(tmp_path, content)) == [("SG012", 4, 7), ("SG072", 15, 21)]


def test_names_in_what_was_left_out_are_not_called_unknown(tmp_path):
    content = changed(
        RULE, "  lr: {default: 0.1, min: 0}\n  mu: {default: 0.9, min: 0, below: 1}\n", "  - lr\n  - mu\n"
    )
    assert places(write(tmp_path, content)) == [("SG012", 4, 3)]


def test_a_section_may_be_there_under_two_names(tmp_path):
    content = changed(RULE, "options:", "hyperparams:\n  nu: {default: 1}\noptions:")
    content = changed(content, "lr*scale", "lr*scale*nu*nus")
    assert places(write(tmp_path, content)) == [("SG010", 6, 1), ("SG060", 19, 29)]


def test_a_spec_without_a_name_clashes_with_none(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, changed(RULE, "name: rule\n", "# no name\n"))
    found = check([tmp_path / "a", tmp_path / "b"]).diagnostics
    assert [d.code for d in found] == ["SG011", "SG011"]
    assert examine(tmp_path / "a" / "rule.yaml")[0].name == "rule"


@pytest.mark.parametrize("name", ["''", "3", "[]", "'9'", "'é'", "'_'"])
def test_a_name_that_is_none_does_not_keep_equations_from_being_read(tmp_path, name):
    content = changed(changed(RULE, "name: rule", f"name: {name}"), LAST, WRONG)
    found = places(write(tmp_path, content))
    assert found[-1] == ("SG060", 18, 33)
    assert len(found) == 2


def test_mistakes_by_chance_never_raise_anything(tmp_path):
    chance = random.Random(5)
    words = [
        "[",
        "]",
        "{",
        "}",
        ": ",
        "- ",
        "\n",
        " ",
        "1",
        "x",
        "null",
        "do",
        "when",
        "''",
        "=",
        "lr",
        "true",
    ]
    looked_at = 0
    for _ in range(400):
        letters = list(RULE)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(letters))
            if chance.random() < 0.5:
                del letters[at : at + chance.randint(1, 6)]
            else:
                letters.insert(at, chance.choice(words))
        path = write(tmp_path, "".join(letters))
        spec, found = examine(path)
        looked_at += spec is not None and any(d.code in ("SG010", "SG011", "SG012") for d in found)
        check([path])
    assert looked_at > 40
