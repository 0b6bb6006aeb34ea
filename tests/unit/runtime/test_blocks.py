"""Blocks that the user gives: counts, arguments, steps, snapshots."""

from __future__ import annotations

import json
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from generated import SGD, AdamMini
from solvergen.errors import OptimizerError, SnapshotError, SnapshotMismatch
from solvergen.runtime import snapshots
from solvergen.runtime.blocks import block_counts, fits
from solvergen.runtime.lines import geometry_table, matrix_shape, shape_of_kind, state_shape
from solvergen.runtime.snapshots import document
from solvergen.runtime.wrappers import Wrappers
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS

F = np.float32
SHAPES = {"heads": (8, 3, 70), "table": (66, 5), "bias": (300,), "scale": (), "empty": (0, 3)}
BLOCKS = {"heads": 16 * 3, "table": "rows", "bias": 3}
COUNTS = {"heads": 48, "table": 66, "bias": 3, "scale": 1, "empty": 1}
every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)


def params(dtype=F, **shapes):
    rng = np.random.default_rng(1)
    return {
        name: np.array(rng.normal(size=shape)).astype(dtype) for name, shape in (shapes or SHAPES).items()
    }


def gradients(step, of, dtype=F):
    rng = np.random.default_rng(100 + step)
    return {name: np.array(rng.normal(size=array.shape)).astype(dtype) for name, array in of.items()}


# Shapes.


@pytest.mark.parametrize(
    ("shape", "counts", "others"),
    [
        ((), [1], [2]),
        ((6,), [1, 2, 3, 6], [4, 5, 7, 12]),
        ((6, 4), [1, 2, 3, 6, 12, 24], [4, 8, 18, 48]),
        ((2, 3, 4), [1, 2, 6, 12, 24], [3, 4, 8]),
        ((1, 1, 5), [1, 5], [2, 10]),
        ((2, 0), [1, 2, 4, 6], [3]),
        ((0, 3), [1, 2, 7], []),
    ],
)
def test_counts_that_fit(shape, counts, others):
    assert all(fits(shape, count) for count in counts)
    assert not any(fits(shape, count) for count in others)


def test_blocks_are_rows_of_one_matrix():
    assert matrix_shape("blocks", (8, 3, 70), 48) == (1, 48, 35)
    assert matrix_shape("blocks", ()) == (1, 1, 1)
    assert matrix_shape("blocks", (0, 3), 0) == (1, 0, 0)
    assert state_shape("blocks", "rows", (8, 3, 70), 48) == (48,)
    assert shape_of_kind("blocks", (4, 2), 4) == (4,)
    assert shape_of_kind("blocks", (4, 2)) == (1,)
    assert geometry_table("blocks", [(8, 2), (3,)], [4, 1])[:, :7].tolist() == [
        [1, 4, 4, 0, 0, 0, 2],
        [1, 1, 3, 4, 4, 1, 1],
    ]
    assert geometry_table("leading", [(8, 2)], [4])[0, :3].tolist() == [1, 8, 2]


def test_counts_of_what_was_given():
    shapes = {"a": (4, 6), "b": (), "c": (0, 2)}
    given = {"a": 8, "b": "rows", "c": "rows"}
    assert block_counts([*shapes], [*shapes.values()], given) == [8, 1, 0]
    assert block_counts([*shapes], [*shapes.values()], {}) == [1, 1, 1]
    with pytest.raises(
        OptimizerError, match=r"parameter 'a' of shape \(4, 6\) can't be divided into 3 equal blocks"
    ):
        block_counts([*shapes], [*shapes.values()], {"a": 3})


# Arguments.


def test_what_may_be_given():
    def counts(given, of=None, **settings):
        return dict(
            AdamMini(of or {"w": np.ones((4, 2), F), "v": np.ones(6, F)}, blocks=given, **settings).blocks
        )

    assert counts(None) == {"w": 1, "v": 1}
    assert counts({}) == {"w": 1, "v": 1}
    assert counts(2) == {"w": 2, "v": 2}
    assert counts(np.int64(2)) == {"w": 2, "v": 2}
    assert counts("rows") == {"w": 4, "v": 6}
    assert counts({"w": "rows"}) == {"w": 4, "v": 1}
    listed = [np.ones((4, 2), F), np.ones(6, F)]
    assert counts({0: 8, "1": 3}, listed) == {"0": 8, "1": 3}
    assert AdamMini(listed, blocks={1: 3}).blocks[1] == 3
    assert counts(4, [np.ones(8, F)]) == {"0": 4}
    assert dict(SGD([np.ones(4, F)], lr=1.0).blocks) == {}


