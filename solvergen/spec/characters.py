"""Characters that have no business in a spec."""

from __future__ import annotations

import unicodedata

_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""These change the order in which text is shown, so that it isn't what it seems to be."""


def is_refused(character: str) -> bool:
    """Can the character not be seen, or does it make other text look like what it isn't?

    Control characters (but for tab and line ends), halves of surrogate pairs, Unicode's own line
    ends, noncharacters, byte order marks and changes of writing direction.
    """
    if " " <= character <= "~" or character in "\n\r\t":
        return False
    number = ord(character)
    return (
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        or character in _BIDIRECTIONAL
        or number == 0xFEFF
        or number & 0xFFFE == 0xFFFE
        or 0xFDD0 <= number <= 0xFDEF
    )


def first_refused(text: str) -> int | None:
    """Where in ``text`` the first such character is."""
    if text.isascii() and text.isprintable():
        return None
    return next((offset for offset, character in enumerate(text) if is_refused(character)), None)


def refusal(character: str) -> str:
    """What to say about one."""
    return f"the character U+{ord(character):04X} can't be used in a spec"
