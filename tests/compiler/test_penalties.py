"""Penalties and projections as equations: derivatives against finite differences, and the rest."""

from __future__ import annotations

import numpy as np
import pytest

from generated import SGD
from solvergen.compiler import compile_spec
from solvergen.emit.equations import equation_lines
from solvergen.errors import SpecError
from solvergen.frontend.resolve import analyse
from solvergen.spec.reader import read_spec
from tests.support.bits import assert_same_bits
from tests.support.packages import built_package

HEAD = """\
name: {name}
summary: Gradient descent with a penalty.
hyperparameters:
  lr: {{default: 1.0, above: 0}}
  c: {{default: 0.3, above: 0}}
"""
UPDATE = "update:\n  - param = param - c/c*(lr*grad)\n"

C = 0.3
POINTS = np.array([-3.1, -1.7, -0.9, -0.4, -0.05, 0.07, 0.21, 0.45, 0.8, 1.3, 2.6])
PENALTIES = {
    "ridge": ("c/2*param**2", lambda x: C / 2 * x**2),
    "lasso": ("c*abs(param)", lambda x: C * np.abs(x)),
    "huber": (
        "where(abs(param) <= c, param**2/2, c*(abs(param) - c/2))",
        lambda x: np.where(np.abs(x) <= C, x**2 / 2, C * (np.abs(x) - C / 2)),
    ),
    "log_cosh": ("c*log((exp(param) + exp(-param))/2)", lambda x: C * np.log(np.cosh(x))),
    "stable_log_cosh": ("c*(abs(param) + log(1 + exp(-2*abs(param))))", lambda x: C * np.log(2 * np.cosh(x))),
    "barrier": ("-c*log(4 - param) - c*log(param + 4)", lambda x: -C * np.log(16 - x**2)),
    "smooth_abs": ("sqrt(param**2 + c)", lambda x: np.sqrt(x**2 + C)),
    "hinge": ("c*max(1 - param, 0)**2", lambda x: C * np.maximum(1 - x, 0) ** 2),
    "clipped": ("clip(param, -c, 2)**3", lambda x: np.clip(x, -C, 2) ** 3),
    "bridge": ("abs(param)**1.5 + c*tanh(param/c)", lambda x: np.abs(x) ** 1.5 + C * np.tanh(x / C)),
    "any_bridge": (
        "abs(param)**(1 + c) + max(param, 0)**(2*c + 1)",
        lambda x: np.abs(x) ** (1 + C) + np.maximum(x, 0) ** (1 + 2 * C),
    ),
    "nearest": ("c*min(abs(param), abs(param - 1))", lambda x: C * np.minimum(np.abs(x), np.abs(x - 1))),
}


def text_of(name, penalty, more=""):
    return HEAD.format(name=name) + f"penalty: {penalty}\n{more}" + UPDATE


def written(folder, name, text):
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("penalties")
    specs = [written(folder, name, text_of(name, penalty)) for name, (penalty, _) in PENALTIES.items()]
    return built_package(specs, folder / "built_penalties")


def class_named(package, name):
    return getattr(package, "".join(part.capitalize() for part in name.split("_")))


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
@pytest.mark.parametrize("name", PENALTIES)
def test_the_derivative_is_that_of_differences(package, name, backend):
    param, h = POINTS.copy(), 1e-6
    class_named(package, name)([param], backend=backend).step([np.zeros_like(param)])
    loss = PENALTIES[name][1]
    expected = (loss(POINTS + h) - loss(POINTS - h)) / (2 * h)
    np.testing.assert_allclose(POINTS - param, expected, rtol=1e-7, atol=1e-8)


def test_at_a_kink(package):
    kinks = {"lasso": (0.0, 0.0), "hinge": (1.0, 0.0), "clipped": (2.0, 12.0), "any_bridge": (0.0, 0.0)}
    for name, (value, slope) in kinks.items():
        param = np.array([value])
        class_named(package, name)([param], backend="numpy").step([np.zeros(1)])
        assert value - param[0] == pytest.approx(slope)