def test_groups_have_their_own():
    groups = [
        {"params": {"a": np.ones(4, F), "b": np.ones(4, F)}, "blocks": {"a": 4}},
        {"params": {"c": np.ones(4, F)}, "blocks": "rows", "lr": 0.5},
        {"params": {"d": np.ones(4, F)}},
    ]
    assert dict(AdamMini(groups, blocks=2).blocks) == {"a": 4, "b": 2, "c": 4, "d": 2}
    assert groups[0]["blocks"] == {"a": 4}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"x": 2}, "blocks has 'x', which is not the name of a parameter there; there are 'w' and 'v'"),
        ({"ww": 2}, "did you mean 'w'"),
        ({0: 2}, "blocks has 0, which is not the name of a parameter there"),
        ({"w": 0}, r"blocks\['w'\] must be a whole number from 1 to 2147483647, or 'rows'"),
        ({"w": 10**30}, r"blocks\['w'\] must be a whole number from 1 to"),
        ({"w": True}, "not True"),
        ({"w": 2.0}, r"not 2\.0"),
        ({"w": None}, "not None"),
        ("columns", "blocks must be a whole number from 1 to.*not 'columns'"),
        (-1, "not -1"),
        ({"v": 4}, r"parameter 'v' of shape \(6,\) can't be divided into 4 equal blocks"),
        (4, "parameter 'v' of shape"),
        (2**31 - 1, "parameter 'w' of shape"),
    ],
)
def test_what_is_refused(given, text):
    with pytest.raises(OptimizerError, match=text):
        AdamMini({"w": np.ones((4, 2), F), "v": np.ones(6, F)}, blocks=given)


def test_what_groups_may_not_say():
    a, b = {"a": np.ones(4, F)}, {"b": np.ones(4, F)}
    with pytest.raises(
        OptimizerError, match=r"params\[1\]\['blocks'\] has 'a', which is not the name of a parameter there"
    ):
        AdamMini([{"params": a}, {"params": b, "blocks": {"a": 2}}])
    with pytest.raises(OptimizerError, match="SGD doesn't use blocks"):
        SGD([{"params": a, "blocks": 2}], lr=1.0)
    with pytest.raises(AttributeError, match="read-only"):
        AdamMini(a).blocks = {"a": 2}


# Steps.


@every_backend
@pytest.mark.parametrize("dtype", [F, np.float64, ml_dtypes.bfloat16], ids=lambda dtype: np.dtype(dtype).name)
def test_a_block_is_as_a_tensor_of_its_own(backend, dtype):
    """To the bit: a block of many, and one that is alone in its tensor."""
    whole, apart = params(dtype), params(dtype)
    opt = AdamMini(whole, blocks=BLOCKS, backend=backend, weight_decay=0.1)

    def pieces(of):
        return [piece for name, array in of.items() for piece in np.split(array.reshape(-1), COUNTS[name])]

    alone = AdamMini(pieces(apart), backend=backend, weight_decay=0.1)
    for step in range(3):
        found = gradients(step, whole, dtype)
        opt.step(found)
        alone.step(pieces(found))
    for name in whole:
        assert_same_bits(whole[name], apart[name])
    moments = np.concatenate([opt.state["exp_avg_sq"][name] for name in whole])
    assert_same_bits(moments, np.concatenate([*alone.state["exp_avg_sq"].values()]))
    assert {name: value.shape for name, value in opt.state["exp_avg_sq"].items()} == {
        name: (count,) for name, count in COUNTS.items()
    }


@every_backend
def test_tensors_of_several_launches_and_no_blocks(backend):
    """Half of the blocks in another type; a tensor whose first axis is empty has none by rows."""
    of = {"a": np.ones((4, 3), F), "b": np.ones((4, 3)), "none": np.ones((0, 3), F), "c": np.ones(6, F)}
    opt = AdamMini(of, blocks={"a": 4, "b": 2, "none": "rows", "c": 3}, backend=backend, lr=0.5)
    found = {name: np.full_like(array, 2) for name, array in of.items()}
    found["a"][1], found["c"][4:] = 3, 0
    opt.step({**found, "b": None})
    opt.step(found)
    assert opt.state["exp_avg_sq"]["none"].shape == (0,)
    squares = opt.state["exp_avg_sq"]
    assert squares["a"][1] > squares["a"][0]
    assert squares["c"][2] == 0.0
    assert of["c"].tolist()[4:] == [1.0, 1.0]
    assert opt.steps["b"] == 1
    assert squares["b"].shape == (2,)


def test_wrappers_go_around():
    plain, wrapped = params(), params()
    one = AdamMini(plain, blocks=BLOCKS)
    two = AdamMini(wrapped, blocks=BLOCKS, wrappers=Wrappers(accumulate=2, accumulation="sum"))
    for step in range(3):
        found = gradients(step, plain)
        one.step(found)
        two.step(found)
        two.step({name: np.zeros_like(g) for name, g in found.items()})
    for name in plain:
        assert_same_bits(plain[name], wrapped[name])
    assert dict(two.blocks) == COUNTS


# Configurations and snapshots.


def test_configurations():
    opt = AdamMini(params(), blocks=BLOCKS)
    config = json.loads(json.dumps(opt.get_config()))
    assert config["groups"][0]["blocks"] == BLOCKS
    assert dict(AdamMini.from_config(params(), config).blocks) == COUNTS
    assert "blocks" not in AdamMini(params()).get_config()["groups"][0]
    one = AdamMini(params(), blocks=BLOCKS, wrappers=Wrappers(l2=0.1))
    assert dict(AdamMini.from_config(params(), one.get_config()).blocks) == COUNTS
    config["groups"][0]["blocks"] = {"nobody": 2}
    with pytest.raises(OptimizerError, match="nobody"):
        AdamMini.from_config(params(), config)


