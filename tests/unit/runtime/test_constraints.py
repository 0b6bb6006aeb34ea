"""Constraints of parameters: what they make of values, to the bit, and where they are kept."""

from __future__ import annotations

import json
import signal
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from generated import LAMB, SAM, SGD, Adam, Lookahead
from solvergen import RowSparse, Wrappers
from solvergen.constraints import Constraint, MaxNorm, MinMax, MinMaxNorm, NonNegative, UnitNorm
from solvergen.errors import HyperparameterError, OptimizerError, SnapshotError, SnapshotMismatch
from solvergen.runtime import snapshots
from solvergen.runtime.backends.numpy import NumpyBackend
from solvergen.runtime.constraints import as_data, from_data, matrices_along
from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.snapshots.consistency import check
from solvergen.runtime.snapshots.document import version_of
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS

F = np.float32
every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)

SHAPES = {
    "dense": (70, 9),
    "rows": (9, 300),
    "vector": (400,),
    "kernel": (3, 3, 4, 5),
    "number": (),
    "empty": (0, 4),
    "plain": (6,),
    "large": (70, 65),
}
ALL = {
    "dense": MaxNorm(0.6),
    "rows": MinMaxNorm(0.5, 0.9, rate=0.25, axis=-1),
    "vector": UnitNorm(),
    "kernel": MaxNorm(1.0, axis=[0, 1, 2]),
    "number": MinMax(-0.5, None),
    "empty": UnitNorm(axis=1),
    "large": MinMaxNorm(1, 2, axis=None),
    "plain": NonNegative(),
}


def params(dtype=F, shapes=SHAPES):
    rng = np.random.default_rng(1)
    return {name: rng.normal(size=shape).astype(dtype).reshape(shape) for name, shape in shapes.items()}


def gradients(of, step=0):
    rng = np.random.default_rng(100 + step)
    return {n: rng.normal(size=a.shape).astype(a.dtype).reshape(a.shape) for n, a in of.items()}


def still(of):
    """Gradients of an update that changes nothing."""
    return {name: np.zeros_like(array) for name, array in of.items()}


