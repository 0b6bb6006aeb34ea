"""solvergen: a compiler for optimizers.

Importing this package costs next to nothing; the compiler and the runtime are imported
from their own modules. ``solvergen.Wrappers`` is imported when it is first asked for.
"""

__version__ = "0.2.0"

TYPE_CHECKING = False  # as typing has it, which would have to be imported
if TYPE_CHECKING:
    from solvergen.runtime.wrappers import Wrappers as Wrappers


def __getattr__(name: str) -> object:
    if name != "Wrappers":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = import_module("solvergen.runtime.wrappers").Wrappers
    return found
