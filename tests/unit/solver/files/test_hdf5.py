"""Caffe's HDF5 files: what Caffe's calls make is read, and what is written has just that layout."""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from solvergen.errors import SnapshotWarning, SolverFileError
from solvergen.solver.files import (
    LayerData,
    ModelData,
    SolverStateData,
    read_model,
    read_state,
    sharing,
    write_model,
    write_state,
)
from tests.unit.solver.files.caffe_bytes import array, same_bits, same_state, small_model, small_state


def caffes_text(root: h5py.File, name: str, value: bytes) -> None:
    """As H5LTmake_dataset_string."""
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(len(value) + 1)
    space = h5py.h5s.create(h5py.h5s.SCALAR)
    dataset = h5py.h5d.create(root.id, name.encode(), kind, space)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array(value + b"\0", f"S{len(value) + 1}"), kind)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_state_that_caffe_wrote(tmp_path: Path, dtype: str) -> None:
    history = [array(i + 1, 2, seed=i, dtype=dtype) for i in range(12)]  # "10" comes before "2" by name
    with h5py.File(tmp_path / "s.solverstate.h5", "w") as root:
        root["iter"] = np.array([500], np.int32)
        caffes_text(root, "learned_net", b"a_iter_500.caffemodel.h5")
        root["current_step"] = np.array([2], np.int32)
        for index, values in enumerate(history):
            root[f"history/{index}"] = values
    found = read_state(tmp_path / "s.solverstate.h5")
    assert (found.iter, found.learned_net, found.current_step) == (500, "a_iter_500.caffemodel.h5", 2)
    assert all(same_bits(a, b) for a, b in zip(found.history, history, strict=True))


def test_a_state_is_written_in_caffes_layout(tmp_path: Path) -> None:
    state = small_state()
    write_state(tmp_path / "s.solverstate.h5", state)
    with h5py.File(tmp_path / "s.solverstate.h5", "r") as root:
        assert set(root) == {"iter", "learned_net", "current_step", "history"}
        assert (root["iter"].shape, root["iter"].dtype, int(root["iter"][0])) == ((1,), np.int32, 7)
        assert (root["current_step"].shape, int(root["current_step"][0])) == ((1,), 2)
        kind = root["learned_net"].id.get_type()
        assert (root["learned_net"].shape, kind.get_size(), kind.is_variable_str()) == ((), 10, False)
        assert kind.get_strpad() == h5py.h5t.STR_NULLTERM
        assert root["learned_net"][()] == b"somewhere"
        assert sorted(root["history"]) == ["0", "1", "2"]
        for index, values in enumerate(state.history):
            dataset = root[f"history/{index}"]
            assert (dataset.dtype, dataset.shape, dataset.chunks) == (values.dtype, values.shape, None)
            assert dataset[()].tobytes() == values.tobytes()
    assert same_state(read_state(tmp_path / "s.solverstate.h5"), state)


def test_a_model_that_caffe_wrote(tmp_path: Path) -> None:
    w, b = array(3, 4), array(4)
    with h5py.File(tmp_path / "m.caffemodel.h5", "w") as root:
        data, diff = root.create_group("data"), root.create_group("diff")
        for name in ("zeta", "data", "twin"):  # every layer has its group, with blobs or without
            data.create_group(name)
            diff.create_group(name)
        data["zeta"]["0"], data["zeta"]["1"] = w, b
        data["twin"]["1"] = b + 1  # its "0" is zeta's
        diff["zeta"]["0"], diff["zeta"]["1"] = w * 2, b * 2
        diff["twin"]["0"], diff["twin"]["1"] = w * 3, b * 3
    found = read_model(tmp_path / "m.caffemodel.h5")
    assert [layer.name for layer in found.layers] == ["data", "twin", "zeta"]
    none, twin, zeta = found.layers
    assert (none.blobs, none.diffs) == ((), None)
    assert twin.blobs[0] is None
    assert same_bits(twin.blobs[1], b + 1)
    assert twin.diffs is not None
    assert same_bits(twin.diffs[0], w * 3)
    assert same_bits(zeta.blobs[0], w)
    with pytest.raises(SolverFileError, match=r"blob 0 is another layer's.*use HDF5"):
        write_model(tmp_path / "m.caffemodel", found)


@pytest.mark.parametrize("diffs", [False, True])
def test_a_model_is_written_in_caffes_layout(tmp_path: Path, diffs: bool) -> None:
    write_model(tmp_path / "m.caffemodel.h5", small_model(diffs=diffs))
    with h5py.File(tmp_path / "m.caffemodel.h5", "r") as root:
        assert set(root) == ({"data", "diff"} if diffs else {"data"})
        assert {name: sorted(root["data"][name]) for name in root["data"]} == {
            "data": [],
            "one": ["0", "1"],
            "two": ["1"],  # "0" is saved by its owner alone
        }
        if diffs:
            assert {name: sorted(root["diff"][name]) for name in root["diff"]} == {
                "data": [],
                "one": ["0", "1"],
                "two": ["0", "1"],
            }
    found = read_model(tmp_path / "m.caffemodel.h5")
    assert [layer.name for layer in found.layers] == [
        "data",
        "one",
        "two",
    ]  # in the net's order, not the names'
    assert found.layers[2].blobs[0] is found.layers[1].blobs[0]


