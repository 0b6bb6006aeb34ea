"""What wraps an update: sections in the language itself, before and after the equations of any rule.

A spec becomes another spec, of which an optimizer is generated beside its own (``<name>/wrapped/``). What
costs memory or a pass over it is an option, there only if it is asked for; the rest are hyperparameters whose
defaults leave every bit as it is. The order is that of ``docs/wrappers.md``.
"""

from __future__ import annotations

from dataclasses import replace

from solvergen.frontend.findings import Findings
from solvergen.frontend.parse import is_gradient, read_equation, target_of
from solvergen.ir.nodes import Binary, Name, names_in
from solvergen.spec.digest import digest_of
from solvergen.spec.model import Constraint, Hyperparameter, Option, Source, Spec, State, Statement, Text

WRAPPERS = "<wrappers>"
"""The file that equations of wrappers seem to come from."""

HYPERPARAMETERS = (
    Hyperparameter("wrap_every", 1.0, min=1.0, integer=True, doc="calls of step for each update"),
    Hyperparameter("wrap_mean", 1.0, min=0.0, max=1.0, integer=True, doc="1: their mean, 0: their sum"),
    Hyperparameter("wrap_normalize", 1.0, doc="what gradients are multiplied by, with their mean"),
    Hyperparameter("wrap_clip_sum", 0.0, min=0.0, max=1.0, integer=True, doc="1: clip the sum"),
    Hyperparameter("wrap_maximize", 0.0, min=0.0, max=1.0, integer=True, doc="1: ascend"),
    Hyperparameter("wrap_unscale", 1.0, above=0.0, doc="what gradients are divided by, first of all"),
    Hyperparameter("wrap_max_value", 0.0, min=0.0, doc="largest magnitude of a gradient's element; 0: any"),
    Hyperparameter("wrap_max_tensor_norm", 1.0, above=0.0, doc="largest norm of each gradient"),
    Hyperparameter("wrap_max_grad_norm", 1.0, min=0.0, doc="largest norm of all gradients together"),
    Hyperparameter("wrap_clip_eps", 0.0, min=0.0, doc="added to norms before dividing by them"),
    Hyperparameter("wrap_l2", 0.0, min=0.0, doc="times the parameter, added to the gradient"),
    Hyperparameter("wrap_l1", 0.0, min=0.0, doc="times the parameter's sign, added to the gradient"),
    Hyperparameter("wrap_weight_decay", 0.0, min=0.0, doc="decoupled weight decay, times lr"),
    Hyperparameter("wrap_from_below", 0.0, min=0.0, max=1.0, integer=True, doc="1: wrap_low holds"),
    Hyperparameter("wrap_low", 0.0, doc="least value of a parameter's element"),
    Hyperparameter("wrap_from_above", 0.0, min=0.0, max=1.0, integer=True, doc="1: wrap_high holds"),
    Hyperparameter("wrap_high", 0.0, doc="largest value of a parameter's element"),
    Hyperparameter("wrap_average_decay", 0.999, min=0.0, max=1.0, doc="decay of the parameters' average"),
)
OPTIONS = (
    Option("wrap_accumulate", False, "add what earlier calls have summed up to the gradient"),
    Option("wrap_clip_tensor", False, "clip each gradient by its norm"),
    Option("wrap_clip_global", False, "clip gradients by the norm of all together"),
    Option("wrap_keep_average", False, "keep an average of the parameters"),
    Option("wrap_write_update", False, "leave the update in the gradient's buffer"),
    Option("wrap_keep_bfloat16", False, "keep a copy of the parameters in bfloat16"),
    Option("wrap_keep_float16", False, "keep a copy of the parameters in float16"),
)
STATE = (
    ("wrap_sum", "0", "param", "wrap_accumulate", "sum of the gradients of calls that didn't update"),
    ("wrap_calls", "0", "scalar", "wrap_accumulate", "how many calls wrap_sum is of, this one included"),
    ("wrap_average", "param", "param", "wrap_keep_average", "exponential average of the parameters"),
    ("wrap_norm", "0", "shared", "wrap_clip_global", "norm of all gradients together in the last update"),
)
SHADOWS = {"wrap_bfloat16": "bfloat16", "wrap_float16": "float16"}
"""Copies of the parameter in other storage types, kept with the options ``wrap_keep_...``."""
_SIGN = "where(wrap_maximize != 0, -1, 1)"
_SCALE = f"{_SIGN}*where(wrap_clip_sum != 0, 1, wrap_normalize)"
_LIMITED = "wrap_max_grad_norm/(wrap_norm + wrap_clip_eps)"
BEFORE = (
    ("wrap_accumulate", "grad = wrap_sum + grad"),
    ("wrap_accumulate", "wrap_sum = 0"),
    ("wrap_accumulate", "wrap_count = where(wrap_mean != 0, max(wrap_calls, 1), 1)"),
    ("wrap_accumulate", "wrap_calls = 0"),
    (
        "wrap_accumulate",
        f"grad = {_SCALE}/(wrap_unscale*where(wrap_clip_sum != 0, 1, wrap_count))*grad",
    ),
    ("not wrap_accumulate", f"grad = {_SCALE}/wrap_unscale*grad"),
    # Without a limit it is infinite: a choice around `clip` would keep gcc from vectorising the loop.
    (None, "wrap_limit = where(wrap_max_value > 0, wrap_max_value, 1/abs(wrap_max_value))"),
    (None, "grad = clip(grad, -wrap_limit, wrap_limit)"),
    ("wrap_clip_tensor", "wrap_tensor_factor = min(1, wrap_max_tensor_norm/(norm2(grad) + wrap_clip_eps))"),
    ("wrap_clip_tensor", "grad = wrap_tensor_factor*grad"),
    ("wrap_clip_global", "wrap_norm = norm2(grad, all)"),
    # Caffe compares: no limit where the norm is NaN, and a limit of 0 leaves gradients of 0 alone.
    (
        "wrap_clip_global",
        f"wrap_factor = where(wrap_clip_sum != 0, where(wrap_norm > wrap_max_grad_norm, {_LIMITED}, 1), "
        f"min(1, {_LIMITED}))",
    ),
    ("wrap_clip_global", "grad = wrap_factor*grad"),
    ("wrap_accumulate", "grad = where(wrap_clip_sum != 0, wrap_normalize/wrap_count, 1)*grad"),
    ("not wrap_accumulate", "grad = where(wrap_clip_sum != 0, wrap_normalize, 1)*grad"),
    (None, "grad = where(wrap_l2 != 0, grad + wrap_l2*param, grad)"),
    (None, "grad = where(wrap_l1 != 0, grad + wrap_l1*sign(param), grad)"),
)
DECAY = "param = (1 - lr*wrap_weight_decay)*param"
AFTER = (
    (None, "param = where(wrap_from_below != 0, max(param, wrap_low), param)"),
    (None, "param = where(wrap_from_above != 0, min(param, wrap_high), param)"),
    ("wrap_keep_average", "wrap_average = wrap_average_decay*wrap_average + (1 - wrap_average_decay)*param"),
    *((f"wrap_keep_{dtype}", f"{name} = param") for name, dtype in SHADOWS.items()),
)
ACCUMULATE = "wrap_accumulate"
WRITE_UPDATE = "wrap_write_update"
BEGIN = "wrap_before = param"
DIFFERENCE = "wrap_update = wrap_before - param"
WRITE = "grad = wrap_update"
PARAM = "param"
_SHADOW_DOC = "copy of the parameter in another type"
_PLACES = [text for _, text in (*BEFORE, *AFTER)] + [DECAY, BEGIN, DIFFERENCE, WRITE]


