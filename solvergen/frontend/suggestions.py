"""What the author probably meant: near names, and other libraries' spellings."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from solvergen.ir.functions import FUNCTIONS
from solvergen.ir.reductions import NDIM, REDUCTIONS

_FUNCTIONS_ELSEWHERE = {
    "pow": "powers are written a**b",
    "ipow": "powers are written a**b",
    "power": "powers are written a**b",
    "square": "write x**2",
    "sqr": "write x**2",
    "rsqrt": "write 1/sqrt(x)",
    "reciprocal": "write 1/x",
    "fabs": "it is called abs",
    "absolute": "it is called abs",
    "sgn": "it is called sign",
    "signum": "it is called sign",
    "maximum": "it is called max",
    "fmax": "it is called max",
    "minimum": "it is called min",
    "fmin": "it is called min",
    "ln": "it is called log",
    "clamp": "it is called clip",
    "select": "it is called where",
    "ite": "it is called where",
    "Piecewise": "write where(condition, a, b), or a if condition else b",
    "isnan": "write x != x",
    "fma": "write a*b + c: products and sums are rounded one by one",
    "mod": "write a % b",
    "fmod": "write a % b (its sign is that of b)",
    "round": "write floor(x + 0.5)",
    "ceil": "write -floor(-x)",
    "trunc": "write sign(x)*floor(abs(x))",
    "float": "every number is one already",
    "int": "write floor(x)",
    "sigmoid": "write 1/(1 + exp(-x))",
    "relu": "write max(x, 0)",
    "norm": "write norm2(x), norm1(x) or max_abs(x)",
    "l2norm": "it is called norm2",
    "average": "it is called mean",
    "avg": "it is called mean",
    "inner": "it is called dot",
    "nnz": "it is called count_nonzero",
}

_NAMES_ELSEWHERE = {
    "g": "grad",
    "gradient": "grad",
    "grads": "grad",
    "dw": "grad",
    "p": "param",
    "w": "param",
    "x": "param",
    "theta": "param",
    "weight": "param",
    "params": "param",
    "parameter": "param",
    "step": "t",
    "steps": "t",
    "iter": "t",
    "iteration": "t",
    "alpha": "lr",
    "eta": "lr",
    "learning_rate": "lr",
    "epsilon": "eps",
    "wd": "weight_decay",
    "lam": "weight_decay",
}

_VALUES_ELSEWHERE = {
    "zeros": "write 0",
    "zeros_like": "write 0",
    "ones": "write 1",
    "ones_like": "write 1",
    "true": "write 1 if a number is meant; conditions are options and comparisons",
    "false": "write 0 if a number is meant; conditions are options and comparisons",
}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` that ``name`` is most likely a slip of, if any is near."""
    candidates = list(dict.fromkeys(known))
    for candidate in candidates:
        if candidate.lower() == name.lower():
            return candidate
    close = get_close_matches(name, candidates, n=1, cutoff=0.6)
    return close[0] if close else None


def instead_of_function(name: str) -> str:
    """A hint for a call of an unknown function."""
    if name in _FUNCTIONS_ELSEWHERE:
        return _FUNCTIONS_ELSEWHERE[name]
    near = nearest(name, (*FUNCTIONS, *REDUCTIONS, NDIM))
    if near is not None:
        return f"did you mean '{near}'?"
    return f"the functions are {', '.join((*FUNCTIONS, *REDUCTIONS))}; a product is written {name}*(...)"


def instead_of_name(name: str, known: Iterable[str]) -> str | None:
    """A hint for an unknown name among ``known`` ones."""
    candidates = tuple(known)
    near = nearest(name, candidates)
    usual = _NAMES_ELSEWHERE.get(name)
    if usual in candidates and (near is None or len(name) == 1):
        near = usual
    if near is not None:
        return f"did you mean '{near}'?"
    if name in FUNCTIONS or name in REDUCTIONS:
        return f"{name} is a function: call it"
    return _VALUES_ELSEWHERE.get(name)
