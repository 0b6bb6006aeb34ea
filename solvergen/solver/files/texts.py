"""Values of foreign files as texts of bounded length."""

from __future__ import annotations

import hashlib
from typing import Any

LONGEST = 1024
"""Characters or bytes of the longest text that is shown whole."""

_BEGINNING = 60


def shown(value: Any) -> str:
    """A text for a value, whole if it isn't long: else its beginning, its length and a digest."""
    if isinstance(value, bytes | bytearray):
        if len(value) <= LONGEST:
            return str(value)
        return _shortened(str(value[:_BEGINNING]), len(value), "bytes", value)
    text = str(value)
    if len(text) <= LONGEST:
        return text
    return _shortened(text[:_BEGINNING], len(text), "characters", text.encode(errors="surrogatepass"))


def _shortened(beginning: str, length: int, unit: str, whole: bytes | bytearray) -> str:
    return f"{beginning}... ({length} {unit}, SHA-256 {hashlib.sha256(whole).hexdigest()})"