def without_notes(path: Path) -> None:
    """Make a file one of Caffe's, which doesn't say whose a shared blob is."""
    with h5py.File(path, "r+") as root:
        names = [name for name in root["data/two"].attrs if name.startswith("solvergen")]
        assert names == ["solvergen_owner_of_0"]
        assert root["data/two"].attrs[names[0]] == b"one/0"
        for name in names:
            del root["data/two"].attrs[name]


def test_a_shared_blob_of_caffes(tmp_path: Path) -> None:
    write_model(tmp_path / "m.caffemodel.h5", small_model())
    without_notes(tmp_path / "m.caffemodel.h5")
    found = read_model(tmp_path / "m.caffemodel.h5")
    assert found.layers[2].blobs[0] is None
    whole = sharing.resolved(found, sharing.pairs_of(["two/0=one/0"]))
    assert whole.layers[2].blobs[0] is found.layers[1].blobs[0]
    assert whole.layers[2].blobs[1] is found.layers[2].blobs[1]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["two=one/0"], "written LAYER/NUMBER=LAYER/NUMBER"),
        (["two/0=one"], "written LAYER/NUMBER"),
        (["three/0=one/0"], "no layer 'three'"),
        (["two/0=four/0"], "said to be blob 0 of 'four', and there is none"),
        (["two/0=one/7"], "blob 7 of 'one', and there is none"),
        (["one/0=two/1"], "blob 0 of layer 'one' is its own: it has other numbers"),
        (["two/4=one/0"], "blob 4 of layer 'two', and nothing says whose 2 is"),
    ],
)
def test_what_cant_be_shared(tmp_path: Path, pairs: list[str], words: str) -> None:
    write_model(tmp_path / "m.caffemodel.h5", small_model())
    without_notes(tmp_path / "m.caffemodel.h5")
    with pytest.raises(SolverFileError, match=words):
        sharing.resolved(read_model(tmp_path / "m.caffemodel.h5"), sharing.pairs_of(pairs))


def test_a_last_blob_that_is_shared(tmp_path: Path) -> None:
    mine, theirs = array(2), array(3, seed=1)
    layers = (
        LayerData("a/b", "", (theirs,)),
        LayerData("c", "", (mine, theirs)),
        LayerData("d", "", (theirs,)),
    )
    with pytest.warns(SnapshotWarning, match="slash"):
        write_model(tmp_path / "m.h5", ModelData("", layers))
    found = read_model(tmp_path / "m.h5")
    assert [len(layer.blobs) for layer in found.layers] == [1, 2, 1]
    assert found.layers[1].blobs[1] is found.layers[0].blobs[0] is found.layers[2].blobs[0]


@pytest.mark.parametrize(
    "value", [np.bytes_(b"nowhere/0"), np.bytes_(b"one"), np.int64(3), np.bytes_(b"one/9")]
)
def test_a_damaged_note(tmp_path: Path, value: object) -> None:
    write_model(tmp_path / "m.caffemodel.h5", small_model())
    with h5py.File(tmp_path / "m.caffemodel.h5", "r+") as root:
        root["data/two"].attrs["solvergen_owner_of_0"] = (
            np.bytes_(value) if isinstance(value, bytes) else value
        )
    with pytest.raises(SolverFileError, match=r"m\.caffemodel\.h5: .*(damaged|there is none)"):
        read_model(tmp_path / "m.caffemodel.h5")


def test_names_with_slashes(tmp_path: Path) -> None:
    names = ("conv1/7x7_s2", "conv1/relu", "inception/3a/1x1", "plain")
    model = ModelData("g", tuple(LayerData(n, "", (array(2, seed=i),)) for i, n in enumerate(names)))
    with pytest.warns(SnapshotWarning, match="Caffe finds no layers in HDF5 whose names have a slash"):
        write_model(tmp_path / "m.h5", model)
    found = read_model(tmp_path / "m.h5")
    assert [layer.name for layer in found.layers] == list(names)
    assert all(same_bits(a.blobs[0], b.blobs[0]) for a, b in zip(found.layers, model.layers, strict=True))


@pytest.mark.parametrize("name", ["", ".", "a//b", "a/../b"])
def test_names_that_hdf5_has_not(tmp_path: Path, name: str) -> None:
    with pytest.raises(SolverFileError, match="HDF5 can't have a group named"):
        write_model(tmp_path / "m.h5", ModelData("", (LayerData(name),)))
    assert os.listdir(tmp_path) == []