def copies() -> tuple[State, ...]:
    """The copies as states."""
    return tuple(
        State(name, _text("param"), "param", _text(f"wrap_keep_{dtype}"), True, _SHADOW_DOC, dtype)
        for name, dtype in SHADOWS.items()
    )


def wrapped(spec: Spec) -> Spec:
    """``spec`` with all sections around its equations.

    If it evaluates the gradient again, those before its equations follow each evaluation too, all but
    decoupled decay; and there is no accumulation: gradients of other calls are of other places.
    """
    again = any(is_gradient(statement.equation) for statement in spec.update)
    has_lr = any(h.name == "lr" for h in spec.hyperparameters)
    hyperparameters = tuple(h for h in HYPERPARAMETERS if has_lr or h.name != "wrap_weight_decay")
    decay = (_statement(None, DECAY),) if has_lr else ()
    own, begin = _with_update(spec.update)
    after = [_statement(when, equation) for when, equation in (*AFTER, (WRITE_UPDATE, WRITE))]
    update = (*_before(again), *decay, *begin, *_with_sections(own), *after)
    state = tuple(
        State(name, _text(init) if init == "param" else float(init), shape, _text(when), True, doc)
        for name, init, shape, when, doc in STATE
        if when != ACCUMULATE or not again
    )
    state += copies()
    options = tuple(option for option in OPTIONS if option.name != ACCUMULATE or not again)
    constraints = (*spec.constraints, _ONE_CALL if again else _NO_SUM, *_CONSTRAINTS)
    parts = (
        (*spec.hyperparameters, *hyperparameters),
        (*spec.options, *options),
        (*spec.state, *state),
    )
    name = f"wrapped_{spec.name}"
    return replace(
        spec,
        name=name,
        class_name=f"Wrapped{spec.class_name}",
        summary=f"{spec.summary.rstrip('.')}, with what wraps an update.",
        hyperparameters=parts[0],
        options=parts[1],
        state=parts[2],
        update=update,
        constraints=constraints,
        counterparts=(),
        digest=digest_of(name, *parts, update, constraints),
        writes_grad=_text(WRITE_UPDATE),
    )


