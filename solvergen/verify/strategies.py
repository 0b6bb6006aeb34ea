"""Hypothesis strategies for whole examples: shapes, dtypes, values, settings and several steps.

Everything drawn is valid: what an optimizer doesn't accept isn't drawn and then thrown away, it isn't
drawn. Each strategy shrinks towards one tensor of one element, float32, zeros, defaults, one step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import Definition, State, View
from solvergen.runtime.dtypes import compute_dtype, numpy_dtype
from solvergen.runtime.groups import multipliers_of
from solvergen.verify.direct import Followed, hyperparameters_of, whole_of
from solvergen.verify.dtypes import PAIRS
from solvergen.verify.example import Example, Group, Step, Tensor
from solvergen.verify.limits import Limits
from solvergen.verify.lines import counts_of_blocks, state_shape
from solvergen.verify.settings import Choice, Space, hyperparameters_near, tiny_values, usual_values
from solvergen.verify.values import CALM, KINDS, PEAKED, SEEDS, SMALL, SUBNORMALS, arrays

VECTOR_WIDTHS = (4, 8, 16, 32, 64)
"""Elements that processors and GPUs handle at once, in one type or another."""

CHUNKS = (1024, 2048, 4096, 16384, 32768)
"""Sizes at which backends are likely to divide their work."""

ROW, REDUCED = 256, 4096
"""Lanes of a reduction, and terms of one of its totals."""

MULTIPLIERS = (1.0, 0.0, 0.5, 2.0, 0.1, 10.0)
STARTS = (0, 1, 9, 60, 400, 2**24 - 1, 2**24, 2**31 - 1, 2**53 - 8)
"""Counts of updates before the first step: few, some at which usual decays still show, and those at which a
float32 or an int32 would lose count."""

FLOAT64_PAIR = ("float64", "float64")
WIDE_PAIRS = tuple(pair for pair in PAIRS if set(pair) <= {"float32", "bfloat16"})
"""Those whose subnormal numbers are so where they are computed, and have squares that aren't lost."""

FLOAT64 = 4
"""How many times as likely as any other mix of types float64 is: nothing else shows that scalars are kept and
computed in float64."""

FLOAT64_STAGED = 3
"""The same for rules with reductions, a third of whose runs are in float64 in any case."""

FLOAT64_LATE = 12
"""The same where tensors have had very many updates: narrower types show nothing of the last digits of t."""

LATE = 1000
"""Counts beyond it are late: what decays at a usual rate is gone."""

_SIZES = st.sampled_from(
    (
        *(1, 0, 2, 3, 5) * 8,
        *[w + d for w in VECTOR_WIDTHS for d in (0, -1, 1)] * 3,
        *range(66, 200, 7),
        *(c + d for c in CHUNKS for d in (-1, 1)),
    )
)
"""Numbers of elements: few, about the vector widths, more, and (one in ten) about the chunk sizes."""
_STAGED_SIZES = st.sampled_from(
    (
        *(1, 0, 2, 3, 5) * 6,
        *[w + d for w in VECTOR_WIDTHS for d in (0, -1, 1)],
        *range(66, 200, 13),
        *[ROW * n + d for n in (1, 1, 1, 2, 5, 15) for d in (0, -1, 1)],
        *[REDUCED * n + d for n in (1, 1, 2, 2) for d in (0, -1, 1)],
        *(3 * REDUCED + 700, 5 * REDUCED - 1) * 3,
    )
)
"""The same for rules with reductions, of which one in five is about a row of lanes or a few, and one in five
about the chunks that totals are made of."""
_TELLING_SIZES = st.sampled_from(
    (
        *[ROW * n + d for n in (1, 3, 6, 12) for d in (-90, -1, 1, 30)],
        *[REDUCED * n + d for n in (1, 1, 2) for d in (-400, -1, 1, 300)],
    )
)
"""The same where the order of a sum is to show: lanes have several terms each, or not all as many."""
_OFFSETS = st.sampled_from((0, 0, 1, 2, 3, 5, 8))
_TELLING_OFFSETS = st.sampled_from((1, 1, 2, 3, 5))
_GROUPS = st.sampled_from((1, 1, 1, 2, 3))
_MULTIPLIER = st.sampled_from(MULTIPLIERS)
_STARTS = st.sampled_from((0, 0, 0, *STARTS[1:]))
_EARLY = st.sampled_from((0, 0, 0, *(n for n in STARTS if 0 < n <= LATE)))
_POLICIES = st.sampled_from(("propagate",) * 6 + ("skip", "raise"))
_EMPTY = st.sampled_from(((0,), (0, 3), (2, 0, 2)))
_SCALAR_STATES = st.floats(0.0, 2.0)
_DICE = {n: st.integers(0, n - 1) for n in (2, 3, 4, 5, 6, 20)}


