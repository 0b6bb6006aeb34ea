"""What the runtime knows of Adam."""

from __future__ import annotations

import os

from solvergen.runtime.definition import Definition, Hyperparameter, Option, State
from tests.support.handwritten.adam import reference, scalars

DEFINITION = Definition(
    name="adam",
    class_name="Adam",
    spec="specs/adam.yaml",
    digest="ac8d3db511d5e1158cfdd631cb26e55eeb90245dce7c27f740b9d5218bbaae3d",
    folder=os.path.dirname(os.path.abspath(__file__)),
    hyperparameters=(
        Hyperparameter("lr", default=0.001, min=0.0, doc="step size"),
        Hyperparameter("beta1", default=0.9, min=0.0, below=1.0, doc="decay of the first moment"),
        Hyperparameter("beta2", default=0.999, min=0.0, below=1.0, doc="decay of the second moment"),
        Hyperparameter("eps", default=1e-08, min=0.0, doc="added to the root"),
        Hyperparameter("weight_decay", default=0.0, min=0.0, doc="coupled decay"),
    ),
    options=(
        Option("amsgrad", default=False, doc="divide by the largest second moment so far"),
        Option("maximize", default=False, doc="go uphill"),
    ),
    state=(
        State("m", shape="param", doc="first moment"),
        State("v", shape="param", doc="second moment"),
        State("v_max", shape="param", doc="largest second moment"),
    ),
    table=(
        "decays",
        "weight_decay",
        "beta1",
        "one_minus_beta1",
        "beta2",
        "one_minus_beta2",
        "correction2",
        "eps",
        "lr",
        "correction1",
    ),
    update=reference.update,
    scalars=scalars.scalars,
    options_of=scalars.options_of,
    constraints=scalars.constraints,
    active_state=scalars.active_state,
    buffers_read=scalars.buffers_read,
    buffers_written=scalars.buffers_written,
    initial_state=scalars.initial_state,
)
