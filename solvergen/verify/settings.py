"""Hyperparameters and options that an optimizer accepts: drawn inside its ranges and constraints.

A constraint is a function that nothing can look into. So nothing is drawn and thrown away: for every
setting of the options a valid choice of hyperparameters is searched once, and a draw moves away from it
one hyperparameter at a time, keeping only moves that the constraints allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, islice, product
from types import MappingProxyType

from hypothesis import strategies as st

from solvergen.errors import HyperparameterError, VerificationError
from solvergen.runtime.definition import Definition, Hyperparameter
from solvergen.runtime.groups import effective, is_allowed

Setting = Mapping[str, bool | None]
"""Options as given to the constructor; None leaves a derived one to the definition."""

Choice = Callable[[Hyperparameter], st.SearchStrategy[float]]

SMALL = 1e-4
"""Hyperparameters with a default below it only keep something from being 0."""

TRIES = 20_000
"""Choices of hyperparameters tried for one setting of the options."""

_QUARTERS, _SIXTHS = st.integers(0, 3), st.integers(0, 5)
_ORDINARY = (0.0, 0.9, 0.1, 0.5, 0.99, 1.0, 2.0, 0.001, 1e-8, 10.0, -0.5, -1.0, -0.0)
_EXTREME = (
    5e-324,  # the least double; 0 in float32
    1e-50,
    1e-45,  # the least float32
    1e-40,  # subnormal in float32
    1.0 + 2.0**-24,  # halfway between two float32
    1.0 - 2.0**-25,
    1.0 - 2.0**-53,
    1.0 / 3.0,
    3.5e38,  # beyond the largest float32
    1e300,
)
_SLOW = (1.0 - 2.0**-25, 1.0 - 2.0**-29, 1.0 - 2.0**-34, 1.0 - 2.0**-53)
"""Decays that are far from 0 still after millions of updates, so that the last digit of the count shows."""
_DECIMALS = (0.3, 0.9, 0.7, 0.1, *(n / 1000 for n in range(-2000, 2001) if n % 125))
"""Numbers as people choose them: neither they nor their differences from 1 are float32 numbers."""
_WHOLE = (1.0, 2.0, 3.0, 0.0, 5.0, 10.0, 100.0, -1.0, 2.0**24 + 1, 2.0**31, 2.0**53)


def edges(hyperparameter: Hyperparameter) -> tuple[float, ...]:
    """The values at the ends of the range, and their neighbours inside."""
    h = hyperparameter
    found: list[float] = []
    step = (lambda x, to: x + math.copysign(1.0, to)) if h.integer else math.nextafter
    for bound, towards in ((h.min, math.inf), (h.max, -math.inf)):
        if bound is not None:
            found += [bound, step(bound, towards)]
    for bound, towards in ((h.above, math.inf), (h.below, -math.inf)):
        if bound is not None:
            found += [step(bound, towards)]
    return tuple(dict.fromkeys(v for v in found if is_allowed(h, v)))


def candidates(hyperparameter: Hyperparameter) -> tuple[float, ...]:
    """The default, round numbers of the range and its edges: enough to satisfy sensible constraints."""
    ordinary = _WHOLE if hyperparameter.integer else _ORDINARY
    values = (hyperparameter.default, *ordinary, *edges(hyperparameter))
    return tuple(dict.fromkeys(v for v in values if is_allowed(hyperparameter, v)))


@cache
def exact_values(hyperparameter: Hyperparameter) -> st.SearchStrategy[float]:
    """Zero and powers of two of the range; the default if there is none of these."""
    numbers = (1.0, 0.5, 2.0, 0.0, 0.25, 4.0, 0.125, -1.0, -0.5)
    return st.sampled_from([v for v in numbers if is_allowed(hyperparameter, v)] or [hyperparameter.default])


@cache
def values(hyperparameter: Hyperparameter) -> st.SearchStrategy[float]:
    """Values of the range: the default, round, extreme, at the edges, and any. Shrinks to the default."""
    h = hyperparameter
    low = max((b for b in (h.min, h.above) if b is not None), default=None)
    high = min((b for b in (h.max, h.below) if b is not None), default=None)
    if h.integer:
        first = None if low is None else math.ceil(low) + (low == h.above)
        last = None if high is None else math.floor(high) - (high == h.below)
        whole = st.integers(
            -(2**53) if first is None else max(first, -(2**53)), 2**53 if last is None else min(last, 2**53)
        )
        return st.one_of(st.just(h.default), st.sampled_from(candidates(h)), whole.map(float))
    decimals = tuple(v for v in _DECIMALS if is_allowed(h, v))
    extreme = tuple(v for v in (*edges(h), *_EXTREME, *(-v for v in _EXTREME)) if is_allowed(h, v))
    return st.one_of(
        st.just(h.default),
        st.sampled_from(candidates(h)),
        *([st.sampled_from(decimals)] * 2 if decimals else ()),
        st.sampled_from(extreme or (h.default,)),
        st.floats(
            low,
            high,
            exclude_min=low is not None and low == h.above,
            exclude_max=high is not None and high == h.below,
            allow_nan=False,
            allow_infinity=False,
        ),
    )


@cache
def slow_values(hyperparameter: Hyperparameter) -> st.SearchStrategy[float]:
    """Numbers close to 1 for a hyperparameter that is at most 1, such as a decay; any value for others."""
    h = hyperparameter
    slow = [v for v in _SLOW if is_allowed(h, v)]
    return st.sampled_from(slow) if slow and 1.0 in (h.max, h.below) else values(h)


@cache
def usual_values(hyperparameter: Hyperparameter) -> st.SearchStrategy[float]:
    """Numbers as people choose them, the default first: none so large or so small that nothing else shows."""
    h = hyperparameter
    plain = st.sampled_from((h.default, *(v for v in (1.0, 0.0) if is_allowed(h, v))))
    numbers = [v for v in (_WHOLE[:4] if h.integer else _DECIMALS) if is_allowed(h, v)]
    return st.one_of(plain, *([st.sampled_from(numbers)] * 3 if numbers else ()))


@cache
def tiny_values(hyperparameter: Hyperparameter) -> st.SearchStrategy[float]:
    """The same, but that what is small by default, such as an epsilon, is subnormal in half of the draws."""
    h = hyperparameter
    tiny = [v for v in (1e-40, 3e-39, 1e-43) if is_allowed(h, v)]
    if not tiny or not 0 < h.default < SMALL:
        return usual_values(h)
    return st.one_of(usual_values(h), st.sampled_from(tiny))


@dataclass(frozen=True)
class Space:
    """All that may be given to an optimizer: each setting of its options with valid hyperparameters."""

    definition: Definition
    bases: tuple[tuple[Setting, Mapping[str, float]], ...]

    def resolved(self, setting: Setting, hyperparameters: Mapping[str, float]) -> dict[str, bool]:
        """The options in force, derived ones decided."""
        derived = self.definition.options_of(**hyperparameters)
        return {name: derived[name] if value is None else value for name, value in setting.items()}

    def in_range(self, hyperparameters: Mapping[str, float]) -> bool:
        """Whether every value is one of its hyperparameter's range."""
        return all(is_allowed(h, hyperparameters[h.name]) for h in self.definition.hyperparameters)

    def accepts(
        self,
        setting: Setting,
        hyperparameters: Mapping[str, float],
        fixed: Mapping[str, bool] | None = None,
        multipliers: Mapping[str, float] = MappingProxyType({}),
    ) -> bool:
        """Whether an optimizer would take this choice of values in their ranges.

        ``fixed``: the options of an optimizer that is already made; a change of hyperparameters that
        would derive others isn't allowed. ``multipliers``: those of the group; products that are too large
        for a float aren't allowed.
        """
        try:
            effective(hyperparameters, multipliers)
        except HyperparameterError:
            return False
        options = self.resolved(setting, hyperparameters)
        if fixed is not None and options != fixed:
            return False
        return self.definition.constraints(**hyperparameters, **options) is None