ROWS, COLUMNS = (1, 2, 3, 5, 8, 9, 63, 64, 65, 129), (1, 2, 3, 4, 7, 17, 31, 255, 256, 257, 513)
"""Rows and columns of matrices: few, and about the edges of the tiles that lines are reduced in."""
LONG = (4096, 4097, 8192, 8197)
"""Columns of matrices of a row or two: as many as tiles side by side have or are kept at once, and more."""
BLOCKS = 520
"""Blocks that a tensor falls into at most: more would take long and show nothing new."""
_MATRICES = st.sampled_from((1, 1, 1, 2, 3))
_ROWS, _COLUMNS, _LONG = (st.sampled_from(sizes) for sizes in ((*ROWS, 0), (*COLUMNS, 0), LONG))


@dataclass(frozen=True)
class Manner:
    """How tensors are drawn: their sizes, what they hold, where they begin, how many times as likely as other
    types float64 is, and that one in ``mixed`` runs has two mixes of types. ``matrices``: mostly of two or
    three axes. ``pairs``: in these mixes of types, if they are asked for. ``choose``: the hyperparameters, if
    not any; then few updates are behind, there are several steps, and gradients oppose nothing. ``telling``:
    of few tensors, all as the rule begins them, so that the last bit of every total shows."""

    sizes: st.SearchStrategy[int] = _SIZES
    kinds: st.SearchStrategy[str] = KINDS
    offsets: st.SearchStrategy[int] = _OFFSETS
    float64: int = FLOAT64
    mixed: int = 5
    matrices: bool = False
    pairs: tuple[tuple[str, str], ...] = PAIRS
    choose: Choice | None = None
    telling: bool = False


ELEMENTWISE = Manner()
STAGED = Manner(_STAGED_SIZES, float64=FLOAT64_STAGED, mixed=2)
TELLING = Manner(
    _TELLING_SIZES, PEAKED, _TELLING_OFFSETS, pairs=(FLOAT64_PAIR,), choose=usual_values, telling=True
)
SUBNORMAL = replace(STAGED, kinds=SUBNORMALS, pairs=WIDE_PAIRS, choose=tiny_values)
_STAGED = st.sampled_from(
    (
        *[replace(STAGED, kinds=kinds) for kinds in (*[CALM] * 5, KINDS, KINDS, *SMALL)],
        *[SUBNORMAL] * 4,
        *[TELLING] * 6,
    )
)
"""The manners of runs in which reductions let elements meet."""


def _one_in(draw: st.DrawFn, n: int) -> bool:
    """True in one of ``n`` draws. Shrinks to False."""
    return draw(_DICE[n]) == n - 1


@st.composite
def _manners(draw: st.DrawFn, definition: Definition) -> Manner:
    """The manner of one run."""
    if not definition.is_staged:
        return ELEMENTWISE
    return replace(draw(_STAGED), matrices=definition.has_lines)


