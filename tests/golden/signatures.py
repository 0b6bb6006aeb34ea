"""What specs say of other libraries' arguments, held against the real signatures."""

from __future__ import annotations

import importlib
import inspect
import os
import re

from solvergen.spec.model import Counterpart, Spec
from tests.golden.peers import timm_optimizer

OWN_MODULES = {"timm.optim.RMSpropTF": "rmsprop_tf", "timm.optim.AdamWLegacy": "adamw"}
"""timm's modules by class, where the name in small letters isn't the module's."""


def complaints(spec: Spec, counterpart: Counterpart) -> list[str]:
    """What the spec says of a counterpart that isn't so. Raises ImportError without the library.

    Each hyperparameter and option is called the same there, or is mapped to arguments that exist, or is
    said to be lacking. Options that are derived from hyperparameters are nobody's but ours.
    """
    arguments = set(inspect.signature(_found(counterpart.name)).parameters)
    maps = dict(counterpart.maps)
    found = []
    ours = [h.name for h in spec.hyperparameters] + [o.name for o in spec.options if not o.is_derived]
    for name in ours:
        if name in counterpart.lacks:
            if name in arguments:
                found.append(f"{spec.name}: {counterpart.name} has {name}, which it is said to lack")
            continue
        theirs = set(re.findall(r"[A-Za-z_]\w*", maps.get(name, name)))
        if not theirs & arguments:
            found.append(f"{spec.name}: {counterpart.name} has no argument {maps.get(name, name)} for {name}")
    return found


def _found(name: str) -> object:
    """The class or function called ``name``."""
    path, _, last = name.rpartition(".")
    if path == "timm.optim":
        return timm_optimizer(OWN_MODULES.get(name, last.lower()), last)
    if path.startswith("keras"):
        os.environ.setdefault("KERAS_BACKEND", "jax")
    return getattr(importlib.import_module(path), last)
