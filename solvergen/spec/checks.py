"""What must hold in a spec beyond its shape: one function a check, run over the tree.

The checks look at the tree and not at the finished model, so that they say what they can about a
file that has other mistakes too; values of the wrong kind are passed over, since ``structure.py``
has complained about them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from solvergen.errors import Diagnostic, Location
from solvergen.spec.core_schema import vanishes
from solvergen.spec.counterparts import check_counterparts
from solvergen.spec.limits import MAX_WHOLE
from solvergen.spec.names import (
    LINES,
    class_name_of,
    problem_with_argument,
    problem_with_class_name,
    problem_with_name,
    problem_with_spec_name,
)
from solvergen.spec.source import Source
from solvergen.spec.suggest import SWITCH_WORDS, as_name
from solvergen.spec.tree import Mapping, Node, Scalar, Sequence, shorten

NAMED_SECTIONS = ("hyperparameters", "options", "state")
_SINGULAR = {"hyperparameters": "hyperparameter", "options": "option", "state": "state"}
_NUMBERS = {"hyperparameters": ("default", "min", "max", "above", "below"), "state": ("init",)}
_Findings = Iterator[Diagnostic]


def check(tree: Mapping, source: Source) -> list[Diagnostic]:
    """Everything that the checks find."""
    return [diagnostic for one in CHECKS for diagnostic in one(tree, source)]


def check_spec_name(tree: Mapping, source: Source) -> _Findings:
    """The spec's name can be a module, and its class name a class."""
    name = tree.get("name")
    if isinstance(name, Scalar) and isinstance(name.value, str):
        problem = problem_with_spec_name(name.value)
        if problem is not None:
            code, reason = problem
            near = as_name(name.value.lower())
            usable = near is not None and problem_with_spec_name(near) is None
            hint = f"write {near}" if code == "SG020" and usable else None
            message = f"a spec can't be called '{shorten(name.value)}': {reason}"
            yield _found(source, code, message, name.location, hint)
            return
    given = tree.get("class_name")
    if isinstance(given, Scalar) and isinstance(given.value, str):
        problem = problem_with_class_name(given.value)
        if problem is not None:
            message = f"a class can't be called '{shorten(given.value)}': {problem[1]}"
            yield _found(source, problem[0], message, given.location)
    elif isinstance(name, Scalar) and isinstance(name.value, str):
        derived = class_name_of(name.value)
        problem = problem_with_class_name(derived)
        if problem is not None:
            message = f"the class of '{name.value}' would be called '{derived}': {problem[1]}"
            yield _found(source, problem[0], message, name.location, "give it another one: class_name: ...")


def check_names(tree: Mapping, source: Source) -> _Findings:
    """Hyperparameters, options and states have names that can be used in equations and classes."""
    for section, key, _ in _declarations(tree):
        name = key.text.text
        problem = problem_with_name(name)
        if problem is None and section != "state":
            reason = problem_with_argument(name)
            problem = ("SG021", reason) if reason else None
        if problem is None:
            continue
        code, reason = problem
        near = as_name(name)
        if code == "SG021":
            hint: str | None = f"choose another name, such as {_another(name, section)}"
        else:
            hint = f"write {near}" if near and near != name and problem_with_name(near) is None else None
        message = f"{_article(_SINGULAR[section])} can't be called '{shorten(name)}': {reason}"
        yield _found(source, code, message, key.location, hint)


def check_unique_names(tree: Mapping, source: Source) -> _Findings:
    """A name means one thing, whatever section declares it. (Within one it is a repeated key.)"""
    first: dict[str, tuple[str, Scalar]] = {}
    declarations = sorted(_declarations(tree), key=lambda d: (d[1].location.line, d[1].location.column))
    for section, key, _ in declarations:
        name = key.text.text
        if name not in first:
            first[name] = (section, key)
            continue
        earlier, where = first[name]
        yield _found(
            source,
            "SG022",
            f"'{shorten(name)}' is already {_article(_SINGULAR[earlier])} (line {where.location.line})",
            key.location,
            "hyperparameters, options and state share one set of names; rename one of the two",
        )


