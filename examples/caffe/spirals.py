"""Nets for solver.prototxt in this folder: two spirals, told apart by a small dense net in NumPy.

    cd examples/caffe
    solvergen train --solver solver.prototxt --net spirals:make

``solvergen.adapters.torch_net`` makes nets of torch modules in the same way.
"""

from __future__ import annotations

import numpy as np

from solvergen.solver.net.dense import DenseNet, InnerProduct


def make(phase: str) -> DenseNet:
    """The net to train, or (phase "TEST") the one that tests it on points of its own."""
    points, arms = spirals(1000, seed=0 if phase == "TRAIN" else 1)
    return DenseNet(
        points,
        arms,
        [
            InnerProduct("ip1", 32, activation="tanh"),
            InnerProduct("ip2", 32, activation="tanh"),
            InnerProduct("ip3", 2),
        ],
        loss="softmax",
        batch_size=50,
        accuracy=phase == "TEST",
        name="spirals",
    )


def spirals(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of two arms that wind around the origin, and which arm each belongs to."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, 2, count)
    along = np.sqrt(rng.uniform(0.02, 1.0, count))
    angle = 3 * np.pi * along + np.pi * arms
    points = along[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return (2 * points + rng.normal(0, 0.03, points.shape)).astype(np.float32), arms
