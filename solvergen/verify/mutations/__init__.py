"""How much verify notices: kernels and host programs with one deliberate fault each.

A wrong compiler would emit wrong texts; here texts are made wrong, one place at a time, and the runs that
verify draws are tried on each until one differs from the rule. What survives, although it means another
program, is a hole in the strategies.

In the order in which a mutant passes through: ``c_tokens`` and ``conditions`` (read a kernel's text),
``c_expressions``, ``c_faults`` and ``host_faults`` (find places and faults), ``flags`` and ``tables``
(faults outside the texts), ``subject`` (the optimizer, its examples drawn and run by the rule once),
``targets`` (what compiles and runs), ``experiment`` and ``isolation`` (one process a mutant), ``outcome``
and ``score``.

    from solvergen.verify import shipped
    from solvergen.verify.mutations import Experiment, cpu, subject

    experiment = Experiment(subject(shipped()["lion"]), cpu())
    for outcome in experiment.run(experiment.mutants, jobs=2):
        print(outcome.verdict, outcome.mutant)

Needs POSIX and a process with one thread. See docs/verification.md.
"""

from __future__ import annotations

from solvergen.verify.mutations.experiment import Experiment
from solvergen.verify.mutations.mutant import KINDS, Mutant
from solvergen.verify.mutations.outcome import Outcome, Verdict
from solvergen.verify.mutations.score import Score, sample
from solvergen.verify.mutations.subject import Subject, subject
from solvergen.verify.mutations.targets import Target, cpu, ptx

__all__ = [
    "KINDS",
    "Experiment",
    "Mutant",
    "Outcome",
    "Score",
    "Subject",
    "Target",
    "Verdict",
    "cpu",
    "ptx",
    "sample",
    "subject",
]
