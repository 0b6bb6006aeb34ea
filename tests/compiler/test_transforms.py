"""Transforms of shipped rules against the same rules as they are written out, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.compiler import check, compile_spec
from solvergen.emit.equations import equation_lines
from solvergen.frontend.transforms import TRANSFORMS, transformed
from solvergen.spec.reader import read_spec
from tests.golden.data import gradients, parameters
from tests.oracles.comparing import assert_near
from tests.support.packages import built_package
from tests.support.shipped import CLASSES


def written(folder, of, *names, more="", name="derived"):
    path = folder / f"{name}.yaml"
    listed = ", ".join(names)
    path.write_text(
        f"name: {name}\nsummary: Derived.\nof: {of}\ntransform: [{listed}]\n{more}", encoding="utf-8"
    )
    return path


def trajectory(optimizer, params, steps=25):
    found = []
    for step in range(1, steps + 1):
        optimizer.step(gradients(step))
        found.append({name: x.copy() for name, x in params.items()})
    return found


CASES = {
    "cautious": ("adamw", {}, "cautious_adamw", {}),
    "mars": ("adamw", {}, "mars_adamw", {}),
    "lookahead": ("sgd", {"momentum": 0.8, "k": 3}, "lookahead", {"momentum": 0.8, "k": 3}),
    "schedule_free": ("sgd", {"averaging": 0.9, "momentum": 0.0}, "schedule_free_sgd", {"momentum": 0.9}),
}


@pytest.mark.parametrize("name", CASES)
def test_is_the_rule_that_is_written_out(tmp_path, name):
    of, settings, same, theirs = CASES[name]
    package = built_package([written(tmp_path, of, name)], tmp_path / f"built_{name}")
    params, expected = parameters(), parameters()
    defaults = {h.name: h.default for h in CLASSES[same].definition.hyperparameters}
    ours = {h.name for h in package.Derived.definition.hyperparameters}
    settings = {**{n: v for n, v in defaults.items() if n in ours}, "lr": 0.03, **settings}
    found = trajectory(package.Derived(params, backend="numpy", **settings), params)
    other = trajectory(CLASSES[same](expected, backend="numpy", **{"lr": 0.03, **theirs}), expected)
    for step, (one, two) in enumerate(zip(found, other, strict=True)):
        for tensor, value in two.items():
            assert_near(one[tensor], value, f"{tensor} after step {step + 1}")


def test_nesterov_is_that_of_sgd(tmp_path):
    """Of lookahead with k so large that it never comes, SGD with momentum, it is torch's nesterov."""
    package = built_package([written(tmp_path, "lookahead", "nesterov")], tmp_path / "built_nesterov")
    params, expected = parameters(), parameters()
    settings = {"lr": 0.03, "momentum": 0.8}
    found = trajectory(package.Derived(params, backend="numpy", k=1000, **settings), params)
    sgd = CLASSES["sgd"](expected, backend="numpy", nesterov=True, **settings)
    for one, two in zip(found, trajectory(sgd, expected), strict=True):
        for tensor, value in two.items():
            assert_near(one[tensor], value, tensor)


def test_gradient_centralization_takes_the_means_away(tmp_path):
    """Of AdamW it is AdamW with gradients that NumPy has centred, of matrices and what has more axes."""
    package = built_package([written(tmp_path, "adamw", "gradient_centralization")], tmp_path / "built_gc")
    rng = np.random.default_rng(0)
    shapes = {"conv": (4, 3, 2, 2), "weight": (5, 70), "bias": (6,), "scale": ()}
    start = {name: np.asarray(rng.normal(size=shape)) for name, shape in shapes.items()}
    params, expected = ({name: x.copy() for name, x in start.items()} for _ in range(2))
    ours = package.Derived(params, backend="numpy", lr=0.03)
    theirs = CLASSES["adamw"](expected, backend="numpy", lr=0.03)
    for _ in range(5):
        grads = {name: np.asarray(rng.normal(size=shape) + 1) for name, shape in shapes.items()}
        centred = {
            name: g - g.mean(axis=tuple(range(1, g.ndim)), keepdims=True) if g.ndim > 1 else g
            for name, g in grads.items()
        }
        ours.step(grads)
        theirs.step({name: np.array(g, order="C") for name, g in centred.items()})
    for name, value in expected.items():
        assert_near(params[name], value, name)


