"""HDF5 files whose seal holds but that solvergen did not write: nothing in them is followed or trusted."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from solvergen.errors import SnapshotError
from solvergen.runtime import snapshots
from solvergen.runtime.snapshots import strict_json
from tests.unit.snapshots.support import bits, reseal, small

KEY = "state/m/w"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    snapshots.save(tmp_path / "s.h5", small())
    return tmp_path / "s.h5"


def tampered(path: Path, change: Callable[[h5py.File], None]) -> str:
    """The error that a change brings."""
    with h5py.File(path, "r+") as file:
        change(file)
    reseal(path)
    with pytest.raises(SnapshotError) as caught:
        snapshots.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def replaced(key: str, create: Callable[[h5py.File, Any], None]) -> Callable[[h5py.File], None]:
    """Delete a dataset and let ``create`` put something into its place, given the data."""

    def change(file: h5py.File) -> None:
        data = file[key][()]
        del file[key]
        create(file, data)

    return change


def test_resealing_alone_is_fine(path: Path) -> None:
    before = path.read_bytes()
    reseal(path)
    assert path.read_bytes() == before
    assert bits(snapshots.load(path)) == bits(small())


def test_without_a_seal(path: Path) -> None:
    with h5py.File(path.with_name("t.h5"), "w") as other, h5py.File(path) as file:
        for name in file:
            file.copy(name, other)
    with pytest.raises(SnapshotError, match="without solvergen's seal"):
        snapshots.load(path.with_name("t.h5"))


def test_external_link(path: Path) -> None:
    other = path.with_name("other.h5")
    with h5py.File(other, "w") as file:
        file["m"] = np.zeros(2, np.float32)
    link = h5py.ExternalLink(str(other), "m")
    message = tampered(path, replaced(KEY, lambda file, _: file.__setitem__(KEY, link)))
    assert f"'{KEY}' is a soft or external link" in message


def test_soft_link(path: Path) -> None:
    message = tampered(
        path, replaced(KEY, lambda file, _: file.__setitem__(KEY, h5py.SoftLink("/state/v/w")))
    )
    assert f"'{KEY}' is a soft or external link" in message


def test_linked_folder(path: Path) -> None:
    def change(file: h5py.File) -> None:
        del file["state/m"]
        file["state/m"] = h5py.SoftLink("/state/v")

    assert "'state/m' is a soft or external link" in tampered(path, change)


def test_linked_document(path: Path) -> None:
    def change(file: h5py.File) -> None:
        file.move("solvergen", "hidden")
        file["solvergen"] = h5py.SoftLink("/hidden")

    assert "'solvergen' is a soft or external link" in tampered(path, change)


def test_object_references(path: Path) -> None:
    def create(file: h5py.File, _: Any) -> None:
        dataset = file.create_dataset(KEY, (2,), dtype=h5py.ref_dtype)
        dataset[0] = file["state/v/w"].ref
        dataset[1] = file["state/v/w"].ref

    assert f"'{KEY}' is of another type" in tampered(path, replaced(KEY, create))


def test_virtual_dataset(path: Path) -> None:
    def create(file: h5py.File, _: Any) -> None:
        layout = h5py.VirtualLayout((2,), "<f4")
        layout[:] = h5py.VirtualSource("other.h5", "m", (2,))
        file.create_virtual_dataset(KEY, layout)

    assert f"'{KEY}' is stored in chunks, compact or virtual" in tampered(path, replaced(KEY, create))


def test_external_storage(path: Path) -> None:
    raw = path.with_name("raw")
    raw.write_bytes(b"\0" * 8)

    def create(file: h5py.File, data: Any) -> None:
        file.create_dataset(KEY, data=data, external=[(str(raw), 0, 8)])

    assert f"'{KEY}' keeps its data in another file" in tampered(path, replaced(KEY, create))


@pytest.mark.parametrize("filters", [{"compression": "gzip"}, {"shuffle": True}, {"fletcher32": True}])
def test_filters(path: Path, filters: dict[str, Any]) -> None:
    def create(file: h5py.File, data: Any) -> None:
        file.create_dataset(KEY, data=data, chunks=(2,), **filters)

    assert f"'{KEY}' is stored in chunks" in tampered(path, replaced(KEY, create))


def test_filter_of_a_plugin(path: Path) -> None:
    def create(file: h5py.File, _: Any) -> None:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((2,))
        creation.set_filter(32015, h5py.h5z.FLAG_OPTIONAL)  # a registered plugin's number
        h5py.h5d.create(
            file["state/m"].id, b"w", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((2,)), dcpl=creation
        )

    assert f"'{KEY}' is stored in chunks" in tampered(path, replaced(KEY, create))


def test_named_type_in_place_of_data(path: Path) -> None:
    def create(file: h5py.File, _: Any) -> None:
        file[KEY] = np.dtype("<f4")

    assert f"'{KEY}' is not a dataset" in tampered(path, replaced(KEY, create))


def test_group_in_place_of_data(path: Path) -> None:
    assert f"'{KEY}' is not a dataset" in tampered(
        path, replaced(KEY, lambda file, _: file.create_group(KEY) and None)
    )


def test_data_in_place_of_a_group(path: Path) -> None:
    def change(file: h5py.File) -> None:
        del file["state/m"]
        file["state/m"] = 1.0

    assert "'state/m' is not a group" in tampered(path, change)


@pytest.mark.parametrize("extra", ["param/x", "state/m/x", "state/x/w", "x", "state/x"])
def test_extra_objects_are_named(path: Path, extra: str) -> None:
    message = tampered(path, lambda file: file.__setitem__(extra, np.zeros(2)))
    named = "state/x" if extra.startswith("state/x") else extra
    assert f"objects that do not belong there: '{named}'" in message


def test_a_long_list_of_extras_is_cut(path: Path) -> None:
    def change(file: h5py.File) -> None:
        for index in range(100):
            file[f"state/m/x{index:03}"] = 0.0

    message = tampered(path, change)
    assert "'state/m/x000', 'state/m/x001'" in message
    assert message.endswith("and 90 more")


def test_group_that_holds_itself(path: Path) -> None:
    def change(file: h5py.File) -> None:
        file["state/again"] = file["state"]

    assert "'state/again'" in tampered(path, change)


@pytest.mark.parametrize("key", [KEY, "param/w"])
def test_missing_dataset(path: Path, key: str) -> None:
    assert f"objects are missing: '{key}'" in tampered(path, lambda file: file.__delitem__(key))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros(2, "<f8"), "another type"),
        (np.zeros(2, ">f4"), "another type"),
        (np.zeros(2, "<i4"), "another type"),
        (np.zeros(3, "<f4"), "another shape"),
        (np.zeros((2, 1), "<f4"), "another shape"),
        (h5py.Empty("<f4"), ""),
        (np.ones(2, "<f4"), "does not match its checksum"),
    ],
)
def test_other_data(path: Path, data: Any, message: str) -> None:
    assert message in tampered(path, replaced(KEY, lambda file, _: file.__setitem__(KEY, data)))


def test_data_that_was_never_allocated(path: Path) -> None:
    """A dataset of a petabyte that takes no space in the file."""

    def create(file: h5py.File, _: Any) -> None:
        file.create_dataset(KEY, (2,), "<f4")

    assert f"'{KEY}' needs 8 bytes; the file does not hold them" in tampered(path, replaced(KEY, create))


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> Callable[[h5py.File], None]:
    """Change the document, and give it the checksum that fits."""
    import hashlib
    import json

    def apply(file: h5py.File) -> None:
        document = json.loads(file["solvergen"][()])
        change(document)
        text = strict_json.dump(document).encode()
        del file["solvergen"]
        file["solvergen"] = np.array(text, f"S{len(text)}")
        file["solvergen"].attrs["sha256"] = np.array(hashlib.sha256(text).hexdigest().encode(), "S64")

    return apply


def test_declared_petabytes(path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["tensors"][0]["shape"] = [2**30, 2**20]

    assert "declares more data than it is long" in tampered(path, rewritten(path, change))


def test_unexpected_attribute(path: Path) -> None:
    message = tampered(path, lambda file: file[KEY].attrs.__setitem__("unit", "m"))
    assert f"'{KEY}' has attributes that do not belong there" in message


def test_bfloat16_without_its_mark(path: Path) -> None:
    assert "or lacks its own" in tampered(path, lambda file: file["param/w"].attrs.__delitem__("dtype"))


def test_bfloat16_marked_otherwise(path: Path) -> None:
    def change(file: h5py.File) -> None:
        file["param/w"].attrs["dtype"] = np.array(b"bfloat15", "S8")

    assert "'dtype' of 'param/w' is not 'bfloat16'" in tampered(path, change)


def test_document_without_its_checksum(path: Path) -> None:
    assert "attributes" in tampered(path, lambda file: file["solvergen"].attrs.__delitem__("sha256"))


def test_document_with_another_checksum(path: Path) -> None:
    def change(file: h5py.File) -> None:
        file["solvergen"].attrs["sha256"] = np.array(b"0" * 64, "S64")

    assert "'sha256' of 'solvergen' is not" in tampered(path, change)


@pytest.mark.parametrize("document", [1.0, "text of variable length", np.array([b"ab", b"cd"])])
def test_other_documents(path: Path, document: Any) -> None:
    message = tampered(path, replaced("solvergen", lambda file, _: file.__setitem__("solvergen", document)))
    assert "'solvergen'" in message


def test_flips_behind_a_seal_that_holds(path: Path) -> None:
    """The second line: what the seal would have caught comes back unchanged or not at all, all the same."""
    program = """
