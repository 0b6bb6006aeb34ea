"""Wrapped optimizers on all backends: whole runs with random wrappers, and the runs that verify draws."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from solvergen.runtime.wrapped_classes import wrapped_class
from solvergen.runtime.wrappers import Wrappers
from solvergen.verify import check_agreement, why_unavailable
from tests.support.bits import assert_same_bits
from tests.support.shipped import CLASSES

BACKENDS = [name for name in ("cpu", "ptx") if why_unavailable(name) is None]
RULES = ("adam", "sgd", "prodigy")

_positive = st.sampled_from((0.03, 0.5, 1.0, 3.0))
_perhaps = st.none() | _positive
_decay = st.sampled_from((0.0, 0.0, 0.01, 0.7))


@st.composite
def wrappers(draw: st.DrawFn) -> Wrappers:
    low, high = sorted((draw(st.sampled_from((-1.0, 0.0, 0.25))), draw(st.sampled_from((0.25, 1.0, 2.0)))))
    return Wrappers(
        accumulate=draw(st.sampled_from((1, 2, 3))),
        accumulation=draw(st.sampled_from(("mean", "sum"))),
        unscale=draw(st.sampled_from((1.0, 3.0, 1024.0))),
        clip_value=draw(_perhaps),
        clip_tensor_norm=draw(_perhaps),
        clip_grad_norm=draw(_perhaps),
        clip_eps=draw(st.sampled_from((0.0, 1e-6))),
        order=draw(st.sampled_from(("average", "caffe"))),
        l1=draw(_decay),
        l2=draw(_decay),
        weight_decay=draw(_decay),
        maximize=draw(st.booleans()),
        bounds=(draw(st.sampled_from((None, low))), draw(st.sampled_from((None, high)))),
        average=draw(st.none() | st.sampled_from((0.0, 0.9, 1.0))),
        normalize=draw(st.sampled_from((1.0, 1.0, 0.3))),
        write_update=draw(st.booleans()),
    )


def run(name: str, backend: str, chosen: Wrappers, seed: int, policy: str) -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    dtypes = (np.float32, np.float64, ml_dtypes.bfloat16, np.float16)
    shapes = ((), (3, 5), (4099,), (0,), (2, 2))
    of = {f"p{i}": rng.normal(size=shape).astype(dtypes[rng.integers(4)]) for i, shape in enumerate(shapes)}
    optimizer = CLASSES[name](of, backend=backend, nonfinite=policy, wrappers=chosen)
    said = []
    written = {}
    for step in range(5):
        gradients = {}
        for n, param in of.items():
            gradient = np.array(rng.normal(size=param.shape) * rng.choice([0.1, 1, 30]))
            if rng.integers(12) == 0 and gradient.size:
                gradient[(0,) * gradient.ndim] = rng.choice([np.nan, np.inf])
            gradients[n] = None if rng.integers(4) == 0 else gradient.astype(param.dtype)
            written[f"gradient {step} of {n}"] = gradients[n]
        said.append((optimizer.step(gradients), optimizer.pending, tuple(optimizer.steps.values())))
    said.append(optimizer.flush())
    if chosen.clip_grad_norm is not None:
        said.append(repr(optimizer.clip_norm))
    everything = dict(of) | {what: array for what, array in written.items() if array is not None}
    for state, tensors in optimizer.state.items():
        everything |= {f"{state} of {n}": np.asarray(array) for n, array in tensors.items()}
    return said, everything


@pytest.mark.skipif(not BACKENDS, reason="no other backend works here")
@settings(max_examples=5, phases=(Phase.explicit, Phase.generate))
@given(
    name=st.sampled_from(RULES),
    chosen=wrappers(),
    seed=st.integers(0, 2**32 - 1),
    policy=st.sampled_from(("propagate", "propagate", "skip")),
)
def test_whole_runs_have_the_same_bits(name: str, chosen: Wrappers, seed: int, policy: str) -> None:
    said, expected = run(name, "numpy", chosen, seed, policy)
    for backend in BACKENDS:
        found_said, found = run(name, backend, chosen, seed, policy)
        assert found_said == said, backend
        assert found.keys() == expected.keys()
        for what, array in expected.items():
            try:
                assert_same_bits(found[what], array)
            except AssertionError as different:
                raise AssertionError(f"{what} on {backend}: {different}") from None


@pytest.mark.skipif(not BACKENDS, reason="no other backend works here")
@pytest.mark.parametrize("name", ["adam", "lamb", "signsgd", "sam", "rk23"])
def test_agreement(name: str) -> None:
    check_agreement(wrapped_class(CLASSES[name]), backends=("numpy", *BACKENDS[:1]), examples=4)
