"""Constraints on options: state that only one option has may be used under another that needs it."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.errors import HyperparameterError, OptimizerError
from solvergen.runtime import native
from solvergen.verify import check_agreement
from tests.support.packages import built_package

SPEC = """
name: constrained
summary: State that another option needs.
hyperparameters:
  lr: {default: 0.5}
options:
  a: {default: false}
  b: {default: false}
state:
  m: {init: 0, when: a}
  s: {init: 1, shape: scalar, when: a}
constraints:
  - {that: a, when: b, message: b needs a}
update:
  - {when: a, do: ["m = m + grad", "s = s*0.5"]}
  - g = grad
  - {when: b, do: ["g = m*s", "m = m + g"]}
  - param = param - lr*g
"""


@pytest.fixture
def optimizer(tmp_path):
    (tmp_path / "constrained.yaml").write_text(SPEC, encoding="utf-8")
    return built_package([tmp_path], tmp_path / "constrained_options").Constrained


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, -1.0), ({"a": True}, -1.0), ({"a": True, "b": True}, -0.5 * 0.5 - 0.5 * 2.5 * 0.25)],
)
@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_settings_that_are_left(optimizer, options, expected, backend):
    if backend == "cpu" and native.available():
        pytest.skip(native.available())
    param = np.zeros(3, np.float32)
    made = optimizer(param, backend=backend, **options)
    for _ in range(2):
        made.step(np.ones(3, np.float32))
    assert param.tolist() == [np.float32(expected)] * 3


def test_agreement(optimizer):
    if native.available():
        pytest.skip(native.available())
    check_agreement(optimizer, backends=("numpy", "cpu"), examples=20)


def test_the_setting_that_is_ruled_out_is_refused(optimizer):
    with pytest.raises((HyperparameterError, OptimizerError), match="b needs a"):
        optimizer(np.zeros(3, np.float32), backend="numpy", b=True)
