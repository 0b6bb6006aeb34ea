"""Writing a tree of generated files into a folder: only what changed, whole or not at all, nothing of others.

``paths`` says which relative paths are acceptable; ``manifest`` is the list of what solvergen wrote;
``comparison`` decides, without touching anything, what would be created, changed, removed or refused;
``writer`` carries that out under the ``lock``; ``drift`` shows it as a unified diff instead (``--check``).
``standing`` answers for a tree that isn't there to compare with, only its manifest's digest.
"""

from __future__ import annotations

from solvergen.output.comparison import Comparison, compare
from solvergen.output.drift import changes, unified_diff
from solvergen.output.standing import standing
from solvergen.output.writer import write

__all__ = ["Comparison", "changes", "compare", "standing", "unified_diff", "write"]
