"""Caffe's binaryproto files, old and new, against bytes that were built from the tables of fields."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from solvergen.errors import SolverFileError
from solvergen.solver.files import (
    LayerData,
    ModelData,
    SolverStateData,
    arranged,
    binaryproto,
    read_model,
    read_state,
    write_model,
    write_state,
)
from solvergen.solver.files.layer_types import OF_NUMBER
from solvergen.solver.parameters.proto.messages import message_class
from tests.unit.solver.files import caffe_bytes as made
from tests.unit.solver.files.caffe_bytes import array, same_bits, same_model, same_state


def state_of(tmp_path: Path, data: bytes) -> SolverStateData:
    path = tmp_path / "s.solverstate"
    path.write_bytes(data)
    return read_state(path)


def model_of(tmp_path: Path, data: bytes) -> ModelData:
    path = tmp_path / "m.caffemodel"
    path.write_bytes(data)
    return read_model(path)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_state_is_read_and_written_in_caffes_bytes(tmp_path: Path, dtype: str) -> None:
    history = [
        array(2, 3, 5, 5, dtype=dtype),
        array(3, seed=1, dtype=dtype),
        array(200, 300, seed=2, dtype=dtype),
    ]
    data = made.state(123456, "models/a_iter_123456.caffemodel", [made.blob(h) for h in history], 3)
    found = state_of(tmp_path, data)
    assert (found.iter, found.current_step) == (123456, 3)
    assert found.learned_net == "models/a_iter_123456.caffemodel"
    assert all(same_bits(a, b) for a, b in zip(found.history, history, strict=True))
    write_state(tmp_path / "again.solverstate", found)
    assert (tmp_path / "again.solverstate").read_bytes() == data


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("diffs", [False, True])
def test_a_model_is_read_and_written_in_caffes_bytes(tmp_path: Path, dtype: str, diffs: bool) -> None:
    w, b = array(3, 4, dtype=dtype), array(4, seed=1, dtype=dtype)
    blobs = [made.blob(w, w * 2 if diffs else None), made.blob(b, b * 2 if diffs else None)]
    data = made.net("LeNet", made.layer("data", "Data"), made.layer("ip/1", "InnerProduct", blobs))
    found = model_of(tmp_path, data)
    kept = (w * 2, b * 2) if diffs else None
    layers = (LayerData("data", "Data"), LayerData("ip/1", "InnerProduct", (w, b), kept))
    assert same_model(found, ModelData("LeNet", layers))
    write_model(tmp_path / "again.caffemodel", found)
    assert (tmp_path / "again.caffemodel").read_bytes() == data


def test_protobuf_reads_what_is_written_and_would_write_the_same(tmp_path: Path) -> None:
    model, state = made.small_model(diffs=True), made.small_state()
    write_model(tmp_path / "m.caffemodel", model)
    write_state(tmp_path / "s.solverstate", state)
    for name, kind in (("m.caffemodel", "NetParameter"), ("s.solverstate", "SolverState")):
        data = (tmp_path / name).read_bytes()
        message = message_class(kind).FromString(data)
        assert message.SerializeToString(deterministic=True) == data
    assert list(message.history[1].shape.dim) == [4]
    assert np.array_equal(np.array(message.history[1].data, np.float32), state.history[1])


@pytest.mark.parametrize("packed", [True, False])
def test_a_state_of_2014(tmp_path: Path, packed: bool) -> None:
    w, b = array(20, 1, 5, 5), array(20, seed=1)
    data = made.state(9, "net_iter_9.caffemodel", [made.old_blob(x, packed=packed) for x in (w, b)], None)
    found = state_of(tmp_path, data)
    assert found.current_step == 0
    assert same_bits(found.history[0], w)
    assert found.history[1].shape == (1, 1, 1, 20)
    states = arranged(found, [(20, 1, 5, 5), (20,)], ["history"], spec="caffe_sgd", source="it")
    assert same_bits(states["history"][1], b)
    with pytest.raises(SolverFileError, match=r"\(1, 1, 1, 20\), its parameter \(4, 5\)"):
        arranged(found, [(20, 1, 5, 5), (4, 5)], ["history"], spec="caffe_sgd", source="it")


def test_a_model_of_2014(tmp_path: Path) -> None:
    w, b = array(2, 3, 5, 5), array(2, seed=1)
    blobs = [made.old_blob(w), made.old_blob(b, packed=False)]
    data = made.net(
        "CaffeNet", made.v1_layer("data", 5), made.v1_layer("conv1", 4, blobs), made.v1_layer("r", 18)
    )
    found = model_of(tmp_path, data)
    assert [(layer.name, layer.type) for layer in found.layers] == [
        ("data", "Data"),
        ("conv1", "Convolution"),
        ("r", "ReLU"),
    ]
    assert same_bits(found.layers[1].blobs[0], w)
    assert same_bits(found.layers[1].blobs[1], b.reshape(1, 1, 1, 2))
    nameless = model_of(tmp_path, made.v1_layer("conv1", 4, blobs))
    assert nameless.layers[0].name == "conv1"


def test_a_model_of_2013(tmp_path: Path) -> None:
    w = array(1, 1, 3, 4)
    data = made.net(
        "old", made.v0_layer("fc", "innerproduct", [made.old_blob(w)]), made.v0_layer("odd", "custom")
    )
    found = model_of(tmp_path, data)
    assert [(layer.name, layer.type) for layer in found.layers] == [("fc", "InnerProduct"), ("odd", "custom")]
    assert same_bits(found.layers[0].blobs[0], w)


def test_every_type_of_2014_has_its_present_name() -> None:
    enum = message_class("V1LayerParameter").DESCRIPTOR.enum_types_by_name["LayerType"]
    assert OF_NUMBER.keys() | {0} == {value.number for value in enum.values}
    for number, name in OF_NUMBER.items():
        former = enum.values_by_number[number].name.replace("_", "").lower()
        assert name.lower() == {"softmaxloss": "softmaxwithloss"}.get(former, former)


def test_fields_of_others_and_in_any_order_are_no_matter(tmp_path: Path) -> None:
    w = array(6)
    numbers = made.floats(w)
    pieces = made.content(5, numbers[:8]) + made.content(7, made.integer(1, 2) + made.integer(1, 3))
    pieces += made.content(999, b"what a fork adds") + b"\x2d" + numbers[8:12] + made.content(5, numbers[12:])
    data = (
        made.integer(4, 5)
        + made.content(3, pieces)
        + made.integer(77, 1)
        + made.integer(1, 2)
        + made.integer(1, 8)
    )
    found = state_of(tmp_path, data)
    assert (found.iter, found.current_step, found.learned_net) == (8, 5, None)
    assert same_bits(found.history[0], w.reshape(2, 3))


def test_shapes_at_the_edges(tmp_path: Path) -> None:
    arrays = (np.array(2.5, np.float32), np.zeros((0, 3), np.float32), array(1, 1, 1, 1, 1, 2))
    write_state(tmp_path / "s.solverstate", SolverStateData(iter=2**31 - 1, history=arrays))
    found = read_state(tmp_path / "s.solverstate")
    assert found.iter == 2**31 - 1
    assert all(same_bits(a, b) for a, b in zip(found.history, arrays, strict=True))


def test_halves_are_widened_and_integers_refused(tmp_path: Path) -> None:
    half = array(5).astype(np.float16)
    write_model(tmp_path / "m.caffemodel", ModelData("", (LayerData("a", "", (half,)),)))
    assert same_bits(read_model(tmp_path / "m.caffemodel").layers[0].blobs[0], half.astype(np.float32))
    with pytest.raises(SolverFileError, match="floats and doubles, this is int64"):
        write_model(tmp_path / "i.caffemodel", ModelData("", (LayerData("a", "", (np.arange(3),)),)))
    assert not (tmp_path / "i.caffemodel").exists()


def test_paths_that_are_no_utf8(tmp_path: Path) -> None:
    data = made.integer(1, 1) + made.content(2, b"mod\xe8les/a.caffemodel")
    found = state_of(tmp_path, data)
    assert found.learned_net is not None
    assert os.fsencode(found.learned_net) == b"mod\xe8les/a.caffemodel"
    write_state(tmp_path / "t.solverstate", found)
    assert (tmp_path / "t.solverstate").read_bytes() == data + made.integer(4, 0)


def test_a_model_is_no_state_and_a_state_no_model(tmp_path: Path) -> None:
    with pytest.raises(
        SolverFileError, match=r"s\.solverstate: a model \(weights alone\).*give it as weights"
    ):
        state_of(tmp_path, made.net("n", made.layer("a", "X")))
    with pytest.raises(SolverFileError, match=r"m\.caffemodel: a solver's state, not a model"):
        model_of(tmp_path, made.state(3, "x", []))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"PK\x03\x04 and so on", "a zip archive"),
        (b"\x80\x02}q\x00.", "a pickle; those are never loaded"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        (b"<!DOCTYPE html>", "a web page"),
        (b'net: "train.prototxt"\n', "damaged or foreign"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "rename it to end in .h5"),
        (b"\x10\0\0\0\0\0\0\0{}", "rename it to end in .safetensors"),
        (bytes(1000), "damaged or foreign"),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than ten bytes"),
        (b"\x08\x80", "ends within a number"),
    ],
)
def test_foreign_files(tmp_path: Path, data: bytes, says: str) -> None:
    for read in (state_of, model_of):
        with pytest.raises(SolverFileError, match=says):
            read(tmp_path, data)


def test_a_folder_a_pipe_and_nothing(tmp_path: Path) -> None:
    with pytest.raises(SolverFileError, match="No such file"):
        read_state(tmp_path / "none.solverstate")
    with pytest.raises(SolverFileError, match=r"a folder|Is a directory"):
        read_state(tmp_path)
    os.mkfifo(tmp_path / "pipe.solverstate")
    with pytest.raises(SolverFileError, match="not a regular file"):
        read_state(tmp_path / "pipe.solverstate")


def test_numbers_that_do_not_fit_their_shape(tmp_path: Path) -> None:
    w = array(6)
    for blob, says in [
        (
            made.content(7, made.content(1, b"\x02\x02")) + made.content(5, made.floats(w)),
            "6 numbers, but the shape",
        ),
        (made.content(7, made.content(1, b"\x06")), "no numbers, but the shape"),
        (made.content(5, made.floats(w)[:-1]), "whole numbers"),
        (made.integer(1, -1) + made.content(5, made.floats(w)), "no shape of Caffe's"),
        (made.content(7, made.content(1, b"\x01" * 33)) + made.content(5, made.floats(w[:1])), "no shape"),
        (made.content(7, made.content(1, b"\xff\xff\xff\xff\x0f" * 2)), "no shape of Caffe's"),
    ]:
        with pytest.raises(SolverFileError, match=f"history 0.*{says}"):
            state_of(tmp_path, made.state(1, "x", [blob]))


@pytest.mark.parametrize("what", ["model", "state"])
def test_cut_short_or_damaged_anywhere(tmp_path: Path, what: str) -> None:
    """What parses, loads, since Caffe's files have no checksum; all else is refused."""
    read, data = (
        (binaryproto.read_model, made.net("n", made.layer("a", "X", [made.blob(array(5))])))
        if what == "model"
        else (binaryproto.read_state, made.state(300, "x", [made.blob(array(3)), made.old_blob(array(2))], 4))
    )
    noise = np.random.default_rng(1)
    damaged = [data[:size] for size in range(len(data))]
    for _ in range(2000):
        changed = bytearray(data)
        for _ in range(noise.integers(1, 4)):
            changed[noise.integers(len(data))] = noise.integers(256)
        damaged.append(bytes(changed))
    refused = 0
    for case in damaged:
        try:
            read(memoryview(case))
        except SolverFileError:
            refused += 1
    assert len(data) / 2 < refused < len(damaged)


