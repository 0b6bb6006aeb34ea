"""Solvers over the least-squares problem."""

from __future__ import annotations

import numpy as np

from solvergen.solver import SolverParameters
from solvergen.solver.net.dense import DenseNet, InnerProduct, Param, Sliced
from solvergen.solver.training.solver import Solver
from tests.integration.solver.least_squares import BATCH, DATA, TARGETS, Settings


def net(dtype=np.float32, *, share=False, batch_size=BATCH, data=DATA):
    def layer(name):
        return InnerProduct(name, 1, std=1.0, weights=Param("weights"), bias=Param("bias"))

    layers = [Sliced("halves", (layer("one"), layer("two")))] if share else [layer("one")]
    return DenseNet(data, TARGETS, layers, batch_size=batch_size, dtype=dtype, seed=1701)


def parameters(s: Settings, **more) -> SolverParameters:
    return SolverParameters(
        **{
            "type": s.solver,
            "base_lr": s.lr,
            "lr_policy": "fixed",
            "momentum": s.mu,
            "weight_decay": s.decay,
            "rms_decay": s.rms_decay,
            "delta": s.delta,
            "momentum2": s.momentum2,
            "solver_mode": "CPU",
            "snapshot_after_train": False,
            "max_iter": 100,
            **more,
        }
    )


def solver(s: Settings, dtype=np.float32, *, backend="numpy", share=False, iter_size=1, **more) -> Solver:
    own = {key: more.pop(key) for key in ("keep_update", "log") if key in more}
    if iter_size != 1:
        more["iter_size"] = iter_size
    return Solver(
        parameters(s, **more),
        net(dtype, share=share, batch_size=BATCH // iter_size),
        backend=backend,
        **own,
    )
