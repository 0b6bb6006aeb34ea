"""Rules with reductions and shared state: the rule followed directly, what is drawn, compared and named."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from solvergen.runtime import reductions
from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.workspace import KernelWorkspace
from solvergen.verify import built_from, check_agreement, disagreement_on, order, shipped, why_unavailable
from solvergen.verify.agreement import equation_behind
from solvergen.verify.direct import positions_of, run_directly
from solvergen.verify.drawing import each_example
from solvergen.verify.example import Example, Group, Step, Tensor
from solvergen.verify.replaying.data import example_data, example_from
from solvergen.verify.replaying.reproducer import reproducer
from solvergen.verify.settings import space_of
from solvergen.verify.trace import Moment, first_difference

ROOT = Path(__file__).parents[3]
BACKENDS = [name for name in ("numpy", "cpu", "ptx") if why_unavailable(name) is None]

SHARED = """\
name: meeting
summary: Tensors meet in a norm over all of them, and one speaks for all.
hyperparameters:
  lr: {default: 0.5}
options:
  scaled: {default: true}
state:
  seen: {init: lr, shape: shared, when: scaled}
  own: {init: 0, shape: scalar}
update:
  - own = own + mean(grad)
  - when: scaled
    do: seen = seen + lr*norm2(grad, all)
  - param = param - grad*own*where(scaled, seen, 1)
