"""adam_mini by the authors' package, which finds blocks by the names of tensors; one that it doesn't know is
one block."""

from __future__ import annotations

from typing import Any

from tests.golden.case import Case, Run
from tests.golden.peers import run_torch

_COMMON = {"lr": 0.03, "beta1": 0.8, "beta2": 0.95, "eps": 1e-5}

CASES = (
    Case("plain", {**_COMMON, "weight_decay": 0.0}),
    Case("decay", {**_COMMON, "weight_decay": 0.3}),
    Case("heads", {**_COMMON, "weight_decay": 0.3}, by="names", blocks={"w": 2}),
    Case("one_head", {**_COMMON, "weight_decay": 0.3}, by="names"),
    Case("neurons", {**_COMMON, "weight_decay": 0.0}, by="names", blocks={"w": 2, "u": 3}),
)
"""By names: ``w`` is a query's matrix of two heads or of one, or one of an MLP beside a bias ``u``. What they
have for second moments has other shapes."""

_NAMES = {"heads": ("query", "norm"), "one_head": ("key", "norm"), "neurons": ("mlp", "bias")}


def run(case: Case) -> Run:
    """The trajectory of the package."""
    from adam_mini import Adam_mini

    # It keeps both betas apart in the group, but takes them as a pair.
    def make(params: Any, beta1: float, beta2: float, **settings: float) -> Any:
        named = [(_name(case, param), param) for param in params]
        heads = {"dim": 2, "n_heads": 1 if case.id == "one_head" else 2}
        return Adam_mini(named, betas=(beta1, beta2), verbose=False, **heads, **settings)

    states = {"exp_avg": _momentum} if case.by else {"exp_avg": _momentum, "exp_avg_sq": "vmean"}
    return run_torch(case, make, dict, states)


def _momentum(state: Any) -> Any:
    """That of heads is a row each."""
    return state["m"].reshape(2, 2) if state["m"].ndim == 2 else state["m"]


def _name(case: Case, param: Any) -> str:
    """Of the matrix and the vector what they are in the case; decay is left out for norms and biases."""
    return _NAMES[case.id][param.ndim == 1] if case.by and param.ndim else "w"
