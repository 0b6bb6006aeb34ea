"""What a spec says, once it has been read: frozen, typed, compared by meaning.

Places in the file, and the file itself, take no part in comparison: two specs are equal if they
say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from solvergen.errors import Location
from solvergen.spec.names import LINES
from solvergen.spec.source import Source, Text

__all__ = [
    "COPY_OF_PARAM",
    "Constraint",
    "Counterpart",
    "Hyperparameter",
    "Option",
    "Reference",
    "Source",
    "Spec",
    "State",
    "Statement",
    "Text",
]

COPY_OF_PARAM = "param"
"""As a state's ``init``: it begins as a copy of the parameter."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a rule was published."""

    title: str
    authors: str | None = None
    year: str | None = None
    arxiv: str | None = None
    doi: str | None = None
    url: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Hyperparameter:
    """A number that the caller chooses.

    ``min`` and ``max`` belong to the range, ``above`` and ``below`` don't; bounds that the spec leaves
    out are None. ``integer``: whole numbers only.
    """

    name: str
    default: float
    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None
    integer: bool = False
    doc: str = ""
    location: Location | None = field(default=None, compare=False, repr=False)

    @property
    def range_text(self) -> str:
        """The range in words: ``at least 0 and below 1``; empty if there is none."""
        bounds = (("at least", self.min), ("above", self.above), ("at most", self.max), ("below", self.below))
        words = " and ".join(f"{word} {bound:.17g}" for word, bound in bounds if bound is not None)
        if self.integer:
            return f"a whole number {words}".rstrip()
        return words


@dataclass(frozen=True, slots=True)
class Option:
    """A switch that is fixed when an optimizer is made.

    ``default`` is a bool, or a condition on hyperparameters: then the option is *derived*, decided
    from their values when the optimizer is made unless the caller says otherwise.
    """

    name: str
    default: bool | Text = False
    doc: str = ""
    location: Location | None = field(default=None, compare=False, repr=False)

    @property
    def is_derived(self) -> bool:
        """Is it decided from the hyperparameters unless the caller says otherwise?"""
        return isinstance(self.default, Text)


@dataclass(frozen=True, slots=True)
class State:
    """What a rule remembers of each parameter from step to step.

    ``shape`` is ``"param"`` (one number an element), ``"scalar"`` (one a parameter), ``"shared"`` (one
    for the whole optimizer), or one of ``rows``, ``columns``, ``matrices``, ``leading``, ``trailing`` and
    ``blocks`` (one for each of these lines of the parameter). ``init`` is a number, an expression in
    hyperparameters and options, or exactly ``param``: a copy of the parameter. ``when``: the condition on
    options under which it exists.
    ``output``: it is there for the caller to read, and needs no effect on the parameter.
    ``dtype``: of what is a copy of the parameter in another storage type ("bfloat16" or "float16"): it is
    written and never read, and no snapshot has it. Only wrapped rules have any.
    """

    name: str
    init: float | Text = 0.0
    shape: str = "param"
    when: Text | None = None
    output: bool = False
    doc: str = ""
    dtype: str = ""
    location: Location | None = field(default=None, compare=False, repr=False)

    @property
    def is_scalar(self) -> bool:
        """Is it one number a parameter?"""
        return self.shape == "scalar"

    @property
    def is_shared(self) -> bool:
        """Is it one number for the whole optimizer?"""
        return self.shape == "shared"

    @property
    def is_of_lines(self) -> bool:
        """Is it one number for each line of the parameter?"""
        return self.shape in LINES

    @property
    def copies_param(self) -> bool:
        """Does it begin as a copy of the parameter?"""
        return isinstance(self.init, Text) and self.init.text == COPY_OF_PARAM


@dataclass(frozen=True, slots=True)
class Statement:
    """One equation, ``target = expression``, and the condition on options under which it is there.

    ``wraps``: it is no equation of the spec's own, but of a section around them, which may change ``grad``.
    """

    equation: Text
    when: Text | None = None
    wraps: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on hyperparameters and options that must hold (``when`` another one does).

    Checked when an optimizer is made and whenever a hyperparameter changes; ``message`` is what
    the user then reads.
    """

    that: Text
    message: str
    when: Text | None = None


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The same rule in another library: ``name`` is the path of its class or function.

    ``maps`` are pairs of a hyperparameter or option here and what it is there, an argument or an
    expression in arguments; ``lacks`` are those that it hasn't. All others have the same name.
    """

    library: str
    name: str
    maps: tuple[tuple[str, str], ...] = ()
    lacks: tuple[str, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Spec:
    """An optimizer. ``path`` is the file as given, with forward slashes.

    ``digest`` is the SHA-256 of what the spec means (``digest.py``): prose, comments, spacing and
    the order of keys leave it as it is. It identifies the rule in snapshots.

    ``penalty`` and ``project`` are to be put among the equations yet (``frontend/penalties.py``).

    ``writes_grad``: the condition on options under which what ``grad`` is at the end goes into the gradient's
    buffer. Only wrapped rules have one.

    ``base``: the spec that it was derived from, if it was; what it has of it is here like all else,
    at ``base_location``. ``transforms`` are to be applied yet (``frontend/transforms``).

    Of a file with errors there may be a spec to look further at: ``incomplete`` are the sections of
    which something was left out ("" for one that isn't known), ``unclear`` names that may be
    declared or assigned there. Both are empty in a spec without errors.
    """

    name: str
    class_name: str
    summary: str
    description: str
    references: tuple[Reference, ...]
    hyperparameters: tuple[Hyperparameter, ...]
    options: tuple[Option, ...]
    state: tuple[State, ...]
    update: tuple[Statement, ...]
    constraints: tuple[Constraint, ...]
    conventions: tuple[str, ...]
    counterparts: tuple[Counterpart, ...]
    digest: str
    path: str = field(compare=False)
    source: Source = field(compare=False, repr=False)
    location: Location = field(compare=False, repr=False)
    base: str = field(default="", compare=False)
    base_location: Location | None = field(default=None, compare=False, repr=False)
    penalty: Text | None = field(default=None, compare=False, repr=False)
    project: Text | None = field(default=None, compare=False, repr=False)
    transforms: tuple[Text, ...] = field(default=(), compare=False, repr=False)
    incomplete: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    unclear: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    writes_grad: Text | None = field(default=None, compare=False, repr=False)

    @property
    def option_names(self) -> tuple[str, ...]:
        """Names of the options, in order."""
        return tuple(option.name for option in self.options)

    def line_of(self, location: Location) -> str:
        """The line of the file that ``location`` points into."""
        return self.source.line_of(location)