def test_two_gigabytes_are_the_limit_and_found_before_anything_is_written(tmp_path: Path) -> None:
    huge = np.broadcast_to(np.zeros((), np.float32), (600_000_000,))
    state = SolverStateData(iter=1, history=(huge,))
    with pytest.raises(SolverFileError, match=r"at most 2147483647 .*snapshot_format HDF5 or SAFETENSORS"):
        write_state(tmp_path / "s.solverstate", state)
    model = ModelData("", (LayerData("a", "", (huge,)),))
    with pytest.raises(SolverFileError, match="at most 2147483647"):
        write_model(tmp_path / "m.caffemodel", model)
    assert os.listdir(tmp_path) == []
    with open(tmp_path / "sparse.solverstate", "wb") as file:
        file.write(made.integer(1, 1))
        file.truncate(2**31)
    with pytest.raises(SolverFileError, match="2147483648 bytes; a binaryproto file has at most"):
        read_state(tmp_path / "sparse.solverstate")


def test_nothing_that_was_read_depends_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.solverstate"
    write_state(path, made.small_state())
    found = read_state(path)
    path.write_bytes(b"")
    assert same_state(found, made.small_state())
    assert all(a.flags.writeable and a.flags.c_contiguous for a in found.history)


def test_arrays_of_the_other_byte_order_and_not_contiguous(tmp_path: Path) -> None:
    values = array(4, 6, dtype="float64")
    odd = (values.astype(">f8"), values.T, values[::2, 1:3], values.astype(">f4"))
    for name in ("s.solverstate", "s.solverstate.h5", "s.state.safetensors"):
        write_state(tmp_path / name, SolverStateData(iter=1, history=odd))
        for a, b in zip(read_state(tmp_path / name).history, odd, strict=True):
            assert same_bits(a, np.ascontiguousarray(b, b.dtype.newbyteorder("=")))


