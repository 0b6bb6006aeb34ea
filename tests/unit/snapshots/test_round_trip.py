"""What is saved comes back, to the bit, and other programs can read it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvergen.errors import SnapshotError
from solvergen.runtime import snapshots
from solvergen.runtime.snapshots.arrays import escape
from solvergen.runtime.state import GroupData, SnapshotData
from tests.unit.snapshots.support import (
    DTYPES,
    SCHEMA,
    SUFFIXES,
    array,
    bits,
    group,
    small,
    snapshot,
    tensor,
    with_shared,
)

names = st.one_of(
    st.sampled_from(["", ".", "..", "a/b", "/", "%", "%2F", "a.b", "\0", "é", "w\n"]), st.text(max_size=8)
)
words = st.text(max_size=5)
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
floats = st.one_of(st.floats(), st.sampled_from([0.1, -0.0, 5e-324, 1.7976931348623157e308, 2.0**53 + 2]))


@st.composite
def data(draw: st.DrawFn) -> SnapshotData:
    chosen = draw(st.lists(names, unique=True, max_size=5))
    tensors = tuple(
        tensor(
            name,
            draw(shapes),
            draw(st.sampled_from(sorted(DTYPES))),
            t=draw(st.one_of(st.integers(0, 5), st.integers(0, 2**63 - 1))),
            param=draw(st.booleans()),
            states=tuple(draw(st.lists(st.sampled_from(["m", "v", "v_max"]), unique=True))),
            scalars=draw(st.dictionaries(st.just("mu"), floats)),
            seed=draw(st.integers(0, 99)),
        )
        for name in chosen
    )
    cut = draw(st.integers(0, len(chosen)))
    groups = tuple(
        GroupData(
            members=tuple(members),
            hyperparameters=draw(st.dictionaries(words, floats, max_size=3)),
            options=draw(st.dictionaries(words, st.booleans(), max_size=3)),
            multipliers=draw(st.dictionaries(words, floats, max_size=2)),
        )
        for members in (chosen[:cut], chosen[cut:])
        if members
    )
    return snapshot(*tensors, groups=groups, class_name=draw(words))


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=150, deadline=None)
@given(data=data())
def test_any_data_comes_back_to_the_bit(tmp_path_factory: Any, suffix: str, data: SnapshotData) -> None:
    path = tmp_path_factory.mktemp("any") / f"s{suffix}"
    snapshots.save(path, data)
    loaded = snapshots.load(path)
    assert bits(loaded) == bits(data)
    for item in loaded.tensors:
        for found in (*item.arrays.values(), *(() if item.param is None else (item.param,))):
            assert found.flags.c_contiguous
            assert found.flags.writeable
            assert found.dtype.isnative


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("t", [0, 1, 2**24 + 1, 2**31, 2**53 + 1, 2**63 - 1])
def test_counts_are_exact(tmp_path: Path, suffix: str, t: int) -> None:
    """B23: a count that passes through a float stands still at 2**24 or 2**53."""
    snapshots.save(tmp_path / f"s{suffix}", snapshot(tensor("w", t=t)))
    assert snapshots.load(tmp_path / f"s{suffix}").tensors[0].t == t


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_narrow_parameters_keep_wide_states(tmp_path: Path, suffix: str) -> None:
    """B25: float32 moments of a float16 or bfloat16 parameter don't pass through its type."""
    moment = np.array([0.1000000015, 1e-38, 3.4e38], np.float32)
    for dtype in ("float16", "bfloat16"):
        item = dataclasses.replace(tensor("w", (3,), dtype, param=True), arrays={"m": moment})
        snapshots.save(tmp_path / f"s{suffix}", snapshot(item))
        loaded = snapshots.load(tmp_path / f"s{suffix}").tensors[0]
        assert loaded.arrays["m"].dtype == np.float32
        assert loaded.arrays["m"].tobytes() == moment.tobytes()
        assert loaded.param is not None
        assert loaded.param.dtype == DTYPES[dtype]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_views_and_foreign_byte_order(tmp_path: Path, suffix: str) -> None:
    wide = array("float32", (4, 6))
    transposed, swapped = wide[::2, ::3].T, array("float32", (2, 2), 5).astype(">f4")
    item = dataclasses.replace(tensor("w", (2, 2)), arrays={"m": transposed, "v": swapped})
    snapshots.save(tmp_path / f"s{suffix}", snapshot(item))
    loaded = snapshots.load(tmp_path / f"s{suffix}").tensors[0].arrays
    assert loaded["m"].tobytes() == np.ascontiguousarray(transposed).tobytes()
    assert loaded["v"].tobytes() == swapped.astype("<f4").tobytes()


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".hdf5", ".H5", ".SafeTensors"])
def test_suffixes(tmp_path: Path, suffix: str) -> None:
    snapshots.save(str(tmp_path / f"s.1{suffix}"), small())
    assert bits(snapshots.load(str(tmp_path / f"s.1{suffix}"))) == bits(small())


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray[Any, Any]]]:
    """Metadata and arrays, read without the package that wrote the file, as docs/snapshots.md has it."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    metadata = header.pop("__metadata__")
    types = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
    arrays, expected = {}, 0
    for key, entry in sorted(header.items(), key=lambda item: tuple(item[1]["data_offsets"])):
        first, last = entry["data_offsets"]
        assert first == expected, key
        expected = last
        data = bytearray(content[start + first : start + last])
        arrays[key] = np.frombuffer(data, DTYPES[types[entry["dtype"]]]).reshape(entry["shape"])
    assert start + expected == len(content)
    return metadata, arrays


def test_both_formats_hold_the_same_document(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        snapshots.save(tmp_path / f"s{suffix}", small())
    version, digest, document = read_safetensors(tmp_path / "s.safetensors")[0]["solvergen"].split(" ", 2)
    with h5py.File(tmp_path / "s.h5") as file:
        text = file["solvergen"][()]
    assert version == "1"
    assert text.decode() == document
    assert digest == hashlib.sha256(text).hexdigest()


def test_another_reader_reads_our_safetensors_files(tmp_path: Path) -> None:
    saved = snapshot(
        tensor("a/b", (2, 3), "bfloat16", param=True),
        tensor("b", (), "float64", param=True),
        tensor("c", (0, 2), "float16", param=True),
    )
    snapshots.save(tmp_path / "s.safetensors", saved)
    _, arrays = read_safetensors(tmp_path / "s.safetensors")
    for item in saved.tensors:
        assert item.param is not None
        for key, expected in [
            (f"param/{escape(item.name)}", item.param),
            (f"state/m/{escape(item.name)}", item.arrays["m"]),
            (f"state/v/{escape(item.name)}", item.arrays["v"]),
        ]:
            found = arrays.pop(key)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert found.tobytes() == expected.tobytes()
    assert arrays == {}


def test_h5py_reads_our_files(tmp_path: Path) -> None:
    saved = snapshot(tensor("a/b", (2, 3), "bfloat16", param=True), tensor("b", (), "float64", t=7))
    snapshots.save(tmp_path / "s.h5", saved)
    with h5py.File(tmp_path / "s.h5") as file:
        assert set(file) == {"solvergen", "state", "param"}
        assert set(file["state/m"]) == {"a%2Fb", "b"}
        stored = file["param/a%2Fb"]
        assert stored.dtype == "<u2"
        assert stored.attrs["dtype"] == b"bfloat16"
        assert saved.tensors[0].param is not None
        assert stored[()].tobytes() == saved.tensors[0].param.tobytes()
        assert file["state/m/b"].dtype == "<f8"
        assert file["state/m/b"].shape == ()
        document = json.loads(file["solvergen"][()])
    assert document["format"] == 1
    assert document["optimizer"] == {"spec": "adam", "class": "Adam", "digest": "a1" * 32}
    assert document["tensors"][1]["t"] == 7
    # The checksum as docs/snapshots.md defines it.
    data = b"float64[]" + saved.tensors[1].arrays["m"].tobytes()
    assert document["tensors"][1]["arrays"]["m"]["sha256"] == hashlib.sha256(data).hexdigest()


def test_arrays_are_aligned_in_safetensors(tmp_path: Path) -> None:
    saved = snapshot(*(tensor(n, (3,), n, param=True) for n in DTYPES))
    snapshots.save(tmp_path / "s.safetensors", saved)
    content = (tmp_path / "s.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    sizes = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2}
    for key, entry in json.loads(content[8 : 8 + length]).items():
        if key != "__metadata__":
            assert entry["data_offsets"][0] % sizes[entry["dtype"]] == 0, key


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_data_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    snapshots.save(tmp_path / f"one{suffix}", small())
    program = (
        "import sys; from solvergen.runtime import snapshots; from tests.unit.snapshots.support import small;"
        "snapshots.save(sys.argv[1], small())"
    )
    for seed in ("0", "1"):
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / f"two{suffix}")],
            check=True,
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
        )
        assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.parametrize("name", ["format1.h5", "format1.safetensors", "format1_one_entry.safetensors"])
def test_files_of_former_versions_load_for_ever(name: str) -> None:
    """``written/`` holds ``small()`` as earlier versions wrote it: the first, and the one which put what a
    safetensors file says of itself into one entry. A newer format adds files there; what is there never
    changes."""
    committed = Path(__file__).parent / "written" / name
    assert bits(snapshots.load(committed)) == bits(small())
    assert snapshots.describe(committed)["format_version"] == 1


@pytest.mark.parametrize("name", ["format2.h5", "format2.safetensors"])
def test_files_with_shared_states_load_for_ever(name: str) -> None:
    """``with_shared()``, in the format that came with such states."""
    committed = Path(__file__).parent / "written" / name
    assert bits(snapshots.load(committed)) == bits(with_shared())
    assert snapshots.describe(committed)["format_version"] == 2


def test_escapes_are_distinct() -> None:
    every = ["", ".", "..", "%", "%25", "%2E", "/", "%2F", "a/b", "a%2Fb", "\0", "\x7f", "%00"]
    assert len({escape(name) for name in every}) == len(every)
    assert not any("/" in escape(name) or escape(name) in ("", ".") for name in every)


def test_more_names_than_safetensors_allows(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"header too large"):
        snapshots.save(tmp_path / "s.safetensors", snapshot(tensor("x" * 30_000_000, (1,))))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_many_and_long_names(tmp_path: Path, suffix: str) -> None:
    saved = snapshot(tensor("x" * 5000, (1,)), *(tensor(f"block.{i}.weight", (1,)) for i in range(500)))
    snapshots.save(tmp_path / f"s{suffix}", saved)
    assert bits(snapshots.load(tmp_path / f"s{suffix}")) == bits(saved)


def test_dimensions(tmp_path: Path) -> None:
    saved = snapshot(tensor("w", (1,) * 40))
    snapshots.save(tmp_path / "s.safetensors", saved)
    assert bits(snapshots.load(tmp_path / "s.safetensors")) == bits(saved)
    with pytest.raises(SnapshotError, match=r"40 dimensions, HDF5 goes to 32: use a .safetensors"):
        snapshots.save(tmp_path / "s.h5", saved)
    assert not (tmp_path / "s.h5").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (snapshot(tensor("w"), groups=()), "groups' members are not the tensors"),
        (snapshot(tensor("w"), groups=(group("w"), group("w"))), "each once"),
        (snapshot(tensor("w"), tensor("w"), groups=(group("w"),)), "given twice: 'w'"),
        (snapshot(tensor("\ud800")), "half of a surrogate pair"),
        (snapshot(tensor("w"), schema=SCHEMA[:1]), "no param states 'v'"),
        (snapshot(tensor("w"), schema=(*SCHEMA, ("m", "param"))), "names a state twice"),
        (snapshot(tensor("w"), schema=(*SCHEMA, ("../x", "param"))), "'../x'"),
        (snapshot(tensor("w", t=-1)), "counted -1"),
        (snapshot(tensor("w", t=2**63)), "counted 9223372036854775808"),
        (snapshot(dataclasses.replace(tensor("w"), dtype="int8")), "dtype 'int8'"),
        (snapshot(dataclasses.replace(tensor("w"), shape=(4,))), r"has shape \(3,\), its parameter \(4,\)"),
        (snapshot(dataclasses.replace(tensor("w"), arrays={"m": np.zeros(3, int)})), "dtype int64"),
        (snapshot(dataclasses.replace(tensor("w", param=True), dtype="float64")), "declared as float64"),
        (snapshot(dataclasses.replace(tensor("w"), scalars={"m": 1.0})), "no scalar states 'm'"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, suffix: str, wrong: SnapshotData, message: str) -> None:
    with pytest.raises(SnapshotError, match=message):
        snapshots.save(tmp_path / f"s{suffix}", wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_description(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"s{suffix}"
    snapshots.save(path, small())
    found = snapshots.describe(path)
    assert found["file_format"] == {".h5": "HDF5", ".safetensors": "safetensors"}[suffix]
    assert found["file_bytes"] == path.stat().st_size
    assert found["state_bytes"] == 2 * (2 * 4 + 8)
    assert found["optimizer"]["spec"] == "adam"
    assert found["state"] == dict(SCHEMA)
    assert found["groups"][1]["hyperparameters"] == {"lr": 1e-300}
    assert found["tensors"][0] == {
        "name": "w",
        "shape": [2],
        "dtype": "bfloat16",
        "t": 2**53 + 1,
        "scalars": {"mu": 1.5},
        "arrays": {"m": "float32", "v": "float32"},
        "parameter": True,
    }
    assert found["tensors"][1]["scalars"] == {"mu": "inf"}
    assert found["tensors"][1]["parameter"] is False
    json.dumps(found, allow_nan=False)
