"""The font that equations are set in: STIX Two Math (SIL Open Font License), cut down to what they need.

Without a font that has a table of mathematical measures browsers can't stretch braces and roots, and
phones often come without one. The package ziamath ships it.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from fontTools import subset

NAME = "STIXTwoMath.woff"

# Letters and digits upright and, where browsers look for those of a variable, slanted; Greek; signs.
_RANGES = ((0x20, 0x7E), (0xA0, 0xFF), (0x370, 0x3FF), (0x1D434, 0x1D467), (0x1D6E2, 0x1D71B))
_SIGNS = "ℎˆˇ˜¯˙′←−·×√∛∞∧∨¬≠≤≥≈⌊⌋⌈⌉{}|\u2061\u2062"


def write_font(folder: Path) -> None:
    """Write the font to ``folder`` as ``NAME``."""
    unicodes = [code for first, last in _RANGES for code in range(first, last + 1)]
    options = subset.Options(flavor="woff", layout_features=["*"], notdef_outline=True, name_IDs=["*"])
    with as_file(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf") as path:
        font = subset.load_font(str(path), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[*unicodes, *map(ord, _SIGNS)])
    subsetter.subset(font)
    folder.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, str(folder / NAME), options)
