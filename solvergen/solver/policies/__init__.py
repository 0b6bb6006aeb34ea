"""Learning-rate policies: Caffe's to the bit, and what people use today."""

from __future__ import annotations

from solvergen.solver.policies.base import Policy, PolicyState
from solvergen.solver.policies.table import CAFFE, POLICIES, policy_of

__all__ = ["CAFFE", "POLICIES", "Policy", "PolicyState", "policy_of"]
