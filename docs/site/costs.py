"""What an optimizer keeps and moves, in bytes, by the type of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from solvergen.bench.traffic import bytes_per_element
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import STORAGE_TYPES, compute_dtype

DTYPES = tuple(STORAGE_TYPES)


@dataclass(frozen=True, slots=True)
class Cost:
    """What an update moves with the options ``changed`` from their defaults; ``moved``: bytes by dtype."""

    changed: tuple[str, ...]
    read: tuple[str, ...]
    written: tuple[str, ...]
    moved: tuple[int, ...]


def state_bytes(dtype: str) -> int:
    """Bytes that an element of a state takes beside parameters of ``dtype``."""
    return compute_dtype(dtype).itemsize


def costs(definition: Definition) -> list[Cost]:
    """The cost under the default options, and with each option changed that makes it another one."""
    defaults = {h.name: h.default for h in definition.hyperparameters}
    derived = definition.options_of(**defaults)
    options = {o.name: derived[o.name] if o.default is None else o.default for o in definition.options}
    found = [_cost(definition, options, ())]
    for option, on in options.items():
        setting = {**options, option: not on}
        if definition.constraints(**defaults, **setting) is None:
            cost = _cost(definition, setting, (f"{option}={not on}",))
            if (cost.read, cost.written) != (found[0].read, found[0].written):
                found.append(cost)
    return found


def _cost(definition: Definition, options: Mapping[str, bool], changed: tuple[str, ...]) -> Cost:
    return Cost(
        changed,
        definition.buffers_read(**options),
        definition.buffers_written(**options),
        tuple(bytes_per_element(definition, options, dtype, dtype) for dtype in DTYPES),
    )