@pytest.mark.parametrize("dtype", [F, np.float64, ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("backend", HOST_BACKENDS[1:])
def test_the_same_bits_as_in_numpy(backend, dtype):
    shapes = SHAPES if backend == "cpu" else {**SHAPES, "dense": (66, 3), "rows": (3, 260), "large": (9, 65)}
    ours, theirs = params(dtype, shapes), params(dtype, shapes)
    for of, where in ((ours, backend), (theirs, "numpy")):
        opt = Adam(of, lr=0.1, backend=where)
        opt.constraint = ALL
        for step in range(2):
            opt.step(gradients(of, step))
    for name in SHAPES:
        assert_same_bits(ours[name], theirs[name])


def root_of_squares(x):
    """Of one column of at most 64 elements: squares in float64, added from the top."""
    total = 0.0
    for value in x.astype(np.float64).tolist():
        total += value * value
    return np.sqrt(np.float64(total))


@every_backend
class TestValues:
    def test_max_norm_to_the_bit(self, backend):
        w = params(shapes={"w": (40, 6)})["w"]
        before = w.copy()
        opt = SGD([w], lr=1.0, backend=backend)
        opt.constraint = {"0": MaxNorm(6.0)}
        opt.step([np.zeros_like(w)])
        norms = [root_of_squares(column) for column in before.T]
        assert 0 < sum(norm > 6.0 for norm in norms) < 6
        for j, norm in enumerate(norms):
            assert_same_bits(w[:, j], before[:, j] * F(min(norm, 6.0) / (1e-7 + norm)))

    def test_unit_norm_to_the_bit(self, backend):
        w = params(shapes={"w": (2, 30, 3)})["w"]
        before = w.copy()
        opt = SGD([w], lr=1.0, backend=backend)
        opt.constraint = UnitNorm(axis=1)
        opt.step([np.zeros_like(w)])
        for i in range(2):
            for j in range(3):
                norm = root_of_squares(before[i, :, j])
                assert_same_bits(w[i, :, j], before[i, :, j] / F(1e-7 + norm))

    def test_min_max_norm(self, backend):
        w = np.array([[3.0, 0.3], [4.0, 0.4]])
        opt = SGD([w], lr=1.0, backend=backend)
        opt.constraint = MinMaxNorm(min_value=1.0, max_value=2.0, rate=0.5)
        opt.step([np.zeros_like(w)])
        np.testing.assert_allclose(w, np.array([[3, 0.3], [4, 0.4]]) * [3.5 / 5, 0.75 / 0.5], rtol=1e-6)

    def test_zeros_stay_zeros_and_infinite_norms_are_told(self, backend):
        w = np.zeros((4, 3))
        w[0, 1], w[1, 2] = np.inf, np.nan
        opt = SGD([w], lr=1.0, backend=backend)
        opt.constraint = MaxNorm(1.0)
        opt.step([np.zeros_like(w)])
        assert not w[:, 0].any()
        assert np.isnan(w[0, 1])
        assert w[1:, 1].tolist() == [0.0, 0.0, 0.0]
        assert np.isnan(w[:, 2]).all()

    def test_bounds(self, backend):
        of = {"a": np.array([-2.0, -0.0, 0.5, np.nan, 9.0]), "b": np.array([-2.0, 0.5, 9.0])}
        opt = SGD(of, lr=1.0, backend=backend)
        opt.constraint = {"a": NonNegative(), "b": MinMax(None, 1)}
        opt.step(still(of))
        assert_same_bits(of["a"], np.array([0.0, 0.0, 0.5, np.nan, 9.0]))
        assert_same_bits(of["b"], np.array([-2.0, 0.5, 1.0]))


@every_backend
class TestWhen:
    def test_only_what_was_updated(self, backend):
        of = params()
        before = {name: array.copy() for name, array in of.items()}
        opt = SGD(of, lr=1.0, backend=backend)
        opt.constraint = ALL
        opt.freeze("rows")
        opt.step({**still(of), "dense": None})
        for name in ("dense", "rows"):
            assert_same_bits(of[name], before[name])
        assert np.linalg.norm(of["vector"]) == pytest.approx(1.0)
        opt.constraint = None
        before = {name: array.copy() for name, array in of.items()}
        opt.step(still(of))
        for name in of:
            assert_same_bits(of[name], before[name])

    def test_not_by_steps_that_are_left_out_or_fail(self, backend):
        of = {"w": params()["dense"]}
        before = of["w"].copy()
        opt = SGD(of, lr=1.0, backend=backend, nonfinite="skip")
        opt.constraint = MaxNorm(0.1)
        assert opt.step({"w": np.full_like(before, np.nan)}) is False
        with pytest.raises(OptimizerError):
            opt.step({"w": np.zeros(3, F)})
        assert_same_bits(of["w"], before)

    def test_not_by_steps_that_a_flag_leaves_out(self, backend):
        ours, theirs = ({name: params()[name] for name in ("kernel", "vector", "plain")} for _ in range(2))
        one, other = (SGD(of, lr=0.1, backend=backend) for of in (ours, theirs))
        one.constraint = other.constraint = {name: ALL[name] for name in ours}
        for flag in (1, 0, 1):
            before = {name: array.copy() for name, array in ours.items()}
            one.step(gradients(ours, flag), found_inf=np.full(1, flag, F))
            if flag:
                assert one.t == other.t
                for name in ours:
                    assert_same_bits(ours[name], before[name])
            else:
                other.step(gradients(theirs, flag))
        for name in ours:
            assert_same_bits(ours[name], theirs[name])

    def test_after_the_average_and_the_written_update(self, backend):
        of, free = ({"w": params()["dense"]} for _ in range(2))
        wrappers = Wrappers(average=0.5, write_update=True)
        one, other = (SGD(o, lr=0.1, backend=backend, wrappers=wrappers) for o in (of, free))
        one.constraint = MaxNorm(0.1)
        given, same = (gradients(of) for _ in range(2))
        one.step(given)
        other.step(same)
        assert_same_bits(one.averages["w"], other.averages["w"])
        assert_same_bits(given["w"], same["w"])
        assert np.linalg.norm(of["w"], axis=0).max() < 0.11 < np.linalg.norm(free["w"], axis=0).min()

    def test_not_by_calls_that_only_sum_up(self, backend):
        of = {"w": params()["dense"]}
        before = of["w"].copy()
        opt = SGD(of, lr=0.1, backend=backend, wrappers=Wrappers(accumulate=2))
        opt.constraint = MaxNorm(0.1)
        opt.step(gradients(of))
        assert_same_bits(of["w"], before)
        opt.flush()
        assert np.linalg.norm(of["w"], axis=0).max() < 0.11

    def test_once_a_step_of_rules_that_evaluate_again(self, backend):
        of, seen = {"w": params()["dense"]}, []

        def closure():
            seen.append(np.linalg.norm(of["w"], axis=0).max())
            return 0.0, gradients(of)

        opt = SAM(of, lr=0.1, backend=backend)
        opt.constraint = MaxNorm(0.1)
        opt.step(closure)
        assert min(seen) > 1
        assert np.linalg.norm(of["w"], axis=0).max() < 0.11

    def test_a_step_that_is_undone_stays_undone(self, backend):
        of, calls = {"w": params()["dense"]}, []

        def closure():
            calls.append(0)
            if len(calls) == 2:
                raise ValueError
            return 0.0, gradients(of)

        before = of["w"].copy()
        opt = SAM(of, lr=0.1, backend=backend)
        opt.constraint = MaxNorm(0.1)
        with pytest.raises(ValueError, match=r"^$"):
            opt.step(closure)
        assert_same_bits(of["w"], before)

    def test_beside_rules_with_reductions(self, backend):
        of = {"w": params()["dense"], "v": params()["vector"]}
        opt = LAMB(of, lr=0.1, backend=backend)
        opt.constraint = {"v": UnitNorm()}
        opt.step(gradients(of))
        assert np.linalg.norm(of["v"]) == pytest.approx(1.0)
        assert np.linalg.norm(of["w"]) > 2


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_the_whole_of_what_was_updated_by_rows(backend):
    of = {"w": params()["dense"]}
    opt = SGD(of, lr=0.1, backend=backend)
    opt.constraint = MaxNorm(0.1)
    opt.step({"w": RowSparse(np.array([1, 2]), np.ones((2, 9), F))})
    assert np.linalg.norm(of["w"], axis=0).max() < 0.11


@pytest.mark.parametrize(
    ("axis", "shape", "matrices"),
    [
        (0, (4, 5), (1, 4, 5)),
        (1, (4, 5), (4, 5, 1)),
        (-1, (4, 5), (4, 5, 1)),
        (None, (4, 5, 6), (1, 120, 1)),
        (None, (), (1, 1, 1)),
        ((0, 1, 2), (3, 3, 4, 5), (1, 36, 5)),
        ((2, 1), (3, 4, 5, 6), (3, 20, 6)),
        ((0, 2), (3, 1, 5), (1, 15, 1)),
        (0, (0, 3), (1, 0, 3)),
    ],
)
def test_axes(axis, shape, matrices):
    assert matrices_along(axis, shape, "it") == matrices


class TestErrors:
    def test_axes(self):
        opt = SGD(params(), lr=0.1, backend="numpy")
        with pytest.raises(
            OptimizerError,
            match=r"MaxNorm of 'vector' has axis 1, but the parameter has one axis: it is \(400,",
        ):
            opt.constraint = {"vector": MaxNorm(1, axis=1)}
        with pytest.raises(
            OptimizerError, match=r"UnitNorm of 'kernel' .* \[0, 2\] of \(3, 3, 4, 5\), and axis 1 is between"
        ):
            opt.constraint = {"kernel": UnitNorm(axis=(0, 2))}
        with pytest.raises(OptimizerError, match="'number' has axis 0, but the parameter has 0 axes"):
            opt.constraint = MaxNorm()
        assert opt.constraint is None

    def test_what_is_no_constraint(self):
        opt = SGD(params(), lr=0.1, backend="numpy")
        with pytest.raises(
            OptimizerError, match="'dens', which is not the name of a parameter; did you mean 'dense'"
        ):
            opt.constraint = {"dens": MaxNorm()}
        with pytest.raises(OptimizerError, match=r"but the class MaxNorm: make one of it, MaxNorm\(\.\.\.\)"):
            opt.constraint = {"dense": MaxNorm}
        with pytest.raises(OptimizerError, match="for 'dense' no constraint"):
            opt.constraint = {"dense": lambda name, array: None}
        with pytest.raises(OptimizerError, match=r"params\[0\]\['constraint'\] must be a constraint"):
            SGD([{"params": params(), "constraint": 3}], lr=0.1)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: MaxNorm(-1), "max_value of MaxNorm must be at least 0, not -1"),
            (lambda: MaxNorm(float("nan")), "max_value of MaxNorm is NaN"),
            (lambda: MaxNorm(axis=1.5), "axis of MaxNorm must be a whole number"),
            (lambda: UnitNorm(axis=[]), "axis of UnitNorm must be a whole number"),
            (lambda: UnitNorm(axis=True), "axis of UnitNorm must be a whole number"),
            (lambda: MinMaxNorm(2, 1), "min_value of MinMaxNorm, 2.0, is above max_value, 1.0"),
            (lambda: MinMaxNorm(rate=1.5), "rate of MinMaxNorm must be from 0 to 1, not 1.5"),
            (lambda: MinMax(1, 0), "low of MinMax, 1.0, is above high"),
            (lambda: MinMax(None, None), "would do nothing"),
        ],
    )
    def test_arguments(self, make, message):
        with pytest.raises(HyperparameterError, match=message):
            make()

    def test_classes_and_what_is_derived_from_one(self):
        class Own(MaxNorm):
            pass

        class Called(MaxNorm):
            def __call__(self, name, array):
                array[...] = 0

        opt = SGD(params(), lr=0.1, backend="numpy")
        for cls in (MaxNorm, NonNegative, Own, Constraint):
            with pytest.raises(OptimizerError, match=f"not the class {cls.__name__}: make one of it"):
                opt.constraint = cls
        for one in (Own(), Called(), Constraint()):
            name = type(one).__name__
            with pytest.raises(OptimizerError, match=f"not an? {name}, which isn't one of MaxNorm, MinMax"):
                opt.constraint = one
            with pytest.raises(OptimizerError, match=f"for 'dense' no .* but an? {name}, which isn't"):
                opt.constraint = {"dense": one}
        assert opt.constraint is None

    def test_a_package_without_them(self):
        class Elsewhere(Optimizer):
            definition = SGD.definition

        Elsewhere.__module__ = "elsewhere.sgd"
        opt = Elsewhere(params(), hyperparameters={}, options={}, backend="numpy")
        with pytest.raises(OptimizerError, match="Elsewhere was built without support for constraints"):
            opt.constraint = NonNegative()

    def test_of_data(self):
        for one in (*ALL.values(), MinMax(None, 2)):
            assert from_data(json.loads(json.dumps(as_data(one))), "it") == one
        with pytest.raises(OptimizerError, match="it is an unknown constraint, 'MaxNrm'; did you"):
            from_data({"constraint": "MaxNrm"}, "it")
        with pytest.raises(OptimizerError, match="it, a UnitNorm, must have axis"):
            from_data({"constraint": "UnitNorm"}, "it")
        with pytest.raises(OptimizerError, match="it is no constraint"):
            from_data("UnitNorm", "it")