@pytest.mark.parametrize("way", ["state_dict", ".h5", ".safetensors"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_run_resumes(tmp_path, way, wrapped):
    mine, theirs = params(), params()
    more = {"wrappers": Wrappers(average=0.5)} if wrapped else {}
    opt, other = (AdamMini(of, blocks=BLOCKS, **more) for of in (mine, theirs))
    for step in range(2):
        opt.step(gradients(step, mine))
    if way == "state_dict":
        for name in mine:
            theirs[name][...] = mine[name]
        other.load_state_dict(opt.state_dict())
    else:
        opt.save(tmp_path / f"s{way}")
        other.load(tmp_path / f"s{way}")
        described = snapshots.describe(tmp_path / f"s{way}")
        assert described["format_version"] == 4
        assert {tensor["name"]: tensor["blocks"] for tensor in described["tensors"]} == COUNTS
    for one, of in ((opt, mine), (other, theirs)):
        one.step(gradients(7, of))
    for name in mine:
        assert_same_bits(mine[name], theirs[name])
        assert_same_bits(opt.state["exp_avg_sq"][name], other.state["exp_avg_sq"][name])


def test_other_blocks_do_not_fit(tmp_path):
    of = {"w": np.ones((4, 2), F)}
    AdamMini(of, blocks=4).save(tmp_path / "s.safetensors")
    opt = AdamMini(of, blocks=2)
    with pytest.raises(
        SnapshotMismatch, match=r"'w' falls into 4 blocks in it, 2 here: construct it with blocks=\{'w': 4\}"
    ):
        opt.load(tmp_path / "s.safetensors")
    state = opt.state_dict()
    state["tensors"]["w"]["blocks"] = 8
    with pytest.raises(SnapshotMismatch, match="8 blocks in it"):
        opt.load_state_dict(state)
    del state["tensors"]["w"]["blocks"]
    with pytest.raises(OptimizerError, match="has no 'blocks'"):
        opt.load_state_dict(state)


def test_counts_matter_only_to_states_of_blocks():
    """A rule that only reduces along blocks has them in its configuration, which is in no file."""
    opt = SGD({"w": np.ones((4, 2), F)}, lr=1.0)
    data = opt._snapshot(params=True)
    layout = snapshots.TensorLayout("w", (4, 2), "float32", blocks=4)
    found = snapshots.match(data, SGD.definition, data.groups, [layout])
    assert found.warnings == ()


def test_snapshots_of_before_there_were_blocks_are_refused():
    """Then a tensor's second moment was a scalar, summed in another order."""
    opt = AdamMini({"w": np.ones((4, 2), F)})
    state = opt.state_dict()
    state["schema"]["exp_avg_sq"] = "scalar"
    state["digest"] = "0" * 64
    tensor = state["tensors"]["w"]
    tensor["arrays"] = {"exp_avg": tensor["arrays"]["exp_avg"]}
    tensor["scalars"] = {"exp_avg_sq": 0.0}
    with pytest.raises(
        SnapshotMismatch, match="'exp_avg_sq' is a scalar in it, one number for each of its blocks here"
    ):
        opt.load_state_dict(state)


def test_documents():
    data = AdamMini({"w": np.ones((4, 2), F)}, blocks=4)._snapshot(params=True)

    def encoded(data):
        specs = {slot.spec.key: slot.spec for slot, _ in document.slots_of(data)}
        return json.loads(document.encode(data, specs, dict.fromkeys(specs, "0" * 64)))

    value = encoded(data)
    assert value["format"] == 4
    assert value["tensors"][0]["blocks"] == 4
    header = document.decode(json.dumps(value).encode())
    assert header.data.tensors[0].blocks == 4
    assert {slot.spec.shape for slot in header.slots if slot.state == "exp_avg_sq"} == {(4,)}
    with pytest.raises(SnapshotError, match=r"exp_avg_sq.* has shape \(4,\), not \(2,\)"):
        encoded(replace(data, tensors=(replace(data.tensors[0], blocks=2),)))
    for wrong in ({"format": 3}, {"tensors": [{**value["tensors"][0], "blocks": -1}]}):
        with pytest.raises(SnapshotError):
            document.decode(json.dumps({**value, **wrong}).encode())


# Reading states.


@every_backend
def test_a_state_is_read_alone(backend, monkeypatch):
    """Not with the tables of all tensors."""
    of = params()
    opt = AdamMini(of, blocks=BLOCKS, backend=backend)
    opt.step(gradients(0, of))
    tables = opt._workspace.read_lines()
    expected = np.split(tables["rows"][:, 0], np.cumsum([*COUNTS.values()])[:-1])
    monkeypatch.setattr(type(opt._workspace), "read_lines", lambda self: pytest.fail("all tables were read"))
    for name, values in zip(of, expected, strict=True):
        found = opt.state["exp_avg_sq"][name]
        assert_same_bits(found, values)
        found[...] = -1.0  # a copy
        assert_same_bits(opt.state["exp_avg_sq"][name], values)