@pytest.mark.parametrize("name", ["s.solverstate", "s.solverstate.h5", "s.state.safetensors"])
def test_a_state_before_the_beginning(tmp_path: Path, name: str) -> None:
    for state in (SolverStateData(iter=-1), SolverStateData(iter=1, current_step=-1)):
        with pytest.raises(SolverFileError, match="-1"):
            write_state(tmp_path / name, state)
    assert os.listdir(tmp_path) == []


def test_numbers_in_many_pieces(tmp_path: Path) -> None:
    """Data and diff in turn, unpacked: as no writer does, but protobuf would read it."""
    values = array(30_000)
    numbers = values.astype("<f4").tobytes()
    pieces = b"".join(
        b"\x2d" + numbers[i : i + 4] + b"\x35" + numbers[i : i + 4] for i in range(0, len(numbers), 4)
    )
    blob = made.content(7, made.content(1, made.number(values.size))) + pieces
    found = model_of(tmp_path, made.net("n", made.layer("a", "X", [blob]))).layers[0]
    assert same_bits(found.blobs[0], values)
    assert found.diffs is not None
    assert same_bits(found.diffs[0], values)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 191, 192, 193, 5000])
def test_unpacked_numbers_of_any_count(tmp_path: Path, count: int) -> None:
    values = array(1, 1, 1, count)
    data = made.state(1, "x", [made.old_blob(values, packed=False) + made.integer(999, 1)])
    assert same_bits(state_of(tmp_path, data).history[0], values)