def space_of(definition: Definition) -> Space:
    """Search a valid choice for every setting of the options.

    Settings for which none is found among round numbers and edges (three hyperparameters away from the
    defaults at most, ``TRIES`` choices at most) are left out. Raises ``VerificationError`` if that leaves
    nothing.
    """
    empty = Space(definition, ())
    bases = []
    for setting in _settings(definition):
        for hyperparameters in islice(_near_defaults(definition), TRIES):
            if empty.accepts(setting, hyperparameters):
                bases.append((setting, hyperparameters))
                break
    if not bases:
        raise VerificationError(
            f"{definition.class_name}: no choice of options and hyperparameters satisfies its constraints; "
            "verify can't run it"
        )
    return Space(definition, tuple(bases))


def _settings(definition: Definition) -> Iterator[Setting]:
    """Every setting of the options, the default one first."""
    choices = [
        (None, False, True) if option.default is None else (option.default, not option.default)
        for option in definition.options
    ]
    for chosen in product(*choices):
        yield dict(zip(definition.option_names, chosen, strict=True))


def _near_defaults(definition: Definition) -> Iterator[dict[str, float]]:
    """Choices of hyperparameters, the defaults first, then those that differ from them in one, two, three."""
    defaults = {h.name: float(h.default) for h in definition.hyperparameters}
    for count in range(min(3, len(defaults)) + 1):
        for changed in combinations(definition.hyperparameters, count):
            for chosen in product(*(candidates(h) for h in changed)):
                yield {**defaults, **{h.name: float(v) for h, v in zip(changed, chosen, strict=True)}}


@st.composite
def hyperparameters_near(
    draw: st.DrawFn,
    space: Space,
    setting: Setting,
    base: Mapping[str, float],
    multipliers: Mapping[str, float],
    fixed: Mapping[str, bool] | None = None,
    late: bool = False,
    choose: Choice | None = None,
) -> dict[str, float]:
    """Valid hyperparameters under ``setting``, reached from the valid ``base`` one change at a time.

    ``fixed``, ``multipliers``: see ``Space.accepts``. ``late``: tensors have had very many updates, so that
    decays should be slow. ``choose``: the values of one hyperparameter, where it isn't any.
    """
    chosen = dict(base)
    # With powers of two and zeros for all of them, products are exact: ties in rounding and equal
    # operands of comparisons, which are rare otherwise, come of it.
    exact = draw(_QUARTERS) == 3
    for hyperparameter in space.definition.hyperparameters:
        if draw(_SIXTHS) == 0:
            continue
        strategy = exact_values(hyperparameter) if exact else values(hyperparameter)
        if choose is not None:
            strategy = choose(hyperparameter)
        elif late and draw(_QUARTERS) > 0:
            strategy = slow_values(hyperparameter)
        moved = {**chosen, hyperparameter.name: draw(strategy)}
        if space.accepts(setting, moved, fixed, multipliers):
            chosen = moved
    return chosen
