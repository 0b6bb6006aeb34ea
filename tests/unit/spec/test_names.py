"""Which names a spec may give."""

from __future__ import annotations

import keyword

import pytest

from solvergen.ir import functions, guards, reductions
from solvergen.spec import limits, names
from solvergen.spec.names import (
    class_name_of,
    problem_with_argument,
    problem_with_class_name,
    problem_with_name,
    problem_with_spec_name,
)
from tests.unit.spec.support import MINIMAL, findings, only, read, section

CLAIMED_ELSEWHERE = """
    E I N S O Q pi beta gamma zeta Chi re im ff rf x i n m idx tid blockIdx threadIdx blockDim x0 x1
    y0 y1 j0 j1 jn half float double int long char bool void auto register restrict double_ true_
    int32_t size_t INFINITY NAN M_PI sin cos ceil round fabs fma printf main this template class_
    operator new delete signed unsigned switch default y on no yes off nil nan inf abs_ list dict
    len print id input iter np math real rounded e
""".split()  # noqa: SIM905


@pytest.mark.parametrize("name", CLAIMED_ELSEWHERE)
def test_what_others_claim_is_free(tmp_path, name):
    assert problem_with_name(name) is None
    assert problem_with_argument(name) is None
    spec = read(tmp_path, section("hyperparameters", f"{name}: {{default: 1}}").replace("lr*", f"{name}*"))
    assert spec.hyperparameters[0].name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "m 1",
        "weight-decay",
        "1m",
        "_m",
        "__init__",
        "é",
        "β",
        "ｍ",
        "m.n",
        "m\n",
        "m\t",
        "a" * 65,
        "a'b",
        "*",
    ],
)
def test_what_is_no_name(name):
    problem = problem_with_name(name)
    assert problem is not None
    assert problem[0] == "SG020"


def test_names_end_where_they_should():
    assert problem_with_name("a" * 64) is None
    assert problem_with_name("v_") is None
    assert problem_with_name("v__2") is None


@pytest.mark.parametrize("name", sorted({*keyword.kwlist, *names.PYTHON_KEYWORDS}))
def test_keywords(name):
    assert problem_with_name(name) == (
        "SG021",
        "it is a keyword of Python, which equations and the generated classes are written in",
    )


@pytest.mark.parametrize(
    "name",
    [
        "sg_x",
        "SG_x",
        "sg_",
        "param",
        "grad",
        "t",
        "sqrt",
        "where",
        "mean",
        "all",
        "pow",
        "ipow",
        "true",
        "null",
        "NULL",
        "False",
    ],
)
def test_what_means_something_already(name):
    problem = problem_with_name(name)
    assert problem is not None
    assert problem[0] == "SG021"


def test_the_language_s_functions_are_those_of_the_ir():
    assert set(names.FUNCTIONS) == set(functions.FUNCTIONS)
    assert set(names.REDUCTIONS) == {*reductions.REDUCTIONS, reductions.ALL}
    assert names.LINES == (*reductions.LINES,) == (*reductions.VIEWS,) == (*reductions.RANKS,)
    assert names.EXTENTS == (reductions.NDIM,)
    assert names.STATEMENTS == (functions.GRADIENT,)
    assert set(names.INTERNAL_FUNCTIONS) == set(functions.INTERNAL_FUNCTIONS)
    assert limits.MAX_OPTIONS == guards.MAX_OPTIONS


@pytest.mark.parametrize(
    "name", ["self", "params", "backend", "step", "state", "lr_mult", "load_state_dict", "groups"]
)
@pytest.mark.parametrize("kind", ["hyperparameters", "options"])
def test_arguments_hide_no_attribute(tmp_path, name, kind):
    found = only(
        tmp_path, section(kind, f"{name}: {{default: {'1' if kind == 'hyperparameters' else 'true'}}}")
    )
    assert found.code == "SG021"
    assert name in found.message
    assert found.hint.startswith("choose another name, such as ")
    suggested = found.hint.split()[-1]
    assert problem_with_name(suggested) is None
    assert problem_with_argument(suggested) is None


@pytest.mark.parametrize("name", ["step", "state", "params", "backend"])
def test_states_may_be_called_like_attributes(tmp_path, name):
    assert read(tmp_path, section("state", f"{name}: {{init: 0}}")).state[0].name == name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("weight-decay", "write weight_decay"),
        ("m 1", "write m_1"),
        ("_m", "write m"),
        ("1st", "write st"),
        ("é", None),
        ("lambda", "choose another name, such as lam"),
        ("sg_m", "choose another name, such as m"),
    ],
)
def test_a_name_that_would_do(tmp_path, name, hint):
    found = only(tmp_path, section("state", f'"{name}": {{init: 0}}'))
    assert (found.location.line, found.location.column, found.hint) == (8, 3, hint)


def test_capitals_count(tmp_path):
    spec = read(tmp_path, section("state", "n: {}\nN: {}\ndouble: {}\ndouble_: {}"))
    assert [state.name for state in spec.state] == ["n", "N", "double", "double_"]


def test_one_name_means_one_thing(tmp_path):
    content = MINIMAL + "options:\n  m: {}\n  lr: {}\nstate:\n  m: {}\n"
    assert findings(tmp_path, content) == [("SG022", 9, 3), ("SG022", 11, 3)]


@pytest.mark.parametrize(
    ("name", "class_name"),
    [("adam", "Adam"), ("rms_prop", "RmsProp"), ("a_2_b", "A2B"), ("x__y_", "XY"), ("sgd2", "Sgd2")],
)
def test_the_class_of_a_name(name, class_name):
    assert class_name_of(name) == class_name


@pytest.mark.parametrize(
    "name", ["Adam", "adam-w", "adam w", "../adam", "class", "import", "_adam", "1bit", "", "true"]
)
def test_spec_names_are_modules(name):
    assert problem_with_spec_name(name) is not None


@pytest.mark.parametrize("name", ["adam", "state", "step", "numpy", "x", "caffe_sgd"])
def test_spec_names(name):
    assert problem_with_spec_name(name) is None


@pytest.mark.parametrize(
    "name", ["adam", "None", "Optimizer", "1A", "A-B", "Ä", "A" * 65, "", "TYPE_CHECKING"]
)
def test_class_names_are_classes(name):
    assert problem_with_class_name(name) is not None


def test_where_a_bad_name_is_reported(tmp_path):
    assert findings(tmp_path, MINIMAL.replace("name: rule", "name: Rule")) == [("SG020", 1, 7)]
    assert findings(tmp_path, MINIMAL.replace("name: rule", "name: rule\nclass_name: rule")) == [
        ("SG020", 2, 13)
    ]
    assert findings(tmp_path, MINIMAL.replace("name: rule", "name: optimizer")) == [("SG021", 1, 7)]
    given = MINIMAL.replace("name: rule", "name: optimizer\nclass_name: Mine")
    assert findings(tmp_path, given) == []
