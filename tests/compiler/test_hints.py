"""What somebody is told who writes a spec as another language would have it."""

from __future__ import annotations

import pytest

from solvergen.compiler import check

RULE = """\
name: rule
summary: A rule.
hyperparameters:
  lr: {default: 0.1, min: 0}
options:
  nesterov: {default: false}
state:
  m: {init: 0}
update:
  - m = m + grad
  - {when: nesterov, do: "m = m + grad"}
  - param = param - lr*m
"""
GUARDED = '{when: nesterov, do: "m = m + grad"}'
OUTCOME = "conditions are options and comparisons"


@pytest.mark.parametrize(
    ("before", "after", "code", "hint"),
    [
        (GUARDED, "if nesterov: m = 2*m", "SG010", 'write {when: nesterov, do: "m = 2*m"}'),
        (GUARDED, "elif not nesterov: m = 2*m", "SG010", 'write {when: not nesterov, do: "m = 2*m"}'),
        (GUARDED, "else: m = 2*m", "SG010", 'write {when: not ..., do: "m = 2*m"}'),
        ("when: nesterov", "when: true", "SG012", "leave the 'when' out if this is always to be there"),
        ("when: nesterov", "when: quick", "SG060", "declare it under options"),
        ("lr*m", "lr*m*weightdecay", "SG060", "declare it under hyperparameters, or assign it first"),
        ("init: 0", "init: zeros", "SG060", "write 0"),
        ("init: 0", "init: ones", "SG060", "write 1"),
        ("init: 0", "init: quick", "SG060", "declare it under hyperparameters"),
        ("lr*m", "where(true, lr, 0)*m", "SG060", f"write 1 if a number is meant; {OUTCOME}"),
        ("lr*m", "where(false, lr, 0)*m", "SG060", f"write 0 if a number is meant; {OUTCOME}"),
        ("param = param", "params = params", "SG072", "did you mean 'param'?"),
        ("name: rule", "name: sign-sgd", "SG020", "write sign_sgd"),
    ],
)
def test_says_what_to_write_instead(tmp_path, before, after, code, hint):
    assert RULE.count(before) == 1
    path = tmp_path / "rule.yaml"
    path.write_text(RULE.replace(before, after), encoding="utf-8")
    assert [d.hint for d in check([path]).diagnostics if d.code == code] == [hint]
