"""The same memory in the words of another optimizer.

Every state listed here is one of a few quantities. A state can be carried to another optimizer if that one
keeps the same quantity, or one that follows from it: Caffe's momentum holds the learning rate, torch's
doesn't, so at a constant rate the one is the other times the rate. Sums of squares and running means of
squares don't follow from each other. Both sides are supposed to have the same decay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.naming import did_you_mean

Quantity = Literal[
    "momentum of steps",
    "momentum of gradients",
    "mean gradient",
    "mean square",
    "sum of squares",
    "mean squared step",
]

STATES: dict[str, dict[str, Quantity]] = {
    "caffe_sgd": {"history": "momentum of steps"},
    "caffe_nesterov": {"history": "momentum of steps"},
    "caffe_adagrad": {"history": "sum of squares"},
    "caffe_rmsprop": {"history": "mean square"},
    "caffe_adadelta": {"history": "mean square", "history2": "mean squared step"},
    "caffe_adam": {"history": "mean gradient", "history2": "mean square"},
    "sgd": {"momentum_buffer": "momentum of gradients"},
    "adagrad": {"state_sum": "sum of squares"},
    "rmsprop": {"square_avg": "mean square"},
    "adadelta": {"square_avg": "mean square", "acc_delta": "mean squared step"},
    "adam": {"exp_avg": "mean gradient", "exp_avg_sq": "mean square"},
    "adamw": {"exp_avg": "mean gradient", "exp_avg_sq": "mean square"},
}
"""What each state is, by the spec's name, in the order of a history."""


@dataclass(frozen=True, eq=False)
class Carried:
    """A history in the new order, and for each of the new states what became of it, in words."""

    history: tuple[HostArray, ...]
    said: tuple[str, ...]


def convert(
    history: Sequence[HostArray],
    before: str,
    after: str,
    *,
    lr: Sequence[float] | float | None = None,
    momentum: float | None = None,
    start_missing: bool = False,
) -> Carried:
    """A history of the rule ``before`` as one of ``after``; both are names of specs.

    Args:
        lr: the learning rate that the steps were taken with, multiplier included: one number, or one for
            each parameter. Needed between a momentum of steps and one of gradients.
        momentum: the decay of both, needed between a momentum and a mean of gradients.
        start_missing: begin with zeros what can't be carried, and say so, instead of raising.

    Raises:
        SolverFileError: something can't be carried; the text says what.
    """
    sources, targets = states_of(before), states_of(after)
    count, odd = divmod(len(history), len(sources))
    if odd:
        raise SolverFileError(
            f"{before} has {len(sources)} arrays a parameter; a history of {len(history)} isn't one"
        )
    rates = [lr] * count if lr is None or isinstance(lr, int | float) else list(lr)
    if len(rates) != count:
        raise SolverFileError(f"{len(rates)} learning rates for {count} parameters")
    of_state = {
        quantity: (name, history[place * count : (place + 1) * count])
        for place, (name, quantity) in enumerate(sources.items())
    }
    made: list[HostArray] = []
    said: list[str] = []
    for name, wanted in targets.items():
        found = _carry(of_state, wanted, rates, momentum)
        if found is None:
            if not start_missing:
                raise SolverFileError(
                    f"{after} needs a {wanted} ({name}), which doesn't follow from what {before} keeps "
                    f"({', '.join(sources.values())})"
                )
            made += [np.zeros_like(array) for array in history[:count]]
            said.append(f"{name}: begun with zeros, {before} has no {wanted}")
        else:
            made += found[0]
            said.append(f"{name}: {found[1]}")
    return Carried(tuple(made), tuple(said))


def states_of(spec: str) -> Mapping[str, Quantity]:
    """The states of a rule and what they are. Raises ``SolverFileError`` if that isn't known."""
    if spec not in STATES:
        raise SolverFileError(
            f"no conventions are known of the optimizer {spec!r}{did_you_mean(spec, STATES)}"
        )
    return STATES[spec]


def _carry(
    of_state: Mapping[Quantity, tuple[str, Sequence[HostArray]]],
    wanted: Quantity,
    rates: Sequence[float | None],
    momentum: float | None,
) -> tuple[list[HostArray], str] | None:
    if wanted in of_state:
        name, arrays = of_state[wanted]
        return list(arrays), f"{name} as it is"
    if wanted == "momentum of gradients":
        if "momentum of steps" in of_state:
            name, arrays = of_state["momentum of steps"]
            known = _rates(rates)
            return [_scaled(a, r, inverse=True) for a, r in zip(arrays, known, strict=True)], f"{name} / lr"
        if "mean gradient" in of_state:
            name, arrays = of_state["mean gradient"]
            rest = 1 - _decay(momentum)
            return [_scaled(a, rest, inverse=True) for a in arrays], f"{name} / (1 - momentum)"
    if wanted == "momentum of steps":
        buffers = _carry(of_state, "momentum of gradients", [1.0] * len(rates), momentum)
        if buffers is not None:
            arrays, text = buffers
            return [_scaled(a, r) for a, r in zip(arrays, _rates(rates), strict=True)], f"{text} * lr"
    if wanted == "mean gradient":
        buffers = (
            _carry(of_state, "momentum of gradients", rates, momentum)
            if of_state.keys() & {"momentum of gradients", "momentum of steps"}
            else None
        )
        if buffers is not None:
            rest = 1 - _decay(momentum)
            return [_scaled(a, rest) for a in buffers[0]], f"{buffers[1]} * (1 - momentum)"
    return None


def _scaled(array: HostArray, factor: float, *, inverse: bool = False) -> HostArray:
    """In double, rounded once to the array's own type. Raises SolverFileError where that can't hold it."""
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        scaled = (wide / factor if inverse else wide * factor).astype(array.dtype)
    if np.isinf(scaled).sum() > np.isinf(wide).sum():
        done = "divided by" if inverse else "times"
        raise SolverFileError(f"numbers of the history, {done} {factor}, are beyond {array.dtype.name}")
    return scaled


def _rates(rates: Sequence[float | None]) -> list[float]:
    known = [rate for rate in rates if rate is not None]
    if len(known) != len(rates):
        raise SolverFileError("Caffe's momentum holds the learning rate, the other doesn't: give lr, --lr")
    if any(not rate > 0 or not np.isfinite(rate) for rate in known):
        raise SolverFileError(f"a learning rate of {min(known)}: it must be above 0, since it is divided by")
    return known


def _decay(momentum: float | None) -> float:
    if momentum is None:
        raise SolverFileError(
            "a momentum is a mean of gradients times 1 / (1 - momentum): give momentum, --momentum"
        )
    if not 0 <= momentum < 1:
        raise SolverFileError(
            f"a momentum of {momentum}: between it and a mean of gradients it must be in [0, 1)"
        )
    return momentum
