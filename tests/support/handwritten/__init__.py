"""Two packages written by hand as ``solvergen build`` writes them, so that the runtime and its backends
are tested apart from the compiler.

``adam``: options, an array state that only one of them needs, coupled decay.
``warm_sgd``: a scalar state, a derived option, an integer hyperparameter, a constraint, a state that
starts as a copy of the parameter.
"""

from tests.support.handwritten.adam import Adam
from tests.support.handwritten.warm_sgd import WarmSGD

__all__ = ["Adam", "WarmSGD"]
