"""Three rules that evaluate the gradient within a step, as ``solvergen build`` would write them: host
programs, references, and kernels rendered from the templates by ``with_kernels``.

``Heun``: the mean of the gradients here and a step ahead.
``Ahead``: momentum, its gradient taken ahead; states of every shape, all stored at the end.
``TwiceSAM``: two ascents, each along the gradient of all tensors over its norm, then a descent.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from solvergen.emit.render import render
from solvergen.emit.terms import ReductionContext
from solvergen.runtime.definition import Definition, Hyperparameter, Option, Pass, State
from solvergen.runtime.reference_math import divide as divide_any
from solvergen.runtime.reference_math import gradient, maximum, norm2, over_all
from solvergen.runtime.scalars import divide
from tests.support.contexts import pass_context
from tests.support.handwritten.staged import Handwritten, defined


def _update_heun(param, grad, lr, t, real, rounded):
    start, first = param, grad
    param = rounded(param - lr * grad)
    grad = yield gradient(0, param)
    return (rounded(start - divide(lr, 2.0) * (first + grad)),)


class Heun(Handwritten):
    """``p1 = p - lr*g(p)``, and ``p - lr/2*(g(p) + g(p1))``."""

    definition = defined(
        "heun",
        "Heun",
        hyperparameters=(Hyperparameter("lr", default=0.1, min=0.0),),
        options=(),
        state=(),
        table=("lr", "half"),
        update=_update_heun,
        scalars=lambda *, lr, t: ((lr, divide(lr, 2.0)), (), {}),
        active_state=lambda: (),
        initial_state=lambda **settings: {},
        buffers_read=lambda: ("param", "grad", "grad", "param_before", "grad_before"),
        buffers_written=lambda: ("param", "param_before", "grad_before", "param"),
        passes=(Pass(), Pass()),
        active_passes=lambda: (0, 1),
        yields=True,
        evaluations=(1,),
        carried=("param_before", "grad_before"),
    )


def _update_ahead(param, grad, m, v, w, d, lr, beta, t, ahead, real, rounded):
    start, first = param, grad
    if ahead:
        param = rounded(param - lr * beta * m)
    grad = yield gradient(0, param)
    largest = yield over_all("max_abs", 1, grad)
    v = beta * v + norm2(grad)
    w = w * beta
    d = maximum(d, largest)
    step = divide_any(lr, 1 + v + d)
    m = beta * m + 0.5 * (first + grad)
    param = rounded(start - step * (m / (1 - w)))
    return param, m, v, w, d


class Ahead(Handwritten):
    """Momentum by gradients here and, with ``ahead``, where momentum alone would lead; steps get shorter with
    what norms have been."""

    definition = defined(
        "ahead",
        "Ahead",
        hyperparameters=(
            Hyperparameter("lr", default=0.1, min=0.0),
            Hyperparameter("beta", default=0.75, min=0.0, below=1.0),
        ),
        options=(Option("ahead", default=True),),
        state=(
            State("m"),
            State("v", shape="scalar"),
            State("w", shape="scalar"),
            State("d", shape="shared"),
        ),
        table=("along", "beta", "correction"),
        update=_update_ahead,
        scalars=lambda *, lr, beta, ahead, t, w: (
            (lr * beta, beta, 1 - w * beta),
            (lr, beta),
            {"w": w * beta},
        ),
        active_state=lambda *, ahead: ("m", "v", "w", "d"),
        initial_state=lambda **settings: {"m": 0.0, "v": 0.0, "w": 1.0, "d": 0.0},
        buffers_read=lambda *, ahead: (
            *("param", "grad", *(("m",) if ahead else ())),
            "grad",
            *("grad", "m", "param_before", "grad_before"),
        ),
        buffers_written=lambda *, ahead: (
            *(("param",) if ahead else ()),
            *("param_before", "grad_before"),
            *("param", "m"),
        ),
        device_states=("v",),
        wide=("lr", "beta"),
        n_values=1,
        passes=(Pass(), Pass(0, ("norm2", "max_abs"), ("tensor", "all")), Pass(2)),
        stages=(2,),
        active_passes=lambda *, ahead: (0, 1, 2),
        active_stages=lambda *, ahead: (2,),
        yields=True,
        evaluations=(1,),
        carried=("param_before", "grad_before"),
    )


def _update_twice(param, grad, lr, rho, t, real, rounded):
    start = param
    norm = yield over_all("norm2", 0, grad)
    param = rounded(param + divide(rho, norm) * grad)
    grad = yield gradient(1, param)
    norm = yield over_all("norm2", 2, grad)
    param = rounded(param + divide(rho, norm) * grad)
    grad = yield gradient(3, param)
    return (rounded(start - lr * grad),)


class TwiceSAM(Handwritten):
    """Descends by the gradient after two ascents of length ``rho``, of all tensors together."""

    definition = defined(
        "twice_sam",
        "TwiceSAM",
        hyperparameters=(
            Hyperparameter("lr", default=0.1, min=0.0),
            Hyperparameter("rho", default=0.25, min=0.0),
        ),
        options=(),
        state=(),
        table=("lr",),
        update=_update_twice,
        scalars=lambda *, lr, rho, t: ((lr,), (rho,), {}),
        active_state=lambda: (),
        initial_state=lambda **settings: {},
        buffers_read=lambda: (
            *("param", "grad"),
            *("param", "grad"),
            "grad",
            *("param", "grad"),
            *("grad", "param_before"),
        ),
        buffers_written=lambda: ("param_before", "param", "param", "param"),
        wide=("rho",),
        n_values=2,
        passes=(Pass(0, ("norm2",), ("all",)), Pass(1), Pass(1, ("norm2",), ("all",)), Pass(2), Pass(2)),
        stages=(1, 3),
        active_passes=lambda: (0, 1, 2, 3, 4),
        active_stages=lambda: (1, 3),
        yields=True,
        evaluations=(2, 4),
        carried=("param_before",),
    )


ALL = (Heun, Ahead, TwiceSAM)


def with_kernels(rule: type[Handwritten], folder: Path) -> type[Handwritten]:
    """The rule with kernels, whose texts are written to ``folder``."""
    kernel = _KERNELS[rule](rule.definition)
    for template in ("cpu/kernel.c.j2", "cuda/kernel.cu.j2"):
        text = render(template, kernel=kernel)
        (folder / Path(template).stem).write_text(text, encoding="utf-8")
    return type(rule.__name__, (rule,), {"definition": replace(rule.definition, folder=str(folder))})


def _heun(rule: Definition) -> SimpleNamespace:
    return _kernel(
        rule,
        [
            _pass(
                rule,
                0,
                ["const sg_real param_ahead = sg_round_param(param - lr * grad);"],
                scalars=["lr"],
                loads=["param", "grad"],
                stores={"param_before": "param", "grad_before": "grad", "param": "param_ahead"},
            ),
            _pass(
                rule,
                1,
                ["const sg_real param_new = sg_round_param(param_before - half * (grad_before + grad));"],
                scalars=["half"],
                loads=["grad", "param_before", "grad_before"],
                stores={"param": "param_new"},
            ),
        ],
    )


def _ahead(rule: Definition) -> SimpleNamespace:
    norm = _reduction(0, "norm2", "(double)grad * (double)grad")
    largest = _reduction(1, "max_abs", "sg_abs64((double)grad)", larger=True)
    return _kernel(
        rule,
        [
            _pass(
                rule,
                0,
                [
                    "#if SG_OPTION_ahead",
                    "const sg_real param_ahead = sg_round_param(param - along * m);",
                    "#endif",
                ],
                scalars=["along"],
                loads=["param", "grad", "m"],
                stores={"param_before": "param", "grad_before": "grad", "param": "param_ahead"},
                guards={"m": "SG_OPTION_ahead", "param": "SG_OPTION_ahead"},
            ),
            _pass(rule, 1, [], loads=["grad"], reductions=[norm, largest]),
            _pass(
                rule,
                2,
                [
                    "const sg_real m_new = beta * m + (sg_real)0.5 * (grad_before + grad);",
                    "const sg_real param_new = sg_round_param(param_before - step * (m_new / correction));",
                ],
                scalars=["beta", "correction"],
                values={"step": 0},
                loads=["grad", "m", "param_before", "grad_before"],
                stores={"param": "param_new", "m": "m_new"},
            ),
        ],
        _stage(
            2,
            {
                "lr": ("sg_wide", 0),
                "beta": ("sg_wide", 1),
                "v": ("sg_states", 0),
                "d": ("sg_shared", 0),
                "norm": ("sg_totals", 0),
                "largest": ("sg_over_all", 1),
            },
            [
                "const double v_new = beta * v + sg_sqrt64(norm);",
                "const double d_new = d > largest || d != d ? d : largest;",
                "const double step = lr / (1.0 + v_new + d_new);",
            ],
            ("sg_values", 0, "step", False),
            ("sg_states", 0, "v_new", False),
            ("sg_shared_new", 0, "d_new", True),
        ),
    )


def _twice(rule: Definition) -> SimpleNamespace:
    square = _reduction(0, "norm2", "(double)grad * (double)grad")

    def ascent(number: int, value: int) -> SimpleNamespace:
        return _pass(
            rule,
            number,
            ["const sg_real param_up = sg_round_param(param + scale * grad);"],
            values={"scale": value},
            loads=["param", "grad"],
            stores={"param": "param_up"},
        )

    def scale(number: int, column: int) -> SimpleNamespace:
        return _stage(
            number,
            {"rho": ("sg_wide", 0), "total": ("sg_over_all", column)},
            ["const double scale = rho / sg_sqrt64(total);"],
            ("sg_values", column, "scale", False),
        )

    return _kernel(
        rule,
        [
            _pass(
                rule, 0, [], loads=["param", "grad"], stores={"param_before": "param"}, reductions=[square]
            ),
            ascent(1, 0),
            _pass(rule, 2, [], loads=["grad"], reductions=[square]),
            ascent(3, 1),
            _pass(
                rule,
                4,
                ["const sg_real param_new = sg_round_param(param_before - lr * grad);"],
                scalars=["lr"],
                loads=["grad", "param_before"],
                stores={"param": "param_new"},
            ),
        ],
        scale(1, 0),
        scale(3, 1),
    )


_KERNELS: dict[type[Handwritten], Any] = {Heun: _heun, Ahead: _ahead, TwiceSAM: _twice}


def _kernel(rule: Definition, passes: list[SimpleNamespace], *stages: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(
        preamble=f"/* The update of {rule.name}, written by hand. */",
        functions=(),
        passes=passes,
        stages=stages,
        staged=True,
        writes_grad=False,
        copies=(),
        has_lines=False,
        n_buffers=2 + len(rule.array_states) + len(rule.carried),
        n_scalars=max(1, len(rule.table)),
        n_wide=max(1, len(rule.wide)),
        n_values=max(1, rule.n_values),
        n_reductions=max(1, rule.n_reductions),
        n_states=max(1, len(rule.device_states)),
        n_shared=max(1, len(rule.shared_states)),
    )


def _pass(
    rule: Definition,
    number: int,
    body: list[str],
    *,
    scalars: Any = (),
    values: Any = None,
    loads: Any = (),
    stores: Any = None,
    reductions: Any = (),
    guards: Any = None,
) -> SimpleNamespace:
    """``guards``: when the state that is loaded, or the parameter that is stored, is."""
    stores, guards = stores or {}, guards or {}
    buffers = [
        SimpleNamespace(
            name=name,
            index=index,
            type={"param": "sg_param", "grad": "sg_grad"}.get(name, "sg_state"),
            guard=None,
            pointer=f"sg_{name}_at",
            value=name,
            loaded=name in loads,
            load_guard=None if name == "param" else guards.get(name),
            stored=name in stores,
            store_guard=guards.get(name) if name == "param" else None,
            result=stores.get(name, ""),
        )
        for index, name in enumerate(("param", "grad", *rule.array_states, *rule.carried))
    ]
    return pass_context(
        number=number,
        suffix=f"_{number}",
        scalars=[SimpleNamespace(name=n, index=rule.table.index(n), guard=None) for n in scalars],
        values=[SimpleNamespace(name=n, index=i, guard=None) for n, i in (values or {}).items()],
        buffers=buffers,
        first=next(b for b in buffers if b.loaded or b.stored),
        body=[line if line.startswith("#") else f"        {line}" for line in body],
        reductions=reductions,
    )


def _reduction(column: int, kind: str, term: str, *, larger: bool = False) -> ReductionContext:
    return ReductionContext(
        column=column, name=kind, guard=None, term=term, larger=larger, kind=kind, operands=("grad",)
    )


def _stage(
    number: int, inputs: dict[str, tuple[str, int]], body: list[str], *outputs: tuple[str, int, str, bool]
) -> SimpleNamespace:
    return SimpleNamespace(
        number=number,
        guard=None,
        inputs=[SimpleNamespace(name=n, table=t, index=i, guard=None) for n, (t, i) in inputs.items()],
        body=[f"        {line}" for line in body],
        outputs=[
            SimpleNamespace(table=t, index=i, name=n, guard=None, leader=leader)
            for t, i, n, leader in outputs
        ],
    )