def lines(path):
    return equation_lines(compile_spec(read_spec(path)).spec)


def test_the_equations_are_shown(tmp_path):
    assert lines(written(tmp_path, "lion", "cautious", "lookahead")) == [
        "direction = sign(beta1*exp_avg + (1 - beta1)*grad)",
        "exp_avg = beta2*exp_avg + (1 - beta2)*grad",
        "proposed = direction",
        "agrees = sign(proposed)*sign(grad) > 0",
        "scale = count_nonzero(where(agrees, 1, 2))/(count_nonzero(where(agrees, 1, 0)) + xi)",
        "param = param - lr*(where(agrees, scale*proposed, 0) + weight_decay*param)",
        "slow = where(t%k == 0, slow + alpha*(param - slow), slow)",
        "param = where(t%k == 0, slow, param)",
    ]


def test_the_equations_of_nesterov(tmp_path):
    found = lines(written(tmp_path, "adamw", "nesterov"))
    assert found[2] == "exp_avg_ahead = beta1*exp_avg + (1 - beta1)*g"
    assert "step = lr/(1 - beta1**t)*(exp_avg_ahead/denom)" in found


def test_the_digest_is_that_of_the_resulting_rule(tmp_path):
    spec = read_spec(written(tmp_path, "lion", "lookahead"))
    whole, found = transformed(spec)
    assert found == []
    assert whole.digest != spec.digest
    assert whole.base == "lion by lookahead"
    again, _ = transformed(read_spec(written(tmp_path, "lion", "lookahead")))
    assert again.digest == whole.digest


def test_what_the_spec_declares_stays(tmp_path):
    path = written(
        tmp_path, "lion", "lookahead", more="hyperparameters:\n  k: {default: 7, min: 1, integer: true}\n"
    )
    spec, found = transformed(read_spec(path))
    assert found == []
    assert [(h.name, h.default) for h in spec.hyperparameters if h.name in ("k", "alpha")] == [
        ("k", 7),
        ("alpha", 0.5),
    ]


@pytest.mark.parametrize(
    ("of", "names", "message"),
    [
        ("lion", "nesterov", "doesn't read exp_avg any more once it is updated"),
        ("sgd", "nesterov", "no momentum"),
        ("adafactor", "gradient_centralization", "knows columns of tensors"),
        ("heun", "gradient_centralization", "several times"),
        ("adan", "cautious", "no single equation"),
        ("heun", "cautious", "several times"),
        ("heun", "mars", "several times"),
        ("sgd", "mars", "no hyperparameter 'beta1'"),
        ("fromage", "schedule_free", "no single equation"),
        ("asgd", "lookahead", "'alpha' means something in this rule already"),
        ("lookahead", "lookahead", "'k' means something in this rule already"),
        ("lion", "lokahead", "there is no transform 'lokahead'"),
    ],
)
def test_what_is_refused(tmp_path, of, names, message):
    path = written(tmp_path, of, names)
    found = check([path]).diagnostics
    assert len(found) == 1
    assert message in found[0].message
    assert found[0].location.line == 4


@pytest.mark.parametrize("of", sorted(CLASSES))
@pytest.mark.parametrize("name", TRANSFORMS)
def test_of_any_rule_it_is_one_or_is_refused(tmp_path, name, of):
    """Never a crash, and never a rule with errors of its own."""
    found = check([written(tmp_path, of, name)])
    assert {d.code for d in found.diagnostics if d.severity == "error"} <= {"SG039"}