def check_ranges(tree: Mapping, source: Source) -> _Findings:
    """Ranges hold some number, and the default is one of them."""
    for key, entry in _section(tree, "hyperparameters"):
        if not isinstance(entry, Mapping):
            continue
        name = key.text.text
        for inclusive, exclusive in (("min", "above"), ("max", "below")):
            extra = entry.key(exclusive)
            if entry.get(inclusive) is not None and extra is not None:
                message = f"{shorten(name)} has both '{inclusive}' and '{exclusive}'"
                yield _found(source, "SG015", message, extra.location, "keep the one that decides")
        whole = _bool(entry.get("integer"))
        bounds = {bound: _number(entry.get(bound)) for bound in ("min", "max", "above", "below")}
        emptiness = _empty_range(bounds, whole)
        if emptiness is not None:
            message = f"no number is in the range of {shorten(name)}: {emptiness}"
            yield _found(source, "SG025", message, key.location)
            continue
        default = entry.get("default")
        value = _number(default)
        if default is None or value is None:
            continue
        reason = _outside(value, bounds, whole)
        if reason is None and whole and abs(value) > MAX_WHOLE:
            reason = "is beyond 2**53, where floats skip whole numbers"
        if reason is not None:
            yield _found(
                source,
                "SG024",
                f"the default of {shorten(name)} is outside its range: {_show(value)} {reason}",
                default.location,
            )


def check_vanishing_numbers(tree: Mapping, source: Source) -> _Findings:
    """A number that isn't 0 doesn't become 0 for being too small."""
    for section, keys in _NUMBERS.items():
        for key, entry in _section(tree, section):
            for field in keys:
                node = entry.get(field) if isinstance(entry, Mapping) else None
                if isinstance(node, Scalar) and node.plain and vanishes(node.text.text):
                    message = f"{section}.{shorten(key.text.text)}.{field}: {shorten(node.text.text)}"
                    yield _found(
                        source,
                        "SG013",
                        f"{message} is too small for a float64",
                        node.location,
                        "it would become 0; write 0 if that is meant",
                    )


def check_option_defaults(tree: Mapping, source: Source) -> _Findings:
    """``default: no`` is text in YAML 1.2; as a condition it would be a name nobody meant."""
    for key, entry in _section(tree, "options"):
        default = entry.get("default") if isinstance(entry, Mapping) else None
        if isinstance(default, Scalar) and isinstance(default.value, str):
            word = default.value.strip().lower()
            if word in SWITCH_WORDS:
                meant = "true" if word in ("y", "yes", "on", "true") else "false"
                where = f"options.{shorten(key.text.text)}.default"
                message = (
                    f"{where} must be true, false or a condition, not the text '{default.value.strip()}'"
                )
                yield _found(source, "SG012", message, default.location, f"write {meant}, without quotes")


def check_scalar_copies(tree: Mapping, source: Source) -> _Findings:
    """Only a state of the parameter's shape can begin as a copy of the parameter."""
    for key, entry in _section(tree, "state"):
        if not isinstance(entry, Mapping):
            continue
        init, shape = entry.get("init"), entry.get("shape")
        if (
            _is_text(init, "param")
            and isinstance(shape, Scalar)
            and shape.value in ("scalar", "shared", *LINES)
        ):
            assert init is not None
            yield _found(
                source,
                "SG027",
                f"{shorten(key.text.text)} isn't shaped as the parameter, so it can't begin as a copy of it",
                init.location,
                f"remove 'shape: {shape.value}', or give a number",
            )


def check_references(tree: Mapping, source: Source) -> _Findings:
    """References are given in one place, and addresses are addresses."""
    single, several = tree.key("reference"), tree.key("references")
    if single is not None and several is not None:
        message = "there is both 'reference' and 'references'"
        yield _found(source, "SG015", message, single.location, "put it into the list 'references'")
    for entry in _items(tree.get("reference"), tree.get("references")):
        url = entry.get("url") if isinstance(entry, Mapping) else None
        if not isinstance(url, Scalar) or not isinstance(url.value, str):
            continue
        if not url.value.startswith(("https://", "http://")) or len(url.value.split()) != 1:
            message = f"'{shorten(url.value)}' is no address"
            yield _found(source, "SG014", message, url.location, "it begins with https://")


