"""The rules behind ``solvergen.constraints``: what becomes of new values, by themselves or by norms.

They are rules of the language like any other, generated beside the optimizers, which the runtime runs after
an update over the parameters that are constrained. Equations speak of ``param`` alone: there is no gradient.
Which constraint it is, and along which lines norms are taken, are options; the numbers are hyperparameters.

Norms of lines have a rule of their own, because a rule that knows lines keeps tables of all of them.

Copies in another storage type that an optimizer keeps of its parameters (``Wrappers(shadow=...)``) are made
anew in the pass that writes the new value; the rule of elements can also do this alone.
"""

from __future__ import annotations

from solvergen.frontend.wrapping import SHADOWS, copies
from solvergen.spec.digest import digest_of
from solvergen.spec.model import Hyperparameter, Option, Source, Spec, Statement, Text

CONSTRAINTS = "<constraints>"
"""The file that their equations seem to come from."""

_LOW = Hyperparameter("low", 0.0, doc="the least element, or norm")
_HIGH = Hyperparameter("high", 1.0, doc="the largest element, or norm")
_RATE = Hyperparameter("rate", 1.0, min=0.0, max=1.0, doc="how far norms go to where they belong")
_FROM_BELOW = Hyperparameter("from_below", 0.0, min=0.0, max=1.0, integer=True, doc="1: low bounds elements")
_FROM_ABOVE = Hyperparameter("from_above", 0.0, min=0.0, max=1.0, integer=True, doc="1: high bounds elements")
_BOUNDED = Option("bounded", False, "elements have bounds, instead of the norm")
_UNIT = Option("unit", False, "norms become 1, instead of staying between low and high")
_UNCHANGED = Option("unchanged", False, "elements stay as they are, and only copies of them are made")
_KEEP = tuple(
    Option(f"wrap_keep_{dtype}", False, f"there is a copy of the parameter in {dtype}")
    for dtype in SHADOWS.values()
)
_ALONG_ROWS = Option("along_rows", False, "lines are the rows of matrices, instead of the columns")

_WANTED = "where(rate == 1, clip({0}, low, high), rate*clip({0}, low, high) + (1 - rate)*{0})"


def _held(when: str, norm: str) -> tuple[tuple[str, str], ...]:
    """What comes of a norm. Behind it there is Keras' epsilon."""
    return (
        (f"{when} and unit", f"param = param/(1e-7 + {norm})"),
        (f"{when} and not unit", f"param = param*({_WANTED.format(norm)}/(1e-7 + {norm}))"),
    )


_TENSORS = (
    # Where there is no bound it is infinite.
    ("bounded", "lower = where(from_below != 0, low, -1/abs(from_below))"),
    ("bounded", "upper = where(from_above != 0, high, 1/abs(from_above))"),
    ("bounded", "param = clip(param, lower, upper)"),
    ("unchanged", "param = param"),
    ("not bounded and not unchanged", "norm = norm2(param)"),
    *_held("not bounded and not unchanged", "norm"),
)
# Both norms first: they are one pass, whichever there is.
_LINES = (
    ("along_rows", "row_norm = norm2(param, rows)"),
    ("not along_rows", "column_norm = norm2(param, columns)"),
    *_held("along_rows", "row_norm"),
    *_held("not along_rows", "column_norm"),
)


def constraining() -> tuple[Spec, Spec]:
    """The rules: of elements and whole tensors, and of lines."""
    return (
        _rule(
            "_constrain",
            (_FROM_BELOW, _FROM_ABOVE, _LOW, _HIGH, _RATE),
            (_BOUNDED, _UNIT, _UNCHANGED),
            _TENSORS,
        ),
        _rule("_constrain_lines", (_LOW, _HIGH, _RATE), (_UNIT, _ALONG_ROWS), _LINES),
    )


def _rule(
    name: str,
    hyperparameters: tuple[Hyperparameter, ...],
    options: tuple[Option, ...],
    equations: tuple[tuple[str, str], ...],
) -> Spec:
    options += _KEEP
    equations += tuple((f"wrap_keep_{dtype}", f"{name} = param") for name, dtype in SHADOWS.items())
    state = copies()
    update = tuple(
        Statement(Text.of(equation, CONSTRAINTS, line=line), Text.of(when, CONSTRAINTS, line=line))
        for line, (when, equation) in enumerate(equations, 1)
    )
    source = Source.of(CONSTRAINTS, "")
    return Spec(
        name=name,
        class_name="".join(part.capitalize() for part in name.split("_")),
        summary="Constrains parameters.",
        description="For parameters that were updated: see solvergen.constraints.",
        references=(),
        hyperparameters=hyperparameters,
        options=options,
        state=state,
        update=update,
        constraints=(),
        conventions=(),
        counterparts=(),
        digest=digest_of(name, hyperparameters, options, state, update, ()),
        path=CONSTRAINTS,
        source=source,
        location=source.span(1, 1, 1, 1),
    )
