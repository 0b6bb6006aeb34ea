"""The loops of kernels work on vectors, with the operations that the spec wrote down."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from solvergen import compiler
from solvergen.runtime.native.inspection import assembly, calls, fused, fused_operations, loops, runs
from tests.unit.native.support import ROOT

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64", "arm64"), reason="reads the assembly of other processors"
)
HANDWRITTEN = ROOT / "tests/support/handwritten/adam/kernel.c"
STAGED = ROOT / "tests/support/handwritten/lamb/kernel.c"
NATIVE = ROOT / "solvergen/runtime/native"
KERNELS = [HANDWRITTEN, *sorted(ROOT.glob("generated/*/kernel.c"))]
DTYPES = {"float32": 0, "float64": 1, "bfloat16": 2, "float16": 3}


def _options(text: str, value: int) -> list[str]:
    import re

    names = sorted(set(re.findall(r"\bSG_OPTION_\w+", text)))
    return [f"{name}={value}" for name in names]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("option", [0, 1])
def test_main_loop_is_vectorised_and_nothing_is_fused(path: Path, dtype: str, option: int) -> None:
    text = path.read_text(encoding="utf-8")
    code = DTYPES[dtype]
    listing = assembly(text, (f"SG_PARAM={code}", f"SG_GRAD={code}", *_options(text, option)))
    of_passes = [found for found in (loops(listing, function) for function in runs(listing)) if found]
    assert of_passes or (path.parent.name, option) == ("_constrain", 1)  # bounds compare, but compute nothing
    for found in of_passes:
        assert any(loop.packed and not loop.scalar for loop in found), found
    assert fused_operations(listing) == []


@pytest.mark.parametrize(("param", "grad"), [*((d, d) for d in DTYPES), ("float32", "bfloat16")])
@pytest.mark.parametrize("option", [0, 1])
def test_so_are_passes_with_reductions(param: str, grad: str, option: int) -> None:
    text = STAGED.read_text(encoding="utf-8")
    defines = (f"SG_PARAM={DTYPES[param]}", f"SG_GRAD={DTYPES[grad]}", *_options(text, option))
    listing = assembly(text, defines)
    for number in range(3) if option else (1, 2):
        found = loops(listing, f"sg_run_{number}")
        assert any(loop.packed and not loop.scalar for loop in found), (number, found)
        assert calls(listing, f"sg_run_{number}") == ()
    assert fused_operations(listing) == []


def test_so_is_the_reduction_of_totals() -> None:
    text = (NATIVE / "reduce.c").read_text(encoding="utf-8")
    header = (NATIVE / "native.h").read_text(encoding="utf-8")
    listing = assembly(text.replace('#include "native.h"', header))
    for function in ("total_sum_row", "total_sum_half"):
        found = loops(listing, function)
        assert any(loop.packed and not loop.scalar for loop in found), (function, found)


@pytest.fixture(scope="module")
def torture() -> dict[str, str]:
    """The kernels of the specs that use every function and operator, by name."""
    built = compiler.build([ROOT / "tests/support/specs"], wrap=False)
    return {path.split("/")[0]: text for path, text in built.artifacts.items() if path.endswith("kernel.c")}


@pytest.mark.parametrize("name", ["awkward_names", "everything", "functions"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("option", [0, 1])
def test_so_are_those_of_every_function(torture: dict[str, str], name: str, dtype: str, option: int) -> None:
    text, code = torture[name], DTYPES[dtype]
    listing = assembly(text, (f"SG_PARAM={code}", f"SG_GRAD={code}", *_options(text, option)))
    found = loops(listing)
    assert any(loop.packed and not loop.scalar for loop in found), found
    assert fused_operations(listing) == []
    assert calls(listing) == ()


@pytest.mark.parametrize("grad", ["bfloat16", "float16"])
def test_narrow_gradients_of_wide_parameters_are_too(grad: str) -> None:
    text = HANDWRITTEN.read_text(encoding="utf-8")
    listing = assembly(text, ("SG_PARAM=0", f"SG_GRAD={DTYPES[grad]}", *_options(text, 0)))
    assert any(loop.packed and not loop.scalar for loop in loops(listing))


def test_the_reading_of_assembly_can_fail() -> None:
    chained = """
    void sg_run(float *x, int n) { for (int i = 1; i < n; ++i) x[i] = x[i - 1] * x[i] + 1.0f; }
    """
    found = loops(assembly(chained))
    assert found
    assert not any(loop.packed for loop in found)

    product = "double sg_run(double a, double b, double c) { return __builtin_fma(a, b, c); }"
    if "fma" in _flags():
        listing = assembly(product, lines=True)
        assert len(fused_operations(listing)) == 1
        (place,) = fused(listing)
        assert listing.splitlines()[place.line - 1].split() == place.text.split()
        assert place.source == 1

    calling = """float unknown(float);
    void sg_run(float *x, int n) {
        for (int i = 0; i < n; ++i)
            x[i] = unknown(x[i] * 2.0f) + 1.0f;
    }
    """
    listing = assembly(calling, lines=True)
    assert [place.source for place in calls(listing)] == [4]
    assert [loop.source in (3, 4) for loop in loops(listing)] == [True]


def _flags() -> list[str]:
    from solvergen.runtime.native.processor import processor

    return processor().split() if platform.machine() == "x86_64" else ["fma"]


@pytest.mark.parametrize("name", ["adamw", "caffe_sgd", "lion", "nadam", "sgd"])
@pytest.mark.parametrize("option", [0, 1])
def test_so_are_those_of_wrapped_rules(name: str, option: int) -> None:
    text = (ROOT / "generated" / name / "wrapped/kernel.c").read_text(encoding="utf-8")
    listing = assembly(text, ("SG_PARAM=0", "SG_GRAD=0", *_options(text, option)))
    found = runs(listing)
    assert found
    for function in found:
        assert any(loop.packed and not loop.scalar for loop in loops(listing, function)), function
    assert fused_operations(listing) == []
