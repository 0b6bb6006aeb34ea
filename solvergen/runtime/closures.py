"""Functions that a step is given in place of gradients, and what they return.

A *closure* takes no arguments, evaluates at the parameters as they are, and returns a pair: the loss, of any
type, and the gradients, laid out as the parameters are. References ask for gradients by ``gradient``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from solvergen.errors import OptimizerError
from solvergen.runtime.buffers import type_name
from solvergen.runtime.naming import with_article

Closure = Callable[[], tuple[Any, Any]]


class LeftOut(Exception):
    """A later evaluation's gradients aren't finite, and the policy is to leave such steps out."""


@dataclass(frozen=True)
class GradientAt:
    """What a tensor has to say when the gradient is evaluated anew: its parameter there.

    ``index`` is the place of the evaluation in the program, ``param`` has the compute type and is rounded to
    the storage type.
    """

    index: int
    param: Any


def gradient(index: int, param: Any) -> GradientAt:
    """For references that are generators: ``grad = yield gradient(0, param)``. Counted with ``over_all``."""
    return GradientAt(index, param)


def is_closure(given: Any) -> bool:
    """Whether a step was given a function, not gradients."""
    return callable(given) and not isinstance(given, (Mapping, list, tuple))


def evaluated(closure: Closure) -> tuple[Any, Any]:
    """The loss and the gradients. Raises OptimizerError if the closure returns no pair."""
    result = closure()
    if type(result) is not tuple or len(result) != 2:
        found = f"{len(result)} values" if type(result) is tuple else with_article(type_name(result))
        raise OptimizerError(
            f"the function that step was given returned {found}, not a pair (loss, gradients)"
            + (": return loss, gradients" if result is not None else "; it ends without a return")
        )
    return result


def asks_for_closure(class_name: str, given: Any) -> OptimizerError:
    """The error for gradients, or whatever else, where only a closure will do."""
    return OptimizerError(
        f"{class_name} evaluates the gradient several times in a step, so step takes a function without "
        "arguments that evaluates it at the parameters as they are and returns (loss, gradients), not "
        f"{with_article(type_name(given))}"
    )
