"""solvergen: a compiler for optimizers.

Importing this package costs next to nothing; the compiler and the runtime are imported
from their own modules.
"""

__version__ = "0.2.0"
