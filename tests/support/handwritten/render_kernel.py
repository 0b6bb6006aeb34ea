"""Renders `adam/kernel.c` from `templates/cpu/kernel.c.j2` with variables written by hand.

The native runtime is tested with this kernel, so that its tests don't lean on the compile half. Run
it after the template changes: `python tests/support/handwritten/render_kernel.py`.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2

from tests.support.contexts import pass_context

FOLDER = Path(__file__).parent
TEMPLATES = FOLDER.parents[2] / "templates"

PREAMBLE = """\
/* The update of adam, written by hand for the tests of the native runtime.
   Rendered from templates/cpu/kernel.c.j2 by tests/support/handwritten/render_kernel.py. */"""

BODY = """\
        // g = where(maximize, -grad, grad)
#if SG_OPTION_maximize
        const sg_real ascent = -grad;
#else
        const sg_real ascent = grad;
#endif
        // g = where(weight_decay != 0, g + weight_decay*param, g)
        const sg_real g = decays != 0 ? ascent + weight_decay * param : ascent;
        // m = beta1*m + (1 - beta1)*g
        const sg_real m_new = beta1 * m + one_minus_beta1 * g;
        // v = beta2*v + (1 - beta2)*g**2
        const sg_real v_new = beta2 * v + one_minus_beta2 * (g * g);
#if SG_OPTION_amsgrad
        // v_max = max(v_max, v)
        const sg_real v_max_new = v_max > v_new || v_max != v_max ? v_max : v_new;
        const sg_real second = v_max_new;
#else
        const sg_real second = v_new;
#endif
        // denom = sqrt(where(amsgrad, v_max, v)/(1 - beta2**t)) + eps
        const sg_real denom = sg_sqrt(second / correction2) + eps;
        // param = param - lr*(m/(1 - beta1**t))/denom
        const sg_real param_new = sg_round_param(param - lr * (m_new / correction1) / denom);"""

SCALARS = (
    "decays",
    "weight_decay",
    "beta1",
    "one_minus_beta1",
    "beta2",
    "one_minus_beta2",
    "correction2",
    "eps",
    "lr",
    "correction1",
)


def _buffer(
    index: int, name: str, kind: str, *, guard: str | None = None, stored: bool = True
) -> dict[str, Any]:
    return {
        "name": name,
        "index": index,
        "type": kind,
        "guard": guard,
        "pointer": f"sg_{name}_at",
        "loaded": True,
        "load_guard": guard,
        "value": name,
        "stored": stored,
        "store_guard": guard,
        "result": f"{name}_new",
        "written": stored,
    }


def kernel() -> dict[str, Any]:
    """The template's variables for adam with its options."""
    return {
        "preamble": PREAMBLE,
        "functions": [],
        "n_buffers": 5,
        "n_scalars": len(SCALARS),
        "staged": False,
        "writes_grad": False,
        "copies": (),
        "has_lines": False,
        "stages": [],
        "passes": [_only_pass()],
    }


def _only_pass() -> SimpleNamespace:
    return pass_context(
        scalars=[{"name": name, "index": index, "guard": None} for index, name in enumerate(SCALARS)],
        buffers=[
            _buffer(0, "param", "sg_param"),
            _buffer(1, "grad", "sg_grad", stored=False),
            _buffer(2, "m", "sg_state"),
            _buffer(3, "v", "sg_state"),
            _buffer(4, "v_max", "sg_state", guard="SG_OPTION_amsgrad"),
        ],
        body=BODY.splitlines(),
    )


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
    return environment.get_template("cpu/kernel.c.j2").render(kernel=kernel())


if __name__ == "__main__":
    (FOLDER / "adam" / "kernel.c").write_text(render(), encoding="utf-8")
