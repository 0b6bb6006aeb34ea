"""Parameters by name: what layers call theirs, and layers out of the names of a ``state_dict``."""

from __future__ import annotations

from collections.abc import Mapping

from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.naming import quoted
from solvergen.solver.files.data import LayerData, ModelData

_USUAL = ("weight", "bias")
_STATISTICS = ("running_mean", "running_var")
_TWO = frozenset(
    {
        *("InnerProduct", "Convolution", "Deconvolution", "Embed", "Scale", "PReLU"),
        *("Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
        *("Embedding", "LayerNorm", "GroupNorm", "RMSNorm", "Bilinear"),
    }
)
"""Types of layers, Caffe's and torch's, whose parameters are a weight and perhaps a bias."""

WITHOUT_LAYER = "net"
"""The layer of parameters whose names say none."""


def names_of(layer: LayerData) -> tuple[str, ...]:
    """The names of a layer's parameters, the layer's before a dot; where nothing says them, numbers."""
    if layer.names is not None:
        return layer.names
    count = len(layer.blobs)
    own = tuple(map(str, range(count)))
    if layer.type in _TWO and count <= len(_USUAL):
        own = _USUAL[:count]
    elif layer.type.startswith("BatchNorm") and layer.type != "BatchNorm":  # torch's; Caffe's has three sums
        own = {2: _STATISTICS, 4: (*_USUAL, *_STATISTICS)}.get(count, own)
    return tuple(f"{layer.name}.{name}" for name in own)


def named(model: ModelData) -> dict[str, HostArray]:
    """Every array of a model by its names; what two layers share is there under both.

    Raises SolverFileError where two arrays have one name, or one has a name that isn't text.
    """
    found: dict[str, HostArray] = {}
    for layer in model.layers:
        for name, blob in zip(names_of(layer), layer.blobs, strict=True):
            if blob is None:
                continue
            if not is_text(name):
                raise SolverFileError(f"a parameter is called {quoted(name)}, which isn't text")
            if found.setdefault(name, blob) is not blob:
                raise SolverFileError(
                    f"two parameters are called {quoted(name)}: files with arrays by name can't hold both"
                )
    return found


def is_text(name: str) -> bool:
    """Whether there are characters for it: what was read from bytes may be anything."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def owned(model: ModelData) -> dict[str, HostArray]:
    """Every array once, by the name that its first layer has for it."""
    found: dict[int, tuple[str, HostArray]] = {}
    for name, array in named(model).items():
        found.setdefault(id(array), (name, array))
    return dict(found.values())


def learned(model: ModelData, count: int) -> dict[str, HostArray]:
    """The ``count`` parameters of a model that a history is of, where nothing names them.

    In Caffe they are all that there are; a net of torch's has running means besides, which aren't learned.
    """
    found = owned(model)
    rest = {name: array for name, array in found.items() if name.rpartition(".")[2] not in _STATISTICS}
    return rest if len(rest) == count else found


def model_of(arrays: Mapping[str, HostArray], name: str = "") -> ModelData:
    """A model of arrays by name: what is before the last dot is the layer.

    A layer has its weight first, then its bias, whatever the order of the names: safetensors files have none.
    """
    layers: dict[str, list[str]] = {}
    for full in arrays:
        layers.setdefault(full.rpartition(".")[0] or WITHOUT_LAYER, []).append(full)
    return ModelData(name, tuple(_layer(layer, names, arrays) for layer, names in layers.items()))


def _layer(layer: str, names: list[str], arrays: Mapping[str, HostArray]) -> LayerData:
    usual = [f"{layer}.{name}" for name in (*_USUAL, *_STATISTICS)]
    ordered = sorted(names, key=usual.index) if set(names) <= set(usual) else names
    return LayerData(layer, blobs=tuple(arrays[name] for name in ordered), names=tuple(ordered))
