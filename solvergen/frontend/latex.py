r"""Equations as LaTeX, grouped as they are written: ``beta1*m`` becomes ``\beta_{1} m``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from solvergen.ir.nodes import (
    Binary,
    Call,
    Compare,
    Expression,
    Extent,
    GradientAt,
    Logic,
    Name,
    Number,
    Reduce,
    Round,
    Stored,
    Unary,
)
from solvergen.ir.program import Program
from solvergen.ir.text import number_text

_GREEK = frozenset(
    (
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "mu", "nu"),
        *("xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta"),
        *("Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega"),
    )
)
_SPELT = {"eps": r"\epsilon", "lam": r"\lambda", "lamda": r"\lambda", "varepsilon": r"\varepsilon"}
_ACCENTS = ("hat", "bar", "tilde", "dot")
_PREDECLARED = {"param": r"\theta", "grad": "g"}
_COMPARISONS = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "==": "=", "!=": r"\ne"}

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(1, 10)
_BINDING = {"or": _OR, "and": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "%": _PRODUCT}


def name_latex(name: str) -> str:
    r"""A name by itself: Greek letters and single letters with subscripts and accents, words upright.

    ``beta1`` is ``\beta_{1}``, ``m_hat`` is ``\hat{m}``, ``weight_decay`` is ``\mathrm{weight\_decay}``.
    """
    parts = name.split("_")
    accent = ""
    if len(parts) > 1 and parts[-1] in _ACCENTS:
        accent = parts.pop()
    matched = re.fullmatch(r"([A-Za-z]+?)([0-9]*)", parts[0])
    letter = _letter(matched[1]) if matched else None
    if matched is None or letter is None:
        return rf"\mathrm{{{_escape(name)}}}"
    base = rf"\{accent}{{{letter}}}" if accent else letter
    subscripts = ([matched[2]] if matched[2] else []) + [_subscript(part) for part in parts[1:]]
    return f"{base}_{{{', '.join(subscripts)}}}" if subscripts else base


def _letter(word: str) -> str | None:
    if word in _SPELT:
        return _SPELT[word]
    if word in _GREEK:
        return f"\\{word}"
    return word if len(word) == 1 else None


def _subscript(part: str) -> str:
    if part.isdigit():
        return part
    return _letter(part) or rf"\mathrm{{{_escape(part)}}}"


def _escape(name: str) -> str:
    return name.replace("_", r"\_")


def names_latex(names: Iterable[str]) -> dict[str, str]:
    r"""All names of a program, no two alike.

    ``param`` is ``\theta`` and ``grad`` is ``g`` where those are free.
    """
    all_names = list(dict.fromkeys(names))
    result = {name: _PREDECLARED.get(name) or name_latex(name) for name in all_names}
    for name in all_names:
        alike = [other for other in all_names if result[other] == result[name]]
        if len(alike) > 1:
            # Those that need no standing in for keep their letter, if it is one alone.
            proper = [other for other in alike if other not in _PREDECLARED]
            for other in alike if len(proper) > 1 else set(alike) - set(proper):
                result[other] = rf"\mathrm{{{_escape(other)}}}"
    return result


def expression_latex(expression: Expression, names: Mapping[str, str] | None = None) -> str:
    """``expression`` in mathematical notation; ``names`` as ``names_latex`` gives them."""
    return _Printer(names or {}).text(expression)[0]


def program_latex(program: Program) -> str:
    """The update of ``program`` as one ``aligned`` environment, an equation a line. Ends with a newline."""
    names = names_latex(symbol.name for symbol in program.symbols)
    printer = _Printer(names)
    lines = []
    for statement in program.statements:
        line = rf"{names[statement.target]} &\leftarrow {printer.text(statement.value)[0]}"
        if not statement.guard.is_always:
            when = statement.guard.text(
                conjunction=r" \land ", disjunction=r" \lor ", negation=r"\lnot ", name=r"\mathrm{{{}}}"
            )
            line += rf" && \text{{if }} {_escape(when)}"
        lines.append(line)
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}\n"


class _Printer:
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def text(self, node: Expression) -> tuple[str, int]:
        """The LaTeX of ``node`` and how tightly its outermost operator binds."""
        if isinstance(node, Number):
            return _number(node)
        if isinstance(node, Name):
            return self.names.get(node.name) or name_latex(node.name), _ATOM
        if isinstance(node, Unary):
            if node.op == "not":
                return rf"\lnot {self.at_least(node.operand, _ATOM)}", _NOT
            return f"-{self.at_least(node.operand, _PRODUCT)}", _SIGN
        if isinstance(node, Binary):
            return self.binary(node)
        if isinstance(node, Logic):
            binding = _BINDING[node.op]
            op = r"\land" if node.op == "and" else r"\lor"
            return (
                f"{self.at_least(node.left, binding)} {op} {self.at_least(node.right, binding + 1)}",
                binding,
            )
        if isinstance(node, Compare):
            sides = self.at_least(node.left, _SUM), self.at_least(node.right, _SUM)
            return f"{sides[0]} {_COMPARISONS[node.op]} {sides[1]}", _COMPARE
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, Reduce):
            return self.reduction(node), _ATOM
        if isinstance(node, Extent):
            return r"\operatorname{ndim}\left(\theta\right)", _ATOM
        if isinstance(node, GradientAt):
            return rf"\nabla f\left({self.text(node.at)[0]}\right)", _ATOM
        assert isinstance(node, (Round, Stored))
        return self.text(node.operand)

    def at_least(self, node: Expression, binding: int) -> str:
        """``node``, in parentheses if it binds less tightly than ``binding``."""
        text, own = self.text(node)
        return text if own >= binding else rf"\left({text}\right)"

    def binary(self, node: Binary) -> tuple[str, int]:
        left, right = node.left, node.right
        if node.op == "/":
            return rf"\frac{{{self.text(left)[0]}}}{{{self.text(right)[0]}}}", _ATOM
        if node.op == "//":
            fraction = rf"\frac{{{self.text(left)[0]}}}{{{self.text(right)[0]}}}"
            return rf"\left\lfloor {fraction} \right\rfloor", _ATOM
        if node.op == "**":
            return self.power(left, right)
        binding = _BINDING[node.op]
        if node.op == "*":
            # A number after a factor would read as one with it, a sign as a difference.
            after = self.at_least(right, binding + 1)
            if after.startswith("-"):
                after = rf"\left({after}\right)"
            return rf"{self.at_least(left, binding)}{_times(after)}{after}", binding
        after = self.at_least(right, binding + 1)
        if after.startswith("-"):
            after = rf"\left({after}\right)"
        op = r"\bmod" if node.op == "%" else node.op
        return f"{self.at_least(left, binding)} {op} {after}", binding

    def power(self, base: Expression, exponent: Expression) -> tuple[str, int]:
        raised = self.at_least(base, _ATOM)
        if isinstance(base, (Binary, Call)) and not raised.startswith(r"\left"):
            raised = rf"\left({raised}\right)"
        return f"{raised}^{{{self.text(exponent)[0]}}}", _POWER

    def call(self, node: Call) -> tuple[str, int]:
        name, args = node.function, node.args
        if name in ("pow", "ipow"):
            return self.power(*args)
        texts = [self.text(arg)[0] for arg in args]
        if name == "sqrt":
            return rf"\sqrt{{{texts[0]}}}", _ATOM
        if name == "cbrt":
            return rf"\sqrt[3]{{{texts[0]}}}", _ATOM
        if name == "abs":
            return rf"\left|{texts[0]}\right|", _ATOM
        if name == "floor":
            return rf"\left\lfloor {texts[0]} \right\rfloor", _ATOM
        if name == "where":
            cases = rf"{texts[1]} & \text{{if }} {texts[0]} \\ {texts[2]} & \text{{otherwise}}"
            return rf"\begin{{cases}} {cases} \end{{cases}}", _ATOM
        function = (
            rf"\{name}" if name in ("min", "max", "exp", "log", "tanh") else rf"\operatorname{{{name}}}"
        )
        return rf"{function}\left({', '.join(texts)}\right)", _ATOM

    def reduction(self, node: Reduce) -> str:
        """A norm, a product or a sum; with what it ranges over, if that isn't the tensor."""
        texts = [self.text(arg)[0] for arg in node.args]
        over = "all" if node.over_all else node.along
        everywhere = rf"\text{{{over}}}"
        if node.kind in _NORMS:
            index = ", ".join([_NORMS[node.kind], *([everywhere] if over else [])])
            return rf"\left\lVert {texts[0]} \right\rVert_{{{index}}}"
        below = f"_{{{everywhere}}}" if over else ""
        if node.kind == "dot":
            return rf"\left\langle {texts[0]}, {texts[1]} \right\rangle{below}"
        name = r"\operatorname{count\,nonzero}" if node.kind == "count_nonzero" else _OPERATORS[node.kind]
        return rf"{name}{below}\left({texts[0]}\right)"


_NORMS = {"norm2": "2", "norm1": "1", "max_abs": r"\infty"}
_OPERATORS = {"sum": r"\operatorname{sum}", "mean": r"\operatorname{mean}"}


def _times(after: str) -> str:
    return r" \cdot " if after[0].isdigit() else r" \, "


def _number(node: Number) -> tuple[str, int]:
    text = number_text(node)
    mantissa, _, exponent = text.partition("e")
    binding = _SIGN if text.startswith("-") else _ATOM
    if not exponent:
        return text, binding
    power = f"10^{{{int(exponent)}}}"
    if mantissa in ("1", "-1"):
        return mantissa[:-1] + power, min(binding, _POWER)
    return rf"{mantissa} \cdot {power}", _PRODUCT
