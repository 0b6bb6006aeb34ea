"""Which names a spec may give, and why it may not give others.

Names that SymPy, C or CUDA claim are usable: the printers rename them where they clash. Refused are
names that mean something already in the language itself, in Python, or in the generated class.
"""

from __future__ import annotations

import re

from solvergen.spec.limits import MAX_NAME

NAME_PATTERN = r"[A-Za-z][A-Za-z0-9_]*"
SPEC_NAME_PATTERN = r"[a-z][a-z0-9_]*"
CLASS_NAME_PATTERN = r"[A-Z][A-Za-z0-9_]*"
DOTTED_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"
RATIONAL_PATTERN = r"^\s*[+-]?[0-9]+(\s*/\s*[0-9]+)?\s*$"

PREDECLARED = {
    "param": "the parameter itself",
    "grad": "its gradient",
    "t": "the number of the update",
}
"""Names that every spec has without declaring them."""

FUNCTIONS = ("sqrt", "abs", "sign", "min", "max", "exp", "log", "tanh", "cbrt", "floor", "where", "clip")
"""The functions of the language; a test holds this to ``solvergen.ir.functions``, a layer above."""

REDUCTIONS = ("sum", "mean", "dot", "norm2", "norm1", "max_abs", "count_nonzero", "all")
"""The reductions and what they range over; a test holds this to ``solvergen.ir.reductions``."""

LINES = ("rows", "columns", "matrices", "leading", "trailing", "blocks")
"""What values can be for, between tensors and elements."""

EXTENTS = ("ndim",)
STATEMENTS = ("gradient",)
WRAPPERS_PREFIX = "wrap_"
WRAPPED_PREFIX = "wrapped_"
INTERNAL_FUNCTIONS = ("ipow", "pow")

PYTHON_KEYWORDS = (
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in",
    "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
)  # fmt: skip
"""Written out, so that a spec doesn't depend on the Python that compiles it."""

YAML_WORDS = ("true", "false", "null")

CONSTRUCTOR_NAMES = ("self", "super", "params", "blocks", "backend", "nonfinite", "wrappers")
"""Taken in ``__init__`` of the generated class."""

OPTIMIZER_ATTRIBUTES = (
    "averaged", "averages", "backend", "blocks", "check", "clip_norm", "constraint", "constraints",
    "decay_mult", "definition", "effective", "flush", "freeze", "from_config", "frozen", "get_config",
    "given_options", "group", "groups", "hyperparameters", "load", "load_state_dict", "lr_mult",
    "multipliers", "name", "names", "nonfinite", "options", "param", "params", "pending", "refresh_shadows",
    "restore", "save", "set", "shadows", "shared", "state", "state_dict", "step", "steps", "t", "unfreeze",
    "wrappers", "zero_grad",
)  # fmt: skip
"""Attributes of an optimizer and keys of its groups, beside which hyperparameters and options live."""

CLASS_NAMES_TAKEN = (
    "Any", "DEFINITION", "Definition", "False", "Hyperparameter", "None", "Optimizer", "Option", "Path",
    "Sequence", "Mapping", "State", "TYPE_CHECKING", "True",
)  # fmt: skip
"""Names that the generated modules give to something else."""


def problem_with_name(name: str) -> tuple[str, str] | None:
    """What keeps ``name`` from being the name of anything in a spec.

    Returns the code of the diagnostic and the reason as the end of a sentence, None if it is fine.
    """
    if not name:
        return "SG020", "a name can't be empty"
    if len(name) > MAX_NAME:
        return "SG020", f"a name has at most {MAX_NAME} characters"
    if not re.fullmatch(NAME_PATTERN, name, re.ASCII):
        if name.startswith("_"):
            return "SG020", "names that begin with _ belong to Python"
        return "SG020", "a name is made of the letters A to Z, digits and _, and begins with a letter"
    if name.lower().startswith("sg_"):
        return "SG021", "names that begin with sg_ belong to the generated kernels"
    if name in PREDECLARED:
        return "SG021", f"it means {PREDECLARED[name]} in every spec"
    if name in FUNCTIONS:
        return "SG021", "it is a function of the language"
    if name in REDUCTIONS:
        return "SG021", "it is a word of the language's reductions"
    if name in LINES:
        return "SG021", "it says along what a reduction goes"
    if name in EXTENTS:
        return "SG021", "it is a function of the language"
    if name.startswith(WRAPPERS_PREFIX):
        return "SG021", "names that begin with it belong to what wraps updates"
    if name in STATEMENTS:
        return "SG021", "it is a statement of the language"
    if name in INTERNAL_FUNCTIONS:
        return "SG021", "powers are written a**b, and this is what the compiler calls them"
    if name in PYTHON_KEYWORDS:
        return "SG021", "it is a keyword of Python, which equations and the generated classes are written in"
    if name.lower() in YAML_WORDS:
        return "SG021", "YAML takes it for a value wherever it isn't quoted"
    return None


def problem_with_argument(name: str) -> str | None:
    """What keeps ``name``, fine otherwise, from being a hyperparameter or an option."""
    if name in CONSTRUCTOR_NAMES:
        return "the constructor of the generated class has it already"
    if name in OPTIMIZER_ATTRIBUTES:
        return "every optimizer has an attribute or a group key of that name"
    return None


def problem_with_spec_name(name: str) -> tuple[str, str] | None:
    """What keeps ``name`` from being the name of a spec: it becomes a folder and a Python module."""
    if re.fullmatch(NAME_PATTERN, name, re.ASCII) and not re.fullmatch(SPEC_NAME_PATTERN, name, re.ASCII):
        return "SG020", "it becomes a module, so it is written in small letters, digits and _"
    if name.startswith(WRAPPED_PREFIX):
        return "SG021", f"names that begin with {WRAPPED_PREFIX} are those of rules with what wraps them"
    return problem_with_name(name)


def problem_with_class_name(name: str) -> tuple[str, str] | None:
    """What keeps ``name`` from being the name of the generated class."""
    if len(name) > MAX_NAME:
        return "SG020", f"a name has at most {MAX_NAME} characters"
    if not re.fullmatch(CLASS_NAME_PATTERN, name, re.ASCII):
        return "SG020", "it is made of the letters A to Z, digits and _, and begins with a capital"
    if name in CLASS_NAMES_TAKEN:
        return "SG021", "the generated modules need it for something else"
    return None


def class_name_of(name: str) -> str:
    """The class name of a spec that doesn't give one: ``rms_prop`` becomes ``RmsProp``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
