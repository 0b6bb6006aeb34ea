"""What the runtime knows of lamb."""

from __future__ import annotations

import os

from solvergen.runtime.definition import Definition, Hyperparameter, Option, Pass, State
from tests.support.handwritten.lamb import reference, scalars

DEFINITION = Definition(
    name="lamb",
    class_name="Lamb",
    spec="specs/lamb.yaml",
    digest="9f0c8f6c5f7a1d4e2b3a495867768594a3b2c1d0e0f1a2b3c4d5e6f708192a3b",
    folder=os.path.dirname(os.path.abspath(__file__)),
    hyperparameters=(
        Hyperparameter("lr", default=0.001, min=0.0),
        Hyperparameter("beta1", default=0.9, min=0.0, below=1.0),
        Hyperparameter("beta2", default=0.999, min=0.0, below=1.0),
        Hyperparameter("eps", default=1e-06, min=0.0),
        Hyperparameter("weight_decay", default=0.01, min=0.0),
        Hyperparameter("max_norm", default=1.0, min=0.0),
    ),
    options=(Option("clip", default=False, doc="bound the norm of all gradients"),),
    state=(
        State("m", shape="param"),
        State("v", shape="param"),
        State("trust", shape="scalar"),
        State("highest", shape="scalar"),
        State("usual", shape="shared"),
    ),
    table=(
        "beta1",
        "one_minus_beta1",
        "beta2",
        "one_minus_beta2",
        "correction1",
        "correction2",
        "eps",
        "weight_decay",
    ),
    update=reference.update,
    scalars=scalars.scalars,
    options_of=scalars.options_of,
    constraints=scalars.constraints,
    active_state=scalars.active_state,
    buffers_read=scalars.buffers_read,
    buffers_written=scalars.buffers_written,
    initial_state=scalars.initial_state,
    device_states=("trust", "highest"),
    wide=("lr", "max_norm", "beta2", "one_minus_beta2"),
    n_values=2,
    passes=(
        Pass(0, ("norm2",), ("all",)),
        Pass(1, ("norm2", "norm2", "max_abs"), ("tensor", "tensor", "tensor")),
        Pass(4, (), ()),
    ),
    stages=(1, 2),
    active_passes=scalars.active_passes,
    active_stages=scalars.active_stages,
    yields=True,
)
