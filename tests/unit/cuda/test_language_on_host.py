"""Specs that use everything that the language has, through their CUDA text."""

from __future__ import annotations

from pathlib import Path

import pytest

from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.cuda.cache import build
from solvergen.runtime.kernel_interface import update_defines
from solvergen.verify import find_disagreement
from tests.support import cuda_host
from tests.support.packages import built_package
from tests.support.ptx_text import KNOWN, instructions

SPECS = Path(__file__).parents[2] / "support" / "specs"


@pytest.fixture(scope="module", params=["everything", "awkward_names"])
def optimizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> type:
    folder = tmp_path_factory.mktemp("packages") / f"cuda_{request.param}"
    package = built_package([SPECS / f"{request.param}.yaml"], folder)
    (name,) = package.__all__
    return getattr(package, name)  # type: ignore[no-any-return]


@pytest.mark.skipif(cuda_host.missing() is not None, reason=str(cuda_host.missing()))
def test_every_function_and_name(optimizer: type) -> None:
    disagreement = find_disagreement(optimizer, cuda_host.HostCudaBackend(), examples=10)
    assert disagreement is None, str(disagreement)


@pytest.mark.skipif(not nvrtc.installed(), reason="NVRTC isn't installed")
@pytest.mark.parametrize("capability", [75, 90, 120])
@pytest.mark.parametrize("mix", [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float16")])
def test_nothing_is_approximated(optimizer: type, mix: tuple[str, str], capability: int) -> None:
    definition = optimizer.definition  # type: ignore[attr-defined]
    text = Path(definition.folder, "kernel.cu").read_text(encoding="utf-8")
    for compiler in nvrtc.installed():
        for value in (False, True):
            defines = update_defines(*mix, dict.fromkeys(definition.option_names, value))
            compiled = build(compiler, text, defines, f"sm_{capability}")
            found = instructions(compiled.ptx)
            assert {i.split(".")[0] for i in found} <= KNOWN
            assert not {"fma", "ftz", "approx"} & {part for i in found for part in i.split(".")}
            assert all(k.spill_stores == k.spill_loads == k.stack == 0 for k in compiled.resources)
