"""Every rule says what other libraries call it; ``make_goldens.py --check`` looks their arguments up."""

from __future__ import annotations

from pathlib import Path

import pytest

from solvergen.spec.reader import read_specs
from tests.golden import cases

SPECS = {spec.name: spec for spec in read_specs(Path(__file__).parents[2] / "specs")}


FLOWS = {"heun", "rk23", "rk45", "rk45_adaptive", "extragradient", "rowwise_adagrad"}
"""Methods that no package has as an optimizer; test_gradient_flows.py holds them to solutions, to scipy's
tableaus and to formulas, and test_second_gradients.py extragradient. rowwise_adagrad comes with tables of
embeddings, which are no optimizers; it is followed by hand."""


@pytest.mark.parametrize(
    "name", [name for name in SPECS if not name.startswith("caffe_") and name not in FLOWS]
)
def test_has_a_counterpart_and_a_trajectory(name: str) -> None:
    assert SPECS[name].counterparts
    assert (
        name in cases.NAMES or name == "sam"
    )  # whose gradients depend on where they are: test_second_gradients
    for counterpart in SPECS[name].counterparts:
        assert counterpart.name.startswith(f"{counterpart.library}.")