"""


@pytest.fixture(scope="module")
def meeting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Optimizer]]:
    path = tmp_path_factory.mktemp("spec") / "meeting.yaml"
    path.write_text(SHARED)
    with built_from([path]) as optimizers:
        yield optimizers["meeting"]


@pytest.fixture(scope="module")
def every_reduction() -> Iterator[type[Optimizer]]:
    with built_from([ROOT / "tests/support/specs/reductions.yaml"]) as optimizers:
        yield optimizers["reductions"]


def run_of(*gradients: list[float | None], scaled: tuple[bool, ...] = (True, True)) -> Example:
    """Two tensors of one element, the first in the second group, with these gradients step by step."""
    return Example(
        groups=tuple(Group({"scaled": value}, {}) for value in scaled),
        tensors=(Tensor("a", np.ones(1), 0, 1), Tensor("b", np.ones(1), 0, 0)),
        steps=tuple(
            Step(
                tuple(None if g is None else np.array([g]) for g in both),
                0,
                ({"lr": 0.5}, {"lr": 2.0}),
            )
            for both in gradients
        ),
    )


def test_the_first_group_comes_first_in_the_optimizer(meeting: type[Optimizer]) -> None:
    example = run_of([3.0, 4.0])
    assert positions_of(example.tensors) == [1, 0]
    before, after = run_directly(meeting.definition, example)
    assert before.shared == {"seen": 0.5}  # as the group of b says
    assert after.shared == {"seen": 0.5 + 0.5 * 5.0}
    assert after.scalars == {"a": {"own": 3.0}, "b": {"own": 4.0}}


def test_who_takes_no_part_says_nothing(meeting: type[Optimizer]) -> None:
    _, first, second, third = run_directly(meeting.definition, run_of([3.0, 4.0], [6.0, None], [None, None]))
    assert second.shared == {"seen": 3.0 + 2.0 * 6.0}  # a speaks, with its own lr, of its own norm
    assert second.scalars["b"] == first.scalars["b"]
    assert second.counts == {"a": 2, "b": 1}
    assert third.shared == second.shared


def test_an_option_decides_who_contributes(meeting: type[Optimizer]) -> None:
    _, after = run_directly(meeting.definition, run_of([3.0, 4.0], scaled=(False, True)))
    # b comes first but hasn't the state: it stays. a asks for the norm, to which b adds nothing.
    assert after.shared == {"seen": 2.0}
    assert after.buffers["a"]["param"].tolist() == [1.0 - 3.0 * 3.0 * (2.0 + 2.0 * 3.0)]
    assert after.buffers["b"]["param"].tolist() == [1.0 - 4.0 * 4.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_follow(meeting: type[Optimizer], backend: str) -> None:
    for scaled in ((True, True), (False, True), (True, False)):
        example = run_of([3.0, 4.0], [None, 1.0], [6.0, None], [None, None], scaled=scaled)
        assert disagreement_on(meeting, backend, example) is None
        shared = {"seen": 0.25}
        assert disagreement_on(meeting, backend, replace(example, shared=shared)) is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_drawn_runs(every_reduction: type[Optimizer], backend: str) -> None:
    check_agreement(every_reduction, backends=[backend], examples=10 if backend == "ptx" else 40)


@pytest.mark.parametrize("count", [0, 1, 2, 255, 256, 257, 4095, 4096, 4097, 8193, 70_000])
def test_the_order_is_the_runtimes(count: int) -> None:
    terms = np.random.default_rng(count).standard_normal(count)
    plain = [float(x) for x in terms]
    assert order.total(plain, order.add, 0.0) == reductions.sum_of(terms)
    assert order.total([abs(x) for x in plain], order.larger, 0.0) == reductions.max_abs(terms)
    if count:
        assert order.total_over_all(plain, order.add, 0.0) == reductions.total_of_terms("sum", terms)


def test_the_order_shows() -> None:
    terms = [float(x) for x in np.random.default_rng(1).standard_normal(5000)]
    assert order.total(terms, order.add, 0.0) != sum(terms)
    assert order.larger(math.nan, 1.0) != order.larger(math.nan, 1.0)
    assert order.larger(1.0, math.nan) != order.larger(1.0, math.nan)


def test_what_is_drawn(every_reduction: type[Optimizer]) -> None:
    drawn: list[Example] = []

    def take(example: Example) -> bool:
        drawn.append(example)
        return False

    each_example(space_of(every_reduction.definition), take, examples=150)
    sizes = {tensor.param.size for example in drawn for tensor in example.tensors}
    assert {0, 1, 255, 256, 257, 4095, 4096, 4097} <= sizes
    assert any(() in {tensor.shape for tensor in example.tensors} for example in drawn)
    mixed = [e for e in drawn if len({tensor.param.dtype for tensor in e.tensors}) > 1]
    assert len(mixed) > 10
    assert sum(len(example.groups) > 1 for example in drawn) > 30
    assert sum(bool(example.shared) for example in drawn) > 20
    leaders = [[_first(step, example) for step in example.steps] for example in drawn]
    assert sum(len(set(found)) > 1 for found in leaders) > 20
    # Where one element is infinite or NaN, all totals are: most runs must have none.
    finite = [
        math.isfinite(moment.shared["largest"])
        for example in drawn
        for moment in run_directly(every_reduction.definition, example)
    ]
    assert sum(finite) > 0.6 * len(finite)


def _first(step: Step, example: Example) -> int | None:
    return next((i for i in positions_of(example.tensors) if step.gradients[i] is not None), None)


def _moment(d: float, s: float, param: float) -> Moment:
    buffers = {"w0": {"s": np.array([s]), "param": np.array([param])}}
    return Moment("applied", buffers, {"w0": {}}, {"w0": 1}, {"d": d})


def test_the_difference_is_the_first_that_the_program_makes() -> None:
    expected, found = (_moment(1.0, 1.0, 1.0),), (_moment(2.0, 2.0, 2.0),)
    ranks = {"s": 3, "d": 5, "param": 7}
    first = first_difference(expected, found, ranks)
    assert first is not None
    assert (first.tensor, first.buffer) == ("w0", "s")
    alone = first_difference(expected, (_moment(2.0, 1.0, 2.0),), ranks)
    assert alone is not None
    assert (alone.tensor, alone.buffer, alone.expected, alone.found, alone.index) == ("", "d", 1.0, 2.0, None)


@pytest.mark.parametrize(
    ("kind", "buffer", "equation"),
    [("dot", "d_numerator", "d_numerator = decay3*d_numerator"), ("norm1", "d", "d = max(d, estimate)")],
)
def test_a_fault_of_a_reduction_names_the_equation(
    monkeypatch: pytest.MonkeyPatch, kind: str, buffer: str, equation: str
) -> None:
    """A total that is one unit too large, of all tensors: what follows from it first is named."""
    prodigy = shipped()["prodigy"]
    right = KernelWorkspace.combine

    def combine(self: KernelWorkspace, number: int) -> None:
        type(self)._right(self, number)  # type: ignore[attr-defined]
        kinds = self._definition.passes[number].kinds
        self.over_all[kinds.index(kind)] *= 1.5  # type: ignore[attr-defined]

    from solvergen.runtime.backends.cpu_staged import CpuWorkspace

    monkeypatch.setattr(CpuWorkspace, "_right", CpuWorkspace.combine, raising=False)
    monkeypatch.setattr(CpuWorkspace, "combine", combine)
    assert right is not combine
    names = {h.name: h.default for h in prodigy.definition.hyperparameters}
    example = Example(
        groups=(Group({o.name: o.default for o in prodigy.definition.options}, {}),),
        tensors=tuple(Tensor(f"w{i}", np.linspace(1, 2, 5 + i), 0, 0) for i in range(3)),
        steps=tuple(
            Step(tuple(np.linspace(1 + n, 3, 5 + i) for i in range(3)), 0, (names,)) for n in range(3)
        ),
    )
    finding = disagreement_on(prodigy, "cpu", example)
    assert finding is not None
    assert finding.difference is not None
    assert finding.difference.buffer == buffer
    assert str(finding.equation).startswith(equation)
    assert f"shared state {buffer}" in finding.describe()
    assert equation_behind(prodigy.definition, example, finding.difference) == finding.equation


def test_shared_states_are_kept_in_files(meeting: type[Optimizer]) -> None:
    example = replace(run_of([3.0, None]), shared={"seen": 0.1})
    data = example_data(example)
    assert example_from(data).shared == {"seen": 0.1}
    del data["shared"]  # as files were before there were any
    assert example_from(data).shared == {}
    finding = disagreement_on(meeting, "numpy", replace(example, shared={"seen": 0.1}))
    assert finding is None


def test_code_to_paste_has_them(meeting: type[Optimizer]) -> None:
    from solvergen.verify.disagreement import Disagreement

    example = replace(run_of([3.0, None]), shared={"seen": 0.1})
    found = Disagreement(meeting.definition, meeting.__module__, "cpu", example, error="E: x")
    code = reproducer(found)
    assert code is not None
    assert "shared={'seen': 0.1}," in code
    assert "shared state seen begins = 0.1" in found.describe()