import random, sys
from pathlib import Path
from solvergen.errors import SnapshotError
from solvergen.runtime import snapshots
from tests.unit.snapshots.support import bits, reseal, small
path, expected, refused = Path(sys.argv[1]), bits(small()), 0
content = path.read_bytes()
source = random.Random(3)
for _ in range(500):
    damaged = bytearray(content)
    damaged[source.randrange(512, len(content))] ^= 1 << source.randrange(8)
    path.write_bytes(damaged)
    reseal(path)
    try:
        assert bits(snapshots.load(path)) == expected
    except SnapshotError:
        refused += 1
assert refused > 300, refused
"""
    subprocess.run(
        [sys.executable, "-c", program, str(path)], check=True, timeout=120, cwd=Path(__file__).parents[3]
    )


def test_random_documents(path: Path) -> None:
    """Documents with one value exchanged: refused with an error that says where, or harmless."""
    source = random.Random(5)
    values: list[Any] = [None, True, -1, 0, 2**64, 1.5, "", "x", "nan", [], [1], {}, {"a": 1}]

    def spots(value: Any) -> list[tuple[Any, Any]]:
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        return [spot for key, item in items for spot in ((value, key), *spots(item))]

    original = path.read_bytes()
    refused = 0
    for _ in range(150):
        path.write_bytes(original)

        def change(document: dict[str, Any]) -> None:
            holder, key = source.choice(spots(document))
            holder[key] = source.choice(values)

        with h5py.File(path, "r+") as file:
            rewritten(path, change)(file)
        reseal(path)
        try:
            snapshots.load(path)
        except SnapshotError:
            refused += 1
    assert refused > 75