CHECKS: tuple[Callable[[Mapping, Source], _Findings], ...] = (
    check_spec_name,
    check_names,
    check_unique_names,
    check_ranges,
    check_vanishing_numbers,
    check_option_defaults,
    check_scalar_copies,
    check_references,
    check_counterparts,
)


def _found(source: Source, code: str, message: str, place: Location, hint: str | None = None) -> Diagnostic:
    return Diagnostic(code, message, place, hint, source.line_of(place))


def _section(tree: Mapping, section: str) -> tuple[tuple[Scalar, Node], ...]:
    node = tree.get(section)
    return node.entries if isinstance(node, Mapping) else ()


def _declarations(tree: Mapping) -> Iterator[tuple[str, Scalar, Node]]:
    """(section, name, what is said of it)."""
    for section in NAMED_SECTIONS:
        for key, node in _section(tree, section):
            yield section, key, node


def _items(single: Node | None, several: Node | None) -> tuple[Node, ...]:
    first = (single,) if single is not None else ()
    return (*first, *several.items) if isinstance(several, Sequence) else first


def _is_text(node: Node | None, text: str) -> bool:
    return isinstance(node, Scalar) and node.value == text


def _number(node: Node | None) -> float | None:
    """The finite number that ``node`` holds, None if it holds none."""
    if isinstance(node, Scalar) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return float(node.value) if math.isfinite(node.value) else None
    return None


def _bool(node: Node | None) -> bool:
    return isinstance(node, Scalar) and node.value is True


def _empty_range(bounds: dict[str, float | None], whole: bool) -> str | None:
    """Why no number satisfies the bounds, None if one does."""
    low = max((b for b in (bounds["min"], bounds["above"]) if b is not None), default=-math.inf)
    high = min((b for b in (bounds["max"], bounds["below"]) if b is not None), default=math.inf)
    open_low, open_high = bounds["above"] == low, bounds["below"] == high
    if low > high or (low == high and (open_low or open_high)):
        words = {"min": "at least", "above": "above", "max": "at most", "below": "below"}
        return " and ".join(f"{words[key]} {_show(b)}" for key, b in bounds.items() if b is not None)
    if whole and math.isfinite(low) and math.isfinite(high):
        first = math.floor(low) + 1 if open_low or low != math.floor(low) else math.floor(low)
        if first > high or (first == high and open_high):
            return "no whole number lies between its bounds"
    return None


def _outside(value: float, bounds: dict[str, float | None], whole: bool) -> str | None:
    """Why ``value`` is out of the range, None if it isn't."""
    low, high, above, below = bounds["min"], bounds["max"], bounds["above"], bounds["below"]
    if low is not None and value < low:
        return f"is less than {_show(low)}"
    if high is not None and value > high:
        return f"is more than {_show(high)}"
    if above is not None and value <= above:
        return f"isn't above {_show(above)}"
    if below is not None and value >= below:
        return f"isn't below {_show(below)}"
    if whole and value != math.floor(value):
        return "isn't a whole number"
    return None


def _show(number: float) -> str:
    """The shortest text that reads back as ``number``, without a needless ``.0``."""
    return repr(number).removesuffix(".0")


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


_BETTER_NAMES = {
    "lambda": "lam",
    "step": "interval",
    "steps": "interval",
    "name": "label",
    "t": "count",
    "grad": "g",
    "param": "average",
    "mean": "average",
    "state": "memory",
}


def _another(name: str, section: str) -> str:
    """A name near ``name`` that isn't taken."""
    if name.lower().startswith("sg_"):
        return as_name(name) or "x"
    if name == "lambda" and section == "hyperparameters":
        return "weight_decay"
    return _BETTER_NAMES.get(name, f"{name.lower()}_value")
