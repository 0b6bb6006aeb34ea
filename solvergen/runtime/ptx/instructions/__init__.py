"""What each arithmetic instruction of PTX computes, in NumPy.

``decode`` turns an instruction into an ``Operation``. The families:

    integers.py      add sub mul mad mul24 mad24 sad div rem abs neg min max
    floats.py        add sub mul div rcp sqrt neg abs copysign testp
    extrema.py       min max of floats
    fused.py         fma
    logic.py         and or xor not cnot lop3 shl shr shf
    bitfields.py     popc clz bfind brev bfe bfi bmsk szext prmt
    comparisons.py   setp set selp slct
    conversions.py   cvt
    moves.py         mov

    operation.py     what a decoded instruction is, and how modifiers are read
    directed.py      rounding towards zero, down and up
    nans.py          which NaN comes out
    bfloat16.py      a format that NumPy doesn't have

Written after NVIDIA's PTX ISA; each function says what its instruction does.
"""

from __future__ import annotations

from solvergen.runtime.ptx.instructions import (
    bitfields,
    comparisons,
    conversions,
    extrema,
    floats,
    fused,
    integers,
    logic,
    moves,
)
from solvergen.runtime.ptx.instructions.operation import Decoder, Form, Operation
from solvergen.runtime.ptx.module import Instruction

__all__ = ["Operation", "decode"]


def _by_type(integer: Decoder, float: Decoder) -> Decoder:
    """One opcode, two families: the type says which."""
    return lambda form: (float if form.is_float else integer)(form)


_DECODERS: dict[str, Decoder] = {
    "abs": _by_type(integers.abs, floats.abs),
    "add": _by_type(integers.add, floats.add),
    "and": logic.and_,
    "bfe": bitfields.bfe,
    "bfi": bitfields.bfi,
    "bfind": bitfields.bfind,
    "bmsk": bitfields.bmsk,
    "brev": bitfields.brev,
    "clz": bitfields.clz,
    "cnot": logic.cnot,
    "copysign": floats.copysign,
    "cvt": conversions.cvt,
    "div": _by_type(integers.div, floats.div),
    "fma": fused.fma,
    "lop3": logic.lop3,
    "mad": _by_type(integers.mad, fused.fma),
    "mad24": integers.mad24,
    "max": _by_type(integers.max, extrema.max),
    "min": _by_type(integers.min, extrema.min),
    "mov": moves.mov,
    "mul": _by_type(integers.mul, floats.mul),
    "mul24": integers.mul24,
    "neg": _by_type(integers.neg, floats.neg),
    "not": logic.not_,
    "or": logic.or_,
    "popc": bitfields.popc,
    "prmt": bitfields.prmt,
    "rcp": floats.rcp,
    "rem": integers.rem,
    "sad": integers.sad,
    "selp": comparisons.selp,
    "set": comparisons.set_,
    "setp": comparisons.setp,
    "shf": logic.shf,
    "shl": logic.shl,
    "shr": logic.shr,
    "slct": comparisons.slct,
    "sqrt": floats.sqrt,
    "sub": _by_type(integers.sub, floats.sub),
    "szext": bitfields.szext,
    "testp": floats.testp,
    "xor": logic.xor,
}

_APPROXIMATE = ("cos", "ex2", "lg2", "rsqrt", "sin", "tanh")
_NOT_MODELLED = ("addc", "dp2a", "dp4a", "fns", "madc", "subc")


def decode(instruction: Instruction) -> Operation | None:
    """What an arithmetic instruction computes; None for memory, control flow and what concerns a warp.

    Raises:
        PtxError: an opcode of arithmetic, a modifier, a type or a number of operands that isn't known; or
            an approximation, whose bits can't be known.
    """
    decoder = _DECODERS.get(instruction.opcode)
    if decoder is not None:
        return decoder(Form(instruction))
    if instruction.opcode in _APPROXIMATE:
        Form(instruction).approximate()
    if instruction.opcode in _NOT_MODELLED:
        Form(instruction).unknown()
    return None
