"""Resuming from a snapshot is bit-identical to never having stopped: every optimizer, both formats, across
backends and processes."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from solvergen.errors import SnapshotError, SnapshotMismatch, SnapshotWarning
from solvergen.runtime import native, snapshots
from tests.support.bits import assert_same_bits
from tests.support.packages import built_package
from tests.support.shipped import CLASSES, stepped

ROOT = Path(__file__).parents[2]
FORMATS = (".h5", ".safetensors")

# What decides which state exists must be given again; more than one way to run, where there is one.
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in CLASSES),
    ("adam", {"amsgrad": True, "maximize": True}),
    ("sgd", {"use_momentum": True, "nesterov": True}),
    ("sgd", {"use_momentum": True, "maximize": True}),
    ("everything", {}),  # has scalar states
    ("everything", {"bounded": False, "smooth": True, "warm": False}),
]
CHANGED = {"momentum": 0.8, "weight_decay": 0.01, "beta1": 0.5, "beta2": 0.9, "decay": 0.7, "period": 4}

SHAPES: dict[str, tuple[tuple[int, ...], Any]] = {
    "layer1/weight": ((7, 9), np.float32),
    "layer1.bias": ((), np.float32),
    "half": ((33,), ml_dtypes.bfloat16),
    "tiny": ((5,), np.float16),
    "double": ((17,), np.float64),
    "empty": ((0, 4), np.float32),
    "late": ((3,), np.float32),
}


@functools.cache
def optimizer(name: str) -> Any:
    """The shipped class, or the one that a spec of the tests compiles to."""
    if name in CLASSES:
        return CLASSES[name]
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    spec = ROOT / "tests" / "support" / "specs" / f"{name}.yaml"
    return getattr(built_package([spec], Path(folder.name) / f"resume_{name}"), name.capitalize())


@pytest.fixture(params=["numpy", "cpu"])
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "cpu" and (reason := native.available()) is not None:
        pytest.skip(reason)
    return name


def other(backend: str) -> str:
    return "numpy" if backend == "cpu" or native.available() is not None else "cpu"


def parameters(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(dtype) for name, (shape, dtype) in SHAPES.items()}


def gradients(step: int) -> dict[str, Any]:
    """Of one step, whatever came before. Some are absent, so that counts differ."""
    rng = np.random.default_rng(1000 + step)
    made = {name: rng.standard_normal(shape).astype(dtype) for name, (shape, dtype) in SHAPES.items()}
    if step < 2:
        made["late"] = None
    if step % 3 == 1:
        made["half"] = made["double"] = None
    return made


def groups(params: dict[str, Any]) -> list[dict[str, Any]]:
    names = list(params)
    return [
        {"params": {name: params[name] for name in names[:4]}},
        {"params": {name: params[name] for name in names[4:]}, "lr": 0.002, "lr_mult": 0.5},
    ]


def run(opt: Any, first: int, last: int) -> None:
    for step in range(first, last):
        given = gradients(step)
        names = list(SHAPES)
        stepped(opt, [{n: given[n] for n in names[:4]}, {n: given[n] for n in names[4:]}])


def make(name: str, params: dict[str, Any], backend: str, options: dict[str, bool], **settings: Any) -> Any:
    return optimizer(name)(groups(params), backend=backend, **options, **settings)


def changed(name: str) -> dict[str, float]:
    """Hyperparameters other than the defaults, for those that the optimizer has."""
    known = optimizer(name).definition.hyperparameter_names
    return {name: value for name, value in CHANGED.items() if name in known}


def assert_alike(one: Any, two: Any) -> None:
    for name in SHAPES:
        assert_same_bits(one.params[name], two.params[name])
    assert list(one.state) == list(two.state)
    for state in one.state:
        for name in one.state[state]:
            assert_same_bits(one.state[state][name], two.state[state][name])
    assert dict(one.steps) == dict(two.steps)
    for a, b in zip(one.groups, two.groups, strict=True):
        assert (a.hyperparameters, a.multipliers, a.options) == (b.hyperparameters, b.multipliers, b.options)


def started(name: str, options: dict[str, bool], backend: str) -> Any:
    """An optimizer after three steps, its hyperparameters changed on the way."""
    settings = changed(name)
    if options.get("nesterov"):
        settings["dampening"] = 0.0
    opt = make(name, parameters(), backend, options, **settings)
    run(opt, 0, 2)
    opt.groups[1].lr = 0.0625
    run(opt, 2, 3)
    return opt


def fresh(name: str, options: dict[str, bool], backend: str) -> Any:
    """Another with other parameters, and hyperparameters as the class has them.

    Options that the first derived from its own are said again, since they decide which state exists.
    """
    settings = {"momentum": 0.6} if name == "sgd" else {}  # or its nesterov would be refused
    definition = optimizer(name).definition
    before = {**{h.name: h.default for h in definition.hyperparameters}, **changed(name)}
    derived = definition.options_of(**before)
    return make(name, parameters(seed=7), backend, {**derived, **options}, **settings)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_resuming_is_never_having_stopped(
    tmp_path: Path, name: str, options: dict[str, bool], suffix: str, backend: str
) -> None:
    opt = started(name, options, backend)
    opt.save(tmp_path / f"s{suffix}")
    resumed = fresh(name, options, other(backend))
    resumed.load(tmp_path / f"s{suffix}")
    assert_alike(opt, resumed)
    run(opt, 3, 8)
    run(resumed, 3, 8)
    assert_alike(opt, resumed)
    assert len(set(dict(opt.steps).values())) > 1


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(("name", "options"), [("adam", {"amsgrad": True}), ("everything", {})], ids=str)
def test_in_another_process(
    tmp_path: Path, name: str, options: dict[str, bool], suffix: str, backend: str
) -> None:
    opt = started(name, options, backend)
    opt.save(tmp_path / f"s{suffix}")
    program = f"""
