"""Whether what is said of single parameters, blocks and constraints, is said of some that the net has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from solvergen.errors import OptimizerError
from solvergen.runtime.blocks import block_counts
from solvergen.runtime.constraints import matrices_along
from solvergen.runtime.naming import did_you_mean, quoted
from solvergen.solver.net.protocol import Blob
from solvergen.solver.parameters.error import SolverParametersError

if TYPE_CHECKING:
    from solvergen.solver.parameters.findings import Finding
    from solvergen.solver.parameters.model import SolverParameters

Shape = tuple[int, ...]


def check_per_parameter(params: SolverParameters, learnable: Sequence[Blob]) -> None:
    """Raise SolverParametersError, with all that is wrong, for names that no parameter has, numbers of blocks
    that don't divide and axes that aren't there."""
    shapes = {blob.name: tuple(blob.data.shape) for blob in learnable}
    wrong = [
        *_wrong(params, "blocks", params.blocks, shapes, _check_blocks),
        *_wrong(params, "constraints", params.constraints, shapes, _check_constraint),
    ]
    if wrong:
        raise SolverParametersError(wrong)


def numbers_of_blocks(params: SolverParameters, learnable: Sequence[Blob]) -> dict[str, int]:
    """Into how many blocks parameters fall, of those that fall into several."""
    names = [blob.name for blob in learnable]
    found = block_counts(names, [tuple(blob.data.shape) for blob in learnable], params.blocks)
    return {name: count for name, count in zip(names, found, strict=True) if count != 1}


def _wrong(
    params: SolverParameters,
    field: str,
    said: Mapping[str, Any],
    shapes: Mapping[str, Shape],
    check: Callable[[str, Shape, Any], object],
) -> Iterator[Finding]:
    for name, value in said.items():
        if name not in shapes:
            near = did_you_mean(name, shapes)
            text = f"{field} has {quoted(name)}, which is not a parameter that the net learns{near}"
            yield params.finding(field, text, key=name)
            continue
        try:
            check(name, shapes[name], value)
        except OptimizerError as error:
            yield params.finding(field, str(error), key=name)


def _check_blocks(name: str, shape: Shape, given: int | str) -> None:
    block_counts([name], [shape], {name: given})


def _check_constraint(name: str, shape: Shape, constraint: Any) -> None:
    if hasattr(constraint, "axis"):
        what = f"{type(constraint).__name__} of parameter {quoted(name)}"
        matrices_along(constraint.axis, shape, what)
