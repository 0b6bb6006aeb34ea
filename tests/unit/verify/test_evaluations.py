"""Rules that evaluate the gradient within a step, as verify draws, follows and runs them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvergen.runtime import native
from solvergen.verify import find_disagreement
from solvergen.verify.direct import run_directly
from solvergen.verify.evaluations import gradient_at
from solvergen.verify.example import Example, Group, Step, Tensor
from solvergen.verify.machines import machine
from solvergen.verify.running import run
from solvergen.verify.static import static_report
from solvergen.verify.trace import first_difference
from tests.support.handwritten import closures
from tests.support.handwritten.closures import Ahead, Heun, TwiceSAM

BACKENDS = [
    "numpy",
    pytest.param("cpu", marks=pytest.mark.skipif(native.available() is not None, reason="no C compiler")),
]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    return {rule: closures.with_kernels(rule, tmp_path_factory.mktemp("rule")) for rule in closures.ALL}


@pytest.mark.parametrize("rule", closures.ALL, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("backend", BACKENDS)
def test_agreement(kernels, rule, backend):
    found = find_disagreement(kernels[rule], backend, examples=20)
    assert found is None, found.describe()


FAULTS = {
    "place": (Heun, "sg_round_param(param - lr * grad)", "param"),
    "old gradient": (Heun, "half * (grad_before + grad)", "half * (grad + grad)"),
    "descent": (
        TwiceSAM,
        "const sg_real param_new = sg_round_param(",
        "const sg_real param_new = (sg_real)0.5 * (",
    ),
    "second norm": (TwiceSAM, "sg_over_all[1]", "sg_over_all[0]"),
    "state": (Ahead, "beta * v + sg_sqrt64(norm)", "beta * v"),
}


@pytest.mark.skipif(native.available() is not None, reason="no C compiler")
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(tmp_path, fault):
    rule, right, wrong = FAULTS[fault]
    broken = closures.with_kernels(rule, tmp_path)
    kernel = tmp_path / "kernel.c"
    text = kernel.read_text()
    assert text.count(right) == 1
    kernel.write_text(text.replace(right, wrong))
    assert find_disagreement(broken, "cpu", examples=30) is not None


def an_example(nonfinite, gradient):
    tensors = (
        Tensor("w", np.array([1.0, -2.0], np.float16), 0, 0),
        Tensor("b", np.array([3.0], np.float16), 1, 0),
    )
    step = Step((gradient, None), 0, ({"lr": 0.125},))
    return Example((Group({}, {}),), tensors, (step, step), nonfinite=nonfinite, reuse=True)


@pytest.mark.parametrize(
    ("nonfinite", "outcome"), [("skip", "skipped"), ("raise", "raised"), ("propagate", "applied")]
)
def test_policies_of_later_evaluations(nonfinite, outcome):
    # 1 - 40000/8 and 2*40000 more: past the largest float16, in the second evaluation only.
    example = an_example(nonfinite, np.array([40_000.0, 1.0], np.float16))
    expected = run_directly(Heun.definition, example)
    assert [moment.outcome for moment in expected] == ["made", outcome, outcome]
    found = run(Heun, machine("numpy"), example)
    assert first_difference(expected, found, None) is None
    assert [moment.outcome for moment in found] == ["made", outcome, outcome]


def test_a_step_by_hand():
    example = an_example("propagate", np.array([0.5, 1.0], np.float16))
    one = replace(example, steps=example.steps[:1])
    (_, after) = run_directly(Heun.definition, one)
    # At 1 - 0.5/8 the gradient is twice the drawn one more than the parameter.
    there = np.float32(1 - 0.5 / 8) + 2 * np.float32(0.5)
    assert after.buffers["w"]["param"][0] == np.float16(1 - 0.0625 * (np.float32(0.5) + np.float16(there)))
    assert after.counts == {"w": 1, "b": 0}


def test_gradients_hang_on_every_bit_of_the_parameter():
    param = np.array([1.0, 1.0], np.float32)
    param[1] = np.nextafter(param[1], np.float32(2))
    drawn = np.array([0.25, 0.25], np.float32)
    assert gradient_at(1, drawn, param) is drawn
    later = gradient_at(2, drawn, param)
    assert later.dtype == np.float32
    assert later[0] != later[1]
    assert gradient_at(3, drawn, param)[0] == later[0] + 0.25


@pytest.mark.parametrize("rule", closures.ALL, ids=lambda rule: rule.__name__)
def test_kernels_as_they_are_emitted(kernels, rule):
    report = static_report([kernels[rule]], capabilities=[90], dtypes=[("bfloat16", "float16")])
    assert [str(finding) for row in report.rows for finding in row.findings] == []
