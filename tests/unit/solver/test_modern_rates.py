"""Policies that Caffe doesn't have, against torch where it has them, and the warm-up of any."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from solvergen.solver import SolverParameters, SolverParametersError, policy_of
from solvergen.solver.policies import POLICIES
from solvergen.solver.policies.base import Policy

torch = pytest.importorskip("torch")


def made(name: str, max_iter: int = 100, base_lr: float = 0.5, **settings: Any) -> Policy:
    return policy_of(SolverParameters(base_lr=base_lr, max_iter=max_iter, policy={"name": name, **settings}))


def course(policy: Policy, iterations: int) -> list[float]:
    state = policy.initial()
    found = []
    for iteration in range(iterations):
        rate, state = policy.rate(iteration, state)
        found.append(rate)
    return found


def of_torch(scheduler: Any, iterations: int, base_lr: float = 0.5, **settings: Any) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=base_lr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule = scheduler(optimizer, **settings)
        found = []
        for _ in range(iterations):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
    return found


def test_constant_is_the_base():
    assert course(made("constant"), 3) == [0.5, 0.5, 0.5]
    assert policy_of(SolverParameters(base_lr=0.5, lr_policy="constant")).rate(7, {})[0] == 0.5


def test_linear():
    expected = of_torch(
        torch.optim.lr_scheduler.LinearLR, 60, start_factor=1.0, end_factor=0.2, total_iters=50
    )
    assert course(made("linear", 50, end_rate=0.1), 60) == pytest.approx(expected, rel=1e-12)


def test_cosine_once():
    expected = of_torch(torch.optim.lr_scheduler.CosineAnnealingLR, 40, T_max=40, eta_min=0.01)
    found = course(made("cosine", 40, end_rate=0.01), 60)
    assert found[:40] == pytest.approx(expected, rel=1e-9)
    assert found[40:] == [0.01] * 20


@pytest.mark.parametrize("lengthen", [1, 2])
def test_cosine_with_restarts(lengthen):
    expected = of_torch(
        torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, 90, T_0=10, T_mult=lengthen, eta_min=0.01
    )
    found = course(made("cosine", restarts=True, iterations=10, lengthen=lengthen, end_rate=0.01), 90)
    assert found == pytest.approx(expected, rel=1e-9)


def test_cosine_restarts_lower_if_it_shrinks():
    found = course(made("cosine", restarts=True, iterations=10, shrink=0.5), 21)
    assert [found[0], found[10], found[20]] == [0.5, 0.25, 0.125]


@pytest.mark.parametrize("anneal", ["cosine", "linear"])
def test_one_cycle(anneal):
    expected = of_torch(
        torch.optim.lr_scheduler.OneCycleLR,
        100,
        max_lr=0.5,
        total_steps=100,
        anneal_strategy={"cosine": "cos", "linear": "linear"}[anneal],
        cycle_momentum=False,
    )
    found = course(made("one_cycle", anneal=anneal), 120)
    assert found[:100] == pytest.approx(expected, rel=1e-9)
    assert found[100:] == [found[99]] * 20


def test_piecewise():
    found = course(made("piecewise", boundaries=[2, 4], rates=[0.3, 0.2, 0.1]), 6)
    assert found == [0.3, 0.3, 0.2, 0.2, 0.1, 0.1]
    found = course(made("piecewise", boundaries=[1, 3], rates=[0.0, 1.0], linear=True), 5)
    assert found == [0.0, 0.0, 0.5, 1.0, 1.0]


def measure(policy: Policy, metric: str, values: list[float]) -> list[float]:
    """The rate after each measurement; the state goes through JSON every time, as in a snapshot."""
    state = policy.initial()
    found = []
    for iteration, value in enumerate(values):
        state = policy.observed(iteration, {metric: value}, json.loads(json.dumps(dict(state))))
        found.append(policy.rate(iteration, state)[0])
    return found


@pytest.mark.parametrize("best", ["min", "max"])
@pytest.mark.parametrize("relative", [True, False])
def test_plateau(best, relative):
    generator = torch.Generator().manual_seed(7)
    values = (1 + torch.rand(80, generator=generator)).tolist()
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer,
        best,
        factor=0.5,
        patience=2,
        cooldown=3,
        threshold=0.01,
        threshold_mode="rel" if relative else "abs",
        min_lr=0.01,
    )
    expected = []
    for value in values:
        scheduler.step(value)
        expected.append(optimizer.param_groups[0]["lr"])
    policy = made(
        "plateau",
        best=best,
        factor=0.5,
        patience=2,
        cooldown=3,
        threshold=0.01,
        relative=relative,
        least_rate=0.01,
        metric="accuracy",
    )
    assert measure(policy, "accuracy", values) == pytest.approx(expected)
    assert len(set(expected)) > 3


def test_plateau_passes_over_what_it_does_not_look_at_and_takes_nan_for_worse():
    policy = made("plateau", patience=0)
    assert policy.observed(0, {"accuracy": 1.0}, policy.initial()) == policy.initial()
    assert measure(policy, "loss", [float("nan"), 1.0]) == [0.05, 0.05]


def test_warmup_of_any():
    plain = course(made("cosine"), 30)
    warm = course(made("cosine", warmup=10, warmup_start=0.2), 30)
    assert warm[0] == 0.2 * plain[0]
    assert warm[5] == pytest.approx(0.6 * plain[5])
    assert warm[10:] == plain[10:]


def test_warmup_before_a_policy_leaves_it_the_rest():
    plain = course(made("cosine", max_iter=90), 90)
    warm = course(made("cosine", max_iter=100, warmup=10, warmup_shift=True), 100)
    assert warm[10:] == plain
    assert warm[:10] == [plain[0] * i / 10 for i in range(10)]


def test_caffes_policies_warm_up_too():
    params = SolverParameters(
        base_lr=1, lr_policy="multistep", gamma=0.5, stepvalue=[2, 4], policy={"warmup": 4}
    )
    assert course(policy_of(params), 6) == [0, 0.25, 0.25, 0.375, 0.25, 0.25]


@pytest.mark.parametrize("name", POLICIES)
def test_rates_follow_from_iteration_and_saved_state(name):
    """From any iteration on, with the state through JSON, a run goes on as if it hadn't stopped."""
    settings: dict[str, Any] = {"warmup": 3}
    if name == "piecewise":
        settings.update(boundaries=[5, 9], rates=[3, 2, 1])
    params = SolverParameters(
        base_lr=0.1,
        gamma=0.5,
        power=0.5,
        stepsize=4,
        stepvalue=[3, 3, 8],
        max_iter=15,
        policy={"name": name, **settings},
    )
    whole = course(policy_of(params), 15)
    for stop in range(15):
        first, second = policy_of(params), policy_of(params)
        state = first.initial()
        for iteration in range(stop):
            _, state = first.rate(iteration, state)
        state = json.loads(json.dumps(dict(state)))
        for iteration in range(stop, 15):
            rate, state = second.rate(iteration, state)
            assert rate == whole[iteration]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"name": "cosine", "warmp": 3}, "warmp isn't one of its settings; did you mean 'warmup'?"),
        ({"name": "cosine", "end_rate": -1}, "end_rate must be at least 0, not -1"),
        ({"name": "cosine", "end_rate": True}, "end_rate must be a number"),
        ({"name": "cosine", "restarts": 1}, "restarts must be true or false"),
        ({"name": "linear", "iterations": 1.5}, "iterations must be a whole number"),
        ({"name": "one_cycle", "anneal": "cos"}, "did you mean 'cosine'?"),
        ({"name": "piecewise"}, "boundaries is missing"),
        ({"name": "piecewise", "boundaries": [1, 1], "rates": [1, 2, 3]}, "must rise"),
        ({"name": "piecewise", "boundaries": [1, 2], "rates": [1, 2]}, "2 boundaries go with 3 rates"),
        ({"name": "step", "gamma": 0.1}, "gamma is a parameter of its own"),
        ({"name": "triangular"}, "cosine"),
        ({"name": "plateu"}, "did you mean 'plateau'?"),
        ({"warmup": 3}, "lr_policy is missing"),
        ({"name": "plateau", "factor": 0}, "factor must be above 0 and at most 1"),
    ],
)
def test_wrong_settings(policy, said):
    with pytest.raises(SolverParametersError) as caught:
        policy_of(SolverParameters(base_lr=1, max_iter=10, stepsize=3, policy=policy))
    assert said in str(caught.value)


def test_two_names():
    with pytest.raises(SolverParametersError, match="leave one of them out"):
        policy_of(SolverParameters(lr_policy="step", policy={"name": "cosine"}))
