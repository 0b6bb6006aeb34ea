"""Kernels that write a copy of the parameter in a narrower type, held to the traffic that they imply."""

from __future__ import annotations

import pytest

from generated import SGD
from solvergen.runtime.wrapped_classes import wrapped_class
from solvergen.runtime.wrappers import Wrappers, wrapper_options
from solvergen.verify.static.capabilities import capability
from solvergen.verify.static.cuda import examine
from tests.support.ptx import COMPILERS, needs_nvrtc

pytestmark = needs_nvrtc
DEFINITION = wrapped_class(SGD).definition


@pytest.mark.parametrize(
    ("dtype", "width", "nbytes"), [("float32", 64, 14), ("float64", 32, 26), ("bfloat16", 128, 8)]
)
def test_the_copy_is_one_more_store(dtype: str, width: int, nbytes: int) -> None:
    options = {option.name: bool(option.default) for option in DEFINITION.options}
    options |= wrapper_options(Wrappers(shadow="bfloat16"))
    (measured,) = examine(COMPILERS[0], DEFINITION, options, dtype, dtype, capability(90))
    assert measured.findings == ()
    assert (measured.width, measured.nbytes) == (width, nbytes)
    assert measured.stores == measured.stores_needed == 2
