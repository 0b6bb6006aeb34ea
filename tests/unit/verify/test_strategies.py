"""The strategies really draw what they promise: every category, shape and setting turns up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st

from solvergen.errors import VerificationError
from solvergen.runtime import reductions
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import Definition, Hyperparameter, Option
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.runtime.groups import is_allowed
from solvergen.runtime.ordering import CHUNK_TERMS, LANES
from solvergen.runtime.reductions import _chunk_totals
from solvergen.verify import shipped
from solvergen.verify.direct import run_directly
from solvergen.verify.drawing import BATCH
from solvergen.verify.dtypes import LAYOUTS, PAIRS
from solvergen.verify.example import Example
from solvergen.verify.limits import Limits
from solvergen.verify.settings import candidates, edges, hyperparameters_near, space_of, values
from solvergen.verify.strategies import LATE, examples, factors
from solvergen.verify.trace import first_difference
from solvergen.verify.values import CATEGORIES, FILLS, arrays, categories_in, fill, special_values


def drawn(strategy: st.SearchStrategy[Any], count: int = 300) -> list[Any]:
    """What a strategy draws, the same at every run; in small runs of Hypothesis, as verify draws."""
    seen: list[Any] = []
    for batch in range(count // BATCH):
        test = hypothesis.seed(batch)(hypothesis.given(strategy)(lambda example: seen.append(example)))
        hypothesis.settings(
            max_examples=BATCH,
            database=None,
            deadline=None,
            phases=(hypothesis.Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )(test)()
    return seen


def definition(
    hyperparameters: tuple[Hyperparameter, ...],
    options: tuple[Option, ...] = (),
    constraints: Callable[..., str | None] = lambda **_: None,
    options_of: Callable[..., dict[str, bool]] = lambda **_: {},
) -> Definition:
    """A definition of which only the settings matter."""
    return Definition(
        name="made",
        class_name="Made",
        spec="made.yaml",
        digest="",
        folder="",
        hyperparameters=hyperparameters,
        options=options,
        state=(),
        table=(),
        update=lambda param, *_: (param,),
        scalars=lambda **_: ((), {}),
        options_of=options_of,
        constraints=constraints,
        active_state=lambda **_: (),
        buffers_read=lambda **_: (),
        buffers_written=lambda **_: (),
        initial_state=lambda **_: {},
    )


LR = Hyperparameter("lr", default=0.1, min=0.0)
MOMENTUM = Hyperparameter("momentum", default=0.0, min=0.0, below=1.0)
DAMPENING = Hyperparameter("dampening", default=0.0)


def nesterov_needs_momentum(*, momentum: float, dampening: float, nesterov: bool, **_: Any) -> str | None:
    return "no" if nesterov and not (momentum > 0 and dampening == 0) else None


PICKY = definition((LR, MOMENTUM, DAMPENING), (Option("nesterov", False),), nesterov_needs_momentum)
PLAIN = definition((LR,))


@pytest.fixture(scope="module")
def runs() -> list[Example]:
    return drawn(examples(space_of(PICKY)), 800)


@pytest.mark.parametrize("dtype", LAYOUTS)
@pytest.mark.parametrize("category", CATEGORIES[:-1])
def test_a_category_is_what_it_says(category: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILLS, "only", (category,))
    found = categories_in(fill("only", 1, dtype, (4, 100)), dtype)
    if category == "tiny":
        assert found == frozenset()  # normal, near the subnormals: a category of its own
    elif category == "root":
        assert found <= {"ordinary"}  # in narrow types these aren't small
        numbers = np.abs(fill("only", 1, dtype, (4, 100)).astype(np.float64))
        normal = 2.0 ** (1 - LAYOUTS[dtype].bias)
        assert (numbers**2 < 2 * normal).all()
        assert (numbers**2 >= normal * 2.0 ** (-2 - LAYOUTS[dtype].mantissa)).all()
    elif category == "exact":
        assert found == {"ordinary"}
    elif category == "low":
        numbers = np.abs(fill("only", 1, dtype, (4, 100)).astype(np.float64))
        assert numbers.min() >= 2.0**-20
        assert numbers.max() < 2.0**-7
    elif category == "special":
        assert found >= {"zero", "subnormal", "ordinary", "infinite", "nan"}
    elif category == "tie":
        assert found >= {"ordinary"}
        assert not found & {"infinite", "nan"}
    elif category == "subnormal":
        assert "subnormal" in found
        assert found <= {"subnormal", "zero", "negative zero"}
    elif category == "zero":
        assert found == {"zero", "negative zero"}
    else:
        assert found == {category}


@pytest.mark.parametrize("dtype", LAYOUTS)
@pytest.mark.parametrize("shape", [(3,), (40,)], ids=["small", "large"])
def test_arrays_hold_every_category(dtype: str, shape: tuple[int, ...]) -> None:
    found: set[str] = set()
    for array in drawn(arrays(dtype, shape), 400):
        assert array.dtype == numpy_dtype(dtype)
        assert array.shape == shape
        found |= categories_in(array, dtype)
    assert found == {"zero", "negative zero", "subnormal", "ordinary", "huge", "infinite", "nan"}


@pytest.mark.parametrize("dtype", LAYOUTS)
def test_special_values_are_numbers_of_their_type(dtype: str) -> None:
    info = LAYOUTS[dtype]
    special = np.array(special_values(dtype)).astype(numpy_dtype(dtype))
    assert [repr(float(v)) for v in special] == [repr(v) for v in special_values(dtype)]
    bits = special.view(f"u{info.bits // 8}").astype(np.uint64)
    assert bits[5] == 1  # the least subnormal
    assert (bits[7] >> np.uint64(info.mantissa), bits[7] - bits[6]) == (1, 1)  # least normal, and before it
    assert math.isinf(float(special[10]))
    assert bits[10] - bits[8] == 1  # infinity follows the largest finite number


def test_shapes_of_every_kind(runs: list[Example]) -> None:
    shapes = {t.shape for e in runs for t in e.tensors}
    sizes = {int(np.prod(s)) for s in shapes}
    assert () in shapes
    assert (0,) in shapes
    assert (1,) in shapes
    assert any(len(s) == 2 and 0 in s for s in shapes)
    assert any(len(s) == 3 and math.prod(s) for s in shapes)
    assert {3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65} <= sizes
    assert max(sizes) > 16_000
    assert {len(e.tensors) for e in runs} == set(range(1, 7))
    # Mixed sizes in one run, with an empty tensor at its end too.
    assert any(e.tensors[-1].param.size == 0 and len({t.shape for t in e.tensors}) > 2 for e in runs)


def test_runs_of_every_kind(runs: list[Example]) -> None:
    assert {len(e.steps) for e in runs} == {1, 2, 3, 4}
    assert {e.nonfinite for e in runs} == {"propagate", "skip", "raise"}
    assert {e.reuse for e in runs} == {False, True}
    assert {t.offset for e in runs for t in e.tensors} >= {0, 1, 2, 3}
    assert {s.offset for e in runs for s in e.steps} >= {0, 1}
    assert {len(e.groups) for e in runs} == {1, 2, 3}
    assert {g.multipliers.get("lr_mult") for e in runs for g in e.groups} >= {None, 0.0, 2.0}
    assert not any("decay_mult" in g.multipliers for e in runs for g in e.groups)  # there is no decay
    assert any(e.groups[0].options != g.options for e in runs for g in e.groups)
    assert max(e.start for e in runs) > 2**31
    gradients = [g for e in runs for s in e.steps for g in s.gradients]
    assert any(g is None for g in gradients)
    assert sum(g is not None for g in gradients) > len(gradients) // 2
    # Some steps without any gradient, and some tensors that have one only later.
    assert any(all(g is None for g in s.gradients) for e in runs for s in e.steps)
    assert any(
        a is None and b is not None
        for e in runs
        if len(e.steps) > 1
        for a, b in zip(e.steps[0].gradients, e.steps[1].gradients, strict=True)
    )
    # Hyperparameters that change on the way.
    assert any(s.hyperparameters != e.steps[0].hyperparameters for e in runs for s in e.steps)
    assert any(
        len(e.groups) > 1 and e.steps[0].hyperparameters[0] != e.steps[0].hyperparameters[1] for e in runs
    )


def test_every_mix_of_dtypes(runs: list[Example]) -> None:
    def pairs(e: Example) -> set[tuple[str, str]]:
        return {
            (t.param.dtype.name, g.dtype.name)
            for s in e.steps
            for t, g in zip(e.tensors, s.gradients, strict=True)
            if g is not None
        }

    assert set().union(*(pairs(e) for e in runs)) == set(PAIRS)
    assert any(len(pairs(e)) > 2 for e in runs)
    # A gradient that changes its type from one step to the next.
    assert any(
        len({s.gradients[i].dtype for s in e.steps if s.gradients[i] is not None}) > 1
        for e in runs
        for i in range(len(e.tensors))
    )


def test_everything_drawn_is_valid(runs: list[Example]) -> None:
    space = space_of(PICKY)
    for e in runs:
        for s in e.steps:
            for group, hyperparameters in zip(e.groups, s.hyperparameters, strict=True):
                assert set(group.options) == {"nesterov"}
                assert space.accepts(group.options, hyperparameters, multipliers=group.multipliers)
                assert space.in_range(hyperparameters)
            assert [g is None or g.shape == t.shape for g, t in zip(s.gradients, e.tensors, strict=True)]
    assert {g.options["nesterov"] for e in runs for g in e.groups} == {False, True}


def test_gradients_that_cancel_what_stands_beside_them(runs: list[Example]) -> None:
    """Multiples of parameters, loaded states and earlier gradients, by what the hyperparameters suggest."""
    found: set[tuple[str, float]] = set()
    for e in runs:
        for step in e.steps:
            for tensor, gradient in zip(e.tensors, step.gradients, strict=True):
                if gradient is None or tensor.param.dtype != np.float64:
                    continue
                for factor in factors(step.hyperparameters[tensor.group]):
                    with np.errstate(all="ignore"):
                        opposed = -factor * tensor.param
                    same = (gradient == opposed) & np.isfinite(gradient) & (gradient != 0)
                    if same.any():
                        found.add(("param", factor))
    assert len(found) > 10
    assert factors({"lr": 0.25, "momentum": 0.0}) == (1.0, 0.25, 4.0, 1 / 3, 3.0)
    assert factors({"beta1": 0.5, "beta2": 0.75}) == (1.0, 0.5, 2.0, 0.75, 4 / 3, 1.0, 1.0, 3.0, 1 / 3)
    assert factors({"lr": 1e-300, "power": -2.0}) == (1.0, -2.0, -0.5)


def test_gradients_cancel_what_steps_have_made_of_the_states() -> None:
    """Not only what is loaded: lion's mean of the gradients, from the second step on."""
    lion = shipped()["lion"].definition
    found = 0
    for e in drawn(examples(space_of(lion)), 200):
        trace = run_directly(lion, e)
        for number, step in enumerate(e.steps):
            for tensor, gradient in zip(e.tensors, step.gradients, strict=True):
                if gradient is None or tensor.arrays or tensor.param.dtype != np.float64:
                    continue
                beta1 = step.hyperparameters[tensor.group]["beta1"]
                exp_avg = trace[number].buffers[tensor.name]["exp_avg"]
                with np.errstate(all="ignore"):
                    kept, added = beta1 * exp_avg, (1 - beta1) * gradient
                    cancelled = abs(kept + added) < 1e-12 * abs(kept)
                found += bool(cancelled.any())
    assert found > 5