def grouped(of, **own):
    return [{"params": {"dense": of["dense"]}, **own}, {"params": {"rows": of["rows"], "plain": of["plain"]}}]


class TestWhereTheyAreKept:
    def test_groups(self):
        one = Adam(grouped(params(), constraint=UnitNorm()), backend="numpy")
        assert one.constraint == {"dense": UnitNorm()}
        two = Adam(grouped(params(), constraint={"dense": MaxNorm(1)}), backend="numpy")
        assert two.constraint == {"dense": MaxNorm(1)}
        with pytest.raises(OptimizerError, match=r"params\[0\]\['constraint'\] has 'rows', which is no"):
            Adam(grouped(params(), constraint={"rows": MaxNorm(1)}), backend="numpy")
        assert Adam(grouped(params(), constraint=None), backend="numpy").constraint is None

    def test_by_position(self):
        opt = SGD([params()["dense"], params()["rows"]], lr=0.1, backend="numpy")
        opt.constraint = {1: MaxNorm(), "0": UnitNorm()}
        assert opt.constraint == {"0": UnitNorm(), "1": MaxNorm()}
        with pytest.raises(OptimizerError, match="constraint has '2', which is not the name of a parameter"):
            opt.constraint = {2: MaxNorm()}
        group = {"params": [params()["rows"]], "constraint": {1: MaxNorm()}}
        opt = SGD([{"params": [params()["dense"]]}, group], lr=0.1, backend="numpy")
        assert opt.constraint == {"1": MaxNorm()}

    def test_what_a_snapshot_has_is_taken_over_with_the_rest(self, monkeypatch):
        """Ctrl-C while a snapshot is taken over finds all of it done."""
        of = {"w": params()["dense"], "v": params()["vector"]}
        one = Adam(of, backend="numpy", wrappers=Wrappers(shadow="bfloat16"))
        one.freeze("v")
        one.constraint = {"w": MaxNorm(1)}
        kept = one.state_dict()
        zeros = {name: np.zeros_like(array) for name, array in of.items()}
        other = Adam(zeros, backend="numpy", wrappers=Wrappers(shadow="bfloat16"))
        zeros["w"][:] = 3.0
        copy_in = NumpyBackend.copy_in

        def interrupted(*args):
            signal.raise_signal(signal.SIGINT)
            copy_in(*args)

        monkeypatch.setattr(NumpyBackend, "copy_in", interrupted)
        with pytest.raises(KeyboardInterrupt):
            other.load_state_dict(kept)
        assert (other.frozen, other.constraint) == (("v",), {"w": MaxNorm(1)})
        assert (other.shadows["w"] == 3).all()

    def test_one_for_all(self):
        of = {name: params()[name] for name in ("dense", "rows")}
        opt = Adam(of, backend="numpy")
        opt.constraint = MaxNorm()
        assert opt.constraint == {"dense": MaxNorm(), "rows": MaxNorm()}
        opt.constraint = {}
        assert opt.constraint is None

    def test_configurations(self):
        for groups in (lambda of: of, grouped):
            opt = Adam(groups(params()), backend="numpy", wrappers=Wrappers(l2=0.1))
            opt.constraint = {name: ALL[name] for name in ("dense", "plain")}
            config = json.loads(json.dumps(opt.get_config()))
            again = Adam.from_config(params() if groups is not grouped else sub(params()), config)
            assert again.constraint == opt.constraint
            assert again.get_config() == config
            opt.constraint = None
            assert all("constraint" not in group for group in opt.get_config()["groups"])

    def test_wrong_configurations(self):
        opt = Adam(params(), backend="numpy")
        opt.constraint = UnitNorm(axis=None)
        config = opt.get_config()
        config["groups"][0]["constraint"]["dense"]["axis"] = "x"
        with pytest.raises(HyperparameterError, match="axis of UnitNorm"):
            Adam.from_config(params(), config)
        config["groups"][0]["constraint"] = 3
        with pytest.raises(
            OptimizerError, match="'constraint' in group 0 of the configuration must be a mapp"
        ):
            Adam.from_config(params(), config)

    @pytest.mark.parametrize("suffix", ["h5", "safetensors"])
    def test_snapshots(self, tmp_path, suffix):
        path = tmp_path / f"s.{suffix}"
        opt = Adam(params(), backend="numpy")
        opt.constraint = ALL
        opt.step(gradients(opt.params))
        opt.save(path)
        assert snapshots.describe(path)["constraints"]["rows"]["axis"] == -1
        other = Adam(params(), backend="numpy")
        other.constraint = MinMax(0, 1)
        other.load(path, hyperparameters=False)
        assert set(other.constraint.values()) == {MinMax(0, 1)}
        other.load(path)
        assert other.constraint == opt.constraint
        for one in (opt, other):
            one.step(gradients(opt.params, 1))
        for name in SHAPES:
            assert_same_bits(opt.params[name], other.params[name])
        opt.constraint = None
        other.load_state_dict(opt.state_dict())
        assert other.constraint is None

    def test_snapshots_and_functions(self, tmp_path):
        opt = Adam({"dense": params()["dense"]}, backend="numpy")
        opt.constraint = UnitNorm()
        opt.save(tmp_path / "s.h5")
        other = Adam({"dense": params()["dense"]}, backend="numpy")
        other.constraint = lambda name, array: None
        with pytest.raises(SnapshotMismatch, match=r"set opt\.constraint to None before"):
            other.load(tmp_path / "s.h5")
        opt.constraint = None
        function = other.constraint
        other.load_state_dict(opt.state_dict())
        assert other.constraint is function

    def test_wrong_state_dicts(self):
        opt = Adam({"dense": params()["dense"]}, backend="numpy")
        opt.constraint = UnitNorm()
        saved = opt.state_dict()
        with pytest.raises(OptimizerError, match="'q', but there is no such tensor"):
            opt.load_state_dict({**saved, "constraints": {"q": as_data(UnitNorm())}})
        with pytest.raises(OptimizerError, match="has axis 7"):
            opt.load_state_dict({**saved, "constraints": {"dense": as_data(UnitNorm(7))}})
        with pytest.raises(OptimizerError, match="the constraint of 'dense' in the state_dict"):
            opt.load_state_dict({**saved, "constraints": {"dense": {}}})

    def test_older_formats_say_as_much(self):
        opt = Adam({"dense": params()["dense"]}, backend="numpy")
        data = opt._snapshot(params=False)
        assert version_of(data) == 1
        assert version_of(replace(data, constraints={"dense": as_data(UnitNorm())})) == 5
        with pytest.raises(SnapshotError, match="constraints for 'q', but no such tensor"):
            check(replace(data, constraints={"q": as_data(UnitNorm())}))


def sub(of):
    return {name: of[name] for name in ("dense", "rows", "plain")}


def test_a_rule_with_a_transform_of_the_parameter():
    """Lookahead takes up the constrained values: what is held is what there is after the step."""
    of = {"w": params()["dense"]}
    opt = Lookahead(of, backend="numpy")
    opt.constraint = MaxNorm(0.1)
    for step in range(7):
        opt.step(gradients(of, step))
        assert np.linalg.norm(of["w"], axis=0).max() < 0.1001
