"""Renders `adam/kernel.cu` from `templates/cuda/kernel.cu.j2` with variables written by hand.

The CUDA runtime is tested with this kernel, so that its tests don't lean on the compile half.
Run it from the repository's root after the template changes:
`python -m tests.support.handwritten.render_cuda_kernel`.
"""

from __future__ import annotations

import jinja2

from tests.support.handwritten.render_kernel import FOLDER, TEMPLATES, kernel

PREAMBLE = """\
/* The update of adam, written by hand for the tests of the CUDA runtime.
   Rendered from templates/cuda/kernel.cu.j2 by tests/support/handwritten/render_cuda_kernel.py. */"""


def render() -> str:
    """The text of the kernel."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    variables = {**kernel(), "preamble": PREAMBLE}
    return environment.get_template("cuda/kernel.cu.j2").render(kernel=variables)


if __name__ == "__main__":
    (FOLDER / "adam" / "kernel.cu").write_text(render(), encoding="utf-8")