def test_drawing_warns_of_nothing() -> None:
    """Though the rule is followed through overflows: adagrad's sum begins at any hyperparameter."""
    assert drawn(examples(space_of(shipped()["adagrad"].definition)), 100)


def test_float64_and_numbers_that_float32_rounds_are_drawn_often(runs: list[Example]) -> None:
    """What shows that scalars are kept in float64: momentum, and a dampening of which 1 - d is no float32."""

    def is_float32(number: float) -> bool:
        return abs(number) < 1e-30 or abs(number) > 1e30 or float(np.float32(number)) == number

    shown = [
        h
        for e in runs
        for step in e.steps
        for tensor, gradient in zip(e.tensors, step.gradients, strict=True)
        if gradient is not None and tensor.param.dtype == np.float64
        for h in [step.hyperparameters[tensor.group]]
        if h["momentum"] and not is_float32(1 - h["dampening"])
    ]
    everything = sum(len(e.steps) * len(e.tensors) for e in runs)
    assert everything / 80 < len(shown) < everything / 3


def test_decays_are_slow_where_counts_are_large() -> None:
    space = space_of(definition((LR, MOMENTUM)))
    runs = drawn(examples(space), 400)
    late = [e for e in runs if e.start > LATE]
    assert late
    slow = [e for e in late if any(h["momentum"] > 1 - 2.0**-24 for h in e.steps[0].hyperparameters)]
    assert len(late) / 5 < len(slow) < len(late)
    assert len({e.steps[0].hyperparameters[0]["lr"] for e in late}) > 10
    # 12 of 21 mixes of types are of float64 there, and 4 of 13 elsewhere.
    shares = [
        np.mean([any(tensor.param.dtype == np.float64 for tensor in e.tensors) for e in some])
        for some in ([e for e in runs if e.start <= LATE], late)
    ]
    assert 0.15 < shares[0] < 0.45 < shares[1] < 0.8


