"""A pass that can't be run leaves the parameters as they were, whichever pass it is and whoever kept them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvergen.runtime.backends import cpu_staged
from solvergen.runtime.definition import Definition
from solvergen.runtime.wrapped_classes import wrapped_class
from solvergen.runtime.wrappers import Wrappers
from solvergen.verify import why_unavailable
from tests.support.packages import built_package
from tests.support.rules import spec_text
from tests.support.shipped import CLASSES

pytestmark = pytest.mark.skipif(why_unavailable("cpu") is not None, reason=str(why_unavailable("cpu")))

EVALUATING = {name: cls for name, cls in CLASSES.items() if cls.definition.evaluations}


def expect_undone(monkeypatch: pytest.MonkeyPatch, cls: Any, number: int, **options: Any) -> None:
    """Two launches, of which the one of float64 fails in its pass ``number``."""
    params = [np.linspace(1, 2, 5, dtype=np.float32), np.linspace(-1, 3, 7)]
    before = [param.copy() for param in params]
    opt = cls(params, backend="cpu", **options)
    run = cpu_staged.StagedCpuLauncher.run_pass

    def failing(self: Any, one: int) -> None:
        if one == number and self.plan.param_dtype == "float64":
            raise MemoryError
        run(self, one)

    def closure() -> tuple[float, list[Any]]:
        return 0.0, [2 * param for param in params]

    with monkeypatch.context() as patch:
        patch.setattr(cpu_staged.StagedCpuLauncher, "run_pass", failing)
        with pytest.raises(MemoryError):
            opt.step(closure)
    assert [param.tobytes() for param in params] == [param.tobytes() for param in before]
    assert opt.t == 0
    opt.step(closure)
    assert params[0].tobytes() != before[0].tobytes()


def passes_of(definition: Definition) -> range:
    return range(len(definition.passes))


CASES = [(name, number) for name, cls in sorted(EVALUATING.items()) for number in passes_of(cls.definition)]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_shipped_rules(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
    expect_undone(monkeypatch, EVALUATING[name], number)


def test_some_keep_the_parameters_in_a_later_pass_than_the_first() -> None:
    assert EVALUATING["sam"].definition.keeping_pass() == (1,)
    assert EVALUATING["heun"].definition.keeping_pass() == (0,)


@pytest.mark.parametrize("adapt", [False, True])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_options_decide_which_pass_keeps_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, adapt: bool
) -> None:
    update = """
    g = where(adapt, norm2(param)*grad, grad)
    param = param - lr*g
    gradient
    param = param - lr*grad
    """
    path = tmp_path / "rule.yaml"
    path.write_text(spec_text(update, options="adapt: {default: false}"), encoding="utf-8")
    rule = built_package([path], tmp_path / f"undone_{number}_{adapt}").Rule
    if number in rule.definition.active_passes(adapt=adapt):
        expect_undone(monkeypatch, rule, number, adapt=adapt)
    assert {rule.definition.keeping_pass(adapt=a) for a in (False, True)} == {(0,), (1,)}


WRAPPED = {name: wrapped_class(EVALUATING[name]) for name in ("heun", "sam")}
WRAPPED_CASES = [(name, number) for name, cls in WRAPPED.items() for number in passes_of(cls.definition)]


@pytest.mark.parametrize(("name", "number"), WRAPPED_CASES)
def test_wrapped_rules(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
    # With these every pass has something to do.
    wrappers = Wrappers(clip_grad_norm=1, clip_tensor_norm=2, average=0.5, weight_decay=0.1)
    expect_undone(monkeypatch, WRAPPED[name], number, wrappers=wrappers)
