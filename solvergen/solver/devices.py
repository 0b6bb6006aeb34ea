"""Which backend ``solver_mode`` and ``device_id`` mean on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from solvergen.errors import BackendUnavailable

if TYPE_CHECKING:
    from solvergen.solver.parameters.model import SolverParameters


def count_gpus() -> int:
    """How many GPUs there are. Raises BackendUnavailable where there is none; the text says why."""
    from solvergen.runtime.cuda.device import unavailable

    problem = unavailable()
    if problem is not None:
        raise BackendUnavailable(problem)
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount())


def backend_of(params: SolverParameters, gpus: Callable[[], int] = count_gpus) -> tuple[str, tuple[str, ...]]:
    """The backend's name, and warnings: Caffe's default is GPU, and without one it goes on with the CPU.

    Raises BackendUnavailable for a ``device_id`` that isn't there.
    """
    if params.solver_mode == "GPU":
        try:
            found = gpus()
        except BackendUnavailable as unavailable:
            name, warnings = _host()
            said = (
                "solver_mode is GPU" if params.has("solver_mode") else "solver_mode is GPU by Caffe's default"
            )
            return name, (f"{said}, but there is none ({unavailable}): continuing on the CPU", *warnings)
        if not 0 <= params.device_id < found:
            raise BackendUnavailable(
                f"device_id is {params.device_id}, and the GPUs here are 0 to {found - 1}"
            )
        return "cuda", ()
    if params.has("device_id") and params.device_id != 0:
        name, warnings = _host()
        return name, (f"device_id {params.device_id} says nothing with solver_mode CPU", *warnings)
    return _host()


def _host() -> tuple[str, tuple[str, ...]]:
    from solvergen.runtime.backends import create

    try:
        create("cpu")
    except BackendUnavailable as unavailable:
        return "numpy", (f"{unavailable}; until then updates run in NumPy, several times slower",)
    return "cpu", ()
