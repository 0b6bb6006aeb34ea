"""Compiled CUDA kernels, kept by content: a kernel is compiled once a machine, not once a process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from solvergen.runtime.cache_folder import open_cache
from solvergen.runtime.cuda.nvrtc import Compiled, Compiler

FORMAT = 3
"""Part of every key; raised when what is stored under a key changes its meaning."""


def key_of(
    text: str,
    defines: Mapping[str, int],
    architecture: str,
    version: tuple[int, int],
    flags: tuple[str, ...],
) -> str:
    """A digest of everything that decides the compiled code."""
    content = json.dumps([FORMAT, text, sorted(defines.items()), architecture, version, flags])
    return hashlib.sha256(content.encode()).hexdigest()


def build(compiler: Compiler, text: str, defines: Mapping[str, int], architecture: str) -> Compiled:
    """Compile without spills: a compiler that would rather spill than fit fewer threads is told not to mind.

    So it is where a kernel has a stack without spilling, which it keeps for calls of its own (a division).

    Raises:
        KernelBuildError: it doesn't compile.
    """
    usual = compiler.compile(text, architecture, defines)
    if not _spilled(usual):
        return usual
    relaxed = compiler.compile(text, architecture, {**defines, "SG_MIN_BLOCKS": 1})
    return min(usual, relaxed, key=_spilled)


def _spilled(result: Compiled) -> int:
    return sum(kernel.spill_stores + kernel.spill_loads + kernel.stack for kernel in result.resources)


def compiled(compiler: Compiler, text: str, defines: Mapping[str, int], architecture: str) -> bytes:
    """The code of ``text`` for ``sm_NN`` (a cubin) or ``compute_NN`` (PTX), from the cache or compiled now.

    Raises:
        KernelBuildError: it doesn't compile.
    """
    folder = open_cache("cuda")
    key = key_of(text, defines, architecture, compiler.version, compiler.flags)
    suffix = ".cubin" if architecture.startswith("sm_") else ".ptx"
    image = folder.load(key, suffix)
    if image is None:
        image = build(compiler, text, defines, architecture).image
        folder.store(key, image, suffix)
    return image
