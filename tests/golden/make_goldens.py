"""Makes the golden trajectories, or checks them: ``python tests/golden/make_goldens.py [--check]``.

Needs torch, jax and optax (the extra ``golden``); the tests themselves read only the files. sgd and adam
come from torch's optimizers and lion from optax's, all in float64 on the CPU. ``--check`` derives all
trajectories again and compares; it writes nothing and exits with 1 if any differs.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.golden.cases import CASES, RECORDED, SHAPES, STEPS, Case, gradients, join, parameters  # noqa: E402

TOLERANCE = 1e-14
"""Of a tensor's largest magnitude: room for another processor's vector unit, not for another rule."""

Run = tuple[np.ndarray, dict[str, np.ndarray]]
"""Parameters at the recorded steps, ``[len(RECORDED), SIZE]``, and each state at the end, ``[SIZE]``."""


def run_torch(
    case: Case,
    make: Callable[..., object],
    rename: Callable[[Mapping[str, float]], dict],
    states: tuple[str, ...],
) -> Run:
    """``case`` by a torch optimizer: one group, tensors without a gradient left out of the step."""
    import torch

    tensors = {n: torch.from_numpy(np.array(p)).requires_grad_() for n, p in parameters().items()}
    optimizer = make(list(tensors.values()), **rename(case.at(1)), **case.options, foreach=False)
    recorded = []
    for step in range(1, STEPS + 1):
        optimizer.param_groups[0].update(rename(case.at(step)))
        for name, gradient in gradients(step).items():
            tensors[name].grad = None if gradient is None else torch.from_numpy(np.array(gradient))
        optimizer.step()
        if step in RECORDED:
            recorded.append(join({n: t.detach().numpy() for n, t in tensors.items()}))
    final = {
        state: join({n: optimizer.state[t][state].numpy() for n, t in tensors.items()})
        for state in states
        if all(optimizer.state[t].get(state) is not None for t in tensors.values())
    }
    return np.array(recorded), final


def run_sgd(case: Case) -> Run:
    import torch

    return run_torch(case, torch.optim.SGD, dict, ("momentum_buffer",))


def run_adam(case: Case) -> Run:
    import torch

    def rename(values: Mapping[str, float]) -> dict:
        kept = {k: v for k, v in values.items() if k not in ("beta1", "beta2")}
        return {**kept, "betas": (values["beta1"], values["beta2"])}

    return run_torch(case, torch.optim.Adam, rename, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"))


def run_lion(case: Case) -> Run:
    """``case`` by optax, each tensor with a state of its own since optax steps all leaves at once."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import optax

    def transformation(values: Mapping[str, float]) -> object:
        return optax.lion(
            values["lr"], b1=values["beta1"], b2=values["beta2"], weight_decay=values["weight_decay"]
        )

    tensors = {n: jnp.asarray(p) for n, p in parameters().items()}
    states = {n: transformation(case.at(1)).init(p) for n, p in tensors.items()}
    recorded = []
    for step in range(1, STEPS + 1):
        rule = transformation(case.at(step))
        for name, gradient in gradients(step).items():
            if gradient is not None:
                updates, states[name] = rule.update(jnp.asarray(gradient), states[name], tensors[name])
                tensors[name] = optax.apply_updates(tensors[name], updates)
                assert tensors[name].dtype == jnp.float64
        if step in RECORDED:
            recorded.append(join({n: np.asarray(t) for n, t in tensors.items()}))
    moments = {n: optax.tree.get(state, "mu") for n, state in states.items()}
    return np.array(recorded), {"mu": join({n: np.asarray(m) for n, m in moments.items()})}


RUNS: Mapping[str, Callable[[Case], Run]] = {"sgd": run_sgd, "adam": run_adam, "lion": run_lion}


def derive(optimizer: str) -> dict[str, np.ndarray]:
    """All arrays of one golden file. A state that a case doesn't have is NaN there."""
    cases = CASES[optimizer]
    runs = [RUNS[optimizer](case) for case in cases]
    names = sorted({name for _, states in runs for name in states})
    missing = np.full(sum(int(np.prod(s)) for s in SHAPES.values()), np.nan)
    return {
        "cases": np.array([case.id for case in cases]),
        "params": np.array([recorded for recorded, _ in runs]),
        **{name: np.array([states.get(name, missing) for _, states in runs]) for name in names},
    }


def differences(optimizer: str, new: Mapping[str, np.ndarray]) -> list[str]:
    """What the committed file says otherwise, in words."""
    with np.load(HERE / f"{optimizer}.npz", allow_pickle=False) as file:
        old = {name: file[name] for name in file.files}
    if sorted(old) != sorted(new):
        return [f"{optimizer}: arrays {sorted(old)} committed, {sorted(new)} derived"]
    found = []
    for name, array in new.items():
        if array.shape != old[name].shape:
            found.append(f"{optimizer}/{name}: shape {old[name].shape} committed, {array.shape} derived")
        elif array.dtype.kind == "U":
            if list(array) != list(old[name]):
                found.append(f"{optimizer}/{name}: the list of cases has changed")
        else:
            room = TOLERANCE * np.nanmax(np.abs(array))
            if not np.allclose(array, old[name], rtol=0, atol=room, equal_nan=True):
                error = np.nanmax(np.abs(array - old[name]))
                found.append(f"{optimizer}/{name}: off by {error:.3g} (allowed {room:.3g})")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="compare with the committed files, write nothing"
    )
    check = parser.parse_args().check
    found = []
    for optimizer in CASES:
        arrays = derive(optimizer)
        if check:
            found += differences(optimizer, arrays)
        else:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)
            (HERE / f"{optimizer}.npz").write_bytes(buffer.getvalue())
    for line in found:
        print(line, file=sys.stderr)
    if check:
        print(f"{sum(map(len, CASES.values()))} trajectories derived again; {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
