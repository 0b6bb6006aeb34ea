"""Whether verification was called with what it needs. A test that would look at nothing is refused too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from solvergen.errors import VerificationError
from solvergen.runtime.definition import Definition
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.dtypes import PAIRS
from solvergen.verify.limits import Limits


def checked_optimizer(caller: str, optimizer: object) -> type[Optimizer]:
    """The class of a generated optimizer. Raises VerificationError for anything else."""
    if (
        isinstance(optimizer, type)
        and issubclass(optimizer, Optimizer)
        and isinstance(getattr(optimizer, "definition", None), Definition)
    ):
        return optimizer
    raise VerificationError(
        f"{caller} needs the class of a generated optimizer, not {optimizer!r:.60} "
        "(shipped()[NAME] is one by its name)"
    )


def checked_optimizers(caller: str, optimizers: object) -> dict[str, type[Optimizer]]:
    """Classes by the names that they were given, or by those of their specs if they come without.

    Raises VerificationError for what is no class of a generated optimizer, and for two of one name.
    """
    if isinstance(optimizers, Mapping):
        return {name: checked_optimizer(caller, optimizer) for name, optimizer in optimizers.items()}
    if isinstance(optimizers, str) or not isinstance(optimizers, Iterable):
        raise VerificationError(
            f"{caller} needs classes of generated optimizers, by name or in a list, not {optimizers!r:.60} "
            "(shipped() are those that come with solvergen)"
        )
    found: dict[str, type[Optimizer]] = {}
    for given in optimizers:
        optimizer = checked_optimizer(caller, given)
        name = optimizer.definition.name
        if name in found:
            raise VerificationError(f"{caller} was given two optimizers named {name!r}; give them by name")
        found[name] = optimizer
    return found


def check_number(name: str, value: object) -> None:
    """Raise VerificationError unless ``value`` is a whole number above 0."""
    if type(value) is not int or value < 1:
        raise VerificationError(f"{name} is a whole number, 1 or more, not {value!r:.60}")


def check_limits(limits: object) -> None:
    """Raise VerificationError unless ``limits`` is None or ``Limits`` that leave something to draw."""
    if limits is None:
        return
    if not isinstance(limits, Limits):
        raise VerificationError(f"limits are solvergen.verify.Limits or None, not {limits!r:.60}")
    for field in fields(limits):
        check_number(f"limits.{field.name}", getattr(limits, field.name))


def checked_dtypes(dtypes: object) -> Sequence[tuple[str, str]]:
    """Pairs of the storage types of a parameter and its gradient.

    Raises VerificationError if there is none, or one that no optimizer accepts.
    """
    if isinstance(dtypes, str) or not isinstance(dtypes, Iterable):
        raise VerificationError(
            f"dtypes are pairs, as [('float32', 'bfloat16')] (parameter, gradient), not {dtypes!r:.60}"
        )
    pairs = []
    for given in dtypes:
        pair = tuple(given) if isinstance(given, tuple | list) else given
        if pair not in PAIRS:
            known = ", ".join(map(str, PAIRS))
            raise VerificationError(f"{given!r:.60} is no pair of dtypes; there are {known}")
        pairs.append(pair)
    if not pairs:
        raise VerificationError("dtypes names no pair, so nothing would be looked at")
    return pairs
