"""Safetensors files with other headers than solvergen writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvergen.errors import SnapshotError
from solvergen.runtime import snapshots
from tests.unit.snapshots.support import bits, small

KEY = "state/m/w"
Header = dict[str, Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    snapshots.save(tmp_path / "s.safetensors", small())
    return tmp_path / "s.safetensors"


def rewrite(path: Path, change: Callable[[Header], object], text: Callable[[str], str] = str) -> None:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    change(header)
    new = text(json.dumps(header)).encode()
    path.write_bytes(len(new).to_bytes(8, "little") + new + content[8 + length :])


def refused(path: Path, change: Callable[[Header], object], text: Callable[[str], str] = str) -> str:
    rewrite(path, change, text)
    with pytest.raises(SnapshotError) as caught:
        snapshots.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def rewrite_document(header: Header, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(header["__metadata__"]["solvergen"].split(" ", 2)[2])
    change(document)
    text = json.dumps(document)
    header["__metadata__"]["solvergen"] = f"1 {hashlib.sha256(text.encode()).hexdigest()} {text}"


def make_former(header: Header) -> dict[str, str]:
    """Three entries, as the first version wrote them."""
    version, digest, document = header["__metadata__"]["solvergen"].split(" ", 2)
    header["__metadata__"] = {
        "solvergen_format": version,
        "solvergen_document": document,
        "solvergen_sha256": digest,
    }
    return header["__metadata__"]  # type: ignore[no-any-return]


def test_another_writer_may_format_json_its_own_way(path: Path) -> None:
    rewrite(path, lambda header: rewrite_document(header, lambda _: None), lambda text: text + "\n\t  ")
    assert bits(snapshots.load(path)) == bits(small())


def test_file_of_the_package(tmp_path: Path) -> None:
    save_file({"a": np.zeros(3)}, tmp_path / "s.safetensors")
    with pytest.raises(SnapshotError, match="a safetensors file that solvergen did not write"):
        snapshots.load(tmp_path / "s.safetensors")


def test_extra_arrays_are_named(path: Path) -> None:
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    assert "do not belong there: 'x' and 'y'" in refused(path, lambda h: h.update(x=entry, y=entry))


def test_missing_array(path: Path) -> None:
    assert f"arrays are missing: '{KEY}'" in refused(path, lambda h: h.update(x=h.pop(KEY)))


def test_hole(path: Path) -> None:
    assert "damaged or cut short" in refused(path, lambda h: h.pop(KEY))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dtype", "F16"),
        ("dtype", None),
        ("shape", [1, 2]),
        ("shape", [2.0]),
        ("shape", [True, 2]),
        ("shape", "2"),
        ("data_offsets", [0]),
        ("data_offsets", [0, 9]),
        ("data_offsets", [-8, 0]),
        ("data_offsets", [0.0, 8.0]),
        ("data_offsets", [False, 8]),
        ("data_offsets", [10**15, 10**15 + 8]),
        ("data_offsets", [0, 8]),  # where another array lies
        ("data_offsets", None),
        ("dtype", "F8_E5M2"),
        ("dtype", "U16"),
        ("dtype", "I32"),  # as wide as what it should be
        ("shape", [2**40, 2**40]),
        ("shape", [0, 2**63]),
    ],
)
def test_entries(path: Path, field: str, value: object) -> None:
    refused(path, lambda header: header[KEY].update({field: value}))


@pytest.mark.parametrize("entry", [None, [], "x", {}, 1])
def test_entries_of_other_types(path: Path, entry: object) -> None:
    assert "damaged or cut short" in refused(path, lambda header: header.update({KEY: entry}))


def test_two_arrays_in_one_place(path: Path) -> None:
    def change(header: Header) -> None:
        header[KEY].update(data_offsets=header["state/v/w"]["data_offsets"])

    assert "damaged or cut short" in refused(path, change)


def test_arrays_exchanged(path: Path) -> None:
    """A sound header, but not the one that belongs to the data."""

    def change(header: Header) -> None:
        header[KEY], header["state/v/w"] = header["state/v/w"], header[KEY]

    assert f"'{KEY}' does not match its checksum" in refused(path, change)


def test_of_a_type_as_wide(path: Path) -> None:
    message = refused(path, lambda header: header[KEY].update(dtype="I32"))
    assert f"'{KEY}' should be float32[2]; the header says something else" in message


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        [],
        {},
        "x",
        {"solvergen_format": "1"},
        {"solvergen_document": "{}"},
        {"solvergen": ""},
        {"solvergen": "1"},
        {"solvergen": "1 2"},
        {"solvergen": f"1 {hashlib.sha256(b'').hexdigest()} "},
        {"solvergen": f"01 {hashlib.sha256(b'{}').hexdigest()} {{}}"},
        {"solvergen": f"0 {hashlib.sha256(b'{}').hexdigest()} {{}}"},
        {"solvergen": f"1 {hashlib.sha256('é'.encode()).hexdigest()} é"},
        {"solvergen": 1},
        {"solvergen": None},
    ],
)
def test_metadata(path: Path, metadata: object) -> None:
    refused(path, lambda header: header.update(__metadata__=metadata))


def test_extra_metadata_is_named(path: Path) -> None:
    assert "'extra'" in refused(path, lambda header: header["__metadata__"].update(extra="x"))


def test_changed_document(path: Path) -> None:
    def change(header: Header) -> None:
        text = header["__metadata__"]["solvergen"]
        header["__metadata__"]["solvergen"] = text.replace('"lr":0.1', '"lr":0.2')

    assert "the metadata does not match its checksum" in refused(path, change)


def test_former_metadata(path: Path) -> None:
    rewrite(path, make_former)
    assert bits(snapshots.load(path)) == bits(small())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(solvergen_format="9"), "newer solvergen"),
        (lambda m: m.update(solvergen_format="0"), "the metadata is damaged"),
        (lambda m: m.update(solvergen_document=m["solvergen_document"] + " "), "match its checksum"),
        (lambda m: m.update(solvergen_sha256="0" * 64), "match its checksum"),
        (lambda m: m.update(solvergen_sha256=""), "match its checksum"),
        (lambda m: m.update(extra="x"), "'extra'"),
        (lambda m: m.pop("solvergen_sha256"), "the metadata has 'solvergen_document' and"),
        (lambda m: m.pop("solvergen_format"), "did not write"),
        (lambda m: m.update(solvergen="1"), "not 'solvergen'"),
    ],
)
def test_former_metadata_is_checked_too(
    path: Path, change: Callable[[dict[str, str]], object], message: str
) -> None:
    assert message in refused(path, lambda header: change(make_former(header)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format=9), "newer solvergen"),
        (lambda d: d.update(format=True), "format is 'True'"),
        (lambda d: d.update(more=1), "'more'"),
        (lambda d: d.pop("groups"), "'groups'"),
        (lambda d: d["tensors"][0].update(t=1.0), "tensor.t is '1.0'"),
        (lambda d: d["tensors"][0].update(t=True), "tensor.t is 'True'"),
        (lambda d: d["tensors"][0].update(t=-1), "tensor.t is '-1'"),
        (lambda d: d["tensors"][0].update(t=2**63), "tensor.t is '9223372036854775808'"),
        (lambda d: d["tensors"][0].update(shape=[2**30, 2**20]), "declares more data than it is long"),
        (lambda d: d["tensors"][0].update(shape=[1] * 65), "65 dimensions"),
        (lambda d: d["tensors"][0].update(shape=[-2]), "tensor.shape is '-2'"),
        (lambda d: d["tensors"][0].update(dtype="float128"), "'float128'"),
        (lambda d: d["tensors"][0].update(scalars={"mu": None}), "tensor.scalars is 'None'"),
        (lambda d: d["tensors"][0].update(scalars={"mu": "1e5"}), "tensor.scalars is '1e5'"),
        (lambda d: d["tensors"][0].update(scalars={"m": 1}), "no scalar states 'm'"),
        (
            lambda d: d["tensors"][0]["arrays"].update(x=d["tensors"][0]["arrays"]["m"]),
            "no param states 'x'",
        ),
        (lambda d: d["tensors"][0]["arrays"].update({"a/b": {}}), "tensor.arrays is 'a/b'"),
        (lambda d: d["tensors"][0]["arrays"]["m"].update(sha256="0" * 63), "sha256"),
        (lambda d: d["tensors"][0]["arrays"]["m"].update(sha256="F" * 64), "sha256"),
        (lambda d: d["tensors"][0]["arrays"]["m"].update(sha256="0" * 64), "does not match its checksum"),
        (lambda d: d["tensors"].append(d["tensors"][0]), "given twice: 'w'"),
        (lambda d: d["groups"].append(d["groups"][0]), "each once"),
        (lambda d: d["groups"][0]["options"].update(amsgrad=0), "group.options is '0'"),
        (lambda d: d["groups"][0]["hyperparameters"].update(lr=2**60), "group.hyperparameters"),
        (lambda d: d["schema"].append(["m"]), "schema"),
        (lambda d: d["schema"].append(["q", "row"]), "the kind 'row'"),
        (lambda d: d["optimizer"].update(digest=1), "optimizer.digest"),
        (lambda d: d["optimizer"].update(spec="\ud800"), "surrogate"),
    ],
)
def test_documents(path: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    assert message in refused(path, lambda header: rewrite_document(header, change))


@pytest.mark.parametrize(
    "number", ["1e999", "-1e999", "NaN", "Infinity", "9" * 5000, "0." + "1" * 5000, "1" * 21]
)
def test_numbers_that_readers_could_differ_on(path: Path, number: str) -> None:
    refused(path, lambda h: h[KEY].update(shape="here"), lambda text: text.replace('"here"', number))


def test_key_given_twice(path: Path) -> None:
    message = refused(path, lambda _: None, lambda text: text[:-1] + f', "{KEY}": {{}}' + "}")
    assert "damaged or cut short" in message


def test_key_given_twice_soundly(path: Path) -> None:
    """The package takes the last, and that is the one which is checked."""

    def again(text: str) -> str:
        return f'{{"{KEY}": {{"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, ' + text[1:]

    rewrite(path, lambda _: None, again)
    assert bits(snapshots.load(path)) == bits(small())
    refused(path, lambda header: header[KEY].update(dtype="I32"), again)


def test_more_in_an_entry(path: Path) -> None:
    """The package passes over it. Nothing that loads depends on it."""
    rewrite(path, lambda header: header[KEY].update(more=1))
    assert bits(snapshots.load(path)) == bits(small())


@pytest.mark.parametrize("depth", [1000, 100_000, 5_000_000])
def test_deep_nesting(path: Path, depth: int) -> None:
    message = refused(path, lambda _: None, lambda _: '{"a":' + "[" * depth + "]" * depth + "}")
    assert "damaged or cut short" in message


def test_declared_header_of_petabytes(path: Path) -> None:
    content = path.read_bytes()
    for length in (2**63, 2**64 - 1, 10**9, len(content)):
        path.write_bytes(length.to_bytes(8, "little") + content[8:])
        with pytest.raises(SnapshotError, match="damaged or cut short"):
            snapshots.load(path)


def test_header_longer_than_the_format_allows(path: Path) -> None:
    with open(path, "r+b") as file:
        file.write((100_000_001).to_bytes(8, "little"))
        file.truncate(200_000_000)  # a hole: takes no space
    with pytest.raises(SnapshotError, match=r"damaged or cut short: .*header too large"):
        snapshots.load(path)


@pytest.mark.parametrize("header", [b"[]", b"1", b'"x"', b"{", b"{}x", b"\xff\xfe", b"null", b" {}"])
def test_other_headers(path: Path, header: bytes) -> None:
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(SnapshotError):
        snapshots.load(path)
