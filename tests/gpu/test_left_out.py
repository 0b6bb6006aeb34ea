"""Steps that a flag on the card leaves out, and copies of parameters in a second type."""

from __future__ import annotations

import numpy as np
import pytest

import generated
from solvergen.runtime.wrappers import Wrappers
from tests.gpu.conftest import Gpu
from tests.support.cuda_launch import bits_of

WRAPS = Wrappers(clip_grad_norm=1.0, average=0.9, shadow="bfloat16")


@pytest.mark.parametrize("rule", ["RAdam", "LAMB", "Prodigy", "Adafactor"])
@pytest.mark.parametrize("wraps", [None, WRAPS], ids=["plain", "wrapped"])
def test_as_if_the_steps_had_not_been(gpu: Gpu, rule: str, wraps: Wrappers | None) -> None:
    rng = np.random.default_rng(12)
    shapes = [(300, 70), (4097,), (3,)]
    host = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    params = [gpu.array(array) for array in host]
    make = getattr(generated, rule)
    ours = make(params, lr=0.01, backend=gpu.backend, wrappers=wraps)
    reference = make(host, lr=0.01, backend="numpy", wrappers=wraps)
    for flag in (1, 0, 0, 1, 1, 0):
        gradients = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        moved = [gpu.array(g) for g in gradients]
        ours.step(moved, found_inf=gpu.array(np.full(1, flag, np.float32)))
        reference.step(gradients, found_inf=bool(flag))
    assert ours.t == reference.t == 3
    for i, wanted in enumerate(host):
        assert (bits_of(gpu.host(params[i])) == bits_of(wanted)).all()
        if wraps is not None:
            assert (bits_of(gpu.host(ours.shadows[i])) == bits_of(reference.shadows[i])).all()
