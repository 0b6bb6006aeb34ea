"""What debug_info shows of a net's parameters, at displays."""

from __future__ import annotations

import math
from collections.abc import Iterator

from solvergen.solver.net.protocol import Net
from solvergen.solver.training.arrays import magnitudes
from solvergen.solver.training.events import DebugInfo, DebugNorms, Event


def describe(iteration: int, net: Net) -> Iterator[Event]:
    """Mean magnitudes of each parameter's data, then of each gradient, then sums over all."""
    sizes = {id(b.data): (magnitudes(b.data), magnitudes(b.diff)) for b in net.learnable}
    found: dict[str, list[Event]] = {"forward": [], "backward": []}
    for layer in net.layers:
        for index, blob in enumerate(layer.blobs):
            if id(blob.data) not in sizes:
                continue  # a buffer
            count = max(math.prod(blob.data.shape), 1)
            data, diff = (l1 / count for l1, _ in sizes[id(blob.data)])
            for phase in found:
                found[phase].append(DebugInfo(iteration, phase, layer.name, blob.name, index, data, diff))
    yield from found["forward"]
    yield from reversed(found["backward"])
    yield DebugNorms(
        iteration,
        data_l1=sum(data[0] for data, _ in sizes.values()),
        diff_l1=sum(diff[0] for _, diff in sizes.values()),
        data_l2=math.sqrt(sum(data[1] for data, _ in sizes.values())),
        diff_l2=math.sqrt(sum(diff[1] for _, diff in sizes.values())),
    )
