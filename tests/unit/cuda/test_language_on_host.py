"""Specs that use everything that the language has, through their CUDA text."""

from __future__ import annotations

from pathlib import Path

import pytest

from solvergen.runtime.cuda import nvrtc
from solvergen.verify import find_disagreement
from solvergen.verify.static.capabilities import capability
from solvergen.verify.static.cuda import examine
from tests.support import cuda_host
from tests.support.packages import built_package

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
@pytest.mark.parametrize("number", [75, 90, 120])
@pytest.mark.parametrize("mix", [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float16")])
def test_compiled_as_written(optimizer: type, mix: tuple[str, str], number: int) -> None:
    definition = optimizer.definition  # type: ignore[attr-defined]
    for compiler in nvrtc.installed():
        for value in (False, True):
            options = dict.fromkeys(definition.option_names, value)
            for measured in examine(compiler, definition, options, *mix, capability(number)):
                assert measured.findings == (), "\n".join(map(str, measured.findings))
