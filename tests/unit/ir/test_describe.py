"""Names that say what an expression is."""

from __future__ import annotations

import pytest

from solvergen.ir.describe import MAX_LENGTH, describe
from tests.support.rules import typed


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("1 - lr", "one_minus_lr"),
        ("1 - lr**t", "one_minus_lr_pow_t"),
        ("lr**2", "lr_squared"),
        ("sqrt(1 - lr)", "sqrt_one_minus_lr"),
        ("lr/t", "lr_over_t"),
        ("-lr", "minus_lr"),
        ("10**20 % 7", "n10_pow_20_mod_7"),
        ("lr*1e-5", "lr_times_constant"),
        ("t == 1 or lr == 0", "t_equals_one_or_lr_equals_zero"),
        ("(lr + t)*(lr - t)*(lr + t + lr)*(lr - t - lr)", "other"),
    ],
)
def test_names(tmp_path, expression, name):
    update = f"s = {expression}\nparam = param - lr*grad*where(s == s, 1, 2)"
    if "==" in expression:
        update = f"s = {expression}\nparam = param - lr*grad*where(s, 1, 2)"
    found = describe(typed(tmp_path, update).statements[0].value, "other")
    assert found == name
    assert found.isidentifier()
    assert len(found) <= MAX_LENGTH
