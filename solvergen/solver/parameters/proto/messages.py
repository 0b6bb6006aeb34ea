"""Message classes of ``caffe.proto``, made from its compiled form when they are first asked for.

The classes live in a pool of descriptors of their own: a process may have Caffe's own ones beside them.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from solvergen.errors import SolvergenError

PACKAGE = "solvergen.caffe"
COMPILED = "caffe.desc"


@cache
def message_class(name: str) -> Any:
    """The class of the message ``name``, as ``"SolverState"``.

    Raises:
        SolvergenError: protobuf isn't installed, or is too old.
    """
    message_factory = require("message_factory")
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


def message(name: str) -> Any:
    """A new, empty message ``name``."""
    return message_class(name)()


def require(module: str) -> Any:
    """The module ``google.protobuf.<module>``. Raises SolvergenError that says what to install."""
    from importlib import import_module

    try:
        found = import_module(f"google.protobuf.{module}")
        import_module("google.protobuf.message_factory").GetMessageClass  # noqa: B018 - since protobuf 4.22
    except (ImportError, AttributeError) as error:
        raise SolvergenError(
            f"Caffe's files are read with protobuf, which can't be used here ({error}): "
            'pip install "solvergen[solver]"'
        ) from None
    return found


@cache
def _pool() -> Any:
    descriptors = require("descriptor_pb2").FileDescriptorSet.FromString(
        (resources.files(__package__) / COMPILED).read_bytes()
    )
    pool = require("descriptor_pool").DescriptorPool()
    for file in descriptors.file:
        pool.Add(file)
    return pool
