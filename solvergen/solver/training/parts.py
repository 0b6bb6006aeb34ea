"""Whether what a Solver is given can be trained: said when it is made, not in the middle of a run."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from solvergen.runtime.naming import with_article
from solvergen.solver.net.error import NetError
from solvergen.solver.net.parameters import check_names
from solvergen.solver.net.protocol import Repeatable
from solvergen.solver.training.error import TrainingError

_OF_NETS = ("name", "learnable", "layers", "clear_diffs", "forward", "forward_backward", "outputs")
_METHODS: dict[str, tuple[str, ...]] = {
    "clear_diffs": (),
    "forward": (),
    "forward_backward": (),
    "outputs": (),
    "position": (),
    "seek": ("position",),
    "seed": ("seed",),
    "rng_state": (),
    "set_rng_state": ("state",),
    "share_with": ("train",),
    "keep_batches": (),
    "pass_again": (),
    "watch": ("what",),
    "watched": (),
}
"""What nets have, or may have, and with what it is called."""

_OF_BLOBS = ("name", "data", "diff", "lr_mult", "decay_mult")


def check_net(net: Any, *, trained: bool) -> None:
    """Raises an error for what isn't a net, and with ``trained`` for one that can't be trained."""
    missing = [name for name in _OF_NETS if not hasattr(net, name)]
    if missing or isinstance(net, type):
        lacks = f"it lacks {', '.join(missing)}" if missing else "it is a class: make one of it"
        raise TrainingError(
            f"{with_article(type(net).__name__)} isn't a net: {lacks} "
            "(solvergen.adapters.torch_net.TorchNet makes one of a torch module)"
        )
    _check_methods(net)
    what = type(net).__name__
    if not isinstance(net.name, str):
        raise NetError(f"the name of a {what} must be text, not {net.name!r}")
    for layer in _sequence(net.layers, f"layers of the net {net.name!r}"):
        if not (hasattr(layer, "name") and hasattr(layer, "type") and hasattr(layer, "blobs")):
            raise NetError(
                f"layers of the net {net.name!r} holds {with_article(type(layer).__name__)}, not a LayerBlobs"
            )
    learnable = _sequence(net.learnable, f"learnable of the net {net.name!r}")
    for blob in learnable:
        lacking = [name for name in _OF_BLOBS if not hasattr(blob, name)]
        if lacking:
            raise NetError(
                f"learnable of the net {net.name!r} holds {with_article(type(blob).__name__)}, "
                "not a Blob: it lacks "
                f"{', '.join(lacking)}"
            )
        _check_arrays(net, blob, ("data", "diff") if trained else ("data",))
    if trained:
        check_names(learnable)
        _check_multipliers(net)


def check_repeatable(net: Any, optimizer: str) -> None:
    """Raises NetError where the optimizer asks for passes again that the net can't make."""
    if not isinstance(net, Repeatable):
        raise NetError(
            f"optimizer {optimizer} evaluates the gradient several times in a step, each time on the same "
            f"batch, and the net {net.name!r} can't make its passes again: "
            f"{with_article(type(net).__name__)} has no "
            "keep_batches and pass_again (solvergen.solver.net.protocol.Repeatable)"
        )


def _check_methods(net: Any) -> None:
    """Raises NetError for a method that can't be called as it will be, in the middle of a run."""
    for name, arguments in _METHODS.items():
        method = getattr(net, name, None)
        if method is None:
            continue
        called = f"{name}({', '.join(arguments)})"
        if not callable(method):
            raise NetError(
                f"{name} of {with_article(type(net).__name__)} is {with_article(type(method).__name__)}: "
                f"nets have {called}"
            )
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):  # it doesn't say what it takes
            continue
        try:
            signature.bind(*arguments)
        except TypeError as error:
            raise NetError(
                f"{name} of {with_article(type(net).__name__)} is called as {called}: {error}"
            ) from error


def _check_arrays(net: Any, blob: Any, arrays: Sequence[str]) -> None:
    """Raises NetError unless these of a parameter and its gradient are arrays, of one shape. What else an
    optimizer asks of them it says itself."""
    for which in arrays:
        array = getattr(blob, which)
        if not (hasattr(array, "shape") and hasattr(array, "dtype")):
            raise NetError(
                f"{which} of {blob.name!r} of the net {net.name!r} is "
                f"{with_article(type(array).__name__)}, not an array"
            )
    shapes = [tuple(getattr(blob, which).shape) for which in arrays]
    if shapes[0] != shapes[-1]:
        raise NetError(
            f"{blob.name!r} of the net {net.name!r} has the shape {shapes[0]}, and its diff {shapes[-1]}"
        )


def unshared(net: Any, train: Any) -> list[str]:
    """The parameters of a test net that have the names of the train net's and aren't the same memory."""
    theirs = {blob.name: blob.data for blob in train.learnable}
    return [
        blob.name
        for blob in net.learnable
        if blob.name in theirs and not _same_memory(blob.data, theirs[blob.name])
    ]


def _sequence(value: Any, what: str) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise NetError(f"{what} must be a list or tuple, not {with_article(type(value).__name__)}")
    return value


def _check_multipliers(net: Any) -> None:
    """What several layers use must be learned alike by all of them, as Caffe wants it too."""
    kept = [(blob.data, blob) for blob in net.learnable]  # alive, so that no other array gets their ids
    owners = {id(data): blob for data, blob in kept}
    for layer in net.layers:
        for blob in layer.blobs:
            owner = owners.get(id(blob.data), blob)
            for name in ("lr_mult", "decay_mult"):
                mine, own = getattr(blob, name), getattr(owner, name)
                if mine != own:
                    raise NetError(
                        f"layer {layer.name!r} uses the parameter {owner.name!r} with {name} {mine}, which "
                        f"is learned with {own}: give it once, or the same"
                    )


def _same_memory(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        return mine.size == 0 or np.may_share_memory(mine, theirs)
    try:
        return bool(mine.data.ptr == theirs.data.ptr)  # CuPy
    except AttributeError:
        return True  # of an array that isn't known nothing is said
