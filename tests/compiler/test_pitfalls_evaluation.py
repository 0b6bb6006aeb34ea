"""Nothing in a spec is ever evaluated, and no text takes long to refuse (pitfalls 4 and 16)."""

from __future__ import annotations

import time

import pytest

from solvergen.compiler import check
from tests.support.rules import spec_text

PAYLOADS = [
    "__import__('os').system('touch {file}')",
    "open('{file}', 'w')",
    "print(1, file=open('{file}', 'w'))",
    "exec(\"open('{file}', 'w')\")",
    "eval(\"open('{file}', 'w')\")",
    "().__class__.__base__.__subclasses__()",
    "[x for x in ().__class__.__base__.__subclasses__()]",
    "(lambda: open('{file}', 'w'))()",
    "(y := open('{file}', 'w'))",
    "f\"{{open('{file}', 'w')}}\"",
    "grad.__class__",
    "grad[0]",
    "getattr(grad, 'x')",
    "Symbol('x')",
    "{{open('{file}', 'w')}}",
    "breakpoint()",
    "exit()",
]


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("place", ["equation", "when", "default", "init", "that"])
def test_code_is_refused_and_not_run(place, payload, tmp_path):
    file = tmp_path / "must_not_appear"
    code = payload.format(file=file).replace("'", "''")
    equation = (
        f"- 'param = param - lr*({code})'" if place == "equation" else "- param = param - lr*(grad + m)"
    )
    when = f"- {{when: '{code}', do: param = 2*param}}\n" if place == "when" else ""
    text = spec_text(
        f"- m = grad\n{when}{equation}",
        options=f"on: {{default: '{code}'}}" if place == "default" else "",
        state=f"m: {{init: '{code}'}}" if place == "init" else "m: {init: 0}",
    )
    if place == "that":
        text = text.replace("update:", f"constraints:\n  - {{that: '{code}', message: no}}\nupdate:")
    path = tmp_path / "rule.yaml"
    path.write_text(text, encoding="utf-8")
    found = check([path])
    assert found.failed
    assert all(d.code.startswith("SG") and d.location.line > 1 for d in found.diagnostics)
    assert not file.exists()


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9",
        "9**9**9**9**9",
        "(((9**9)**9)**9)**9",
        "2**(2**(2**(2**(2**2))))",
        "exp(exp(exp(exp(9))))",
        "10**400",
        "-9**9**9",
        "1e308*10",
        "9**-9**9**9",
    ],
)
def test_towers_of_powers_do_not_hang(expression, tmp_path):
    path = tmp_path / "rule.yaml"
    path.write_text(spec_text(f"param = param - lr*({expression})*grad"), encoding="utf-8")
    start = time.process_time()
    codes = {d.code for d in check([path]).diagnostics}
    assert time.process_time() - start < 1
    assert codes == {"SG088"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("param = param^2", "SG044"),
        ("param = 2param", "SG047"),
        ("param = x = 2", "SG053"),
        ("param = 'x=2'", "SG048"),
        ("param =", "SG040"),
        ("param = param, grad", "SG057"),
        ("param = param!", "SG044"),
        ("param = True + 1", "SG049"),
        ("param = round(param)", "SG054"),
        ("param = foo(param)", "SG054"),
        ("param = param(grad)", "SG054"),
        ("param = lr param", "SG047"),
        ("param = lambda x: x", "SG049"),
        ("param = (param", "SG051"),
        ("param = αβ", "SG043"),
        ("param = ｘ", "SG043"),
        ("param = 1_0*grad", "SG045"),
        ("param = 0x1p3", "SG045"),
        ("param = .5.", "SG045"),
        ("param += grad", "SG044"),
        ("param <- grad", "SG053"),
        ("param: grad", "SG044"),
        ("param", "SG053"),
    ],
)
def test_small_traps_of_parsers(text, code, tmp_path):
    path = tmp_path / "rule.yaml"
    path.write_text(spec_text(f'- "{text}"'), encoding="utf-8")
    found = check([path]).diagnostics
    assert [d.code for d in found] == [code]
    assert found[0].location.line == 6
    assert found[0].hint


def test_specs_made_to_be_slow_are_not(tmp_path):
    """Types that settle backwards through a long chain, and conditions over ten options."""
    chain = [f"x{i} = 1" for i in range(200)] + [f"x{i} = x{i + 1}*lr" for i in range(199)] + ["x199 = grad"]
    total = " + ".join(f"x{i}" for i in range(80))
    conditions = [f"o{i} and not o{(i + 1) % 10} or o{(i + 3) % 10}" for i in range(10)]
    whens = [f"- {{when: '{condition}', do: param = 2*param}}" for condition in conditions]
    path = tmp_path / "rule.yaml"
    update = "\n".join([*chain, f"param = param - lr*({total})", *whens])
    options = "\n".join(f"o{i}: {{default: false}}" for i in range(10))
    path.write_text(spec_text(update, options=options), encoding="utf-8")
    start = time.process_time()
    assert not check([path]).failed
    assert time.process_time() - start < 10
