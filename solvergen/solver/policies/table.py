"""All policies by name, and making the one that parameters ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from solvergen.runtime.naming import quoted
from solvergen.solver.parameters.error import SolverParametersError
from solvergen.solver.parameters.forks import POLICIES as OF_FORKS
from solvergen.solver.parameters.hints import meant
from solvergen.solver.parameters.model import SolverParameters
from solvergen.solver.policies.arithmetic import NetType
from solvergen.solver.policies.base import Policy
from solvergen.solver.policies.cosine import Cosine
from solvergen.solver.policies.exp import Exponential
from solvergen.solver.policies.fixed import Fixed
from solvergen.solver.policies.inv import Inverse
from solvergen.solver.policies.linear import Linear
from solvergen.solver.policies.multistep import MultiStep
from solvergen.solver.policies.one_cycle import OneCycle
from solvergen.solver.policies.piecewise import Piecewise
from solvergen.solver.policies.plateau import Plateau
from solvergen.solver.policies.poly import Polynomial
from solvergen.solver.policies.settings import Given
from solvergen.solver.policies.sigmoid import Sigmoid
from solvergen.solver.policies.step import Step
from solvergen.solver.policies.warmup import WarmUp

CAFFE: Mapping[str, Callable[[Given], Policy]] = MappingProxyType(
    {
        "fixed": Fixed.of,
        "step": Step.of,
        "exp": Exponential.of,
        "inv": Inverse.of,
        "multistep": MultiStep.of,
        "poly": Polynomial.of,
        "sigmoid": Sigmoid.of,
    }
)
"""Caffe's seven."""

POLICIES: Mapping[str, Callable[[Given], Policy]] = MappingProxyType(
    {
        **CAFFE,
        "constant": Fixed.of,
        "linear": Linear.of,
        "cosine": Cosine.of,
        "one_cycle": OneCycle.of,
        "plateau": Plateau.of,
        "piecewise": Piecewise.of,
    }
)
"""Every name that ``lr_policy`` may have."""


def policy_of(params: SolverParameters, type_: NetType = "float32") -> Policy:
    """The policy that the parameters ask for, in ``lr_policy`` or ``policy``.

    ``type_`` is that of the net's blobs: Caffe rounds its rates to it.

    Raises SolverParametersError where there is no such policy, or where it can't be as it was asked for.
    """
    settings = dict(params.policy or {})
    name = _name(params, settings)
    length = params.max_iter
    outer = Given(name, params, settings, length, type_)
    warmup = outer.count("warmup", 0)
    start = outer.number("warmup_start", 0.0, least=0.0)
    shifted = outer.flag("warmup_shift", False)
    inner = Given(name, params, settings, max(length - warmup, 0) if shifted else length, type_, outer._known)
    policy = POLICIES[name](inner)
    inner.finish()
    return WarmUp(policy, warmup, start, shifted) if warmup else policy


def _name(params: SolverParameters, settings: dict[str, Any]) -> str:
    """What the policy is called; ``settings`` keep the rest."""
    inside = settings.pop("name", None)
    if inside is not None and params.lr_policy is not None and inside != params.lr_policy:
        raise SolverParametersError(
            [
                params.finding(
                    "lr_policy",
                    f"lr_policy is {quoted(params.lr_policy)}, and policy has the name {quoted(inside)}",
                    hint="leave one of them out",
                )
            ]
        )
    name = params.lr_policy if inside is None else inside
    where = "lr_policy" if inside is None else "policy"
    if not name:
        raise SolverParametersError(
            [params.finding(where, "lr_policy is missing", hint=f"the policies are {', '.join(POLICIES)}")]
        )
    if name not in POLICIES:
        hint = OF_FORKS.get(str(name).lower().replace("-", "_")) or meant(name, POLICIES)
        raise SolverParametersError(
            [
                params.finding(
                    where,
                    f"unknown learning rate policy {quoted(name)}",
                    hint=f"{hint}; the policies are {', '.join(POLICIES)}",
                )
            ]
        )
    return str(name)
