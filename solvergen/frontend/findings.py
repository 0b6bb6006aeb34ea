"""Where the diagnostics of one spec are gathered."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from solvergen.errors import Diagnostic, Location, SpecError
from solvergen.spec.tree import shorten

if TYPE_CHECKING:
    from solvergen.spec.model import Text

_LONG_WORD = re.compile(r"\w{80,}")


class HasLines(Protocol):
    """Something that knows the file: a Text, or a whole Spec."""

    def line_of(self, location: Location) -> str:
        """The line of the file that ``location`` points into."""


class Findings:
    """A growing list of diagnostics; nothing is printed and nothing is raised until asked for."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, Location], Diagnostic] = {}

    def add(
        self,
        code: str,
        message: str,
        text: Text,
        start: int,
        end: int,
        *,
        hint: str | None = None,
        warning: bool = False,
    ) -> None:
        """A finding about ``text.text[start:end]``."""
        self.at(code, message, text.locate(start, end), hint=hint, warning=warning, text=text)

    def at(
        self,
        code: str,
        message: str,
        location: Location,
        *,
        hint: str | None = None,
        warning: bool = False,
        text: HasLines | None = None,
    ) -> None:
        """A finding at ``location``, which lies in ``text`` where that is given. Of a name that is too long
        for a sentence the beginning is said; the place shows the rest."""
        message, hint = _readable(message), None if hint is None else _readable(hint)
        source = text.line_of(location) if text is not None else None
        severity = "warning" if warning else "error"
        self._found.setdefault(
            (code, message, location),
            Diagnostic(code, message, location, hint=hint, source=source, severity=severity),
        )

    def extend(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Take over what was found elsewhere."""
        for d in diagnostics:
            self._found.setdefault((d.code, d.message, d.location), d)

    @property
    def has_errors(self) -> bool:
        """Whether anything but warnings was found."""
        return any(d.severity == "error" for d in self._found.values())

    def all(self) -> tuple[Diagnostic, ...]:
        """Everything found, in the order of the file."""
        return tuple(
            sorted(
                self._found.values(),
                key=lambda d: (d.location.file, d.location.line, d.location.column, d.code),
            )
        )

    def raise_errors(self) -> None:
        """Raise SpecError with everything found (warnings too) if there is an error among it."""
        if self.has_errors:
            raise SpecError(self.all())


def _readable(sentence: str) -> str:
    return _LONG_WORD.sub(lambda word: shorten(word[0]), sentence)
