"""Whether the parameters, the net and the test nets of a Solver go together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from solvergen.solver.net.protocol import Net, Sharing
from solvergen.solver.training.error import TrainingError
from solvergen.solver.training.fitting_parameters import check_per_parameter
from solvergen.solver.training.parts import check_net, unshared
from solvergen.solver.training.reading import check_parameters

if TYPE_CHECKING:
    from solvergen.solver.parameters.model import SolverParameters


def fit(params: SolverParameters, net: Net, test_nets: Sequence[Net]) -> None:
    """Check each and all together; from here on test nets that can share the net's parameters do.

    Raises SolverParametersError, NetError or TrainingError.
    """
    check_parameters(params)
    check_net(net, trained=True)
    check_per_parameter(params, net.learnable)
    for one in test_nets:
        check_net(one, trained=False)
    if len(params.test_iter) != len(test_nets):
        raise TrainingError(
            f"{len(test_nets)} test nets were given, but test_iter has {len(params.test_iter)} entries: each "
            "test net needs one, the number of its batches"
        )
    if test_nets and params.test_interval <= 0:
        raise TrainingError("there are test nets, but test_interval isn't above 0")
    for one in test_nets:
        if isinstance(one, Sharing):
            one.share_with(net)


def warnings_of(net: Net, test_nets: Sequence[Net]) -> Iterator[str]:
    """What to say of nets that fit and aren't what was meant, perhaps."""
    for number, one in enumerate(test_nets):
        if names := unshared(one, net):
            yield (
                f"test net {number} has its own {', '.join(names)}, which training doesn't change: a net "
                "of the same module or arrays, or one with share_with, tests what is trained"
            )
    if not net.learnable:
        yield f"the net {net.name!r} has no parameters to learn: iterations pass, and nothing changes"
