"""Constraints on parameters: ``opt.constraint = {"weight": MaxNorm(3)}``, or ``"constraint"`` of a group.

They are what Keras calls by nearly the same names: ``axis`` says along which axes of the parameter norms are
taken. See docs/wrappers.md.
"""

from solvergen.runtime.constraints import Constraint, MaxNorm, MinMax, MinMaxNorm, NonNegative, UnitNorm

__all__ = ["Constraint", "MaxNorm", "MinMax", "MinMaxNorm", "NonNegative", "UnitNorm"]
