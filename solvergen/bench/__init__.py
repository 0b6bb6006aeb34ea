"""Times optimizers as a user calls them, beside what memory allows and beside other libraries.

    sizes.py         how many tensors of how many elements
    traffic.py       the loop that moves the bytes which a rule must move, without its arithmetic
    contenders.py    our backends, the traffic limit, other libraries: each one thing that is timed
    peers.py         the counterparts of a rule in torch and optax, made from what its spec says of them
    timing.py        interleaved rounds
    run.py           optimizers, sizes and contenders: one result each
    result.py        medians and ratios as plain data
    conditions.py    on what they were taken
    picture.py       a chart of the ratios

Only ratios within a run mean anything: whatever else the machine does slows all contenders alike, since
they take turns.
"""

from __future__ import annotations

from solvergen.bench.conditions import conditions
from solvergen.bench.result import Measured, Result
from solvergen.bench.run import BACKENDS, PEERS, Entry, Progress, benchmark
from solvergen.bench.sizes import Size, parse_sizes

__all__ = [
    "BACKENDS",
    "PEERS",
    "Entry",
    "Measured",
    "Progress",
    "Result",
    "Size",
    "benchmark",
    "conditions",
    "parse_sizes",
]
