"""What came of looking at compiled kernels: rows of data, for anybody to render."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from solvergen.runtime.cuda.kernels import UPDATE
from solvergen.verify.static.cpu import NativeMeasured
from solvergen.verify.static.cuda import Measured
from solvergen.verify.static.findings import Finding

PARAMETERS = 1e9
"""For how many parameters times are given."""


@dataclass(frozen=True, eq=False)
class StaticRow:
    """One kernel: an optimizer, its options, its types of parameter and gradient, what it is compiled for.

    ``target``: ``sm_90``, or ``cpu``. ``bandwidth``: in GB/s, that of ``card`` unless it was given; 0 on a
    CPU. ``measured``: None where it doesn't compile, which is among the ``findings``.
    """

    optimizer: str
    options: Mapping[str, bool]
    param: str
    grad: str
    target: str
    measured: Measured | NativeMeasured | None
    findings: tuple[Finding, ...]
    bandwidth: float = 0.0
    card: str = ""

    @property
    def dtypes(self) -> str:
        """``float32``, or ``bfloat16/float32`` where the gradient's type is another."""
        return self.param if self.param == self.grad else f"{self.param}/{self.grad}"

    @property
    def kernel(self) -> str:
        """Which kernel of a staged rule it is (``sg_pass_0``, ``sg_stage_1`` ...); empty of other rules."""
        name = self.measured.kernel if isinstance(self.measured, Measured) else ""
        return "" if name == UPDATE else name

    @property
    def chosen(self) -> str:
        """The options that are on, or a dash."""
        return "+".join(name for name, value in self.options.items() if value) or "-"

    def __str__(self) -> str:
        kernel = f" {self.kernel}" if self.kernel else ""
        return f"{self.optimizer} ({self.chosen}) {self.dtypes} {self.target}{kernel}"

    def as_json(self) -> dict[str, Any]:
        """Plain data that ``json.dumps`` takes."""
        row: dict[str, Any] = {
            "optimizer": self.optimizer,
            "options": dict(self.options),
            "param": self.param,
            "grad": self.grad,
            "target": self.target,
            "findings": [finding.as_json() for finding in self.findings],
        }
        m = self.measured
        if isinstance(m, NativeMeasured):
            row |= {
                "packed": m.packed,
                "fused": m.fused,
                "loads_per_element": m.loads,
                "loads_needed": m.loads_needed,
                "stores_per_element": m.stores,
                "stores_needed": m.stores_needed,
            }
        elif isinstance(m, Measured):
            row |= {
                "kernel": m.kernel,
                "registers": m.registers,
                "spills": m.spills,
                "stack": m.stack,
                "shared": m.shared,
                "width": m.width,
                "loads_per_element": m.loads,
                "loads_needed": m.loads_needed,
                "stores_per_element": m.stores,
                "stores_needed": m.stores_needed,
                "line_values_per_element": m.values,
                "occupancy": m.occupancy.share,
                "occupancy_limit": m.occupancy.limit,
                "resident_threads": m.occupancy.threads,
                "bytes_in_flight": m.in_flight,
                "bytes_per_parameter": m.nbytes,
                "bandwidth_gb_s": self.bandwidth,
                "card": self.card,
                "ms_per_1e9_parameters": m.milliseconds(PARAMETERS, self.bandwidth),
            }
        return row


@dataclass(frozen=True, eq=False)
class StaticReport:
    """All rows. ``not_run``: what couldn't be looked at here (``cuda``, ``cpu``), and why."""

    rows: tuple[StaticRow, ...]
    not_run: Mapping[str, str]

    @property
    def failures(self) -> tuple[StaticRow, ...]:
        """Rows with findings."""
        return tuple(row for row in self.rows if row.findings)

    @property
    def ok(self) -> bool:
        """Whether nothing was found. What wasn't looked at isn't a finding; ``complete`` tells of that."""
        return not self.failures

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for was looked at."""
        return not self.not_run

    def as_json(self) -> dict[str, Any]:
        """The report as plain data that ``json.dumps`` takes."""
        return {
            "ok": self.ok,
            "complete": self.complete,
            "not_run": dict(self.not_run),
            "rows": [row.as_json() for row in self.rows],
        }