def test_keys_that_are_longer_than_need_be(tmp_path: Path) -> None:
    values = array(1, 1, 1, 3)
    numbers = made.floats(values)
    blob = made.old_blob(values[..., :0]).replace(b"\x2a\0", b"")[:-2] + b"\x20\x03"
    blob += b"\xad\x00" + numbers[:4] + b"\x2d" + numbers[4:8] + b"\xad\x80\x00" + numbers[8:]
    assert same_bits(state_of(tmp_path, made.state(1, "x", [blob])).history[0], values)


def test_protobuf_reads_the_same_from_damaged_files() -> None:
    """Whatever is read, protobuf reads the same; only what it can't mean is refused."""
    data = made.state(300, "x", [made.blob(array(3)), made.old_blob(array(2), packed=False)], 4)
    noise, kind = np.random.default_rng(2), message_class("SolverState")
    compared = 0
    for _ in range(3000):
        changed = bytearray(data)
        for _ in range(noise.integers(1, 3)):
            changed[noise.integers(len(data))] = noise.integers(256)
        try:
            found = binaryproto.read_state(memoryview(bytes(changed)))
        except SolverFileError:
            continue
        message = kind()
        try:
            message.ParseFromString(bytes(changed))
        except Exception:  # text that isn't UTF-8, which Caffe itself takes
            continue
        compared += 1
        assert (found.iter, found.current_step) == (message.iter, message.current_step)
        assert len(found.history) == len(message.history)
        for values, blob in zip(found.history, message.history, strict=True):
            theirs = np.array(blob.double_data or blob.data, values.dtype)
            assert values.reshape(-1).tobytes() == theirs.tobytes() or np.isnan(theirs).any()
    assert compared > 300
