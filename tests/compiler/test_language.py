"""Rules that use the whole language, and every awkward name, agree on all backends to the bit."""

from __future__ import annotations

import pytest

from solvergen.verify import check_agreement, why_unavailable
from tests.support import cuda_host
from tests.support.packages import built_package

CLASSES = ("Everything", "AwkwardNames")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_package(["tests/support/specs"], tmp_path_factory.mktemp("built") / "whole_language")


@pytest.mark.parametrize("name", CLASSES)
def test_native(package, name):
    reason = why_unavailable("cpu")
    if reason:
        pytest.skip(reason)
    check_agreement(getattr(package, name), backends=("numpy", "cpu"), examples=80)


@pytest.mark.parametrize("name", CLASSES)
def test_cuda_text_on_the_host(package, name):
    if cuda_host.missing():
        pytest.skip(cuda_host.missing())
    check_agreement(getattr(package, name), backends=("numpy", cuda_host.HostCudaBackend()), examples=15)
