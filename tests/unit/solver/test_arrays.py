"""Arrays of nets, as the Solver copies them."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from solvergen.solver.training.arrays import copy_into, magnitudes, to_host
from tests.support.bits import assert_same_bits


class OnGpu:
    """An array of some library that lets others see its memory and copies nothing itself."""

    def __init__(self, elements):
        self.elements = elements
        self.shape, self.dtype = elements.shape, "the library's own"

    def __dlpack__(self):
        raise AssertionError("CuPy would ask")


class CupysView:
    def __init__(self, of):
        self._of = of
        self.shape, self.dtype = of.shape, of.elements.dtype

    def get(self):
        return self._of.elements.copy()

    def set(self, host):
        assert host.shape == self.shape, "CuPy refuses other shapes, those with an axis more too"
        self._of.elements[...] = host


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
@pytest.mark.parametrize("kind", ["NumPy's", "CuPy's", "others'"])
def test_there_and_back(monkeypatch, kind, shape):
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(from_dlpack=CupysView))
    elements = np.ones(shape, np.float32)
    array = {"NumPy's": lambda: elements, "CuPy's": lambda: CupysView(OnGpu(elements))}.get(
        kind, lambda: OnGpu(elements)
    )()
    given = np.asarray(np.arange(elements.size, dtype=">f8").reshape(shape), order="F")
    copy_into(array, given)
    assert_same_bits(to_host(array), given.astype(np.float32))
    assert magnitudes(array)[0] == given.sum()
    assert to_host(array) is not array
