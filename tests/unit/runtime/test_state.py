"""state_dict, snapshots, and looking at the state."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from solvergen.errors import OptimizerError, SnapshotError, SnapshotMismatch, SnapshotWarning, UnknownName
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam, WarmSGD

F = np.float32


def params(rng):
    return {
        "w": rng.standard_normal((3, 4)).astype(F),
        "half": rng.standard_normal(5).astype(ml_dtypes.bfloat16),
        "double": rng.standard_normal(2),
        "scalar": np.array(1.5, F),
        "empty": np.zeros((0, 3), F),
    }


def gradients(rng, of):
    return {name: rng.standard_normal(p.shape).astype(p.dtype) for name, p in of.items()}


def copies(arrays):
    return {name: a.copy() for name, a in arrays.items()}


def assert_alike(a, b):
    """Two optimizers with the same tensors are in the same state."""
    assert list(a.params) == list(b.params)
    for name in a.params:
        assert_same_bits(a.params[name], b.params[name])
    assert list(a.state) == list(b.state)
    for state in a.state:
        assert list(a.state[state]) == list(b.state[state])
        for name in a.state[state]:
            assert_same_bits(a.state[state][name], b.state[state][name])
    assert dict(a.steps) == dict(b.steps)
    for one, other in zip(a.groups, b.groups, strict=True):
        assert one.hyperparameters == other.hyperparameters
        assert one.multipliers == other.multipliers
        assert one.options == other.options


CASES = [
    (Adam, {"amsgrad": True, "lr": 0.1}),
    (Adam, {"weight_decay": 0.01}),
    (WarmSGD, {"pull": 0.5}),
    (WarmSGD, {"momentum": 0.0}),
]


@pytest.mark.parametrize(("cls", "settings"), CASES, ids=str)
@pytest.mark.parametrize("way", ["state_dict", ".h5", ".safetensors"])
def test_resuming_is_never_having_stopped(rng, tmp_path, cls, settings, way):
    first = params(rng)
    opt = cls(first, backend="numpy", **settings)
    history = [gradients(rng, first) for _ in range(6)]
    history[1]["w"] = None
    for grads in history[:3]:
        opt.step(grads)
    opt.lr = 0.25
    # Made with other hyperparameters; options that are derived from them are given where they differ.
    derived = {"momentum_buffer": settings.get("momentum", 1) != 0} if cls is WarmSGD else {}
    second = copies(first) if way == "state_dict" else {name: np.zeros_like(p) for name, p in first.items()}
    amsgrad = {"amsgrad": True} if settings.get("amsgrad") else {}
    resumed = cls(second, backend="numpy", **derived, **amsgrad)
    if way == "state_dict":
        resumed.load_state_dict(opt.state_dict())
    else:
        opt.save(tmp_path / f"snapshot{way}")
        resumed.load(tmp_path / f"snapshot{way}")
    assert_alike(opt, resumed)
    for grads in history[3:]:
        opt.step(grads)
        resumed.step(grads)
    assert_alike(opt, resumed)


def test_a_state_dict_is_a_copy_of_plain_data(rng):
    arrays = params(rng)
    opt = WarmSGD(arrays, backend="numpy")
    opt.step(gradients(rng, arrays))
    kept = opt.state_dict()
    before = copy.deepcopy(kept)
    opt.step(gradients(rng, arrays))
    opt.lr = 5.0

    def check(a, b, types):
        assert type(a) is type(b)
        assert type(a) in types
        if isinstance(a, dict):
            assert list(a) == list(b)
            for key in a:
                assert type(key) is str
                check(a[key], b[key], types)
        elif isinstance(a, list):
            for x, y in zip(a, b, strict=True):
                check(x, y, types)
        elif isinstance(a, np.ndarray):
            assert_same_bits(a, b)
        else:
            assert a == b

    check(kept, before, (dict, list, str, int, float, bool, np.ndarray))
    kept["tensors"]["w"]["arrays"]["buf"][...] = 77.0  # the optimizer's own is another
    assert not (opt.state["buf"]["w"] == 77.0).any()


def test_loading_copies(rng):
    opt = Adam(np.ones(3, F), backend="numpy")
    opt.step(np.ones(3, F))
    kept = opt.state_dict()
    opt.load_state_dict(kept)
    opt.step(np.ones(3, F))
    assert kept["tensors"]["0"]["t"] == 1
    assert (kept["tensors"]["0"]["arrays"]["m"] == F(1 - 0.9)).all()


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_an_optimizers_own_arrays_may_be_loaded(rng, backend):
    opt = Adam({"a": np.ones(70_000, F), "b": np.ones(70_000, F)}, backend=backend)
    opt.step({"a": np.full(70_000, 1, F), "b": np.full(70_000, 2, F)})
    kept = opt.state_dict()
    live = {name: (opt.state["m"][name], opt.state["v"][name]) for name in "ab"}
    before = {name: [array.copy() for array in arrays] for name, arrays in live.items()}
    for name, other in (("a", "b"), ("b", "a")):  # the tensors change places, and so do the states
        kept["tensors"][name]["arrays"]["m"] = live[other][1]
        kept["tensors"][name]["arrays"]["v"] = live[other][0]
    opt.load_state_dict(kept)
    for name, other in (("a", "b"), ("b", "a")):
        assert_same_bits(live[name][0], before[other][1])
        assert_same_bits(live[name][1], before[other][0])


def test_what_was_made_read_only_is_found_before_anything_changes(rng, tmp_path):
    arrays = {"a": np.ones(3, F), "b": np.ones(3, F)}
    opt = Adam(arrays, backend="numpy")
    opt.save(tmp_path / "early.h5")
    opt.step(gradients(rng, arrays))
    before = opt.state_dict()
    arrays["b"].flags.writeable = False
    with pytest.raises(OptimizerError, match=r"'b' .* read-only"):
        opt.load(tmp_path / "early.h5")
    np.testing.assert_equal(opt.state_dict(), before)


def test_a_snapshot_of_a_mapped_array_is_loaded(tmp_path):
    opt = Adam(np.ones(3, F), backend="numpy")
    kept = opt.state_dict()
    mapped = np.memmap(tmp_path / "m", F, "w+", shape=(3,))
    mapped[:] = 5
    kept["tensors"]["0"]["arrays"]["m"] = mapped
    opt.load_state_dict(kept)
    assert_same_bits(opt.state["m"][0], np.full(3, 5, F))


def change(path, value):
    """A function that sets an entry of nested dicts, or removes it where ``value`` is KeyError."""

    def apply(tree):
        for key in path[:-1]:
            tree = tree[key]
        if value is KeyError:
            del tree[path[-1]]
        else:
            tree[path[-1]] = value

    return apply


class Subclass(np.ndarray):
    pass


REFUSED = (SnapshotError, OptimizerError)

BROKEN = {
    "other optimizer": (change(["spec"], "sgd"), SnapshotMismatch, "sgd"),
    "tensor missing": (change(["tensors", "1"], KeyError), REFUSED, "members"),
    "shape": (change(["tensors", "1", "shape"], [3]), REFUSED, "1"),
    "dtype": (change(["tensors", "1", "dtype"], "float64"), REFUSED, "float64"),
    "t": (change(["tensors", "1", "t"], -1), REFUSED, "-1"),
    "t is no whole number": (change(["tensors", "1", "t"], 1.5), REFUSED, "1.5"),
    "t is a bool": (change(["tensors", "1", "t"], True), REFUSED, "True"),
    "moments in half": (
        change(["tensors", "1", "arrays", "m"], np.zeros(2, np.float16)), REFUSED, "float16"
    ),
    "moments of another shape": (
        change(["tensors", "1", "arrays", "m"], np.zeros(3, F)), REFUSED, "(shape|3)"
    ),
    "moments are a list": (change(["tensors", "1", "arrays", "m"], [0.0, 0.0]), REFUSED, "ndarray"),
    "moments are masked": (
        change(["tensors", "1", "arrays", "m"], np.ma.masked_array(np.zeros(2, F), [0, 1])), REFUSED, "Masked"
    ),
    "moments are a matrix": (
        change(["tensors", "1", "arrays", "m"], np.zeros(2, F).view(Subclass)), REFUSED, "Subclass"
    ),
    "a state by number": (change(["tensors", "1", "arrays", 1], np.zeros(2, F)), OptimizerError, "strings"),
    "a tensor by number": (change(["tensors", 1], {}), OptimizerError, "strings"),
    "a member by number": (change(["groups", 0, "members"], [0, "1"]), OptimizerError, "string"),
    "schema of numbers": (change(["schema", "m"], 3), OptimizerError, "string"),
    "option as text": (change(["groups", 0, "options", "amsgrad"], ""), OptimizerError, "True or False"),
    "hyperparameter huge": (
        change(["groups", 0, "hyperparameters", "lr"], 10**400), OptimizerError, "too large"
    ),
    "hyperparameter complex": (
        change(["groups", 0, "hyperparameters", "lr"], np.complex64(1)), OptimizerError, "isn't a number"
    ),
    "state missing": (change(["tensors", "1", "arrays", "m"], KeyError), REFUSED, "'?m'?"),
    "state too many": (change(["tensors", "1", "arrays", "w"], np.zeros(2, F)), REFUSED, "w"),
    "hyperparameter out of range": (change(["groups", 0, "hyperparameters", "lr"], -1.0), REFUSED, "lr"),
    "hyperparameter NaN": (change(["groups", 0, "hyperparameters", "lr"], math.nan), REFUSED, "lr"),
    "hyperparameter no number": (change(["groups", 0, "hyperparameters", "lr"], "fast"), REFUSED, "fast"),
    "hyperparameter missing": (change(["groups", 0, "hyperparameters", "lr"], KeyError), REFUSED, "lr"),
    "option": (change(["groups", 0, "options", "maximize"], True), REFUSED, "maximize"),
    "members": (change(["groups", 0, "members"], ["0"]), REFUSED, "members"),
    "no groups": (change(["groups"], []), REFUSED, "members"),
    "not there": (change(["tensors"], KeyError), OptimizerError, "has no 'tensors'"),
    "not a mapping": (change(["tensors"], 3), OptimizerError, "'tensors'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_what_does_not_fit_is_refused_and_nothing_changes(rng, case):
    breaking, error, message = BROKEN[case]
    arrays = [np.ones(2, F), np.ones(2, F)]
    opt = Adam(arrays, backend="numpy")
    opt.step([np.ones(2, F), np.ones(2, F)])
    other = Adam([p.copy() for p in arrays], backend="numpy", lr=0.5)
    for _ in range(3):
        other.step([np.ones(2, F), np.ones(2, F)])
    kept = other.state_dict()
    breaking(kept)
    before = opt.state_dict()
    with pytest.raises(error, match=message):
        opt.load_state_dict(kept)
    np.testing.assert_equal(opt.state_dict(), before)


@pytest.mark.parametrize("value", [None, [], 3, "state", {}])
def test_what_is_no_state_dict(value):
    with pytest.raises(OptimizerError, match="state_dict"):
        Adam(np.ones(2, F), backend="numpy").load_state_dict(value)


def test_options_must_fit(rng):
    opt = Adam(np.ones(2, F), backend="numpy", amsgrad=True)
    with pytest.raises(SnapshotMismatch, match="amsgrad"):
        Adam(np.ones(2, F), backend="numpy").load_state_dict(opt.state_dict())


def test_a_derived_option_that_no_longer_follows_counts_as_given():
    param = np.ones(2, F)
    opt = WarmSGD(param, backend="numpy", momentum_buffer=True)
    opt.momentum = 0.0
    other = WarmSGD(param.copy(), backend="numpy")  # derives it from its default momentum
    other.load_state_dict(opt.state_dict())
    assert other.momentum == 0.0
    assert other.options["momentum_buffer"] is True
    other.momentum = 0.5
    other.momentum = 0.0  # may change now, as in the optimizer that it came from
    again = WarmSGD.from_config(param.copy(), other.get_config())
    assert again.options["momentum_buffer"] is True


def test_another_version_of_the_spec_with_the_same_state_loads_with_a_warning():
    class Newer(Adam):
        definition = replace(Adam.definition, digest="0" * 64)

    opt = Adam(np.ones(2, F), backend="numpy", lr=0.5)
    opt.step(np.ones(2, F))
    newer = Newer(np.ones(2, F), backend="numpy")
    with pytest.warns(SnapshotWarning, match="another version of the spec"):
        newer.load_state_dict(opt.state_dict())
    assert newer.t == 1
    assert newer.lr == 0.5


def test_load_may_leave_parameters_and_hyperparameters(tmp_path):
    opt = Adam(np.full(2, 3.0, F), backend="numpy", lr=0.5)
    opt.step(np.ones(2, F))
    opt.save(tmp_path / "a.safetensors")
    opt.save(tmp_path / "b.safetensors", params=False)
    for name, options, param, lr in [
        ("a", {}, opt.params[0][0], 0.5),
        ("a", {"params": False}, 1.0, 0.5),
        ("a", {"hyperparameters": False}, opt.params[0][0], 0.001),
        ("b", {}, 1.0, 0.5),
    ]:
        fresh = Adam(np.ones(2, F), backend="numpy")
        fresh.load(tmp_path / f"{name}.safetensors", **options)
        assert fresh.t == 1
        assert fresh.lr == lr
        assert (fresh.params[0] == param).all()
        assert_same_bits(fresh.state["v"][0], opt.state["v"][0])


def test_a_file_that_does_not_fit_changes_nothing(tmp_path):
    opt = Adam([np.ones(2, F), np.ones(3, F)], backend="numpy")
    opt.save(tmp_path / "a.h5")
    other = Adam([np.full(2, 5.0, F), np.full(4, 5.0, F)], backend="numpy", lr=0.5)
    with pytest.raises(SnapshotMismatch, match="nothing was changed"):
        other.load(tmp_path / "a.h5")
    assert other.lr == 0.5
    assert (other.params[0] == 5.0).all()
    with pytest.raises(SnapshotError, match=r"missing\.h5"):
        other.load(tmp_path / "missing.h5")


def test_groups_are_restored(tmp_path):
    def make(lr):
        groups = [
            {"params": {"a": np.ones(2, F)}, "lr": lr, "lr_mult": 2 * lr},
            {"params": {"b": np.ones(1, F)}},
        ]
        return Adam(groups, backend="numpy")

    opt = make(0.5)
    opt.step([{"a": np.ones(2, F)}, {"b": None}])
    opt.save(tmp_path / "a.safetensors")
    other = make(0.1)
    other.load(tmp_path / "a.safetensors")
    assert_alike(opt, other)
    assert other.groups[0].lr_mult == 1.0


def test_views_of_the_state():
    opt = WarmSGD({"a": np.ones(2, F), "b": np.ones((), F)}, backend="numpy")
    opt.step({"a": np.ones(2, F), "b": None})
    assert list(opt.state) == ["buf", "start", "mu_product"]
    assert len(opt.state) == 3
    assert "buf" in opt.state
    assert opt.state["buf"]["b"].shape == ()
    assert type(opt.state["mu_product"]["a"]) is float
    assert opt.state["mu_product"]["a"] == 0.9 * 0.25
    assert opt.state["mu_product"]["b"] == 1.0
    assert "c" not in opt.state["buf"]
    with pytest.raises(UnknownName, match="did you mean 'buf'"):
        opt.state["bof"]
    assert "buf" in repr(opt.state)
    assert "a, b" in repr(opt.params)
    with pytest.raises(UnknownName, match="doesn't exist under this optimizer's options"):
        WarmSGD(np.ones(1, F), backend="numpy", momentum=0.0).state["buf"]
    with pytest.raises(TypeError):
        opt.state["buf"]["a"] = 1


@pytest.mark.parametrize("key", [[], [1], {}, None, 1.5, b"m", "nowhere"])
def test_views_have_no_such_key(key):
    opt = Adam([np.ones(2, F), np.ones(2, F)], backend="numpy")
    for view in (opt.state, opt.state["m"], opt.params, opt.steps):
        assert key not in view
        assert view.get(key) is None
        with pytest.raises(UnknownName):
            view[key]


def test_state_arrays_are_live():
    param = np.ones(2, F)
    opt = Adam(param, backend="numpy")
    m = opt.state["m"][0]
    opt.step(np.ones(2, F))
    assert (m == F(1 - 0.9)).all()
    assert opt.state["m"][0] is m


def test_states_start_from_the_parameter_in_the_compute_type(rng):
    half = rng.standard_normal(5).astype(np.float16)
    opt = WarmSGD([half, np.asfortranarray(np.ones((1, 3), F))], backend="numpy")
    assert_same_bits(opt.state["start"][0], half.astype(F))
    assert not np.shares_memory(opt.state["start"][1], opt.params[1])


@pytest.mark.parametrize("action", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copying_says_what_to_do_instead(action):
    with pytest.raises(OptimizerError, match="save and load"):
        action(Adam(np.ones(1, F), backend="numpy"))


def test_repr_tells_the_main_things():
    opt = Adam([np.ones((2, 3), F), np.ones((), F)], backend="numpy", lr=0.5)
    text = repr(opt)
    for part in ("Adam(lr=0.5", "amsgrad=False", "backend='numpy'", "tensors=2", "elements=7", "t=0"):
        assert part in text
