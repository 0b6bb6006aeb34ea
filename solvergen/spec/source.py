"""The text of a spec file, and pieces of it that still know where they stand."""

from __future__ import annotations

from dataclasses import dataclass, field

from solvergen.errors import Location


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was read: its path as given (with forward slashes) and its lines without endings."""

    path: str
    lines: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, path: str, text: str) -> Source:
        """Split ``text`` as YAML does: at LF, CR LF or CR."""
        return cls(path, tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")))

    def line(self, number: int) -> str:
        """The line ``number`` (from 1); empty past either end of the file."""
        return self.lines[number - 1] if 1 <= number <= len(self.lines) else ""

    def line_of(self, location: Location) -> str:
        """The line that ``location`` points into."""
        return self.line(location.line)

    def span(self, line: int, column: int, end_line: int, end_column: int) -> Location:
        """A location from a start and an exclusive end; a stretch over several lines is cut at its first."""
        if end_line != line:
            end_column = len(self.line(line)) + 1
        return Location(self.path, line, column, max(end_column, column + 1))


@dataclass(frozen=True, slots=True)
class Text:
    """An equation, a condition or a name, and where each of its characters stands in the file.

    ``positions`` has a (line, column) for each character of ``text`` and one more for its end; it
    is right whatever YAML style the text was written in. Two texts are equal if they read the same.
    """

    text: str
    location: Location = field(compare=False, repr=False)
    source: Source = field(compare=False, repr=False)
    positions: tuple[tuple[int, int], ...] = field(compare=False, repr=False)

    @classmethod
    def of(cls, text: str, path: str = "<text>", line: int = 1, column: int = 1) -> Text:
        """A text that stands on its own, as if at ``line`` and ``column`` of ``path``."""
        padding = "\n" * (line - 1) + " " * (column - 1)
        source = Source.of(path, padding + text)
        positions = []
        for character in text:
            positions.append((line, column))
            line, column = (line + 1, 1) if character == "\n" else (line, column + 1)
        positions.append((line, column))
        return cls(text, source.span(*positions[0], *positions[-1]), source, tuple(positions))

    def __str__(self) -> str:
        return self.text

    def locate(self, start: int, end: int) -> Location:
        """Where the characters ``start`` to ``end`` (exclusive) of ``text`` stand in the file.

        Offsets outside the text are moved to its nearest end. At least one column is covered.
        """
        last = len(self.text)
        start = min(max(start, 0), last)
        end = min(max(end, start), last)
        line, column = self.positions[start]
        if end == start:
            return self.source.span(line, column, line, column + 1)
        # The end is one past the last character covered, not the place of the next one: between
        # the two there may be a line break of the file that YAML has folded away.
        end_line, end_column = self.positions[end - 1]
        return self.source.span(line, column, end_line, end_column + 1)

    def line_of(self, location: Location) -> str:
        """The line of the file that ``location`` points into."""
        return self.source.line_of(location)