@st.composite
def shapes(draw: st.DrawFn, most: int, sizes: st.SearchStrategy[int] = _SIZES) -> tuple[int, ...]:
    """Shapes of at most ``most`` elements: without dimensions, empty, and up to three dimensions."""
    size = min(draw(sizes), most)
    if size == 0:
        return draw(_EMPTY)
    divisor = next((d for d in (2, 3, 5) if size % d == 0), None)
    forms: list[tuple[int, ...]] = [(size,)]
    if size == 1:
        forms.append(())
    if divisor is not None:
        forms += [(divisor, size // divisor), (size // divisor, divisor)]
    forms.append((1, size, 1))
    return draw(st.sampled_from(forms))


@st.composite
def matrices(draw: st.DrawFn, most: int) -> tuple[int, ...]:
    """Shapes of two or three axes, some empty, of at most ``most`` elements."""
    rows = draw(_ROWS)
    columns = draw(_COLUMNS)
    if _one_in(draw, 20):
        rows, columns = min(rows, 2), draw(_LONG)
    if _one_in(draw, 3):
        rows, columns = columns, rows  # so that lines of either kind are long
    shape: tuple[int, ...] = (rows, columns)
    if _one_in(draw, 3):
        shape = draw(st.permutations((draw(_MATRICES), *shape)).map(tuple))
    while math.prod(shape) > most:
        shape = tuple(-(-n // 2) if n > 1 else n for n in shape) if most else (0, *shape[1:])
    return shape


@st.composite
def _groups(
    draw: st.DrawFn, space: Space, late: bool, choose: Choice | None
) -> tuple[tuple[Group, ...], list[dict[str, float]]]:
    """The groups, and the hyperparameters that each begins with. ``late``, ``choose``: see
    ``hyperparameters_near``."""
    factors = multipliers_of(space.definition.hyperparameter_names)
    groups: list[Group] = []
    hyperparameters: list[dict[str, float]] = []
    setting, base = draw(st.sampled_from(space.bases))
    for _ in range(draw(_GROUPS)):
        if groups and _one_in(draw, 3):
            # Options of its own for this group: one more launch in every step.
            setting, base = draw(st.sampled_from(space.bases))
        multipliers = {f: draw(_MULTIPLIER) for f in factors if _one_in(draw, 2)}
        groups.append(Group(setting, multipliers))
        hyperparameters.append(
            draw(hyperparameters_near(space, setting, base, multipliers, late=late, choose=choose))
        )
    return tuple(groups), hyperparameters


@st.composite
def _tensors(
    draw: st.DrawFn,
    limits: Limits,
    states: Sequence[tuple[Sequence[State], Sequence[str]]],
    view: View,
    pairs: Sequence[tuple[str, str]],
    manner: Manner,
    late: bool,
) -> tuple[tuple[Tensor, ...], tuple[str, ...]]:
    """The parameters, and the storage type of each one's gradient.

    ``states``: the states that are arrays and the names of the scalar states, that each group has.
    ``view``: the definition's. ``late``: they have had very many updates.
    """
    groups = len(states)
    # Few where their totals are to tell: what is another in one is rounded away in the total over all.
    most = min(groups + 1, limits.tensors) if manner.telling else limits.tensors
    count = draw(st.integers(groups, max(groups, most)))
    # Mostly one mix of types for all: each further one is a kernel more to compile.
    float64 = FLOAT64_LATE if late else manner.float64
    pair = st.sampled_from([p for p in pairs for _ in range(float64 if p == FLOAT64_PAIR else 1)])
    mixes = [draw(pair)]
    if _one_in(draw, manner.mixed):
        mixes.append(draw(pair))
    # What a state can hold after some steps is little of what a kernel may meet: maxima, running means
    # and the like are seldom -0.0, negative or NaN in one and not in the other.
    loaded = not manner.telling and _one_in(draw, 3)
    left, tensors, types = limits.elements, [], []
    for index in range(count):
        param, grad = mixes[len(mixes) > 1 and _one_in(draw, 2)]
        if manner.matrices and not _one_in(draw, 4):
            shape = draw(matrices(left))
        else:
            shape = draw(shapes(left, manner.sizes))
        left -= int(np.prod(shape, dtype=np.int64))
        # The first tensors fill the groups, so that none is empty.
        group = index if index < groups else draw(st.integers(0, groups - 1))
        offset = draw(manner.offsets)
        contents = draw(arrays(param, shape, manner.kinds))
        held, floats = states[group] if loaded else ((), ())
        counts = [n for n in counts_of_blocks(shape) if n <= BLOCKS] if view == "blocks" else [1]
        blocks = draw(st.sampled_from(counts))
        compute = compute_dtype(param).name
        tensors.append(
            Tensor(
                f"w{index}",
                contents,
                offset,
                group,
                {
                    state.name: draw(arrays(compute, shape, manner.kinds))
                    if state.rank is None
                    else draw(arrays("float64", state_shape(view, state.rank, shape, blocks), manner.kinds))
                    for state in held
                },
                {name: draw(_SCALAR_STATES) for name in floats},
                blocks,
            )
        )
        types.append(grad)
    return tuple(tensors), tuple(types)


def _states(definition: Definition, options: Mapping[str, bool]) -> tuple[list[State], list[str]]:
    """The states that are arrays, and the names of the scalar states, that exist under ``options``."""
    active = definition.active_state(**options)
    return (
        [state for state in definition.reference_arrays if state.name in active and not state.dtype],
        [name for name in definition.all_scalar_states if name in active],
    )


def means(hyperparameters: Mapping[str, float]) -> tuple[float, ...]:
    """By what two terms differ where a mean of them cancels, as in ``h*m + (1 - h)*grad``."""
    found = [f for h in hyperparameters.values() if 0 < h < 1 for f in (h / (1 - h), (1 - h) / h)]
    return tuple(f for f in found if 1e-9 < f < 1e9)


def factors(hyperparameters: Mapping[str, float]) -> tuple[float, ...]:
    """By what two terms of a rule are likely to differ where they cancel or are equal: 1, hyperparameters,
    their inverses, and ``means``."""
    found = [1.0, *(f for h in hyperparameters.values() if h for f in (h, 1 / h)), *means(hyperparameters)]
    return tuple(f for f in found if 1e-9 < abs(f) < 1e9)


@st.composite
def _opposed(
    draw: st.DrawFn,
    dtype: str,
    states: Sequence[HostArray],
    others: Sequence[HostArray],
    hyperparameters: Mapping[str, float],
) -> HostArray:
    """A gradient that makes sums of the rule cancel, and comparisons meet equal numbers: multiples of what
    stands beside it, other ones at each element. So the last bits of every scalar show, and the rounding of
    every product."""
    rng = np.random.default_rng(draw(SEEDS))
    shape = others[0].shape

    def multiples(of: Sequence[HostArray], by: Sequence[float]) -> HostArray:
        chosen = rng.integers(0, len(of), shape)
        found: HostArray = rng.choice(np.array(by), shape) * np.choose(
            chosen, [a.astype(np.float64) for a in of]
        )
        return found

    with np.errstate(all="ignore"):
        opposed = multiples([*states, *others], factors(hyperparameters)) * rng.choice(
            (-1.0, -1.0, 1.0), shape
        )
        # Most states are means with the gradient: every second element cancels one.
        weights = means(hyperparameters)
        if states and weights:
            opposed = np.where(rng.integers(0, 2, shape) == 1, -multiples(states, weights), opposed)
        found: HostArray = np.asarray(opposed).astype(numpy_dtype(dtype))
    return found


@st.composite
def _gradients(
    draw: st.DrawFn,
    dtype: str,
    now: Followed,
    before: HostArray | None,
    hyperparameters: Mapping[str, float],
    manner: Manner,
) -> HostArray:
    """A gradient for a tensor as it is now: any numbers, or such as oppose what stands beside them.

    ``before``: the gradient of the step before.
    """
    if manner.choose is not None or not _one_in(draw, 3):
        return draw(arrays(dtype, now.param.shape, manner.kinds))
    states = [state for name, state in now.arrays.items() if state is not None and name not in now.lines]
    others = [now.param, *([] if before is None else [before])]
    return draw(_opposed(dtype, states, others, hyperparameters))


@st.composite
def examples(
    draw: st.DrawFn,
    space: Space,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    pairs: Sequence[tuple[str, str]] = PAIRS,
) -> Example:
    """Whole runs of the optimizer that ``space`` belongs to."""
    definition = space.definition
    manner = draw(_manners(definition))
    start = draw(_STARTS if manner.choose is None else _EARLY)
    late = start > LATE
    pairs = [pair for pair in pairs if pair in manner.pairs] or pairs
    groups, current = draw(_groups(space, late, manner.choose))
    options = [
        space.resolved(group.options, hyperparameters)
        for group, hyperparameters in zip(groups, current, strict=True)
    ]
    states = [_states(definition, chosen) for chosen in options]
    tensors, types = draw(_tensors(limits, states, definition.view, pairs, manner, late))
    example = Example(groups, tensors, (Step((), 0, tuple(current)),), start=start)
    # The rule is followed on the way, so that gradients can oppose what stands beside them by then.
    with np.errstate(all="ignore"):
        whole = whole_of(definition, example)
    if whole.shared and _one_in(draw, 3):
        example = replace(example, shared={name: draw(_SCALAR_STATES) for name in whole.shared})
        whole.shared.update(example.shared)
    nonfinite = draw(_POLICIES)
    steps: list[Step] = []
    lengths = [n for n in (1, 2, 2, 3, 3, 4, *range(5, limits.steps + 1)) if n <= limits.steps]
    if manner.choose is not None:
        lengths = lengths[-2:]
    for number in range(draw(st.sampled_from(lengths))):
        if number and _one_in(draw, 3):
            current = [
                draw(
                    hyperparameters_near(
                        space, group.options, now, group.multipliers, fixed, late, manner.choose
                    )
                )
                for group, now, fixed in zip(groups, current, options, strict=True)
            ]
        step = Step((), 0, tuple(current))
        effective = [hyperparameters_of(definition, example, step, tensor) for tensor in tensors]
        gradients: list[HostArray | None] = []
        for index, (tensor, now, dtype) in enumerate(zip(tensors, whole.tensors, types, strict=True)):
            if _one_in(draw, 6):
                gradients.append(None)
                continue
            others = [grad for param, grad in pairs if param == tensor.param.dtype.name]
            if len(others) > 1 and _one_in(draw, 20):
                dtype = draw(st.sampled_from(others))  # gradients may change their type from step to step
            before = steps[-1].gradients[index] if steps else None
            gradients.append(draw(_gradients(dtype, now, before, effective[index], manner)))
        steps.append(replace(step, gradients=tuple(gradients), offset=draw(manner.offsets)))
        with np.errstate(all="ignore"):
            whole.step(gradients, effective, nonfinite)
    return replace(example, steps=tuple(steps), nonfinite=nonfinite, reuse=_one_in(draw, 2))