def test_two_layers_of_one_name_and_one_in_anothers_place(tmp_path: Path) -> None:
    with pytest.raises(SolverFileError, match="two layers have the same name"):
        write_model(tmp_path / "m.h5", ModelData("", (LayerData("a"), LayerData("a"))))


def test_shapes_at_the_edges(tmp_path: Path) -> None:
    arrays = (np.array(2.5, np.float32), np.zeros((0, 3), np.float32), array(1, 1, 1, 1, 1, 2))
    write_state(tmp_path / "s.h5", SolverStateData(iter=2**31 - 1, history=arrays))
    found = read_state(tmp_path / "s.h5")
    assert (found.iter, found.learned_net) == (2**31 - 1, None)
    assert all(same_bits(a, b) for a, b in zip(found.history, arrays, strict=True))


def test_one_is_not_the_other(tmp_path: Path) -> None:
    write_state(tmp_path / "s.h5", small_state())
    write_model(tmp_path / "m.h5", small_model())
    with pytest.raises(SolverFileError, match="a solver's state, not a model"):
        read_model(tmp_path / "s.h5")
    with pytest.raises(SolverFileError, match=r"a model \(weights alone\).*give it as weights"):
        read_state(tmp_path / "m.h5")


def test_foreign_files(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "keras.h5", "w") as root:
        root["model_weights/dense/kernel"] = array(2)
    for read in (read_model, read_state):
        with pytest.raises(SolverFileError, match="an HDF5 file of something else: it has 'model_weights'"):
            read(tmp_path / "keras.h5")
    (tmp_path / "s.solverstate.h5").write_bytes(b"\x08\x01")
    with pytest.raises(SolverFileError, match="not in the format HDF5 that its name says"):
        read_state(tmp_path / "s.solverstate.h5")


def test_nothing_leads_out_of_the_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["x"] = array(2)
    for link in (h5py.ExternalLink("other.h5", "/x"), h5py.SoftLink("/iter")):
        with h5py.File(tmp_path / "s.h5", "w") as root:
            root["iter"] = np.array([1], np.int32)
            root.create_group("history")["0"] = link
        with pytest.raises(SolverFileError, match="not followed"):
            read_state(tmp_path / "s.h5")
    with h5py.File(tmp_path / "s.h5", "w") as root:
        root["iter"] = np.array([1], np.int32)
        group = root.create_group("history")
        group.create_dataset("0", (2,), "f4", external=[(str(tmp_path / "raw"), 0, 8)])
    with pytest.raises(SolverFileError, match="in another file"):
        read_state(tmp_path / "s.h5")


def test_a_small_file_can_not_ask_for_much_memory(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as root:
        root["iter"] = np.array([1], np.int32)
        root.create_group("history").create_dataset("0", (10**12,), "f4", chunks=(1000,), compression="gzip")
    with pytest.raises(SolverFileError, match="doesn't have the data"):
        read_state(tmp_path / "s.h5")


def test_compressed_by_others(tmp_path: Path) -> None:
    values = array(100, 10)
    with h5py.File(tmp_path / "s.h5", "w") as root:
        root["iter"] = np.array([1], np.int64)
        root.create_group("history").create_dataset("0", data=values, compression="gzip", shuffle=True)
    assert same_bits(read_state(tmp_path / "s.h5").history[0], values)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda root: root.__setitem__("iter", np.array([1, 2], np.int32)), "'iter' isn't one integer"),
        (lambda root: root.__setitem__("iter", np.array([-3], np.int32)), "iter is -3"),
        (lambda root: root.__setitem__("learned_net", np.array([1])), "'learned_net' isn't text"),
        (lambda root: root["history"].__setitem__("5", array(2)), "history 3 is missing"),
        (lambda root: root["history"].__setitem__("x", array(2)), "a dataset 'x', where Caffe has numbers"),
        (lambda root: root["history"].__setitem__("3", np.array([1])), "int64, where Caffe has floats"),
    ],
)
def test_a_state_that_is_not_one(tmp_path: Path, change: object, says: str) -> None:
    write_state(tmp_path / "s.h5", small_state())
    with h5py.File(tmp_path / "s.h5", "a") as root:
        for name in ("iter", "learned_net"):
            if name in says:
                del root[name]
        change(root)  # type: ignore[operator]
    with pytest.raises(SolverFileError, match=says):
        read_state(tmp_path / "s.h5")


def test_cut_short_anywhere(tmp_path: Path) -> None:
    write_state(tmp_path / "whole.h5", small_state())
    data = (tmp_path / "whole.h5").read_bytes()
    for size in range(0, len(data), 61):
        (tmp_path / "s.h5").write_bytes(data[:size])
        with pytest.raises(SolverFileError):
            read_state(tmp_path / "s.h5")
