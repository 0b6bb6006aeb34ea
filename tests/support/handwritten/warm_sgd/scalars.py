"""The host program of WarmSGD: what is computed once a step, in float64."""

from __future__ import annotations

from solvergen.runtime.definition import Initial
from solvergen.runtime.scalars import divide, minimum


def options_of(
    *, lr: float, momentum: float, weight_decay: float, pull: float, warmup: float
) -> dict[str, bool]:
    """The options that follow from the hyperparameters."""
    return {"momentum_buffer": momentum != 0.0}


def constraints(
    *,
    lr: float,
    momentum: float,
    weight_decay: float,
    pull: float,
    warmup: float,
    momentum_buffer: bool,
    nesterov: bool,
) -> str | None:
    """What is wrong with this choice, if anything."""
    if nesterov and not momentum > 0.0:
        return "nesterov needs momentum above 0"
    return None


def active_state(*, momentum_buffer: bool, nesterov: bool) -> tuple[str, ...]:
    """Names of the states that exist."""
    if momentum_buffer:
        return ("buf", "start", "mu_product")
    return ("start", "mu_product")


def buffers_read(*, momentum_buffer: bool, nesterov: bool) -> tuple[str, ...]:
    """Names of the buffers that an update reads."""
    return ("param", "grad", "buf", "start") if momentum_buffer else ("param", "grad", "start")


def buffers_written(*, momentum_buffer: bool, nesterov: bool) -> tuple[str, ...]:
    """Names of the buffers that an update writes."""
    return ("param", "buf") if momentum_buffer else ("param",)


def initial_state(
    *,
    lr: float,
    momentum: float,
    weight_decay: float,
    pull: float,
    warmup: float,
    momentum_buffer: bool,
    nesterov: bool,
) -> dict[str, Initial]:
    """Where each state starts."""
    return {"buf": 0.0, "start": "param", "mu_product": 1.0}


def scalars(
    *,
    lr: float,
    momentum: float,
    weight_decay: float,
    pull: float,
    warmup: float,
    momentum_buffer: bool,
    nesterov: bool,
    t: float,
    mu_product: float,
) -> tuple[tuple[float, ...], dict[str, float]]:
    """A row of the kernels' table, and the new scalar states."""
    mu = momentum * minimum(divide(t, warmup), 1.0)
    mu_product = mu_product * mu
    step_size = divide(lr, 1.0 - mu_product)
    return (weight_decay, pull, mu, step_size), {"mu_product": mu_product}
