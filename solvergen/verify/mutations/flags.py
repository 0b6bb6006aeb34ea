"""Faults of what kernels are compiled with: flags that give other bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from solvergen.verify.mutations.patching import put


@dataclass(frozen=True)
class FlagFault:
    """``before``: the flag as it is. ``after``: what takes its place. ``apply``: does so in this process."""

    before: str
    after: tuple[str, ...]
    apply: Callable[[str, tuple[str, ...]], None]


def _in_native(before: str, after: tuple[str, ...]) -> None:
    """Other options for the C compiler, for kernels and the runtime library."""
    from solvergen.runtime.native import build
    from solvergen.runtime.native.compiler import find_compiler

    right = find_compiler()
    assert before in right.options
    wrong = [flag for old in right.options for flag in (after if old == before else (old,))]
    put(build, "find_compiler", lambda: replace(right, options=tuple(wrong)))


def _in_nvrtc(before: str, after: tuple[str, ...]) -> None:
    """Other options for NVRTC, where the interpreter asks it for PTX."""
    from solvergen.runtime.cuda import nvrtc
    from solvergen.runtime.ptx.compiler import PtxCompiler

    for owner, name in ((nvrtc, "FLAGS"), (PtxCompiler, "flags")):
        right = getattr(owner, name)
        assert before in right
        put(owner, name, tuple(flag for old in right for flag in (after if old == before else (old,))))


NATIVE = tuple(
    FlagFault(before, after, _in_native)
    for before, after in (
        ("-ffp-contract=off", ("-ffp-contract=fast",)),
        ("-fno-associative-math", ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math")),
        ("-fno-reciprocal-math", ("-freciprocal-math",)),
        ("-fno-finite-math-only", ("-ffinite-math-only",)),
        ("-fsigned-zeros", ("-fno-signed-zeros",)),
        ("-fno-fast-math", ("-ffast-math",)),
    )
)

PTX = tuple(
    FlagFault(before, (after,), _in_nvrtc)
    for before, after in (
        ("--fmad=false", "--fmad=true"),
        ("--ftz=false", "--ftz=true"),
        ("--prec-div=true", "--prec-div=false"),
        ("--prec-sqrt=true", "--prec-sqrt=false"),
    )
)
