"""Optimizers of one's own, by name."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from solvergen.errors import SolvergenError
from solvergen.optimizers import CaffeSGD
from solvergen.runtime.optimizer import Optimizer
from solvergen.solver import DenseNet, InnerProduct, Solver, SolverParameters, register_optimizer, registry
from solvergen.solver.files.converting import convert
from solvergen.solver.files.request import Request

X, Y = np.ones((6, 2)), np.zeros((6, 1))


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setattr(registry, "_ADDED", {})


def net():
    return DenseNet(X, Y, [InnerProduct("a", 1)], batch_size=3)


class MyRule(CaffeSGD):
    """A class of its own, as one of a spec would be."""


def test_a_registered_class_trains():
    told = {"optimizer": "MyRule", "base_lr": 0.1, "lr_policy": "fixed", "solver_mode": "CPU"}
    with pytest.raises(SolvergenError, match=r"no optimizer 'MyRule'.*register_optimizer"):
        Solver(SolverParameters(**told), net())
    assert register_optimizer(MyRule) is MyRule
    one = Solver(SolverParameters(**told), net(), backend="numpy")
    other = Solver(SolverParameters(**{**told, "optimizer": "CaffeSGD"}), net(), backend="numpy")
    for solver in (one, other):
        solver.step(3)
    assert isinstance(one.optimizer, MyRule)
    np.testing.assert_array_equal(one.net.learnable[0].data, other.net.learnable[0].data)


@pytest.mark.parametrize(
    "odd", [3, int, Optimizer, CaffeSGD({"w": np.zeros(1, np.float32)}, backend="numpy")]
)
def test_what_is_no_optimizer(odd):
    with pytest.raises(SolvergenError, match="optimizer"):
        register_optimizer(odd)


def test_solvergens_names_are_taken():
    assert register_optimizer(CaffeSGD) is CaffeSGD
    mine = type("CaffeSGD", (CaffeSGD,), {})
    with pytest.raises(SolvergenError, match="an optimizer 'CaffeSGD' already"):
        register_optimizer(mine)


def test_the_module_of_the_net_registers(tmp_path, monkeypatch, capsys):
    from solvergen.cli.app import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("own_nets.py").write_text(
        "import numpy as np\n"
        "from solvergen.optimizers import CaffeSGD\n"
        "from solvergen.solver import DenseNet, InnerProduct, register_optimizer\n\n"
        "@register_optimizer\nclass MineAlone(CaffeSGD):\n    pass\n\n"
        "def make():\n"
        "    return DenseNet(np.ones((6, 2)), np.zeros((6, 1)), [InnerProduct('a', 1)], batch_size=3)\n"
    )
    Path("s.prototxt").write_text(
        'net: "n" base_lr: 0.1 lr_policy: "fixed" max_iter: 2 solver_mode: CPU optimizer: "MineAlone"'
    )
    assert run(["train", "--solver", "s.prototxt", "--net", "own_nets:make", "--backend", "numpy"]) == 0
    assert "MineAlone on backend numpy" in capsys.readouterr().err
    Path("s.prototxt").write_text(Path("s.prototxt").read_text().replace("MineAlone", "Mine"))
    assert run(["train", "--solver", "s.prototxt", "--net", "own_nets:make"]) == 1
    assert "no optimizer 'Mine'; did you mean 'MineAlone'?" in capsys.readouterr().err


def test_names_of_caffes_types_are_taken():
    nesterov = type("Nesterov", (CaffeSGD,), {})
    with pytest.raises(SolvergenError, match="'Nesterov' is a solver type of Caffe's"):
        register_optimizer(nesterov)


def test_one_that_isnt_registered_is_told_by_its_own_name(tmp_path):
    told = {"optimizer": "ZzRule", "base_lr": 0.1, "lr_policy": "fixed", "solver_mode": "CPU", "max_iter": 1}
    with pytest.raises(SolvergenError, match=r"'ZzRule'.*the module of --net gives it to register_optimizer"):
        Solver(SolverParameters(**told), net())
    register_optimizer(type("ZzRule", (CaffeSGD,), {}))
    form = {"snapshot_prefix": str(tmp_path / "s"), "snapshot_format": "SAFETENSORS"}
    Solver(SolverParameters(**told, **form), net(), backend="numpy").solve()
    registry._ADDED.clear()
    with pytest.raises(SolvergenError, match="no optimizer 'ZzRule'"):
        convert(
            str(tmp_path / "s_iter_1.state.safetensors"), str(tmp_path / "o.h5"), Request(form="optimizer")
        )
