"""Random valid specs are compiled to what they mean, and to the same on every backend."""

from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import strategies as st

from solvergen.runtime.backends.base import Backend
from solvergen.verify.fuzzing.holding import Tally
from solvergen.verify.fuzzing.spec import DrawnSpec
from solvergen.verify.fuzzing.strategies import specs
from solvergen.verify.fuzzing.style import Style
from solvergen.verify.fuzzing.yaml_text import yaml_of
from solvergen.verify.machines import machine, why_unavailable
from tests.fuzz.built import SMALL, WIDER, built, draw_example, hold_to_meaning, hold_to_reference, styles
from tests.fuzz.running import fuzz

MOST_OPEN = 0.1
"""Share of a spec's values about which the evaluation may have nothing to say, on average over specs: a
large tensor of one spec, drawn several times, says no more of the evaluation than a small one."""

MOST_BOUNDED = 0.3
"""Share of a spec's values that it may know within bounds only, on average."""

EXAMPLES = {"numpy": 100, "cpu": 40, "ptx": 30}
"""Specs for each backend; each costs its kernels' compilation."""


def test_the_reference_computes_what_the_equations_mean() -> None:
    tallies: list[Tally] = []

    def means(spec: DrawnSpec, style: Style, data: st.DataObject) -> None:
        tally = Tally()
        with built(yaml_of(spec, style)) as found:
            doubles = draw_example(data, found, SMALL, [("float64", "float64")])
            hold_to_meaning(found, doubles, tally)
            hold_to_meaning(found, draw_example(data, found, SMALL), tally)
        tallies.append(tally)

    fuzz(means, specs(), styles, examples=200)
    some = [tally for tally in tallies if tally.total]
    assert len(some) > 100
    assert sum(tally.total for tally in some) > 1000
    assert mean(tally.open / tally.total for tally in some) < MOST_OPEN
    assert mean(tally.bounded / tally.total for tally in some) < MOST_BOUNDED


@pytest.mark.parametrize("name", EXAMPLES)
def test_backends_compute_the_bits_of_the_reference(name: str) -> None:
    backend = _working(name)

    def agrees(spec: DrawnSpec, style: Style, data: st.DataObject) -> None:
        with built(yaml_of(spec, style)) as found:
            hold_to_reference(found, backend, draw_example(data, found, WIDER))

    agrees.__qualname__ += f"/{name}"
    fuzz(agrees, specs(), styles, examples=EXAMPLES[name])


def _working(name: str) -> Backend:
    reason = why_unavailable(name)
    if reason is not None:
        pytest.skip(f"backend {name}: {reason}")
    return machine(name)
