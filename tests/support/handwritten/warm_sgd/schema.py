"""What the runtime knows of WarmSGD."""

from __future__ import annotations

import os

from solvergen.runtime.definition import Definition, Hyperparameter, Option, State
from tests.support.handwritten.warm_sgd import reference, scalars

DEFINITION = Definition(
    name="warm_sgd",
    class_name="WarmSGD",
    spec="specs/warm_sgd.yaml",
    digest="5511b11e41768b1e6c113334dce2eea1a0d05305be03d335e6f350c69a7fbf3f",
    folder=os.path.dirname(os.path.abspath(__file__)),
    hyperparameters=(
        Hyperparameter("lr", default=0.1, min=0.0, doc="step size"),
        Hyperparameter("momentum", default=0.9, min=0.0, below=1.0, doc="momentum after the warmup"),
        Hyperparameter("weight_decay", default=0.0, min=0.0, doc="coupled decay"),
        Hyperparameter("pull", default=0.0, max=10.0, above=-10.0, doc="pull towards the start"),
        Hyperparameter("warmup", default=4.0, min=1.0, integer=True, doc="steps until full momentum"),
    ),
    options=(
        Option("momentum_buffer", default=None, doc="keep a momentum buffer"),
        Option("nesterov", default=False, doc="look ahead"),
    ),
    state=(
        State("buf", shape="param", doc="momentum"),
        State("start", shape="param", doc="the parameter at the start"),
        State("mu_product", shape="scalar", doc="product of all momenta so far"),
    ),
    table=("weight_decay", "pull", "mu", "step_size"),
    update=reference.update,
    scalars=scalars.scalars,
    options_of=scalars.options_of,
    constraints=scalars.constraints,
    active_state=scalars.active_state,
    buffers_read=scalars.buffers_read,
    buffers_written=scalars.buffers_written,
    initial_state=scalars.initial_state,
)