def test_is_the_equation_that_it_stands_for(tmp_path):
    """l2 as a penalty has the bits of SGD's decay, and is another rule than without."""
    spec = written(tmp_path, "decayed", text_of("decayed", "c/2*param**2"))
    package = built_package([spec], tmp_path / "built_decayed")
    rng = np.random.default_rng(2)
    ours = rng.normal(size=999).astype(np.float32)
    theirs = ours.copy()
    one = package.Decayed([ours], lr=0.1, backend="numpy")
    other = SGD([theirs], lr=0.1, weight_decay=0.3, backend="numpy")
    for _ in range(3):
        gradient = rng.normal(size=999).astype(np.float32)
        one.step([gradient])
        other.step([gradient])
    assert_same_bits(ours, theirs)
    assert package.Decayed.definition.digest != read_spec(spec).digest


def test_shows_what_it_has_become(tmp_path):
    spec = written(tmp_path, "shown", text_of("shown", "c*abs(param)", "project: max(param, -c)\n"))
    lines = equation_lines(compile_spec(read_spec(spec)).spec)
    assert lines == [
        "grad = grad + c*sign(param)",
        "param = param - c/c*(lr*grad)",
        "param = max(param, -c)",
    ]


def test_goes_with_every_gradient(tmp_path):
    text = text_of("twice", "c/2*param**2").replace(
        UPDATE, "update:\n  - first = grad\n  - param = param - lr*grad\n  - gradient\n"
        "  - param = param - lr*(grad - first)/2\n",
    )  # fmt: skip
    assert equation_lines(compile_spec(read_spec(written(tmp_path, "twice", text))).spec) == [
        "grad = grad + param*c",
        "first = grad",
        "param = param - lr*grad",
        "gradient",
        "grad = grad + param*c",
        "param = param - lr*(grad - first)/2",
    ]
    package = built_package([tmp_path / "twice.yaml"], tmp_path / "built_twice")
    for backend in ("numpy", "cpu"):
        param = np.array([2.0])
        package.Twice([param], lr=0.5, backend=backend).step(lambda: (0.0, [np.zeros(1)]))
        assert param[0] == pytest.approx(2 * (1 - 0.15 + 0.15**2 / 2), rel=1e-12)  # Heun's on exp(-0.3t)


def test_a_derived_spec_has_those_of_its_base(tmp_path):
    written(tmp_path, "base", text_of("base", "c*abs(param)", "project: max(param, 0)\n"))
    derived = "name: derived\nsummary: Derived.\nextends: base\nproject: min(param, c)\n"
    spec = analyse(read_spec(written(tmp_path, "derived", derived))).spec
    assert equation_lines(spec)[0] == "grad = grad + c*sign(param)"
    assert equation_lines(spec)[-1] == "param = min(param, c)"


def test_a_transformed_rule_may_have_one(tmp_path):
    text = (
        "name: cautious\nsummary: Derived.\nof: lion\ntransform: [cautious]\n"
        "hyperparameters:\n  c: {default: 0.1, min: 0}\npenalty: c*abs(param)\n"
    )
    spec = analyse(read_spec(written(tmp_path, "cautious", text))).spec
    assert equation_lines(spec)[0] == "grad = grad + c*sign(param)"


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_projects_the_new_value(tmp_path, backend):
    text = text_of("projected", "c*abs(param)", "project: clip(param, 0, c)\n")
    package = built_package([written(tmp_path, "projected", text)], tmp_path / f"built_{backend}")
    param = np.array([-1.0, 0.2, 5.0])
    package.Projected([param], backend=backend).step([np.array([0.0, -0.2, 0.0])])
    assert param == pytest.approx([0.0, 0.1, 0.3])


@pytest.mark.parametrize(
    ("penalty", "words"),
    [
        ("c*floor(param/c)", "floor of param jumps"),
        ("exp(param//c)", r"the whole quotient \(//\) of param jumps"),
        ("where(param > 0, param % 3, 0)", r"the remainder \(%\) of param jumps"),
    ],
)
def test_what_has_no_derivative_is_named_by_its_own_name(penalty, words, tmp_path):
    with pytest.raises(SpecError, match=words) as caught:
        compile_spec(read_spec(written(tmp_path, "steps", text_of("steps", penalty))))
    (found,) = caught.value.diagnostics
    assert found.code == "SG097"
    for foreign in ("Derivative", "Subs", "xi"):
        assert foreign not in str(found)


def test_conditions_may_jump(tmp_path):
    text = text_of("steps", "c*where(param % 2 < 1, param**2, param)")
    compile_spec(read_spec(written(tmp_path, "steps", text)))
