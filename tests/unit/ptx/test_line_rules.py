"""Rules with lines on the ptx backend, built by the compiler: the bits of the reference, and few launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvergen.errors import KernelFault
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.ptx import PtxBackend
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.runtime.ptx.device import PtxDevice
from tests.support.bits import same_bits
from tests.support.line_rule import liner, package
from tests.support.ptx import needs_nvrtc
from tests.support.staged_rule import placed

pytestmark = needs_nvrtc

Shape = tuple[int, ...]

SHAPES: tuple[Shape, ...] = (
    (3, 5),
    (65, 2),
    (),
    (7,),
    (2, 5, 257),
    (129, 9),
    (2, 1, 13),
    (0, 4),
    (1, 300),
    (3, 0, 2),
)
FEW: tuple[Shape, ...] = ((65, 3), (4,), (2, 3, 258))
ONE_AXIS = """
name: axis
summary: A rule for tests.
hyperparameters:
  lr: {default: 0.1, min: 0}
state:
  kept: {init: 0, shape: KIND}
update:
  - kept = 0.5*kept + norm2(grad, KIND) + 1e-3*sum(param, KIND)
  - param = param - lr*grad/(kept + 0.5) + 1e-3*norm1(kept)
"""


def steps(
    cls: type[Any],
    backend: Any,
    types: tuple[str, str] = ("float32", "float32"),
    *,
    shapes: Sequence[Shape] = FEW,
    misses: Sequence[int] = (0,),
    absent: Sequence[int] = (),
    groups: Sequence[dict[str, Any]] = (),
    count: int = 2,
    **settings: Any,
) -> list[HostArray]:
    """What some steps leave: parameters and states."""
    rng = np.random.default_rng(3)

    def drawn(dtype: str) -> list[HostArray]:
        return [
            placed(rng.standard_normal(shape).astype(numpy_dtype(dtype)), misses[i % len(misses)])
            for i, shape in enumerate(shapes)
        ]

    params = drawn(types[0])
    given: Any = params
    if groups:
        given = [{"params": params[i :: len(groups)], **group} for i, group in enumerate(groups)]
    optimizer = cls(given, backend=backend, **settings)
    for step in range(count):
        gradients: list[Any] = drawn(types[1])
        if step == 1:
            gradients = [None if i in absent else g for i, g in enumerate(gradients)]
        if groups:
            gradients = [g for i in range(len(groups)) for g in gradients[i :: len(groups)]]
        optimizer.step(gradients)
    kept = [np.array(value) for state in optimizer.state.values() for value in state.values()]
    return [*params, *kept]


def check(cls: type[Any], backend: Any = "ptx", **how: Any) -> None:
    """The bits of the reference."""
    wanted, found = steps(cls, "numpy", **how), steps(cls, backend, **how)
    assert len(wanted) == len(found)
    assert all(map(same_bits, found, wanted))


@pytest.mark.parametrize(
    "types", [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32"), ("float16", "float16")]
)
def test_every_shape(types: tuple[str, str]) -> None:
    check(liner(), types=types, shapes=SHAPES, count=1 + (types[0] == "float32"))


@pytest.mark.parametrize("kind", ["leading", "trailing"])
def test_the_other_views(kind: str) -> None:
    cls = package(ONE_AXIS.replace("KIND", kind), f"axis_{kind}").Axis
    check(cls, shapes=(*FEW, (), (3, 0), (70, 2, 2)))


def test_tensors_that_begin_anywhere() -> None:
    check(liner(), misses=(1, 0, 3))


@pytest.mark.parametrize("absent", [(0,), (1, 2), (0, 1, 2)])
def test_tensors_without_gradients(absent: tuple[int, ...]) -> None:
    """Their states stay, and those of the others are at their places."""
    check(liner(), absent=absent, count=3)


def test_groups_of_other_options() -> None:
    """Two launches a step, whose tensors take turns in the tables."""
    check(liner(), groups=({"scaled": True}, {"scaled": False, "lr": 0.5}), shapes=(*FEW, (5, 6), (2, 2)))


def test_states_go_in_and_out() -> None:
    """Half of the steps on each backend."""
    rng = np.random.default_rng(1)
    wanted = [rng.standard_normal(shape) for shape in FEW]
    params = [p.copy() for p in wanted]
    whole = liner()(wanted, backend="numpy")
    parts = [liner()(params, backend=name) for name in ("ptx", "numpy", "ptx")]
    for step, part in enumerate(parts):
        if step:
            part.load_state_dict(parts[step - 1].state_dict())
        gradients = [rng.standard_normal(shape) for shape in FEW]
        whole.step(gradients)
        part.step(gradients)
    assert all(map(same_bits, params, wanted))


class Recording(PtxDevice):
    """Notes what is launched, and what else would wait."""

    def __init__(self) -> None:
        super().__init__(90)
        self.calls: list[str] = []

    def launch(self, kernel: Any, *arguments: Any) -> None:
        self.calls.append(kernel.program.kernel.name)
        super().launch(kernel, *arguments)

    def download(self, target: HostArray, address: int) -> None:
        self.calls.append("download")
        super().download(target, address)

    def synchronize(self) -> None:
        self.calls.append("synchronize")


@pytest.mark.parametrize("tensors", [1, 9])
def test_as_many_launches_for_one_tensor_as_for_many(tensors: int) -> None:
    """And nothing that waits."""
    device, backend = Recording(), PtxBackend()
    backend._device = device
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((2 + i, 3)) for i in range(tensors)]
    optimizer = liner()(arrays, backend=backend)
    optimizer.step([array.copy() for array in arrays])
    device.calls.clear()
    optimizer.step([array.copy() for array in arrays])
    assert device.calls == [
        "sg_pass_0",
        "sg_reduce",  # along rows
        "sg_reduce",  # along columns
        "sg_rows_stage_1",
        "sg_columns_stage_1",
        "sg_reduce",  # of columns to matrices
        "sg_reduce",  # of rows to matrices
        "sg_reduce",  # of rows to tensors
        "sg_stage_2",
        "sg_matrices_stage_2",
        "sg_reduce",  # of matrices to tensors
        "sg_stage_3",
        "sg_matrices_stage_3",
        "sg_pass_3",
        "sg_reduce",
        "sg_stage_4",
        "sg_pass_4",
    ]


WRONG = {
    "a total of another row": ("sg_geometry[3] + sg_line", "sg_line"),
    "lines of another tensor": ("sg_starts[sg_middle] <= sg_line", "sg_starts[sg_middle] < sg_line"),
    "a row that never ends": ("if (++sg_in_row == sg_columns) {", "if (++sg_in_row == sg_columns + 1) {"),
    "rows and columns change places": (
        "{sg_row_computed, sg_column_computed",
        "{sg_column_computed, sg_row_computed",
    ),
    "a partial at another place": ("sg_this.column / SG_TILE_COLUMNS)", "0)"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_shows(what: str, tmp_path: Path) -> None:
    text = Path(liner().definition.folder, "kernel.cu").read_text(encoding="utf-8")
    changed = text.replace(*WRONG[what])
    assert changed != text
    (tmp_path / "kernel.cu").write_text(changed, encoding="utf-8")
    definition = replace(liner().definition, folder=str(tmp_path))
    cls = type("Liner", (liner(),), {"definition": definition})
    with pytest.raises((KernelFault, AssertionError)):
        check(cls)
