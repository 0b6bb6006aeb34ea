"""A net that has nothing to learn: as in Caffe, iterations pass."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.solver import DenseNet, Solver, SolverParameters
from solvergen.solver.training.events import Collected, Warned

X, Y = np.ones((6, 2)), np.zeros((6, 2))


@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5", "SAFETENSORS"])
@pytest.mark.parametrize("more", [{"type": "Adam"}, {"optimizer": "SAM"}, {"clip_gradients": 1.0}])
def test_it_runs_snapshots_and_goes_on(tmp_path, form, more):
    params = SolverParameters(
        base_lr=0.1, lr_policy="fixed", max_iter=3, solver_mode="CPU", snapshot_prefix=str(tmp_path / "s"),
        snapshot_format=form, display=1, debug_info=True, **more,
    )  # fmt: skip
    log = Collected()
    solver = Solver(params, DenseNet(X, Y, [], batch_size=3), backend="numpy", log=log)
    solver.solve()
    assert (solver.iter, solver.smoothed_loss, solver.history) == (3, 1.0, ())
    assert any(isinstance(e, Warned) and "no parameters to learn" in e.text for e in log.events)
    (state,) = [path for path in tmp_path.iterdir() if "state" in path.name]
    other = Solver(params, DenseNet(X, Y, [], batch_size=3), backend="numpy")
    other.restore(state)
    assert other.iter == 3


def test_of_torch():
    torch = pytest.importorskip("torch", reason="torch isn't installed: pip install torch")
    from solvergen.adapters.torch_net import Batches, TorchNet

    data = Batches(torch.ones(6, 2), torch.zeros(6, 2), batch_size=3)
    net = TorchNet(torch.nn.Tanh(), torch.nn.functional.mse_loss, data)
    params = SolverParameters(base_lr=0.1, lr_policy="fixed", max_iter=3, solver_mode="CPU")
    solver = Solver(params, net)
    solver.step(2)
    assert solver.iter == 2
