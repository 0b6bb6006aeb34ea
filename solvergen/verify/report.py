"""What came of verifying several optimizers on several backends: rows of data, for anybody to render."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from solvergen.errors import ReplayError
from solvergen.verify.disagreement import Disagreement

Outcome = Literal["passed", "failed", "not run"]


@dataclass(frozen=True, eq=False)
class Row:
    """One optimizer on one backend.

    ``examples``: how many were run. ``seconds``: on this backend alone; examples are drawn, and the rule is
    run on them, for all backends together. ``detail``: empty if passed, one line if not. ``disagreement`` is
    there if failed, and prints as the whole finding. ``replay``: the file that holds its run, or why there
    is none.
    """

    optimizer: str
    backend: str
    outcome: Outcome
    examples: int = 0
    seconds: float = 0.0
    detail: str = ""
    disagreement: Disagreement | None = None
    replay: Path | ReplayError | None = None


@dataclass(frozen=True, eq=False)
class Report:
    """All rows, optimizers first, backends in the order asked for."""

    rows: tuple[Row, ...]

    @property
    def failures(self) -> tuple[Row, ...]:
        """Rows that failed."""
        return tuple(row for row in self.rows if row.outcome == "failed")

    @property
    def ok(self) -> bool:
        """Whether nothing failed. What wasn't run didn't fail; ``complete`` tells of that."""
        return not self.failures

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for was run."""
        return all(row.outcome != "not run" for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """The report as plain data that ``json.dumps`` takes."""
        return {
            "ok": self.ok,
            "complete": self.complete,
            "rows": [
                {
                    "optimizer": row.optimizer,
                    "backend": row.backend,
                    "outcome": row.outcome,
                    "examples": row.examples,
                    "seconds": round(row.seconds, 3),
                    "detail": row.detail,
                    "disagreement": None if row.disagreement is None else row.disagreement.as_json(),
                    "replay": str(row.replay) if isinstance(row.replay, Path) else None,
                }
                for row in self.rows
            ],
        }
