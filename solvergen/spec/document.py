"""The shape of a spec file: which keys there are and what kind of value each takes.

This is what pydantic validates and what the JSON Schema is made from (``schema.py``), so the
descriptions here are what an editor shows. What a value *means*, and whether values fit together,
is for ``checks.py``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag, WithJsonSchema

from solvergen.spec.limits import (
    MAX_BASES,
    MAX_CONSTRAINTS,
    MAX_HYPERPARAMETERS,
    MAX_NAME,
    MAX_OPTIONS,
    MAX_STAGES,
    MAX_STATE,
    MAX_STATEMENTS,
    MAX_TEXT,
)
from solvergen.spec.names import (
    CLASS_NAME_PATTERN,
    DOTTED_PATTERN,
    NAME_PATTERN,
    RATIONAL_PATTERN,
    SPEC_NAME_PATTERN,
)

TEXT_TAG = "as text"
OTHER_TAG = "as another value"
"""How the branches of a choice are called in pydantic's error locations; no key contains a blank."""


class _Document(BaseModel):
    """Unknown keys are errors, and so is a value of another kind: true isn't 1, and 1 isn't true."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _schema_name(pattern: str) -> WithJsonSchema:
    """Names are checked by ``checks.py``, which can say why not; the schema has the pattern."""
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$", "maxLength": MAX_NAME})


def _kind(value: Any) -> str:
    return TEXT_TAG if isinstance(value, str) else OTHER_TAG


Number = Annotated[float, Field(allow_inf_nan=False)]
Line = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT, pattern=r"\S")]
Name = Annotated[str, _schema_name(NAME_PATTERN)]
TextBranch = Annotated[Line, Tag(TEXT_TAG)]
NumberOrText = Annotated[TextBranch | Annotated[Number, Tag(OTHER_TAG)], Discriminator(_kind)]
BoolOrText = Annotated[TextBranch | Annotated[bool, Tag(OTHER_TAG)], Discriminator(_kind)]
IntegerOrText = Annotated[TextBranch | Annotated[int, Tag(OTHER_TAG)], Discriminator(_kind)]
LineOrLines = Annotated[
    TextBranch | Annotated[list[Line], Field(min_length=1), Tag(OTHER_TAG)],
    Discriminator(_kind),
]


class ReferenceDocument(_Document):
    """Where the rule was published."""

    title: Line = Field(description="Title of the paper, report or program.")
    authors: Line | None = Field(default=None, description="Authors, as they should be cited.")
    year: IntegerOrText | None = Field(default=None, description="Year of publication.")
    arxiv: Line | None = Field(default=None, description='arXiv identifier, in quotes: "1412.6980".')
    doi: Line | None = Field(default=None, description="Digital object identifier.")
    url: Annotated[Line, WithJsonSchema({"type": "string", "pattern": r"^https?://\S+$"})] | None = Field(
        default=None, description="Address, beginning with https:// or http://."
    )
    note: Line | None = Field(default=None, description="Anything else: the venue, what it is cited for.")


class HyperparameterDocument(_Document):
    """A number that the caller chooses and may change between updates."""

    default: Number = Field(description="Its value unless the caller gives one.")
    min: Number | None = Field(default=None, description="Smallest value allowed.")
    max: Number | None = Field(default=None, description="Largest value allowed.")
    above: Number | None = Field(default=None, description="Values must be larger than this.")
    below: Number | None = Field(default=None, description="Values must be smaller than this.")
    integer: bool = Field(default=False, description="Whole numbers only.")
    doc: Line | None = Field(default=None, description="What it is, in a few words.")


class OptionDocument(_Document):
    """A switch that is fixed when an optimizer is made; what it turns off costs nothing."""

    default: BoolOrText = Field(
        default=False,
        description="true or false, or a condition on hyperparameters that decides: momentum != 0.",
    )
    doc: Line | None = Field(default=None, description="What it turns on, in a few words.")


class StateDocument(_Document):
    """What the rule remembers of each parameter from update to update."""

    init: NumberOrText = Field(
        default=0.0,
        description="Its first value: a number, an expression in hyperparameters and options, "
        "or param (a copy of the parameter).",
    )
    shape: Literal[
        "param", "scalar", "shared", "rows", "columns", "matrices", "leading", "trailing", "blocks"
    ] = Field(
        default="param",
        description="param: one number an element. scalar: one number a parameter. "
        "shared: one number for the whole optimizer. rows, columns, matrices, leading, trailing, blocks: one "
        "number for each of these lines of the parameter.",
    )
    when: Line | None = Field(default=None, description="Exists only if this condition on options holds.")
    output: bool = Field(
        default=False, description="true: it is there for the caller to read, and needs no effect on param."
    )
    doc: Line | None = Field(default=None, description="What it holds, in a few words.")


class ConstraintDocument(_Document):
    """A condition on hyperparameters and options that must hold whenever one of them is set."""

    that: Line = Field(description="What must hold: momentum > 0 and dampening == 0.")
    when: Line | None = Field(default=None, description="Must hold only if this condition does.")
    message: Line = Field(description="What to tell the caller if it doesn't hold.")


class StatementDocument(_Document):
    """Equations that are there under a condition only."""

    when: Line | None = Field(default=None, description="The condition on options.")
    do: LineOrLines = Field(description="One equation, or a list of them: target = expression.")


Rational = Annotated[
    Annotated[Line, Tag(TEXT_TAG), WithJsonSchema({"type": "string", "pattern": RATIONAL_PATTERN})]
    | Annotated[int, Tag(OTHER_TAG)],
    Discriminator(_kind),
]


class TableauDocument(_Document):
    """An explicit Runge-Kutta method along the gradient flow, in exact rationals: its update follows."""

    matrix: Annotated[list[list[Rational]], Field(min_length=1, max_length=MAX_STAGES)] = Field(
        description="A row for each stage: the coefficients of the slopes before it. The first row is []."
    )
    weights: Annotated[list[Rational], Field(min_length=1, max_length=MAX_STAGES)] = Field(
        description="The coefficients of the slopes in the step itself; they sum to 1."
    )
    nodes: list[Rational] | None = Field(
        default=None, description="The times of the stages: what the rows of the matrix must sum to."
    )
    embedded: list[Rational] | None = Field(
        default=None,
        description="The weights of a method of another order with the same slopes: the difference is an "
        "estimate of the error.",
    )
    order: int | None = Field(default=None, description="The order of the method, to be checked.")
    adapt: bool = Field(
        default=False, description="true: the length of the step follows the error estimate and a tolerance."
    )


class ChangeDocument(_Document):
    """A change of one equation of the spec that is extended, named by its target."""

    replace: Line | None = Field(default=None, description="The target of the equation that is replaced.")
    before: Line | None = Field(default=None, description="The target of the equation to insert before.")
    after: Line | None = Field(default=None, description="The target of the equation to insert after.")
    remove: Line | None = Field(default=None, description="The target of the equation that is left out.")
    number: int | None = Field(
        default=None, description="Which of the equations for this target in the other spec, from 1."
    )
    when: Line | None = Field(default=None, description="The condition on options of the new equations.")
    do: LineOrLines | None = Field(default=None, description="The new equation, or a list of them.")


class CounterpartDocument(_Document):
    """The same rule in another library, and what its arguments are called there."""

    library: Line = Field(description="The library: torch, keras, optax ...")
    name: Annotated[
        Line,
        WithJsonSchema({"type": "string", "pattern": f"^{DOTTED_PATTERN}$", "minLength": 1}),
    ] = Field(description="Its class or function, as one imports it: torch.optim.RMSprop.")
    maps: dict[Name, Line] = Field(
        default={},
        description="Hyperparameters and options that go by another name there, or are made of others: "
        "{beta1: 'betas[0]', momentum: '1 - decay'}. Those that aren't mentioned have the same name.",
    )
    lacks: list[Line] = Field(
        default=[], description="Hyperparameters and options that aren't there, at their defaults here."
    )
    note: Line | None = Field(default=None, description="In what else it differs, and what to mind.")


class SpecDocument(_Document):
    """An optimizer for solvergen: what it is told, what it remembers, and how it updates a parameter."""

    name: Annotated[str, _schema_name(SPEC_NAME_PATTERN)] = Field(
        description="Name of the optimizer and of the module that is generated, in small letters."
    )
    class_name: Annotated[str, _schema_name(CLASS_NAME_PATTERN)] | None = Field(
        default=None, description="Name of the generated class; by default the name in CamelCase."
    )
    extends: Annotated[str, _schema_name(SPEC_NAME_PATTERN)] | None = Field(
        default=None,
        description="Name of the spec that this one is derived from: one beside it, or one that comes "
        "with solvergen.",
    )
    of: Annotated[str, _schema_name(SPEC_NAME_PATTERN)] | None = Field(
        default=None, description="Name of the spec that is transformed, found as under 'extends'."
    )
    transform: list[Line] | None = Field(
        default=None,
        description="What is applied to that spec, one after the other: cautious, lookahead ...",
        min_length=1,
        max_length=MAX_BASES,
    )
    summary: Line = Field(description="What it is, in one sentence.")
    description: Line | None = Field(default=None, description="More about it, in paragraphs.")
    reference: ReferenceDocument | None = Field(default=None, description="Where it was published.")
    references: list[ReferenceDocument] = Field(default=[], description="Where it was published.")
    conventions: list[Line] = Field(
        default=[],
        description="Choices in which implementations of the rule differ, and which one this is.",
    )
    counterparts: list[CounterpartDocument] = Field(
        default=[],
        description="The same rule in other libraries, and what its arguments are called there.",
    )
    hyperparameters: dict[Name, HyperparameterDocument] = Field(
        default={},
        description="Numbers that the caller chooses, by name.",
        max_length=MAX_HYPERPARAMETERS,
    )
    options: dict[Name, OptionDocument] = Field(
        default={},
        description="Switches that are fixed when an optimizer is made, by name.",
        max_length=MAX_OPTIONS,
    )
    state: dict[Name, StateDocument] = Field(
        default={},
        description="What is remembered of each parameter, by name.",
        max_length=MAX_STATE,
    )
    constraints: list[ConstraintDocument] = Field(
        default=[],
        description="What must hold between hyperparameters and options.",
        max_length=MAX_CONSTRAINTS,
    )
    penalty: Line | None = Field(
        default=None,
        description="A term of the loss, in param and hyperparameters, whose derivative is added to the "
        "gradient: l1*abs(param) + l2/2*param**2.",
    )
    project: Line | None = Field(
        default=None,
        description="What becomes of the parameter's new value, in param and hyperparameters: max(param, 0).",
    )
    tableau: TableauDocument | None = Field(
        default=None, description="Instead of 'update': a Runge-Kutta method, from which it follows."
    )
    change: list[ChangeDocument] | None = Field(
        default=None,
        description="What becomes of the equations of the spec that is extended.",
        min_length=1,
        max_length=MAX_STATEMENTS,
    )
    update: list[
        Annotated[
            TextBranch | Annotated[StatementDocument, Tag(OTHER_TAG)],
            Discriminator(_kind),
        ]
    ] = Field(
        description="The equations, in order: 'target = expression', or {when: condition, do: equations}.",
        min_length=1,
        max_length=MAX_STATEMENTS,
    )
