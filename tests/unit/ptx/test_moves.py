"""mov: whole values, and values packed and taken apart."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.errors import PtxError
from solvergen.runtime.ptx.instructions import decode
from tests.support.ptx_instructions import compute, decoded, instruction, register, vector


@pytest.mark.parametrize(
    "type", ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"]
)
def test_whole_values(type: str) -> None:
    assert compute(f"mov.{type}", [1, 0, 7]) == [1, 0, 7]


def test_predicates() -> None:
    assert compute("mov.pred", [True, False]) == [True, False]


def test_nans_keep_their_bits() -> None:
    assert compute("mov.b32", [0x7F800001]) == [0x7F800001]


@pytest.mark.parametrize(
    ("type", "count", "whole", "parts"),
    [
        ("b32", 2, 0x89ABCDEF, [0xCDEF, 0x89AB]),
        ("b64", 2, 0xFEDCBA9876543210, [0x76543210, 0xFEDCBA98]),
        ("b64", 4, 0xFEDCBA9876543210, [0x3210, 0x7654, 0xBA98, 0xFEDC]),
        ("b32", 4, 0x89ABCDEF, [0xEF, 0xCD, 0xAB, 0x89]),
        ("b16", 2, 0xABCD, [0xCD, 0xAB]),
    ],
)
def test_packed_values(type: str, count: int, whole: int, parts: list[int]) -> None:
    columns = [[part, 0] for part in parts]
    assert compute(f"mov.{type}", [whole, 0], destination=vector(count)) == columns
    operation = decoded(instruction(f"mov.{type}", register(), vector(count)))
    assert [t.bits for t in operation.sources] == [int(type[1:]) // count] * count
    packed = operation.compute(
        *(np.array(c, t.dtype) for c, t in zip(columns, operation.sources, strict=True))
    )
    assert isinstance(packed, np.ndarray)
    assert packed.tolist() == [whole, 0]
    assert packed.dtype == operation.results[0].dtype


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("mov.b128", (register(), register())),
        ("mov.f16", (register(), register())),
        ("mov.u32", (register(), vector(2))),
        ("mov.b32", (register(), vector(3))),
        ("mov.b16", (register(), vector(4))),
        ("mov.b64", (vector(2), vector(2))),
        ("mov.b32", (register(), register(), register())),
        ("mov.b32", (register(),)),
        ("mov", (register(), register())),
        ("mov.volatile.b32", (register(), register())),
    ],
)
def test_what_does_not_exist(name: str, operands: tuple[object, ...]) -> None:
    with pytest.raises(PtxError, match="PTX line 7"):
        decoded(instruction(name, *operands))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "ld.global.f32",
        "st.shared.u32",
        "bra.uni",
        "ret",
        "bar.sync",
        "shfl.sync.bfly.b32",
        "atom.global.add.f32",
        "cvta.to.global.u64",
        "isspacep.shared",
        "vote.sync.any.pred",
        "activemask.b32",
        "membar.gl",
        "unheard.of",
    ],
)
def test_what_is_not_arithmetic_is_left_to_the_machine(name: str) -> None:
    assert decode(instruction(name, sources=1)) is None


def test_errors_name_line_and_text() -> None:
    with pytest.raises(PtxError) as caught:
        decode(instruction("add.rn.f16", sources=2))
    assert caught.value.line == 7
    assert caught.value.text == "add.rn.f16 by hand;"
    assert str(caught.value) == (
        "PTX line 7: the interpreter doesn't know the type of add.rn.f16\n  add.rn.f16 by hand;"
    )
    with pytest.raises(PtxError, match=r"add.s32 takes 1 destination\(s\) and 2 source\(s\), not 1 and 3"):
        decode(instruction("add.s32", sources=3))
    with pytest.raises(PtxError, match=r"doesn't know .wild of add.wild.s32"):
        decode(instruction("add.wild.s32", sources=2))
    with pytest.raises(PtxError, match=r"doesn't know a form without .lo or .hi or .wide of mul.s32"):
        decode(instruction("mul.s32", sources=2))
