"""Shows that an optimizer's backends compute the rule that was written, to the last bit.

In a test of your own:

    from solvergen.verify import check_agreement
    from mypackage.optim import MyOptimizer

    def test_backends_agree():
        check_agreement(MyOptimizer, backends=("numpy", "cpu"), examples=200)

Hypothesis draws whole runs (``examples``), each is run on a backend (``running``) and by calling the
generated reference directly (``direct``), and the two are compared after every step (``trace``). A finding
is made as small as it goes (``shrinking``), says everything that is needed to understand it
(``disagreement``), and is kept to be run again (``replaying``). ``verify_all`` does this for many optimizers
and backends (``matrix``), in several processes if it is told to (``processes``, ``worker``).

See docs/verification.md.
"""

from __future__ import annotations

from solvergen.errors import AgreementError, ReplayError, VerificationError
from solvergen.runtime.equations import Equation
from solvergen.verify.agreement import EXAMPLES, check_agreement, disagreement_on, find_disagreement
from solvergen.verify.collect import built_from, optimizers_in, select, shipped, wrapped_of
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.example import Example, Group, Step, Tensor
from solvergen.verify.limits import Limits
from solvergen.verify.machines import NAMES as BACKENDS
from solvergen.verify.machines import why_unavailable
from solvergen.verify.matrix import Progress, verify_all
from solvergen.verify.replaying.arrays import array_from
from solvergen.verify.replaying.file import Replay, read_replay, write_replay
from solvergen.verify.replaying.replay import replay
from solvergen.verify.replaying.reproducer import reproducer
from solvergen.verify.report import Report, Row
from solvergen.verify.trace import Difference

__all__ = [
    "BACKENDS",
    "EXAMPLES",
    "AgreementError",
    "Difference",
    "Disagreement",
    "Equation",
    "Example",
    "Group",
    "Limits",
    "Progress",
    "Replay",
    "ReplayError",
    "Report",
    "Row",
    "Step",
    "Tensor",
    "VerificationError",
    "array_from",
    "built_from",
    "check_agreement",
    "disagreement_on",
    "find_disagreement",
    "optimizers_in",
    "read_replay",
    "replay",
    "reproducer",
    "select",
    "shipped",
    "verify_all",
    "why_unavailable",
    "wrapped_of",
    "write_replay",
]
