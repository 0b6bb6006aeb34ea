"""NVRTC compiles every kernel to what it was written for: whole words, exact arithmetic, no spills."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

import generated
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.cuda.cache import build
from solvergen.runtime.cuda.tables import THREADS
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.kernel_interface import update_defines
from tests.support.cuda_launch import MIXES, lanes
from tests.support.ptx_text import KNOWN, accesses, instructions

COMPILERS = nvrtc.installed()
CAPABILITIES = (75, 80, 90, 100, 120)

pytestmark = pytest.mark.skipif(not COMPILERS, reason="NVRTC isn't installed")

DEFINITIONS: dict[str, Definition] = {name: getattr(generated, name).definition for name in generated.__all__}


def settings_of(definition: Definition) -> list[dict[str, bool]]:
    names = definition.option_names
    return [dict(zip(names, v, strict=True)) for v in itertools.product((False, True), repeat=len(names))]


def text_of(definition: Definition) -> str:
    return Path(definition.folder, "kernel.cu").read_text(encoding="utf-8")


def uses_float64(text: str) -> bool:
    """Whether the language computes elements of this rule in float64 (exp, log, tanh, general powers).

    Their functions take floats apart; the skeleton only defines what does that.
    """
    return len(re.findall(r"\bsg_(?:bits|from_bits|sqrt64|abs64|floor64)\(", text)) > 5


def check(
    compiler: nvrtc.Nvrtc, name: str, options: dict[str, bool], mix: tuple[str, str], capability: int
) -> None:
    """Everything that can be said about one kernel without running it."""
    definition = DEFINITIONS[name]
    text = text_of(definition)
    compiled = build(compiler, text, update_defines(*mix, options), f"sm_{capability}")
    where = f"{name} {options} {mix} sm_{capability} {compiler}"
    (kernel,) = compiled.resources
    assert kernel.name == "sg_kernel"

    # Nothing lies in slow memory, and enough threads fit that loads in flight cover the memory's latency.
    assert kernel.stack == kernel.spill_stores == kernel.spill_loads == kernel.shared == 0, where
    param, grad = (STORAGE_TYPES[n] for n in mix)
    compute = STORAGE_TYPES[param.compute]
    active = [s for s in definition.active_state(**options) if s in definition.array_states]
    states = len(active)
    # A state that no equation assigns (where the parameter began) is only read.
    constant = len([s for s in active if f"sg_store(sg_at.sg_{s}_at" not in text])
    bytes_loaded = lanes(mix) * (param.itemsize + grad.itemsize + states * compute.itemsize)
    blocks = min(
        65536 // (THREADS * -(-kernel.registers // 8) * 8), 1024 // THREADS if capability == 75 else 6
    )
    assert blocks * THREADS * bytes_loaded >= 24 * 1024, f"{where}: {kernel.registers} registers"

    # Arithmetic as written.
    found = instructions(compiled.ptx)
    families = {instruction.split(".")[0] for instruction in found}
    assert families <= KNOWN, f"{where}: {families - KNOWN}"
    for instruction in found:
        modifiers = instruction.split(".")
        assert "fma" not in modifiers, where
        assert "ftz" not in modifiers, where
        assert "approx" not in modifiers, where
        assert modifiers[0] != "mad" or modifiers[-1][0] in "su", f"{where}: {instruction}"  # of addresses
        if param.name != "float64" and not uses_float64(text):
            assert "f64" not in modifiers, f"{where}: {instruction}"
        if modifiers[0] in ("ld", "st"):
            assert "global" in modifiers or "param" in modifiers, f"{where}: {instruction}"
        if modifiers[0] in ("div", "rcp", "sqrt"):
            assert modifiers[1] == "rn", f"{where}: {instruction}"

    # Every buffer goes by 128-bit words in the main loop, each read once at most and written once.
    word = (2, 64) if param.name == "float64" else (4, 32)
    words = [
        lanes(mix) * size // 16 for size in (param.itemsize, grad.itemsize, *states * [compute.itemsize])
    ]
    loads, stores = accesses(compiled.ptx, "ld")[word], accesses(compiled.ptx, "st")[word]
    stored = sum(words) - words[1] - constant * lanes(mix) * compute.itemsize // 16
    assert stores > 0, where
    assert stores % stored == 0, f"{where}: {stores} vector stores, {stored} expected"
    copies = stores // stored  # of the loop: compilers lift conditions on scalars out of it
    assert 0 < loads <= copies * sum(words), f"{where}: {loads} vector loads, {sum(words)} expected"


@pytest.mark.parametrize("name", generated.__all__)
def test_every_kernel(name: str) -> None:
    """Each setting of the options, pair of types, capability and compiler at least once."""
    settings = settings_of(DEFINITIONS[name])
    targets = list(itertools.product(CAPABILITIES, COMPILERS))
    for turn in range(max(len(settings), len(MIXES), len(targets))):
        capability, compiler = targets[turn % len(targets)]
        # Options change slowest where they would otherwise keep step with the types.
        options = settings[(turn + turn // len(MIXES)) % len(settings)]
        check(compiler, name, options, MIXES[turn % len(MIXES)], capability)


@pytest.mark.slow
@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda found: f"{found.version[0]}.{found.version[1]}")
def test_every_kernel_for_every_capability(compiler: nvrtc.Nvrtc, capability: int) -> None:
    for name, definition in DEFINITIONS.items():
        for options, mix in itertools.product(settings_of(definition), MIXES):
            check(compiler, name, options, mix, capability)


@pytest.mark.parametrize("dtype", list(STORAGE_TYPES))
@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda found: f"{found.version[0]}.{found.version[1]}")
def test_the_search_for_elements_that_are_not_finite(compiler: nvrtc.Nvrtc, dtype: str) -> None:
    text = Path(nvrtc.__file__).with_name("finite.cu").read_text(encoding="utf-8")
    for capability in CAPABILITIES:
        compiled = compiler.compile(text, f"sm_{capability}", {"SG_GRAD": STORAGE_TYPES[dtype].code})
        (kernel,) = compiled.resources
        assert kernel.spill_stores == kernel.spill_loads == kernel.stack == 0
        if dtype != "float64":  # whose exponents lie in every other 32 bits: some compilers load just these
            assert accesses(compiled.ptx, "ld")[4, 32] >= 1
        families = {instruction.split(".")[0] for instruction in instructions(compiled.ptx)}
        assert families <= KNOWN
        assert not re.search(r"\.f(16|32|64)", compiled.ptx)


def test_wrong_pairs_of_types_do_not_compile() -> None:
    for param, grad in ((1, 0), (0, 1), (2, 1)):
        with pytest.raises(nvrtc.KernelBuildError, match="float64 parameters need float64 gradients"):
            COMPILERS[0].compile(
                text_of(DEFINITIONS["Lion"]), "compute_80", {"SG_PARAM": param, "SG_GRAD": grad}
            )


class TestTheChecksCanFail:
    """Each check above, on a text that breaks what it is for."""

    @staticmethod
    def broken(
        monkeypatch: pytest.MonkeyPatch, old: str, new: str, flags: tuple[str, str] | None = None
    ) -> None:
        text = text_of(DEFINITIONS["Adam"])
        assert old in text
        monkeypatch.setattr(f"{__name__}.text_of", lambda _: text.replace(old, new))
        if flags:
            monkeypatch.setattr(nvrtc, "FLAGS", tuple(f.replace(*flags) for f in nvrtc.FLAGS))
        with pytest.raises(AssertionError):
            check(COMPILERS[0], "Adam", {"amsgrad": True, "maximize": False}, ("bfloat16", "bfloat16"), 80)

    def test_contraction(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(monkeypatch, "", "", ("--fmad=false", "--fmad=true"))

    def test_flush_to_zero(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(monkeypatch, "", "", ("--ftz=false", "--ftz=true"))

    def test_approximate_division(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(monkeypatch, "", "", ("--prec-div=true", "--prec-div=false"))

    def test_a_promoted_literal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(monkeypatch, "beta1 * exp_avg +", "beta1 * 1.5 * exp_avg +")

    def test_pointers_of_unknown_space(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(
            monkeypatch,
            "reinterpret_cast<char *>(const_cast<sg_u64 *>(table)) + displacement",
            "reinterpret_cast<char *>(table[index])",
        )

    def test_a_store_taken_apart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(
            monkeypatch,
            "__stwb(reinterpret_cast<float4 *>(to + k), word)",
            "to[k] = word.x, to[k + 1] = word.y, to[k + 2] = word.z, to[k + 3] = word.w",
        )

    def test_a_library_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(
            monkeypatch, "sg_sqrt(max_exp_avg_sq_or_exp_avg_sq)", "expf(max_exp_avg_sq_or_exp_avg_sq)"
        )

    def test_an_array_in_local_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(
            monkeypatch, "sg_lanes_exp_avg[sg_k] = exp_avg_new", "sg_lanes_exp_avg[(int)exp_avg_new & 3] = 1"
        )
