"""What is to be said about a solver's parameters: errors and warnings as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from solvergen.errors import Location


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One error or warning. ``hint`` says what to do; ``field`` is the parameter concerned.

    ``location`` and ``source`` (the line itself) are there where the parameters come from a file.
    """

    message: str
    severity: Literal["error", "warning"] = "error"
    field: str | None = None
    hint: str | None = None
    location: Location | None = None
    source: str | None = None

    def __str__(self) -> str:
        """``file:line:column: error: message (hint)``."""
        where = f"{self.location}: " if self.location is not None else ""
        return f"{where}{self.severity}: {self.sentence}"

    @property
    def sentence(self) -> str:
        """The message with its hint, without the place."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


def errors_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that are errors."""
    return tuple(finding for finding in findings if finding.severity == "error")


def warnings_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that are warnings."""
    return tuple(finding for finding in findings if finding.severity == "warning")


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Errors before warnings, each in the order of the file."""

    def rank(finding: Finding) -> tuple[bool, int, int]:
        place = finding.location
        return (finding.severity == "warning", place.line if place else 0, place.column if place else 0)

    return sorted(findings, key=rank)
