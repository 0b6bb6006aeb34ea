"""The host program of lamb."""

from __future__ import annotations

from typing import Any

from solvergen.runtime.definition import Initial
from solvergen.runtime.scalars import power


def options_of(**hyperparameters: float) -> dict[str, bool]:
    """The options that follow from the hyperparameters: none."""
    return {}


def constraints(**settings: Any) -> str | None:
    """What is wrong with this choice, if anything."""
    return None


def active_state(*, clip: bool) -> tuple[str, ...]:
    """Names of the states that exist."""
    return ("m", "v", "trust", "highest", "usual") if clip else ("m", "v", "trust", "highest")


def active_passes(*, clip: bool) -> tuple[int, ...]:
    """The passes that are run."""
    return (0, 1, 2) if clip else (1, 2)


def active_stages(*, clip: bool) -> tuple[int, ...]:
    """The stages that are run."""
    return (1, 2) if clip else (2,)


def buffers_read(*, clip: bool) -> tuple[str, ...]:
    """Names of the buffers that an update reads, pass by pass."""
    rest = ("param", "grad", "m", "v", "param", "m", "v")
    return ("grad", *rest) if clip else rest


def buffers_written(*, clip: bool) -> tuple[str, ...]:
    """Names of the buffers that an update writes."""
    return ("m", "v", "param")


def initial_state(**settings: Any) -> dict[str, Initial]:
    """Where each state starts."""
    return {"m": 0.0, "v": 0.0, "trust": 1.0, "highest": 0.0, "usual": 0.0}


def scalars(
    *,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    max_norm: float,
    clip: bool,
    t: float,
) -> tuple[tuple[float, ...], tuple[float, ...], dict[str, float]]:
    """A row of the kernels' table, one of the wide table, and the new scalar states of the host."""
    one_minus_beta2 = 1.0 - beta2
    row = (
        beta1,
        1.0 - beta1,
        beta2,
        one_minus_beta2,
        1.0 - power(beta1, t),
        1.0 - power(beta2, t),
        eps,
        weight_decay,
    )
    return row, (lr, max_norm, beta2, one_minus_beta2), {}
