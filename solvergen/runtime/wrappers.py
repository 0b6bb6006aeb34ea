"""What wraps an update, as users say it, and the hyperparameters and options that this becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from solvergen.errors import HyperparameterError, OptimizerError
from solvergen.runtime.definition import Definition
from solvergen.runtime.groups import as_number
from solvergen.runtime.keywords import checked_constructor
from solvergen.runtime.naming import did_you_mean

Bounds = tuple[float | None, float | None]

PREFIX = "wrap_"
"""Of all hyperparameters, options and states that wrappers bring along."""

_ACCUMULATIONS = ("mean", "sum")
_ORDERS = ("average", "caffe")
Shadow = Literal["bfloat16", "float16"]
SHADOWS: tuple[Shadow, ...] = ("bfloat16", "float16")
"""The types that a copy of the parameters may have."""

BROUGHT = {
    "averaged": "average=...",
    "averages": "average=...",
    "clip_norm": "clip_grad_norm=...",
    "flush": "accumulate=...",
    "pending": "accumulate=...",
    "refresh_shadows": "shadow=...",
    "shadows": "shadow=...",
    "wrappers": "...",
}
"""The attributes that only a wrapped optimizer has, and what brings them."""


@checked_constructor
@dataclass(frozen=True, repr=False)
class Wrappers:
    """What wraps an update: checked when it is made, and never changed.

    Gradients go through this in order: they are summed over ``accumulate`` calls of ``step``, divided by
    ``unscale`` and, for the ``"mean"``, by the number of calls, negated (``maximize``), clipped by value,
    by each tensor's norm, and by the norm of all; then ``l2`` and ``l1`` are added. ``weight_decay`` shrinks
    the parameter by ``lr`` times it, the rule runs, its result is kept within bounds, and the average of the
    parameters follows it. With ``order="caffe"`` clipping comes before the division by the number of calls.
    A rule that evaluates the gradient again has all this done to each gradient but for the sum, which there
    is none of; what is done to the parameter is done once.

    Args:
        accumulate: calls of ``step`` for each update; 1 for rules that evaluate the gradient again.
        accumulation: what becomes of the calls' gradients: their ``"mean"`` or their ``"sum"``.
        unscale: what gradients are divided by: the factor that the loss was multiplied with.
        clip_value: largest magnitude of a gradient's element; None: any.
        clip_tensor_norm: largest norm of each tensor's gradient; None: any.
        clip_grad_norm: largest norm of all gradients together; None: any.
        normalize: what gradients are multiplied by where the mean is taken: for callers who have summed
            calls up themselves.
        clip_eps: added to both norms where they are divided by (torch has 1e-6, Caffe and Keras 0).
        order: ``"average"``, or ``"caffe"``: clip the sum of the calls, then take the mean.
        l1, l2: coupled decay: times the parameter's sign, and times the parameter, added to the gradient.
        weight_decay: decoupled decay, times ``lr``.
        maximize: ascend instead of descend.
        bounds: least and largest value of a parameter's element, None where there is no limit.
        non_negative: the same as a lower bound of 0.
        write_update: after a step the gradients' arrays hold what was subtracted from the parameters.
        average: decay of an exponential average of the parameters; None: there is none.
        shadow: "bfloat16" or "float16": the type of a copy of the parameters that is kept beside them
            (``opt.shadows``); None: there is none.
    """

    accumulate: int = 1
    accumulation: Literal["mean", "sum"] = "mean"
    unscale: float = 1.0
    clip_value: float | None = None
    clip_tensor_norm: float | None = None
    clip_grad_norm: float | None = None
    clip_eps: float = 0.0
    order: Literal["average", "caffe"] = "average"
    l1: float = 0.0
    l2: float = 0.0
    weight_decay: float = 0.0
    maximize: bool = False
    bounds: Bounds = (None, None)
    non_negative: bool = False
    average: float | None = None
    normalize: float = 1.0
    write_update: bool = False
    shadow: Shadow | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        accumulate = as_number("accumulate", self.accumulate)
        if not 1.0 <= accumulate <= 2.0**53 or not accumulate.is_integer():
            raise HyperparameterError(
                f"accumulate must be a whole number of at least 1, not {self.accumulate!r}"
            )
        put(self, "accumulate", int(accumulate))
        _one_of("accumulation", self.accumulation, _ACCUMULATIONS)
        _one_of("order", self.order, _ORDERS)
        for name in ("unscale", "clip_value", "clip_tensor_norm", "clip_grad_norm"):
            value = getattr(self, name)
            if value is None and name != "unscale":
                continue
            number = as_number(name, value)
            if number < 0.0 or (number == 0.0 and not (name == "clip_grad_norm" and self.order == "caffe")):
                none = "" if name == "unscale" else " (None for no clipping)"
                raise HyperparameterError(f"{name} must be above 0{none}, not {value!r}")
            put(self, name, number)
        for name in ("clip_eps", "l1", "l2", "weight_decay"):
            number = as_number(name, getattr(self, name))
            if number < 0.0:
                raise HyperparameterError(f"{name} must be at least 0, not {getattr(self, name)!r}")
            put(self, name, number)
        put(self, "normalize", as_number("normalize", self.normalize))
        for name in ("maximize", "non_negative", "write_update"):
            if not isinstance(getattr(self, name), bool):
                raise HyperparameterError(f"{name} must be True or False, not {getattr(self, name)!r:.60}")
        if self.average is not None:
            average = as_number("average", self.average)
            if not 0.0 <= average <= 1.0:
                raise HyperparameterError(
                    f"average must be a decay from 0 to 1, or None for no average, not {self.average!r}"
                )
            put(self, "average", average)
        if self.shadow is not None:
            _one_of("shadow", self.shadow, SHADOWS)
        self._check_bounds()

    def _check_bounds(self) -> None:
        """Pairs of floats or None. A lower bound of 0 is ``non_negative``, so that equals are equal."""
        bounds: Any = self.bounds
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise HyperparameterError(
                f"bounds must be a pair (low, high), None where there is no limit, not {bounds!r:.60}"
            )
        low, high = (
            None if value is None else as_number(f"the {which} bound", value)
            for which, value in zip(("lower", "upper"), bounds, strict=True)
        )
        if self.non_negative and low is not None and low != 0.0:
            raise HyperparameterError(f"non_negative is a lower bound of 0, and bounds has {low!r}")
        if low == 0.0:
            object.__setattr__(self, "non_negative", True)
            low = None
        least = 0.0 if self.non_negative else low
        if least is not None and high is not None and least > high:
            raise HyperparameterError(f"the lower bound {least!r} is above the upper bound {high!r}")
        object.__setattr__(self, "bounds", (low, high))

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        )
        return f"Wrappers({shown})"

    def get_config(self) -> dict[str, Any]:
        """All of it, as data that JSON can hold."""
        return {**asdict(self), "bounds": list(self.bounds)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Wrappers:
        """What ``get_config`` described; what is missing is as by default. Raises OptimizerError."""
        if not isinstance(config, Mapping):
            raise OptimizerError(f"a configuration of wrappers must be a mapping, not {config!r:.60}")
        known = [field.name for field in fields(cls)]
        for key in config:
            if key not in known:
                raise OptimizerError(
                    f"a configuration of wrappers has the unknown key {key!r:.60}" + did_you_mean(key, known)
                )
        return cls(**config)


def wrapper_hyperparameters(wrappers: Wrappers, definition: Definition) -> dict[str, float]:
    """The hyperparameters that say the same. Raises HyperparameterError for a rule without ``lr`` that is to
    decay by it."""
    low, high = wrappers.bounds
    if wrappers.non_negative:
        low = 0.0
    values: dict[str, float] = {
        "wrap_every": wrappers.accumulate,
        "wrap_mean": wrappers.accumulation == "mean",
        "wrap_normalize": wrappers.normalize,
        "wrap_clip_sum": wrappers.order == "caffe",
        "wrap_maximize": wrappers.maximize,
        "wrap_unscale": wrappers.unscale,
        "wrap_max_value": wrappers.clip_value or 0.0,
        "wrap_clip_eps": wrappers.clip_eps,
        "wrap_l2": wrappers.l2,
        "wrap_l1": wrappers.l1,
        "wrap_from_below": low is not None,
        "wrap_low": low or 0.0,
        "wrap_from_above": high is not None,
        "wrap_high": high or 0.0,
    }
    for name, value in (
        ("wrap_max_tensor_norm", wrappers.clip_tensor_norm),
        ("wrap_max_grad_norm", wrappers.clip_grad_norm),
        ("wrap_average_decay", wrappers.average),
    ):
        if value is not None:
            values[name] = value
    if "wrap_weight_decay" in definition.hyperparameter_names:
        values["wrap_weight_decay"] = wrappers.weight_decay
    elif wrappers.weight_decay != 0.0:
        raise HyperparameterError(
            f"{definition.class_name.removeprefix('Wrapped')} has no lr for decoupled weight decay to be "
            "multiplied by; use l2, or shrink parameters between steps"
        )
    return {name: float(value) for name, value in values.items()}


SAID_BY = {
    "wrap_accumulate": "accumulate",
    "wrap_clip_tensor": "clip_tensor_norm",
    "wrap_clip_global": "clip_grad_norm",
    "wrap_keep_average": "average",
    "wrap_write_update": "write_update",
    **{f"wrap_keep_{dtype}": "shadow" for dtype in SHADOWS},
}
"""What in ``Wrappers`` decides each of the options."""


def wrapper_options(wrappers: Wrappers) -> dict[str, bool]:
    """The options that go with them: what costs memory or a pass over it."""
    return {
        "wrap_accumulate": wrappers.accumulate > 1,
        "wrap_clip_tensor": wrappers.clip_tensor_norm is not None,
        "wrap_clip_global": wrappers.clip_grad_norm is not None,
        "wrap_keep_average": wrappers.average is not None,
        "wrap_write_update": wrappers.write_update,
        **{f"wrap_keep_{dtype}": wrappers.shadow == dtype for dtype in SHADOWS},
    }


def wrappers_of(values: Mapping[str, float], options: Mapping[str, bool]) -> Wrappers:
    """What a group's hyperparameters and options say."""
    return Wrappers(
        accumulate=int(values["wrap_every"]),
        accumulation="mean" if values["wrap_mean"] else "sum",
        unscale=values["wrap_unscale"],
        clip_value=values["wrap_max_value"] or None,
        clip_tensor_norm=values["wrap_max_tensor_norm"] if options["wrap_clip_tensor"] else None,
        clip_grad_norm=values["wrap_max_grad_norm"] if options["wrap_clip_global"] else None,
        clip_eps=values["wrap_clip_eps"],
        order="caffe" if values["wrap_clip_sum"] else "average",
        l1=values["wrap_l1"],
        l2=values["wrap_l2"],
        weight_decay=values.get("wrap_weight_decay", 0.0),
        maximize=bool(values["wrap_maximize"]),
        bounds=(
            values["wrap_low"] if values["wrap_from_below"] else None,
            values["wrap_high"] if values["wrap_from_above"] else None,
        ),
        average=values["wrap_average_decay"] if options["wrap_keep_average"] else None,
        normalize=values["wrap_normalize"],
        write_update=options["wrap_write_update"],
        shadow=next((dtype for dtype in SHADOWS if options[f"wrap_keep_{dtype}"]), None),
    )


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        words = " or ".join(map(repr, allowed))
        raise HyperparameterError(f"{name} must be {words}, not {value!r:.60}")
