"""A spec that is derived from another: what it has of it, what its own changes are, and its digest."""

from __future__ import annotations

from textwrap import dedent

import pytest

from solvergen.compiler import compile_spec
from solvergen.emit.equations import equation_lines
from solvergen.frontend.resolve import analyse
from solvergen.spec.files import shipped_folder
from solvergen.spec.reader import examine, read_spec, read_specs

BASE = """\
name: base
class_name: BaseRule
summary: The base.
description: Much about the base.
references:
  - {title: The base's}
conventions: [The base's.]
counterparts:
  - {library: torch, name: torch.optim.SGD}
hyperparameters:
  lr: {default: 0.1, min: 0, doc: rate}
  mu: {default: 0.9, min: 0}
  wd: {default: 0, min: 0}
options:
  decayed: {default: false}
state:
  m: {init: 0}
constraints:
  - {that: mu < 1, message: too much momentum}
update:
  - g = grad
  - {when: decayed, do: [g = g + wd*param, g = g + 0*lr]}
  - m = mu*m + g
  - param = param - lr*m
"""


@pytest.fixture
def derive(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")

    def written(more="", name="derived", extends="base"):
        path = tmp_path / f"{name}.yaml"
        text = f"name: {name}\nsummary: Derived.\nextends: {extends}\n{dedent(more)}"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def whole(path):
    spec = read_spec(path)
    assert analyse(spec).diagnostics == ()
    return spec


def changed(derive, *changes):
    return equation_lines(whole(derive("change:\n" + "".join(f"  - {change}\n" for change in changes))))


ALL = [
    "g = grad",
    "when decayed: g = g + wd*param",
    "when decayed: g = g + 0*lr",
    "m = mu*m + g",
    "param = param - lr*m",
]


def test_all_but_prose_comes_from_the_base(derive):
    spec, base = whole(derive()), read_spec(derive().with_name("base.yaml"))
    assert (spec.name, spec.class_name, spec.summary) == ("derived", "Derived", "Derived.")
    assert (spec.description, spec.conventions, spec.counterparts) == ("", (), ())
    assert spec.references == base.references
    assert spec.hyperparameters == base.hyperparameters
    assert (spec.options, spec.state, spec.constraints) == (base.options, base.state, base.constraints)
    assert spec.base == "base"
    assert equation_lines(spec) == equation_lines(base) == ALL


def test_the_digest_is_that_of_the_rule(derive, tmp_path):
    derived = whole(derive("hyperparameters: {mu: {default: 0.5, min: 0}}"))
    text = BASE.replace("name: base", "name: derived").replace("mu: {default: 0.9", "mu: {default: 0.5")
    (tmp_path / "base.yaml").write_text(text, encoding="utf-8")
    assert read_spec(tmp_path / "base.yaml").digest == derived.digest


def test_declarations_are_added_replaced_and_removed(derive):
    spec = whole(
        derive(
            """
            hyperparameters:
              nu: {default: 2, min: 0}
              lr: {default: 0.3, min: 0}
              wd: null
            options:
              decayed: null
            state:
              n: {init: 0}
            change:
              - {remove: g, number: 2}
              - {remove: g, number: 3}
              - {after: m, do: n = m + nu*n}
              - {replace: param, do: param = param - lr*n}
            """
        )
    )
    assert [(h.name, h.default, h.doc) for h in spec.hyperparameters] == [
        ("lr", 0.3, ""),
        ("mu", 0.9, ""),
        ("nu", 2.0, ""),
    ]
    assert spec.options == ()
    assert [s.name for s in spec.state] == ["m", "n"]
    assert equation_lines(spec) == ["g = grad", "m = mu*m + g", "n = m + nu*n", "param = param - lr*n"]


def test_where_changes_go(derive):
    one, two, three = "a = 2*g", "b = 3*a", "g = b"
    assert changed(
        derive, f"{{before: m, do: [{one}, {two}]}}", f"{{before: m, when: decayed, do: {three}}}"
    ) == [*ALL[:3], one, two, f"when decayed: {three}", *ALL[3:]]
    assert changed(derive, "{replace: g, number: 2, do: g = g + 2*wd*param, when: decayed}") == [
        ALL[0],
        "when decayed: g = g + 2*wd*param",
        *ALL[2:],
    ]
    assert changed(
        derive, "{remove: g, number: 3}", f"{{after: g, number: 3, do: {three.replace('b', '2*g')}}}"
    ) == [
        *ALL[:2],
        "g = 2*g",
        *ALL[3:],
    ]


def test_new_equations_of_its_own(derive):
    spec = whole(
        derive(
            """
            hyperparameters: {mu: null, wd: null}
            options: {decayed: null}
            state: {m: null}
            constraints: []
            update:
              - param = param - lr*grad
            """
        )
    )
    assert equation_lines(spec) == ["param = param - lr*grad"]
    assert [h.name for h in spec.hyperparameters] == ["lr"]


@pytest.mark.parametrize("own", ["reference: {title: Own}", "references: [{title: Own}]"])
def test_own_references_come_first(derive, own):
    assert [r.title for r in whole(derive(own)).references] == ["Own", "The base's"]


def test_one_over_another(derive):
    derive("hyperparameters: {mu: {default: 0.5, min: 0}}", name="middle")
    spec = whole(derive("change: [{after: m, do: m = m + 0*lr}]", name="top", extends="middle"))
    assert spec.hyperparameters[1].default == 0.5
    assert equation_lines(spec) == [*ALL[:4], "m = m + 0*lr", ALL[4]]


@pytest.mark.parametrize("name", ["sgd", "nadam", "adopt", "madgrad", "rprop", "dog", "rk23"])
def test_it_compiles_to_what_the_base_does(tmp_path, name):
    """All that comes from the base stands at one place, which must not make one of several equations."""
    path = tmp_path / f"{name}.yaml"
    path.write_text(f"name: {name}\nsummary: Derived.\nextends: {name}\n", encoding="utf-8")
    derived, base = (compile_spec(read_spec(p)) for p in (path, shipped_folder() / path.name))
    assert derived.spec.digest == base.spec.digest
    assert derived.typed == base.typed
    assert derived.schedule == base.schedule


def test_of_the_same_name_as_one_that_comes_along(derive):
    spec = whole(derive("hyperparameters: {lr: {default: 0.5, min: 0}}", name="adamw", extends="adamw"))
    assert (spec.name, spec.hyperparameters[0].default) == ("adamw", 0.5)


def test_of_a_tableau(derive, tmp_path):
    text = "name: base\nsummary: A base.\ntableau: {matrix: [[], [1]], weights: [1/2, 1/2]}\n"
    derive()
    (tmp_path / "base.yaml").write_text(text, encoding="utf-8")
    path = derive("change: [{after: gradient, do: k2 = grad + 0*k1}, {remove: k2}]")
    assert equation_lines(whole(path))[3:5] == ["gradient", "k2 = grad + 0*k1"]


def test_the_folder_is_read_as_ever(derive, tmp_path):
    derive()
    assert [spec.name for spec in read_specs(tmp_path)] == ["base", "derived"]


@pytest.mark.parametrize(
    ("more", "code", "place", "message"),
    [
        ("change: [{remove: g}]", "SG036", 4, "base has 3 equations for 'g'"),
        ("change: [{remove: g, number: 0}]", "SG036", 4, "none of number 0"),
        ("change: [{remove: x}]", "SG036", 4, "base has no equation for 'x'"),
        ("change: [{do: x = 1}]", "SG011", 4, "doesn't say which equation"),
        ("change: [{replace: m}]", "SG011", 4, "'replace' without 'do'"),
        ("change: [{remove: m, do: m = g}]", "SG015", 4, "both 'remove' and 'do'"),
        ("change: [{remove: m, before: m, do: x = 1}]", "SG015", 4, "both 'before' and 'remove'"),
        ("change:\n  - {remove: m}\n  - {replace: m, do: m = g}", "SG015", 6, "replaced or removed already"),
        ("change: [{remove: m, nummer: 1}]", "SG010", 4, "did you mean 'number'?"),
        ("change: []", "SG014", 4, "change has nothing in it"),
        ("change: {remove: m}", "SG012", 4, "change must be a list"),
        ("hyperparameters: {mu: null}", "SG037", 4, "'mu' is removed, but base uses it: m = mu*m + g"),
        ("state: {m: null}", "SG037", 4, "'m' is removed"),
        ("options: {decayed: null}", "SG037", 4, "'decayed' is removed"),
        ("options: {mu: {}}", "SG022", 4, "'mu' is already a hyperparameter"),
        ("tableau: {matrix: [[]], weights: [1]}", "SG015", 4, "both 'extends' and 'tableau'"),
    ],
)
def test_what_is_said_of_mistakes(derive, more, code, place, message):
    spec, found = examine(derive(more))
    said = [(d.code, d.location.line) for d in found]
    assert said == [(code, place)], found
    assert message in f"{found[0].message} {found[0].hint}"
    assert found[0].location.file.endswith("derived.yaml")
    assert spec is None or analyse(spec).diagnostics == ()


def test_what_the_changes_leave_unused_is_said_in_the_right_file(derive):
    found = analyse(read_spec(derive("change: [{replace: m, do: m = g}]"))).diagnostics
    assert [(d.code, d.location.line) for d in found] == [("SG064", 3)]
    assert found[0].location.file.endswith("derived.yaml")
    assert found[0].source == "extends: base"


def test_a_long_chain_is_refused(derive):
    for i in range(9, 0, -1):
        derive(name=f"rule{i}", extends=f"rule{i + 1}" if i < 9 else "base")
    assert examine(derive(name="rule0", extends="rule4"))[1] == ()
    found = examine(derive(name="rule0", extends="rule1"))[1]
    assert [d.code for d in found] == ["SG034"]