_NO_SUM = Constraint(
    Text.of("wrap_every == 1", WRAPPERS),
    "an optimizer that was made without accumulation can't begin to accumulate: make a new one",
    Text.of("not wrap_accumulate", WRAPPERS),
)
_ONE_CALL = Constraint(
    Text.of("wrap_every == 1", WRAPPERS),
    "a rule that evaluates the gradient several times in a step doesn't accumulate: sum gradients up in the "
    "function that it calls",
)
_CONSTRAINTS = (
    Constraint(
        Text.of("wrap_max_grad_norm > 0 or wrap_clip_sum != 0", WRAPPERS),
        'a clip_grad_norm of 0 is only for order="caffe", where it is a limit like any other',
    ),
)


def _before(again: bool, evaluation: int = 0) -> list[Statement]:
    """What is said of a gradient; ``evaluation``: 0 for the first of a step. ``again``: one of several."""
    if not again:
        return [_statement(when, equation) for when, equation in BEFORE]
    return [
        _statement(None if when == f"not {ACCUMULATE}" else when, equation, evaluation)
        for when, equation in BEFORE
        if when != ACCUMULATE
    ]


def _with_sections(own: tuple[Statement, ...]) -> list[Statement]:
    """A rule's statements, with what is said of gradients behind each evaluation."""
    placed: list[Statement] = []
    evaluation = 0
    for statement in own:
        placed.append(statement)
        if is_gradient(statement.equation):
            evaluation += 1
            placed += _before(True, evaluation)
    return placed


def _with_update(own: tuple[Statement, ...]) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
    """A rule's statements with one that says what its update is, and what must be said before them.

    It is what the one equation of the parameter subtracts, if there is one and it is so; else the difference
    of the parameter before them and after.
    """
    places = [i for i, statement in enumerate(own) if target_of(statement.equation) == "param"]
    if len(places) == 1 and own[places[0]].when is None:
        subtracted = _subtracted(own[places[0]].equation)
        if subtracted is not None:
            said = Statement(subtracted, _text(WRITE_UPDATE), wraps=True)
            return (*own[: places[0] + 1], said, *own[places[0] + 1 :]), ()
    return (*own, _statement(WRITE_UPDATE, DIFFERENCE)), (_statement(WRITE_UPDATE, BEGIN),)


def _subtracted(equation: Text) -> Text | None:
    """``wrap_update = what`` for ``param = param - what``, unless that reads the parameter."""
    findings = Findings()
    whole = read_equation(equation, findings)
    _, _, what = equation.text.partition("-")
    said = _text(f"wrap_update = {' '.join(what.split())}", len(_PLACES) + 1)
    alone = read_equation(said, findings)
    if findings.has_errors or whole is None or alone is None or PARAM in names_in(alone.value):
        return None
    return said if whole.value == Binary("-", Name(PARAM), alone.value) else None


def _text(text: str, line: int = 1) -> Text:
    return Text.of(text, WRAPPERS, line=line)


def _statement(when: str | None, equation: str, evaluation: int = 0) -> Statement:
    # Each at a line of its own: branches of one equation are known by its place.
    text = _text(equation, _PLACES.index(equation) + 1 + evaluation * (len(_PLACES) + 1))
    return Statement(text, None if when is None else _text(when), wraps=True)


def accumulation() -> Spec:
    """The rule of calls that only sum up gradients: what it is given as parameters are sums."""
    name, update = "_accumulate", (_own("param = param + grad"),)
    source = Source.of(WRAPPERS, "")
    return Spec(
        name=name,
        class_name="Accumulate",
        summary="Adds gradients up.",
        description="For calls that don't update: see solvergen.Wrappers.",
        references=(),
        hyperparameters=(),
        options=(),
        state=(),
        update=update,
        constraints=(),
        conventions=(),
        counterparts=(),
        digest=digest_of(name, (), (), (), update, ()),
        path=WRAPPERS,
        source=source,
        location=source.span(1, 1, 1, 1),
    )


def _own(equation: str) -> Statement:
    return Statement(Text.of(equation, WRAPPERS))
