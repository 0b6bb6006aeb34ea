"""Random numbers of a whole program, for what draws them where nets are made."""

from __future__ import annotations

import random
import sys

import numpy as np


def seed_all(seed: int) -> None:
    """Begin the random numbers of Python, NumPy and (if imported) torch anew, unless ``seed`` is below 0.

    Caffe seeds before it fills a net's parameters: call it before making a net.
    """
    if seed < 0:
        return
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
