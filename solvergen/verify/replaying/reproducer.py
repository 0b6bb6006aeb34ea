"""How to see a finding again: code to paste, and a command that runs its replay file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solvergen.errors import ReplayError
from solvergen.runtime.arrays import HostArray
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.example import Example, Group, Step, Tensor
from solvergen.verify.replaying.arrays import array_text
from solvergen.verify.replaying.file import write_replay

MOST_ELEMENTS = 100
"""Of all arrays together in code to paste; larger runs are in the replay file only."""

WIDTH = 100


def how_to_reproduce(finding: Disagreement, kept: Path | ReplayError | None = None) -> str:
    """How to run ``finding`` again, in words and code.

    ``kept``: its replay file, or why there is none; None writes one. Doesn't raise if it can't be written.
    """
    if kept is None:
        try:
            kept = write_replay(finding)
        except ReplayError as problem:
            kept = problem
    lines = ["To run it again:", "", f"    {command(kept) if isinstance(kept, Path) else kept}"]
    code = reproducer(finding)
    if code is not None:
        lines += ["", "or paste:", "", code]
    return "\n".join(lines)


def command(file: Path) -> str:
    """The command line that runs a replay file."""
    return f"solvergen verify --replay {shlex.quote(str(file))}"


def reproducer(finding: Disagreement) -> str | None:
    """A Python program that runs the finding's example again; None if its arrays are too large for that."""
    example = finding.example
    if _elements(example) > MOST_ELEMENTS:
        return None
    names = ["Example", "Group", "Step", "Tensor", "array_from"]
    package, name = finding.module.rpartition(".")[0] or finding.module, finding.optimizer
    if finding.module.endswith(".wrapped"):
        package = finding.module
    # Classes that verify itself compiled into a temporary package are made again from their spec.
    temporary = finding.module.startswith("solvergen_verify_")
    lines = [] if temporary else [f"from {package} import {name}"]
    names += ["built_from", "disagreement_on"] if temporary else ["disagreement_on"]
    names += ["wrapped_of"] if temporary and finding.module.endswith(".wrapped") else []
    lines += [f"from solvergen.verify import {', '.join(names)}", ""]
    lines += ["example = Example("]
    lines += _items("groups", [_group(group) for group in example.groups])
    lines += _items("tensors", [_tensor(tensor) for tensor in example.tensors])
    lines += _items("steps", [_step(step) for step in example.steps])
    for field in ("start", "nonfinite", "reuse"):
        lines.append(f"    {field}={getattr(example, field)!r},")
    if example.shared:
        lines.append(f"    shared={_dict(example.shared)},")
    lines.append(")")
    if temporary:
        wrapped = finding.module.endswith(".wrapped")
        lines.append(f"with built_from([{finding.spec!r}]{', wrap=True' if wrapped else ''}) as optimizers:")
        found = "wrapped_of(optimizers)" if wrapped else "optimizers"
        lines.append(f"    {name} = {found}[{finding.definition.name!r}]")
    indent = "    " if temporary else ""
    lines.append(f"{indent}print(disagreement_on({name}, {finding.backend!r}, example))  # None: same bits")
    return "\n".join(lines)


def _elements(example: Example) -> int:
    count = sum(t.param.size + sum(a.size for a in t.arrays.values()) for t in example.tensors)
    return count + sum(g.size for step in example.steps for g in step.gradients if g is not None)


def _items(name: str, items: list[str]) -> list[str]:
    return [f"    {name}=(", *(f"        {item}," for item in items), "    ),"]


def _group(group: Group) -> str:
    return f"Group({_dict(group.options)}, {_dict(group.multipliers)})"


def _tensor(tensor: Tensor) -> str:
    arguments = [repr(tensor.name), _array(tensor.param), f"offset={tensor.offset}", f"group={tensor.group}"]
    if tensor.arrays:
        arrays = ", ".join(f"{name!r}: {_array(array)}" for name, array in tensor.arrays.items())
        arguments.append(f"arrays={{{arrays}}}")
    if tensor.scalars:
        arguments.append(f"scalars={_dict(tensor.scalars)}")
    if tensor.blocks != 1:
        arguments.append(f"blocks={tensor.blocks}")
    return _call("Tensor", arguments)


def _step(step: Step) -> str:
    gradients = ["None" if g is None else _array(g) for g in step.gradients]
    settings = [_dict(values) for values in step.hyperparameters]
    arguments = [_tuple(gradients), f"offset={step.offset}", f"hyperparameters={_tuple(settings)}"]
    return _call("Step", arguments)


def _call(name: str, arguments: list[str]) -> str:
    """A call on one line, or one line an argument where that would be too long."""
    line = f"{name}({', '.join(arguments)})"
    if len(line) <= WIDTH - 8:
        return line
    return "\n".join([f"{name}(", *(f"            {argument}," for argument in arguments), "        )"])


def _tuple(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _array(array: HostArray) -> str:
    return f"array_from({array.dtype.name!r}, {array.shape!r}, {array_text(array)!r})"


def _dict(values: Mapping[str, Any]) -> str:
    """A dict of settings, floats with all their bits (Python's repr has them)."""
    return "{" + ", ".join(f"{name!r}: {_value(value)}" for name, value in values.items()) + "}"


def _value(value: Any) -> str:
    text = repr(value)
    return f"float({text!r})" if text in ("inf", "-inf", "nan") else text