import sys
from tests.integration.test_resume import fresh, run
opt = fresh({name!r}, {options!r}, {backend!r})
opt.load(sys.argv[1])
run(opt, 3, 8)
opt.save(sys.argv[2])
"""
    ends = [tmp_path / f"there{suffix}", tmp_path / f"here{suffix}"]
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / f"s{suffix}"), str(ends[0])], check=True, cwd=ROOT
    )
    run(opt, 3, 8)
    opt.save(ends[1])
    assert ends[0].read_bytes() == ends[1].read_bytes()


@pytest.mark.parametrize("suffix", FORMATS)
def test_both_backends_write_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    if (reason := native.available()) is not None:
        pytest.skip(reason)
    for backend in ("numpy", "cpu"):
        started("adam", {}, backend).save(tmp_path / f"{backend}{suffix}")
    assert (tmp_path / f"numpy{suffix}").read_bytes() == (tmp_path / f"cpu{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", FORMATS)
def test_powers_come_from_the_restored_betas(tmp_path: Path, suffix: str, backend: str) -> None:
    """B73: made with (0.9, 0.999), restored with (0.5, 0.9), one step against the formula."""
    param, gradient = np.array([1.0, -2.0]), np.array([0.5, 0.25])
    opt = optimizer("adam")({"w": param.copy()}, lr=0.1, beta1=0.5, beta2=0.9, eps=1e-8, backend=backend)
    for _ in range(2):
        opt.step({"w": gradient})
    opt.save(tmp_path / f"s{suffix}")
    target = param.copy()
    resumed = optimizer("adam")({"w": target}, backend=backend)
    assert resumed.beta1 == 0.9
    resumed.load(tmp_path / f"s{suffix}")
    assert (resumed.beta1, resumed.beta2, resumed.lr, resumed.t) == (0.5, 0.9, 0.1, 2)
    before = target.copy()
    resumed.step({"w": gradient})
    # With a constant gradient the corrected moments are the gradient and its square, but for rounding.
    np.testing.assert_allclose(before - target, 0.1 * np.sign(gradient), rtol=1e-6)


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_learning_rate_does_not_lag(tmp_path: Path, suffix: str, backend: str) -> None:
    """B65: lr is 100 for four epochs and 10 from the fifth, resumed at the boundary or not."""

    def epoch(opt: Any, number: int) -> None:
        opt.lr = 100.0 if number < 4 else 10.0
        opt.step({"w": np.ones(1, np.float32)})

    for boundary in (3, 4, 5):
        straight, first, second = (np.zeros(1, np.float32) for _ in range(3))
        opt = optimizer("sgd")({"w": straight}, lr=1.0, backend=backend)
        half = optimizer("sgd")({"w": first}, lr=1.0, backend=backend)
        for number in range(boundary):
            epoch(opt, number)
            epoch(half, number)
        half.save(tmp_path / f"s{suffix}")
        resumed = optimizer("sgd")({"w": second}, lr=1.0, backend=backend)
        resumed.load(tmp_path / f"s{suffix}")
        assert resumed.lr == opt.lr == (100.0 if boundary <= 4 else 10.0)
        for number in range(boundary, 8):
            epoch(opt, number)
            epoch(resumed, number)
            assert resumed.lr == opt.lr
        assert_same_bits(straight, second)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("t", [2**24, 2**31, 2**53, 2**62])
def test_large_counts_go_on(tmp_path: Path, suffix: str, t: int, backend: str) -> None:
    """B23: a count restored as a float would stand still."""
    opt = optimizer("adam")({"w": np.ones(2, np.float32)}, backend=backend)
    opt.step({"w": np.ones(2, np.float32)})
    opt.save(tmp_path / f"s{suffix}")
    data = snapshots.load(tmp_path / f"s{suffix}")
    later = dataclasses.replace(data.tensors[0], t=t)
    snapshots.save(tmp_path / f"s{suffix}", dataclasses.replace(data, tensors=(later,)))
    opt.load(tmp_path / f"s{suffix}")
    for ahead in (1, 2, 3):
        opt.step({"w": np.ones(2, np.float32)})
        assert opt.t == t + ahead
    opt.save(tmp_path / f"s{suffix}")
    assert snapshots.load(tmp_path / f"s{suffix}").tensors[0].t == t + 3


@pytest.mark.parametrize("suffix", FORMATS)
def test_without_parameters(tmp_path: Path, suffix: str, backend: str) -> None:
    opt = started("adam", {}, backend)
    opt.save(tmp_path / f"with{suffix}")
    opt.save(tmp_path / f"without{suffix}", params=False)
    for file, keep in ((f"with{suffix}", {"params": False}), (f"without{suffix}", {})):
        resumed = fresh("adam", {}, backend)
        before = {name: array.copy() for name, array in resumed.params.items()}
        resumed.load(tmp_path / file, **keep)
        for name, array in before.items():
            assert_same_bits(resumed.params[name], array)
            assert_same_bits(resumed.state["exp_avg"][name], opt.state["exp_avg"][name])


def content(opt: Any) -> Any:
    """Everything that loading could change."""
    return (
        {name: array.tobytes() for name, array in opt.params.items()},
        {s: {n: np.asarray(a).tobytes() for n, a in view.items()} for s, view in opt.state.items()},
        dict(opt.steps),
        [(g.hyperparameters, g.multipliers, dict(g.options)) for g in opt.groups],
    )


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_does_not_fit_changes_nothing(tmp_path: Path, suffix: str, backend: str) -> None:
    path = tmp_path / f"s{suffix}"
    opt = started("adam", {}, backend)
    before = content(opt)
    for wrong in (
        started("adam", {"amsgrad": True}, backend),
        started("lion", {}, backend),
        optimizer("adam")(parameters(), backend=backend),
        optimizer("adam")(np.ones(3, np.float32), backend=backend),
    ):
        wrong.save(path)
        with pytest.raises(SnapshotMismatch, match=re.escape(str(path))) as caught:
            opt.load(path)
        assert caught.value.differences
        assert content(opt) == before
    opt.save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SnapshotError):
        opt.load(path)
    assert content(opt) == before


@pytest.mark.parametrize("suffix", FORMATS)
def test_another_version_of_the_spec(tmp_path: Path, suffix: str, backend: str) -> None:
    path = tmp_path / f"s{suffix}"
    opt = started("adam", {}, backend)
    opt.save(path)
    snapshots.save(path, dataclasses.replace(snapshots.load(path), digest="0" * 64))
    resumed = fresh("adam", {}, backend)
    with pytest.warns(SnapshotWarning, match=r"another version of the spec 'adam'.*the state is the same"):
        resumed.load(path)
    assert_alike(opt, resumed)


def test_the_two_formats_carry_over(tmp_path: Path, backend: str) -> None:
    opt = started("everything", {}, backend)
    opt.save(tmp_path / "a.h5")
    snapshots.save(tmp_path / "b.safetensors", snapshots.load(tmp_path / "a.h5"))
    resumed = fresh("everything", {}, backend)
    resumed.load(tmp_path / "b.safetensors")
    resumed.save(tmp_path / "c.h5")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "c.h5").read_bytes()
