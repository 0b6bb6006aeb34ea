"""Names that SymPy, Python, C or CUDA claim: usable, or refused by name and line (pitfalls 1 to 3)."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.compiler import check
from solvergen.spec.names import PYTHON_KEYWORDS
from tests.compiler.stepping import agreed, rule, stepped
from tests.support.rules import spec_text


def words(text: str) -> list[str]:
    return text.split()


SYMPY = words("""
    E I pi oo nan zoo beta gamma zeta S N O Q Chi Lambda ff rf re im test deg degree var poly roots
    field ring div rem trace diff prod product LC LM LT GF Line Point Ray ln euler flatten Id
""")
PYTHON = words("""
    round pow iter id input hash next len vars dir bin hex print list dict str type match case
""")
C_AND_CUDA = words("""
    x i n idx tid blockIdx threadIdx blockDim j0 j1 y0 y1 gamma half float double double_ int unsigned
    signed long short char void const static inline restrict register volatile extern struct union enum
    switch default goto do auto bool complex NULL INFINITY NAN M_PI errno main stdin size_t uint32_t real
    row state param_ grad_ base count job chunks warp dim3 float4 min_ clock asm template typename new
    delete this private
""")
REFUSED = ["pow", "NULL", "state"]
"""What the compiler calls powers, a word of YAML, and an attribute of every optimizer."""


def declared(name: str) -> dict[str, str]:
    return {"hyperparameters": f"{name}: {{default: 1}}"}


@pytest.mark.parametrize("name", [*SYMPY, *PYTHON])
def test_a_hyperparameter_is_that_hyperparameter(name, tmp_path):
    text = spec_text(f"param = param - {name}*grad", **declared(name))
    path = tmp_path / "rule.yaml"
    path.write_text(text, encoding="utf-8")
    found = check([path]).diagnostics
    if found:
        # Refused, then, by its name and in its line.
        assert name in found[0].message
        assert found[0].location.line == 4
        return
    cls = rule(tmp_path, f"param = param - {name}*grad", **declared(name))
    param, _ = stepped(cls, [0.0], [2.0], backend="numpy")
    assert param[0] == -2.0  # E as Euler's number would give -5.43656


def test_what_is_refused_among_them_is_known(tmp_path):
    refused = []
    for name in [*SYMPY, *PYTHON, *C_AND_CUDA]:
        path = tmp_path / "rule.yaml"
        path.write_text(spec_text(f"param = param - {name}*grad", **declared(name)), encoding="utf-8")
        if check([path]).diagnostics:
            refused.append(name)
    assert refused == REFUSED


@pytest.mark.parametrize("kind", ["state", "hyperparameter", "temporary"])
@pytest.mark.parametrize("names", [SYMPY, PYTHON, C_AND_CUDA], ids=["sympy", "python", "c"])
def test_all_of_them_together_on_numpy_and_cpu(names, kind, tmp_path):
    names = [name for name in names if name not in REFUSED]
    for chunk in [names[i : i + 30] for i in range(0, len(names), 30)]:
        weights = {name: float(k + 1) for k, name in enumerate(chunk)}
        total = " + ".join(chunk)
        if kind == "hyperparameter":
            cls = rule(
                tmp_path,
                f"param = param - ({total})*grad",
                hyperparameters="\n".join(f"{n}: {{default: {w}}}" for n, w in weights.items()),
            )
        else:
            update = (
                "\n".join(f"{n} = {w}*grad" for n, w in weights.items()) + f"\nparam = param - lr*({total})"
            )
            state = "\n".join(f"{n}: {{init: 0}}" for n in chunk) if kind == "state" else ""
            cls = rule(tmp_path, update, hyperparameters="lr: {default: 1}", state=state)
        param, states = agreed(cls, np.zeros(19), np.ones(19))
        assert (param == -sum(weights.values())).all()
        for name, array in states.items():
            assert (array == weights[name]).all()


@pytest.mark.parametrize("name", PYTHON_KEYWORDS)
def test_keywords_of_python_give_one_clear_message(name, tmp_path):
    path = tmp_path / "rule.yaml"
    path.write_text(spec_text(f"param = param - {name}*grad"), encoding="utf-8")
    found = check([path]).diagnostics
    codes = {d.code for d in found if d.severity == "error"} - {"SG064"}
    expected = {"not": "SG052", "and": "SG052", "or": "SG052", "if": "SG052", "else": "SG052"}.get(
        name, "SG049"
    )
    assert codes == {expected}
    assert len([d for d in found if d.code == expected]) == 1
    path.write_text(spec_text("param = param - lr*grad", **declared(name)), encoding="utf-8")
    assert any(name in d.message and d.location.line == 4 for d in check([path]).diagnostics)


@pytest.mark.parametrize(
    "name", ["weight-decay", "m 1", "ünicode", "", "1m", "m.v", "__restrict__", "_C2", "m\u0301"]
)
def test_what_is_no_name_is_refused(name, tmp_path):
    path = tmp_path / "rule.yaml"
    quoted = f'"{name}"'
    path.write_text(spec_text("param = param - lr*grad", state=f"{quoted}: {{init: 0}}"), encoding="utf-8")
    found = [d for d in check([path]).diagnostics if d.severity == "error"]
    assert found
    assert found[0].location.line == 6


def test_a_minus_in_a_name_is_a_difference_of_known_names_only(tmp_path):
    path = tmp_path / "rule.yaml"
    path.write_text(spec_text("param = param - lr*weight-decay"), encoding="utf-8")
    assert [d.code for d in check([path]).diagnostics] == ["SG060", "SG060"]


def test_names_that_differ_only_in_case_or_by_an_underscore(tmp_path):
    names = ["double", "double_", "Double", "DOUBLE", "sg", "SG", "row", "row_", "x", "X", "m_new", "m"]
    update = "\n".join(f"{n} = {k + 1}*grad + 0*{n}" for k, n in enumerate(names))
    cls = rule(
        tmp_path,
        f"{update}\nparam = param - lr*({' + '.join(names)})",
        hyperparameters="lr: {default: 1}",
        state="\n".join(f"{n}: {{init: 0}}" for n in names),
    )
    param, states = agreed(cls, np.zeros(5), np.ones(5))
    assert [states[n][0] for n in names] == [k + 1 for k in range(len(names))]
    assert (param == -sum(range(1, len(names) + 1))).all()


def test_renaming_a_symbol_never_changes_a_bit(tmp_path):
    grad = np.random.default_rng(0).standard_normal(101).astype(np.float32)
    results = []
    for a, b, c in [("m", "v", "s"), ("z", "a", "E"), ("v", "m", "half")]:
        cls = rule(
            tmp_path,
            f"{a} = 0.9*{a} + 0.1*grad + grad*0.3\n{b} = {a} + {b} + grad\n{c} = sqrt({a}*{a} + {b}*{b})\n"
            f"param = param - lr*({a} + {b} + {c}*grad)",
            state=f"{a}: {{init: 0}}\n{b}: {{init: 0}}",
        )
        results.append(agreed(cls, grad[::-1], grad, steps=3)[0])
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()
