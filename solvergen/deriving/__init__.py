"""Optimizers derived from others while a program runs: a penalty, a projection, transforms, other equations.

What is asked for becomes a spec, as ``extends`` and ``of`` have it, which is compiled like any other. The
package lies in the cache of kernels from then on: later it is only loaded, and nothing of the compiler is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from solvergen.deriving.building import built
from solvergen.deriving.request import Request
from solvergen.runtime.keywords import checked_keywords

if TYPE_CHECKING:
    from solvergen.runtime.optimizer import Optimizer


@checked_keywords
def derive(
    base: str | os.PathLike[str],
    *,
    name: str | None = None,
    class_name: str | None = None,
    summary: str | None = None,
    penalty: str | None = None,
    project: str | None = None,
    transform: str | Iterable[str] | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
    constraints: Iterable[Mapping[str, Any]] | None = None,
    changes: Iterable[Mapping[str, Any]] | None = None,
) -> type[Optimizer]:
    """The class of an optimizer that is ``base`` with changes: ``derive("adamw", penalty="l1*abs(param)",
    hyperparameters={"l1": 1e-4})``.

    All arguments are as the keys of a spec (docs/spec-language.md). Equal arguments give the same class.

    Args:
        base: the name of a spec that comes with solvergen, or the path of a spec's file.
        name: what the rule is called, in snapshots too; ``base`` with ``_derived`` by default.
        class_name: what the class is called; by default ``name`` in CamelCase, or without a name as the
            class of the base, with ``Derived`` behind it.
        summary: what it is, in a sentence.
        penalty: a term of the loss in ``param`` and hyperparameters: its derivative is added to the gradient.
        project: what becomes of the parameter's new value.
        transform: names of transforms, applied one after the other: ``["cautious"]``.
        hyperparameters, options, state: what is declared beside what the base declares, or in its place; None
            for one removes it. A number for a hyperparameter, True or False for an option is its default.
        constraints: what must hold between hyperparameters and options, in place of the base's.
        changes: of the base's equations: ``[{"replace": "m", "do": "m = ..."}]``. Transforms come after them.

    Raises SpecError with everything that is wrong, as for a spec's file, and OptimizerError for arguments
    that no spec can be made of. What a spec would be warned about is a SpecWarning, when it is compiled.
    """
    request = Request.of(
        base,
        name=name,
        class_name=class_name,
        summary=summary,
        penalty=penalty,
        project=project,
        transform=transform,
        hyperparameters=hyperparameters,
        options=options,
        state=state,
        constraints=constraints,
        changes=changes,
    )
    return built(request)


__all__ = ["derive"]
