"""Kernels of a few lines, rendered from the template that the compiler uses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from tests.support.contexts import pass_context

TEMPLATES = Path(__file__).parents[3] / "templates"


def kernel(body: Sequence[str], buffers: Sequence[dict[str, Any]], scalars: Sequence[str] = ()) -> str:
    """The C text of a kernel. ``buffers`` are those of ``buffer``, in order."""
    variables = {
        "preamble": "/* for a test */",
        "functions": [],
        "n_buffers": len(buffers),
        "n_scalars": max(1, len(scalars)),
        "staged": False,
        "writes_grad": False,
        "copies": (),
        "has_lines": False,
        "stages": [],
        "passes": [
            pass_context(
                scalars=[{"name": name, "index": i, "guard": None} for i, name in enumerate(scalars)],
                buffers=[{**b, "index": i} for i, b in enumerate(buffers)],
                body=body,
            )
        ],
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("cpu/kernel.c.j2").render(kernel=variables)


def buffer(name: str, kind: str, *, loaded: bool = True, result: str | None = None) -> dict[str, Any]:
    """A buffer that is stored from ``result``, if there is one."""
    return {
        "name": name,
        "type": kind,
        "guard": None,
        "pointer": f"sg_{name}_at",
        "loaded": loaded,
        "load_guard": None,
        "value": name,
        "stored": result is not None,
        "store_guard": None,
        "result": result,
    }


def run(library: Any, buffers: Sequence[Any], table: Any) -> None:
    """Run a loaded kernel over one tensor as one chunk, on this thread."""
    import ctypes

    import numpy as np

    from solvergen.runtime.kernel_interface import CHUNK
    from solvergen.runtime.native.library import Job

    pointers = np.array([[array.ctypes.data for array in buffers]], np.uintp)
    chunks = np.array([(0, buffers[0].size, 0)], CHUNK)
    rows = np.zeros(1, np.int32)
    job = Job(pointers.ctypes.data, rows.ctypes.data, table.ctypes.data, chunks.ctypes.data)
    library.sg_kernel(ctypes.byref(job), ctypes.c_int64(0), ctypes.c_int64(1))
