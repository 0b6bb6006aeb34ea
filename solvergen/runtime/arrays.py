"""Names for arrays in annotations."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
"""An array of a backend's own kind: ``numpy.ndarray`` on the host, ``cupy.ndarray`` on a GPU."""

HostArray = np.ndarray[Any, np.dtype[Any]]
"""A NumPy array of any shape and dtype."""
