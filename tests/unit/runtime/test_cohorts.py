"""Which tensors share a run of the host program."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvergen.runtime.cohorts import Cohort, Cohorts
from tests.support.handwritten import Adam, WarmSGD

F = np.float32


def advance(cohorts, members):
    chosen, places = cohorts.select(members)
    for cohort in chosen:
        cohort.t += 1
    return chosen, places


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), max_size=12))
def test_counts_follow_every_history(history):
    groups = [0, 0, 0, 1, 1, 2]
    cohorts = Cohorts([Cohort(g, 0, (), [i for i in range(6) if groups[i] == g]) for g in range(3)], 6)
    counts = [0] * 6
    for mask in history:
        members = None if all(mask) else [i for i in range(6) if mask[i]]
        chosen, places = advance(cohorts, members)
        for i in range(6):
            counts[i] += mask[i]
            if mask[i]:
                assert i in chosen[places[i]].members
        assert sorted(m for c in chosen for m in c.members) == [i for i in range(6) if mask[i]]
        assert sorted(m for c in cohorts.all for m in c.members) == list(range(6))
        for i in range(6):
            assert cohorts.of(i).t == counts[i]
            assert cohorts.of(i).group == groups[i]
    assert cohorts.largest_t == max(counts)


def test_a_steady_pattern_keeps_the_division():
    cohorts = Cohorts([Cohort(0, 0, (), range(4))], 4)
    advance(cohorts, [0, 1])
    version = cohorts.version
    for _ in range(5):
        advance(cohorts, [0, 1])
        advance(cohorts, [2, 3])
        advance(cohorts, None)
    assert cohorts.version == version


def test_equal_cohorts_are_merged_when_the_division_changes():
    cohorts = Cohorts([Cohort(0, 0, (), range(4))], 4)
    for members in ([0], [1], [2], [3]):
        advance(cohorts, members)
    advance(cohorts, [0, 1])
    advance(cohorts, [2, 3])
    advance(cohorts, [0, 2])  # splits (0, 1) and (2, 3), which are at the same count
    assert sorted(c.members for c in cohorts.all) == [(0, 2), (1, 3)]


def test_scalars_of_different_bits_are_kept_apart():
    pieces = [0.0, -0.0, math.nan, 1.0, 1.0]
    cohorts = Cohorts([], 5)
    cohorts.restore([Cohort(0, 3, (x,), [i]) for i, x in enumerate(pieces)])
    assert sorted(c.members for c in cohorts.all) == [(0,), (1,), (2,), (3, 4)]
    assert math.copysign(1.0, cohorts.of(1).scalars[0]) == -1.0
    assert math.isnan(cohorts.of(2).scalars[0])


def count_calls(cls):
    """A subclass that counts runs of the host program."""
    calls = []

    def scalars(**arguments):
        calls.append(arguments["t"])
        return cls.definition.scalars(**arguments)

    class Counted(cls):
        definition = replace(cls.definition, scalars=scalars)

    return Counted, calls


def test_the_host_program_runs_once_for_equal_tensors():
    cls, calls = count_calls(Adam)
    params = [np.ones(2, F) for _ in range(50)]
    opt = cls(params, backend="numpy")
    for _ in range(3):
        opt.step([np.ones(2, F)] * 50)
    assert calls == [1.0, 2.0, 3.0]
    calls.clear()
    opt.step([None] + [np.ones(2, F)] * 49)
    opt.step([np.ones(2, F)] * 50)
    assert sorted(calls) == [4.0, 4.0, 5.0]


def test_the_host_program_runs_once_for_groups_with_equal_settings():
    cls, calls = count_calls(WarmSGD)
    groups = [{"params": [np.ones(2, F)], "lr": 0.1 * (1 + i % 2)} for i in range(20)]
    opt = cls(groups, backend="numpy")
    opt.step([np.ones(2, F)] * 20)
    assert len(calls) == 2
    opt.lr = 0.3
    opt.step([np.ones(2, F)] * 20)
    assert len(calls) == 3
    opt.groups[7].lr_mult = 0.5
    opt.step([np.ones(2, F)] * 20)
    assert len(calls) == 5


@pytest.mark.parametrize("cls", [Adam, WarmSGD])
def test_groups_that_differ_in_one_setting_are_kept_apart(cls):
    changes = [{}, {"lr_mult": 0.5}, {"weight_decay": 0.1}, {"weight_decay": -0.0}, {"lr": 0.7}]
    if cls is Adam:
        changes += [{"beta1": 0.5}, {"beta2": 0.5}, {"eps": 0.1}, {"amsgrad": True}, {"maximize": True}]
    else:
        changes += [{"momentum": 0.5}, {"pull": 0.5}, {"warmup": 2}, {"nesterov": True}]
    together = [np.full(2, 0.5, F) for _ in changes]
    opt = cls([{"params": [p], **c} for p, c in zip(together, changes, strict=True)], backend="numpy")
    rng = np.random.default_rng(1)
    history = [rng.standard_normal(2).astype(F) for _ in range(3)]
    for gradient in history:
        opt.step([gradient] * len(changes))
    for change, param in zip(changes, together, strict=True):
        alone = np.full(2, 0.5, F)
        single = cls([{"params": [alone], **change}], backend="numpy")
        for gradient in history:
            single.step([gradient])
        assert np.array_equal(param, alone), change


def test_a_group_changed_alone_moves_alone():
    params = [np.ones(1, F) for _ in range(3)]
    opt = Adam([{"params": [p]} for p in params], backend="numpy")
    opt.groups[1].lr = 0.0
    opt.step([np.ones(1, F)] * 3)
    assert [p[0] != 1.0 for p in params] == [True, False, True]


def test_rows_follow_groups_counts_and_dtypes():
    # Every combination of group, history and dtype at once, each against an optimizer of its own.
    rng = np.random.default_rng(0)
    kinds = list(itertools.product([0.1, 0.2], [np.float32, np.float64]))
    params = [rng.standard_normal(3).astype(dtype) for _, dtype in kinds for _ in range(2)]
    alone = [p.copy() for p in params]
    groups = [{"params": params[2 * i : 2 * i + 2], "lr": lr} for i, (lr, _) in enumerate(kinds)]
    opt = Adam(groups, backend="numpy")
    singles = [Adam(p, backend="numpy", lr=kinds[i // 2][0]) for i, p in enumerate(alone)]
    for _ in range(12):
        grads = [rng.standard_normal(3).astype(p.dtype) if rng.random() < 0.6 else None for p in params]
        opt.step(grads)
        for single, gradient in zip(singles, grads, strict=True):
            if gradient is not None:
                single.step(gradient)
    for a, b in zip(params, alone, strict=True):
        assert np.array_equal(a, b)
    assert list(opt.steps.values()) == [s.t for s in singles]
