"""Plans and steps for tests of the native backend, without an optimizer around them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from solvergen.runtime.backends.base import LaunchPlan, TensorPlan
from solvergen.runtime.backends.cpu import CpuBackend, CpuLauncher
from solvergen.runtime.spans import Spans
from tests.support.handwritten.adam.schema import DEFINITION

ROOT = Path(__file__).parents[3]
DTYPES: dict[str, Any] = {
    "float32": np.float32,
    "float64": np.float64,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
}
HYPERPARAMETERS = {"lr": 0.03, "beta1": 0.85, "beta2": 0.97, "eps": 1e-7, "weight_decay": 0.01}
OPTIONS = {"amsgrad": False, "maximize": False}


def values(shape: Sequence[int], dtype: str, seed: int = 0) -> Any:
    """Ordinary numbers over many magnitudes."""
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * 10.0 ** random.integers(-3, 3, shape)
    return np.array(x, DTYPES[dtype])


def adam_plan(
    params: Sequence[Any], grad_dtype: str | None = None, *, options: dict[str, bool] | None = None
) -> LaunchPlan:
    """Adam over these parameters, states at zero."""
    options = {**OPTIONS, **(options or {})}
    backend = CpuBackend()
    active = DEFINITION.active_state(**options)
    tensors = [
        TensorPlan(
            str(i),
            param,
            param.shape,
            tuple(
                backend.allocate(param, 0.0) if name in active else None for name in DEFINITION.array_states
            ),
        )
        for i, param in enumerate(params)
    ]
    dtype = params[0].dtype.name
    owned = Spans.over([a for t in tensors for a in (t.param, *t.states) if a is not None], backend.span_of)
    return LaunchPlan(DEFINITION, options, dtype, grad_dtype or dtype, tuple(tensors), owned)


def table_at(t: int, plan: LaunchPlan) -> Any:
    """Adam's table with one row."""
    row, _ = DEFINITION.scalars(**HYPERPARAMETERS, **plan.options, t=float(t))
    return np.array([row], np.float64 if plan.param_dtype == "float64" else np.float32)


def step(launcher: CpuLauncher, plan: LaunchPlan, gradients: Sequence[Any], t: int) -> None:
    """A whole step of all tensors."""
    assert launcher.bind(list(gradients))
    launcher.launch(table_at(t, plan), np.zeros(len(plan.tensors), np.int32))
    launcher.release()


def reference_step(plan: LaunchPlan, gradients: Sequence[Any], t: int) -> list[tuple[Any, ...]]:
    """What NumPy makes of the same step: for each tensor the new parameter and states. Changes nothing."""
    compute = np.float64 if plan.param_dtype == "float64" else np.float32
    storage = DTYPES[plan.param_dtype]
    results = []
    for tensor, gradient in zip(plan.tensors, gradients, strict=True):
        with np.errstate(all="ignore"):
            new = DEFINITION.update(
                tensor.param.astype(compute),
                gradient.astype(compute),
                *tensor.states,
                *(HYPERPARAMETERS[name] for name in DEFINITION.hyperparameter_names),
                float(t),
                *(plan.options[name] for name in DEFINITION.option_names),
                compute,
                lambda x: x.astype(storage).astype(compute),
            )
        results.append((new[0].astype(storage), *new[1:]))
    return results


def assert_same_bits(actual: Any, expected: Any) -> None:
    """Equal bit for bit, NaNs whatever their payload."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    words = np.dtype(f"u{actual.itemsize}")
    with np.errstate(invalid="ignore"):  # a signalling NaN is cast
        nan = np.isnan(actual.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    different = (np.ravel(actual).view(words) != np.ravel(expected).view(words)) & ~np.ravel(nan)
    assert not different.any(), (
        f"{int(different.sum())} differ, first at {int(np.flatnonzero(different)[0])}: "
        f"{np.ravel(actual)[different][0]!r} for {np.ravel(expected)[different][0]!r}"
    )


def check_steps(
    plan: LaunchPlan, gradients: Sequence[Sequence[Any]], launcher: CpuLauncher | None = None
) -> None:
    """Run steps and compare every buffer with NumPy after each."""
    launcher = launcher or CpuBackend().prepare(plan)
    for t, of_step in enumerate(gradients, 1):
        expected = reference_step(plan, of_step, t)
        step(launcher, plan, of_step, t)
        for tensor, (param, *states) in zip(plan.tensors, expected, strict=True):
            assert_same_bits(tensor.param, param)
            for actual, state in zip(tensor.states, states, strict=True):
                assert (actual is None) == (state is None)
                if actual is not None:
                    assert_same_bits(actual, state)


def run_python(
    code: str, timeout: float = 120, **environment: str | None
) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter at the repository's root, warnings shown but no errors."""
    merged = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name, value in environment.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = value
    return subprocess.run(
        [sys.executable, "-c", code],
        env=merged,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
