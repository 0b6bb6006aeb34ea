"""solvergen: a compiler for optimizers.

Importing this package costs next to nothing; the compiler and the runtime are imported
from their own modules. ``solvergen.Wrappers``, ``RowSparse`` and ``derive`` are imported when asked for.
"""

__version__ = "0.2.0"

TYPE_CHECKING = False  # as typing has it, which would have to be imported
if TYPE_CHECKING:
    from solvergen.deriving import derive as derive
    from solvergen.runtime.row_sparse import RowSparse as RowSparse
    from solvergen.runtime.wrappers import Wrappers as Wrappers

_HOMES = {"RowSparse": "runtime.row_sparse", "Wrappers": "runtime.wrappers", "derive": "deriving"}

__all__ = ["RowSparse", "Wrappers", "derive"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f"solvergen.{_HOMES[name]}"), name)
    return found
