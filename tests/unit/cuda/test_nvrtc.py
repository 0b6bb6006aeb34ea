"""Our own call of NVRTC: flags that last, errors that help, output as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from solvergen.errors import BackendUnavailable, KernelBuildError
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.cuda.cache import build, compiled, key_of
from solvergen.runtime.cuda.nvrtc import FLAGS
from solvergen.runtime.ptx.compiler import ptx_compiler

INSTALLED = nvrtc.installed()

pytestmark = pytest.mark.skipif(not INSTALLED, reason="NVRTC isn't installed")

KERNEL = """
extern "C" __global__ void sg_kernel(float *x, const float *y) {
    const int i = threadIdx.x;
    x[i] = sqrtf(x[i] * y[i] + x[i] / y[i]);
}
"""


@pytest.fixture(params=INSTALLED, ids=lambda found: f"{found.version[0]}.{found.version[1]}")
def compiler(request: pytest.FixtureRequest) -> nvrtc.Nvrtc:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("architecture", ["compute_90", "sm_90"])
def test_arithmetic_is_as_written(compiler: nvrtc.Nvrtc, architecture: str) -> None:
    ptx = compiler.compile(KERNEL, architecture).ptx
    assert "mul.rn.f32" in ptx or "mul.f32" in ptx
    for instruction in ("div.rn.f32", "sqrt.rn.f32"):
        assert instruction in ptx
    for never in ("fma", ".ftz", ".approx"):
        assert never not in ptx


def test_machine_code_comes_with_its_resources(compiler: nvrtc.Nvrtc) -> None:
    text = (
        KERNEL + 'extern "C" __global__ void second(int *x) { __shared__ int s[96]; s[*x] = 1; *x = s[1]; }'
    )
    result = compiler.compile(text, "sm_80")
    assert result.kind == "cubin"
    assert result.image[:4] == b"\x7fELF"
    resources = {kernel.name: kernel for kernel in result.resources}
    assert set(resources) == {"sg_kernel", "second"}
    assert resources["second"].shared == 96 * 4
    assert 4 < resources["sg_kernel"].registers < 64
    assert resources["sg_kernel"].spill_stores == resources["sg_kernel"].spill_loads == 0


def test_spills_are_seen(compiler: nvrtc.Nvrtc) -> None:
    body = "".join(f"float v{i} = x[{i} * n]; " for i in range(64))
    body += "__syncthreads(); " + "".join(f"x[{i} * n + 1] = v{i} * v{63 - i}; " for i in range(64))
    text = f'extern "C" __global__ void sg_kernel(float *x, int n) {{ {body} }}'
    result = compiler.compile(text, "sm_80", extra_flags=["--maxrregcount=24"])
    assert result.resources[0].spill_stores > 0
    assert result.resources[0].spill_loads > 0


def test_ptx_is_text_without_the_nul_that_nvrtc_appends(compiler: nvrtc.Nvrtc) -> None:
    result = compiler.compile(KERNEL, "compute_80")
    assert result.kind == "ptx"
    assert b"\0" not in result.image
    assert result.image.decode() == result.ptx
    assert result.ptx.rstrip().endswith("}")


def test_macros_reach_the_text(compiler: nvrtc.Nvrtc) -> None:
    text = '#if SG_A != 3 || SG_B\n#error "no"\n#endif\n' + KERNEL
    compiler.compile(text, "compute_80", {"SG_A": 3, "SG_B": 0})
    with pytest.raises(KernelBuildError, match="no"):
        compiler.compile(text, "compute_80", {"SG_A": 2, "SG_B": 0})


def test_an_error_shows_the_compilers_words_and_the_numbered_text(compiler: nvrtc.Nvrtc) -> None:
    with pytest.raises(KernelBuildError) as caught:
        compiler.compile(KERNEL.replace("x[i] =", "x[j] ="), "sm_90", name="adam/kernel.cu")
    assert "adam/kernel.cu(4): error" in caught.value.log
    assert "   4 |     x[j] = sqrtf" in caught.value.source
    for part in ("sm_90", "--fmad=false", caught.value.log.strip(), caught.value.source):
        assert part in str(caught.value)


def test_an_architecture_that_the_compiler_does_not_know(compiler: nvrtc.Nvrtc) -> None:
    with pytest.raises(KernelBuildError, match="gpu-architecture"):
        compiler.compile(KERNEL, "sm_12")


def test_what_is_compiled_for_a_device(compiler: nvrtc.Nvrtc) -> None:
    assert compiler.architecture_for(90) == "sm_90"
    newest = compiler.capabilities[-1]
    assert compiler.architecture_for(newest + 7) == f"compute_{newest}"
    with pytest.raises(BackendUnavailable, match=r"compute capability 3\.5"):
        compiler.architecture_for(35)


def test_the_variable_chooses_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in INSTALLED:
        monkeypatch.setenv(nvrtc.LIBRARY_VARIABLE, found.path)
        assert nvrtc.load().version == found.version
    monkeypatch.setenv(nvrtc.LIBRARY_VARIABLE, "/nowhere/libnvrtc.so")
    with pytest.raises(BackendUnavailable, match="/nowhere/libnvrtc"):
        nvrtc.load()


def test_a_library_that_is_not_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(nvrtc.LIBRARY_VARIABLE, "libc.so.6")
    with pytest.raises(BackendUnavailable, match=r"solvergen\[cuda12\]"):
        nvrtc.load()


def test_none_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_candidates", lambda: iter(()))
    monkeypatch.delenv(nvrtc.LIBRARY_VARIABLE, raising=False)
    with pytest.raises(BackendUnavailable, match=r"solvergen\[cuda12\].*solvergen\[cuda13\].*CUDA_PATH"):
        nvrtc.load()
    assert nvrtc.installed() == ()


def test_a_toolkit_is_found_by_cuda_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "lib64"
    folder.mkdir()
    original = Path(INSTALLED[0].path).resolve()
    for neighbour in original.parent.iterdir():
        (folder / neighbour.name).symlink_to(neighbour)
    name = f"libnvrtc.so.{INSTALLED[0].version[0]}"
    monkeypatch.setattr(nvrtc, "_wheel_roots", list)
    monkeypatch.delenv(nvrtc.LIBRARY_VARIABLE, raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert str(folder / name) in [found.path for found in nvrtc.installed()]


def test_the_wanted_version_of_cuda_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.delenv(nvrtc.LIBRARY_VARIABLE, raising=False)
    monkeypatch.setattr(nvrtc, "_candidates", lambda: iter(["/a/libnvrtc.so.13", "/a/libnvrtc.so.12"]))
    monkeypatch.setattr(nvrtc, "_opened", lambda path: opened.append(path) or INSTALLED[0])
    for major in (12, 13, None):
        nvrtc.load(major)
    assert [os.path.basename(path) for path in opened] == [
        "libnvrtc.so.12",
        "libnvrtc.so.13",
        "libnvrtc.so.13",
    ]


def test_a_report_of_another_form_is_not_taken_for_no_spills() -> None:
    with pytest.raises(KernelBuildError, match="report"):
        nvrtc.resources_in("ptxas info : Compiling entry function 'k' for 'sm_90'\n lots of registers")


class TestCache:
    """Code is kept by everything that decides it."""

    @pytest.fixture(autouse=True)
    def own_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SOLVERGEN_CACHE_DIR", str(tmp_path / "cache"))

    def test_the_second_time_nothing_is_compiled(
        self, compiler: nvrtc.Nvrtc, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = compiled(compiler, KERNEL, {"SG_A": 1}, "sm_90")
        monkeypatch.setattr(nvrtc.Nvrtc, "compile", None)
        assert compiled(compiler, KERNEL, {"SG_A": 1}, "sm_90") == first

    def test_a_kernel_that_would_spill_is_given_the_registers_that_it_needs(
        self, compiler: nvrtc.Nvrtc, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        body = "".join(f"float v{i} = x[{i} * n]; " for i in range(64))
        body += "__syncthreads(); " + "".join(f"x[{i} * n + 1] = v{i} * v{63 - i}; " for i in range(64))
        text = (
            "#ifndef SG_MIN_BLOCKS\n#define SG_MIN_BLOCKS 6\n#endif\n"
            'extern "C" __global__ void __launch_bounds__(256, SG_MIN_BLOCKS) '
            f"sg_kernel(float *x, int n) {{ {body} }}"
        )
        assert compiler.compile(text, "sm_80").resources[0].spill_stores > 0
        assert build(compiler, text, {}, "sm_80").resources[0].spill_stores == 0
        monkeypatch.setattr(
            nvrtc.Nvrtc, "compile", lambda *_: pytest.fail("not asked twice") if calls else once(*_)
        )
        calls: list[int] = []
        plain = nvrtc.Compiled(b"", "cubin", "sm_80", "", "", ())

        def once(*_: object) -> nvrtc.Compiled:
            calls.append(1)
            return plain

        assert build(compiler, KERNEL, {}, "sm_80") is plain

    def test_every_part_of_the_key_matters(self) -> None:
        base = (KERNEL, {"SG_A": 1}, "sm_90", (12, 9), FLAGS)
        others = [
            (KERNEL + " ", *base[1:]),
            (KERNEL, {"SG_A": 2}, *base[2:]),
            (KERNEL, {"SG_B": 1}, *base[2:]),
            (*base[:2], "sm_80", *base[3:]),
            (*base[:3], (13, 0), FLAGS),
            (*base[:4], (*FLAGS, "-lineinfo")),
        ]
        keys = {key_of(*arguments) for arguments in [base, *others]}
        assert len(keys) == 7
        assert key_of(KERNEL, {"a": 1, "b": 2}, *base[2:]) == key_of(KERNEL, {"b": 2, "a": 1}, *base[2:])

    def test_the_compilers_flags_are_part_of_the_key(self, compiler: nvrtc.Nvrtc) -> None:
        before = compiled(compiler, KERNEL, {}, "sm_90")
        with_lines = ptx_compiler(compiler)
        text = compiled(with_lines, KERNEL, {}, "compute_90")
        assert b".loc" in text
        assert b".loc" not in compiled(compiler, KERNEL, {}, "compute_90")
        assert compiled(compiler, KERNEL, {}, "sm_90") == before
