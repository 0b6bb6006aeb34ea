"""What debug_info shows, pass by pass: blobs and parameters, layer by layer, and sums over all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from solvergen.solver.net.error import NetError
from solvergen.solver.net.protocol import Blob, LayerPass, Net, Watchable
from solvergen.solver.training.arrays import magnitudes
from solvergen.solver.training.events import DebugBlob, DebugInfo, DebugNorms, Event

Sizes = dict[int, tuple[tuple[float, float], tuple[float, float]]]


@contextmanager
def watching(net: Net, wanted: bool = True) -> Iterator[None]:
    """Have a net that can take note of its layers' magnitudes in the block, if that is wanted."""
    if not (wanted and isinstance(net, Watchable)):
        yield
        return
    net.watch("magnitudes")
    try:
        yield
    finally:
        net.watch(None)


def noted(net: Net) -> tuple[LayerPass, ...]:
    """What a watched net's layers did in the last pass; of one that can't be watched nothing. Raises NetError
    for what aren't such notes."""
    if not isinstance(net, Watchable):
        return ()
    found = net.watched()
    if not isinstance(found, Sequence) or not all(isinstance(one, LayerPass) for one in found):
        raise NetError(
            f"watched() of the net {net.name!r} must return LayerPass objects, and returned {found!r:.60}"
        )
    return tuple(found)


def of_pass(iteration: int, net: Net) -> Iterator[Event]:
    """Of a pass forward and backward that was just made: every layer forward, every layer backward, sums.

    A net that can't be watched tells of its parameters alone.
    """
    sizes = _sizes(net, diffs=True)
    learned = [sizes[id(blob.data)] for blob in net.learnable]
    passes = _passes(net)
    yield from _forward(iteration, passes, net, sizes)
    yield from _backward(iteration, passes, net, sizes)
    yield DebugNorms(
        iteration,
        data_l1=sum(data[0] for data, _ in learned),
        diff_l1=sum(diff[0] for _, diff in learned),
        data_l2=math.sqrt(sum(data[1] for data, _ in learned)),
        diff_l2=math.sqrt(sum(diff[1] for _, diff in learned)),
    )


def of_forward(iteration: int, net: Net) -> Iterator[Event]:
    """Of a pass forward alone. A net that can't be watched tells nothing."""
    if isinstance(net, Watchable):
        yield from _forward(iteration, _passes(net), net, _sizes(net, diffs=False))


def _sizes(net: Net, *, diffs: bool) -> Sizes:
    """Of every array: of buffers, which are in layers alone, there are no gradients."""
    nothing = (0.0, 0.0)
    found: Sizes = {
        id(blob.data): (magnitudes(blob.data), magnitudes(blob.diff) if diffs else nothing)
        for blob in net.learnable
    }
    for layer in net.layers:
        for blob in layer.blobs:
            if id(blob.data) not in found:
                found[id(blob.data)] = (magnitudes(blob.data), nothing)
    return found


def _passes(net: Net) -> Sequence[LayerPass]:
    """What the layers did; without notes they are there by name, in the order of model files."""
    told = noted(net)
    seen = {one.layer for one in told}
    # Layers that aren't called themselves: their parameters are told of all the same.
    return (*told, *(LayerPass(layer.name) for layer in net.layers if layer.name not in seen))


def _forward(iteration: int, passes: Sequence[LayerPass], net: Net, sizes: Sizes) -> Iterator[Event]:
    for one, blobs in _with_blobs(passes, net):
        for name, value in one.tops.items():
            yield DebugBlob(iteration, "forward", one.layer, name, value)
        for index, blob in enumerate(blobs):
            yield _info(iteration, "forward", one.layer, index, blob, sizes)


def _backward(iteration: int, passes: Sequence[LayerPass], net: Net, sizes: Sizes) -> Iterator[Event]:
    for one, blobs in reversed(list(_with_blobs(passes, net))):
        for name, value in one.bottoms.items():
            yield DebugBlob(iteration, "backward", one.layer, name, value)
        for index, blob in enumerate(blobs):
            if blob.lr_mult:  # else there is no backward pass for it, as for buffers
                yield _info(iteration, "backward", one.layer, index, blob, sizes)


def _with_blobs(passes: Sequence[LayerPass], net: Net) -> Iterator[tuple[LayerPass, tuple[Blob, ...]]]:
    """Each layer's pass with its parameters; of a layer that was called twice, with those of the first pass:
    the last one backward, when its gradients are complete."""
    left = {layer.name: tuple(layer.blobs) for layer in net.layers}
    for one in passes:
        yield one, left.pop(one.layer, ())


def _info(iteration: int, phase: str, layer: str, index: int, blob: Blob, sizes: Sizes) -> DebugInfo:
    count = max(math.prod(blob.data.shape), 1)
    data, diff = (l1 / count for l1, _ in sizes[id(blob.data)])
    return DebugInfo(iteration, phase, layer, blob.name, index, data, diff)
