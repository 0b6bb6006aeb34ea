"""Where a kernel's variables lie: those of shared and local memory in each copy of it, the others once."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.runtime.ptx.machine.regions import FIRST_SHARED, GLOBAL_VARIABLES, Region
from solvergen.runtime.ptx.module import Kernel, Module, Variable


@dataclass(frozen=True, slots=True)
class Variables:
    """``addresses`` by name; ``shared`` and ``local``: their regions; ``fixed``: variables in global and
    constant memory, each with its region. ``dynamic``: whether the launch says how much shared memory there
    is besides."""

    addresses: dict[str, int]
    shared: tuple[Region, ...]
    local: tuple[Region, ...]
    fixed: tuple[tuple[Variable, Region], ...]
    dynamic: Region | None


def place_variables(module: Module, kernel: Kernel) -> Variables:
    """Give every variable that the kernel can name an address. Extern shared variables, which are as large as
    the launch says, all begin where the others end (PTX ISA, "Shared State Space")."""
    ends = {"shared": FIRST_SHARED, "local": FIRST_SHARED}
    addresses: dict[str, int] = {}
    regions: dict[str, list[Region]] = {"shared": [], "local": []}
    fixed: list[tuple[Variable, Region]] = []
    end = GLOBAL_VARIABLES
    for variable in (*module.variables, *kernel.variables):
        if variable.nbytes == 0:
            continue
        fixed_place = variable.space in ("global", "const")
        begin = -(-(end if fixed_place else ends[variable.space]) // variable.alignment) * variable.alignment
        addresses[variable.name] = begin
        region = Region(
            f"{variable.space} variable {variable.name}", begin, variable.nbytes, variable.space != "const"
        )
        if fixed_place:
            fixed.append((variable, region))
            end = region.end
        else:
            regions[variable.space].append(region)
            ends[variable.space] = region.end
    dynamic = None
    for variable in (*module.variables, *kernel.variables):
        if variable.nbytes == 0:
            begin = -(-ends["shared"] // max(16, variable.alignment)) * max(16, variable.alignment)
            addresses[variable.name] = begin
            dynamic = Region(f"dynamic shared memory {variable.name}", begin, 0)
    return Variables(addresses, tuple(regions["shared"]), tuple(regions["local"]), tuple(fixed), dynamic)
