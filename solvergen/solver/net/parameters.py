"""Parameters of a net, each once though several layers use it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from solvergen.solver.net.error import NetError
from solvergen.solver.net.protocol import Blob, LayerBlobs


def collected(layers: Iterable[LayerBlobs]) -> tuple[Blob, ...]:
    """The parameters in the order of their first users, who own them.

    Raises NetError where two users of one parameter disagree on its multipliers, and for two parameters of
    one name.
    """
    found: dict[int, Blob] = {}
    for layer in layers:
        for blob in layer.blobs:
            owner = found.setdefault(id(blob.data), blob)
            for what in ("lr_mult", "decay_mult"):
                if getattr(owner, what) != getattr(blob, what):
                    raise NetError(
                        f"layers {owner.layer!r} and {layer.name!r} share the parameter {owner.name!r}, but "
                        f"say {what} {getattr(owner, what):g} and {getattr(blob, what):g}: give it once, or "
                        "the same"
                    )
    blobs = tuple(found.values())
    check_names(blobs)
    return blobs


def check_names(blobs: Iterable[Blob]) -> None:
    """Raises NetError for two different parameters of one name."""
    seen: dict[str, Blob] = {}
    for blob in blobs:
        if blob.name in seen:
            raise NetError(
                f"layers {seen[blob.name].layer!r} and {blob.layer!r} have different parameters of the name "
                f"{blob.name!r}"
            )
        seen[blob.name] = blob


def check_shared(name: str, mine: Any, theirs: Any) -> None:
    """Raises NetError where a test net's parameter can't be the train net's."""
    for what in ("shape", "dtype"):
        own, other = getattr(mine, what), getattr(theirs, what)
        if own != other:
            own, other = (tuple(x) if what == "shape" else x for x in (own, other))
            raise NetError(
                f"parameter {name!r} has the {what} {own} in a test net and {other} in the train net: both "
                "must be made alike"
            )
