"""What an optimizer shows of its tensors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from generated import Adam
from solvergen.errors import OptimizerError
from solvergen.runtime.wrappers import Wrappers

WRAPPERS = Wrappers(average=0.5, shadow="bfloat16", clip_grad_norm=1.0)


@pytest.mark.parametrize("name", ["params", "state", "steps", "shared", "averages", "shadows"])
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_views_are_no_copies_in_disguise(name, how):
    opt = Adam({"w": np.ones(3)}, backend="numpy", wrappers=WRAPPERS)
    with pytest.raises(OptimizerError, match="a view, which can't be pickled or copied: copy what is in it"):
        how(getattr(opt, name))
