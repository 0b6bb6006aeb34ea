"""The host program of Adam: what is computed once a step, in float64."""

from __future__ import annotations

from solvergen.runtime.definition import Initial
from solvergen.runtime.scalars import power


def options_of(*, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float) -> dict[str, bool]:
    """The options that follow from the hyperparameters: none."""
    return {}


def constraints(
    *,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    maximize: bool,
) -> str | None:
    """What is wrong with this choice, if anything."""
    return None


def active_state(*, amsgrad: bool, maximize: bool) -> tuple[str, ...]:
    """Names of the states that exist."""
    if amsgrad:
        return ("m", "v", "v_max")
    return ("m", "v")


def buffers_read(*, amsgrad: bool, maximize: bool) -> tuple[str, ...]:
    """Names of the buffers that an update reads."""
    return ("param", "grad", "m", "v", "v_max") if amsgrad else ("param", "grad", "m", "v")


def buffers_written(*, amsgrad: bool, maximize: bool) -> tuple[str, ...]:
    """Names of the buffers that an update writes."""
    return ("param", "m", "v", "v_max") if amsgrad else ("param", "m", "v")


def initial_state(
    *,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    maximize: bool,
) -> dict[str, Initial]:
    """Where each state starts."""
    return {"m": 0.0, "v": 0.0, "v_max": 0.0}


def scalars(
    *,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    maximize: bool,
    t: float,
) -> tuple[tuple[float, ...], dict[str, float]]:
    """A row of the kernels' table, and the new scalar states."""
    decays = 1.0 if weight_decay != 0.0 else 0.0
    one_minus_beta1 = 1.0 - beta1
    one_minus_beta2 = 1.0 - beta2
    correction1 = 1.0 - power(beta1, t)
    correction2 = 1.0 - power(beta2, t)
    row = (
        decays,
        weight_decay,
        beta1,
        one_minus_beta1,
        beta2,
        one_minus_beta2,
        correction2,
        eps,
        lr,
        correction1,
    )
    return row, {}