def test_the_order_of_sums_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some terms in other lanes, as where a chunk's first row isn't told apart: the last bit of a total."""
    lamb = shipped()["lamb"].definition
    runs = drawn(examples(space_of(lamb)), 100)
    right = [run_directly(lamb, e) for e in runs]
    assert (
        sum(first_difference(a, run_directly(lamb, e)) is not None for a, e in zip(right, runs, strict=True))
        == 0
    )

    def moved(terms: HostArray, largest: bool) -> HostArray:
        chunks = [terms[i : i + CHUNK_TERMS] for i in range(0, terms.size, CHUNK_TERMS)]
        rows = [
            np.concatenate([c[:6], np.zeros(LANES - 6), c[6:], np.zeros(-(c.size - 6) % LANES)])
            for c in chunks
        ]
        return np.array([_chunk_totals(row, largest)[0] for row in rows])

    monkeypatch.setattr(reductions, "_chunk_totals", moved)
    wrong = [run_directly(lamb, e) for e in runs]
    shown = [first_difference(a, b) is not None for a, b in zip(right, wrong, strict=True)]
    assert 15 < sum(shown) < 50


def test_subnormal_numbers_alone_are_drawn_for_reductions() -> None:
    lamb = shipped()["lamb"].definition
    runs = drawn(examples(space_of(lamb)), 200)
    normal = float(np.finfo(np.float32).smallest_normal)

    def is_subnormal(e: Example) -> bool:
        arrays = [t.param for t in e.tensors]
        wide = {a.dtype.name for a in arrays} <= {"float32", "bfloat16"}
        with np.errstate(all="ignore"):
            largest = max((float(abs(a.astype(np.float64)).max()) for a in arrays if a.size), default=0.0)
        return wide and 0 < largest < normal

    subnormal = [e for e in runs if is_subnormal(e)]
    assert len(runs) / 50 < len(subnormal) < len(runs) / 5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ties_are_halfway_between_numbers_of_a_narrower_type(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FILLS, "only", ("tie",))
    numbers = fill("only", 3, dtype, (4000,))
    up, down = (np.nextafter(numbers, numbers.dtype.type(to)) for to in (np.inf, -np.inf))
    narrower = {"float32": ("bfloat16", "float16"), "float64": ("float32",)}[dtype]
    at, beside = np.zeros(4000, bool), np.zeros(4000, bool)
    with np.errstate(all="ignore"):
        for name in narrower:
            below, here, above = (x.astype(numpy_dtype(name)).astype(np.float64) for x in (down, numbers, up))
            at |= (below != here) != (here != above)
            beside |= (below != above) & ((below == here) != (here == above))
            # The midpoint itself goes one way, and its neighbours both ways.
            assert (below != above).sum() > 1000
    assert at.mean() > 0.5
    assert beside.mean() > 0.5


def test_the_limits_hold() -> None:
    for e in drawn(examples(space_of(PLAIN), Limits(tensors=2, steps=1, elements=20)), 200):
        assert len(e.tensors) <= 3  # one for each group at least
        assert len(e.steps) == 1
        assert sum(t.param.size for t in e.tensors) <= 20


@pytest.mark.parametrize("pair", [("float64", "float64"), ("float32", "bfloat16")])
def test_only_the_dtypes_asked_for(pair: tuple[str, str]) -> None:
    for e in drawn(examples(space_of(PLAIN), pairs=[pair]), 200):
        assert {t.param.dtype.name for t in e.tensors} == {pair[0]}
        given = {g.dtype.name for step in e.steps for g in step.gradients if g is not None}
        assert given <= {pair[1]}


def test_examples_are_the_same_at_every_run() -> None:
    def prints(e: Example) -> tuple[Any, ...]:
        return (
            [t.param.tobytes() for t in e.tensors],
            [g.options for g in e.groups],
            e.start,
            [s.hyperparameters for s in e.steps],
        )

    first, second = (drawn(examples(space_of(PICKY)), 50) for _ in range(2))
    assert [prints(e) for e in first] == [prints(e) for e in second]


@pytest.mark.parametrize(
    ("hyperparameter", "expected"),
    [
        (Hyperparameter("x", 0.5, min=0.0, below=1.0), (0.0, 5e-324, math.nextafter(1.0, 0.0))),
        (Hyperparameter("x", 0.5, above=0.0, max=2.0), (2.0, math.nextafter(2.0, 0.0), 5e-324)),
        (Hyperparameter("x", 3.0, min=1.0, max=4.0, integer=True), (1.0, 2.0, 4.0, 3.0)),
        (Hyperparameter("x", 3.0, above=1.0, below=4.0, integer=True), (2.0, 3.0)),
        (Hyperparameter("x", 3.0), ()),
    ],
)
def test_edges_of_ranges(hyperparameter: Hyperparameter, expected: tuple[float, ...]) -> None:
    assert edges(hyperparameter) == expected


@pytest.mark.parametrize(
    "h",
    [
        Hyperparameter("x", 0.5, min=0.0, below=1.0),
        Hyperparameter("x", 0.5, above=0.0, max=2.0),
        Hyperparameter("x", -3.0, max=-1.0),
        Hyperparameter("x", 3.0, min=1.0, max=4.0, integer=True),
        Hyperparameter("x", 2.0, above=1.0, below=3.0, integer=True),
        Hyperparameter("x", 7.0, integer=True),
        Hyperparameter("x", 1.0, min=1.0, max=1.0),
    ],
)
def test_values_stay_in_their_range_and_reach_its_ends(h: Hyperparameter) -> None:
    seen = drawn(values(h), 500)
    assert all(is_allowed(h, v) for v in seen)
    assert h.default in seen
    assert set(edges(h)) <= set(seen)
    assert all(is_allowed(h, v) for v in candidates(h))


def test_constraints_that_defaults_break_are_met() -> None:
    """Every setting that can be satisfied is drawn, with its hyperparameters away from the first found."""
    space = space_of(PICKY)
    assert {setting["nesterov"] for setting, _ in space.bases} == {False, True}
    setting, base = next(b for b in space.bases if b[0]["nesterov"])
    near = drawn(hyperparameters_near(space, setting, base, {}))
    assert all(space.accepts(setting, hyperparameters) for hyperparameters in near)
    assert len({hyperparameters["momentum"] for hyperparameters in near}) > 20
    assert {hyperparameters["dampening"] for hyperparameters in near} == {0.0}


def test_products_that_overflow_are_not_accepted() -> None:
    space = space_of(PLAIN)
    assert all(map(math.isfinite, drawn(values(LR))))
    assert space.accepts({}, {"lr": 1e300}, multipliers={"lr_mult": 2.0})
    assert not space.accepts({}, {"lr": 1e300}, multipliers={"lr_mult": 1e9})


def test_a_setting_that_cannot_be_satisfied_is_left_out() -> None:
    one = definition((LR,), (Option("on", False),), lambda *, lr, on: "never" if on else None)
    assert [dict(setting) for setting, _ in space_of(one).bases] == [{"on": False}]
    with pytest.raises(VerificationError, match="Made: no choice"):
        space_of(definition((LR,), (), lambda **_: "never"))


def test_derived_options_are_left_alone_and_given() -> None:
    derived = definition(
        (LR, MOMENTUM), (Option("buffer", None),), options_of=lambda **h: {"buffer": h["momentum"] != 0}
    )
    space = space_of(derived)
    assert {g.options["buffer"] for e in drawn(examples(space), 100) for g in e.groups} == {None, False, True}
    assert space.resolved({"buffer": None}, {"lr": 0.1, "momentum": 0.5}) == {"buffer": True}
    assert space.resolved({"buffer": False}, {"lr": 0.1, "momentum": 0.5}) == {"buffer": False}
