"""A ``torch.nn.Module`` as a net that the Solver trains.

    net = TorchNet(model, torch.nn.functional.cross_entropy, Batches(inputs, targets, batch_size=64))
    Solver(params, net).solve()

The optimizer's arrays are the module's parameters and gradients themselves: NumPy's views of them on the CPU,
CuPy's by DLPack on a GPU. Nothing is copied.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

from solvergen.errors import MissingLibrary

try:
    import torch
except ImportError as problem:
    raise MissingLibrary(
        f"nets of torch modules need torch, which can't be imported ({problem}): pip install torch, "
        "or as pytorch.org says for this machine"
    ) from problem

from solvergen.adapters.torch_arrays import on_host, shared
from solvergen.adapters.torch_batches import Batches
from solvergen.adapters.torch_random import RandomState, random_state, set_random_state
from solvergen.adapters.torch_watching import Watcher
from solvergen.solver.net.error import NetError
from solvergen.solver.net.parameters import check_names, check_shared
from solvergen.solver.net.protocol import (
    NOTHING_KEPT,
    Blob,
    LayerBlobs,
    LayerPass,
    Net,
    Output,
    Watching,
    loss_of,
)

__all__ = ["Batches", "TorchNet", "accuracy"]

Compute = Callable[[torch.nn.Module, Any], Mapping[str, torch.Tensor]]
Loss = Callable[[Any, Any], torch.Tensor]


class TorchNet:
    """A module, a loss and batches.

    Args:
        module: of parameters in float32, float64, bfloat16 or float16, all on one device.
        loss: called with what the module makes of the inputs and with the targets; a scalar tensor.
        data: iterated over, anew at its end: a ``DataLoader``, ``Batches``, a list. A batch is a pair of
            inputs and targets. With ``position`` and ``seek`` (``Batches`` has them) snapshots hold where it
            is.
        metrics: more outputs by name, called as the loss is; they don't count for it.
        compute: in place of ``loss`` and ``metrics``: called with the module and a batch, whatever that is;
            returns tensors by name.
        loss_weights: of the outputs of ``compute``; 0 for those that aren't named.
        lr_mult, decay_mult: by parameter name, or pattern as of ``fnmatch`` (``"*.bias"``); the last one that
            fits counts, and one that fits nothing is an error. A parameter whose ``lr_mult`` is 0 gets no
            gradient. Parameters with ``requires_grad=False`` aren't learnable; model files hold them too.
        phase: "TRAIN" or "TEST": what mode the module is in during passes.
        name: of the net, in logs and model files.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        loss: Loss | None = None,
        data: Iterable[Any] = (),
        *,
        metrics: Mapping[str, Loss] | None = None,
        compute: Compute | None = None,
        loss_weights: Mapping[str, float] | None = None,
        lr_mult: Mapping[str, float] | None = None,
        decay_mult: Mapping[str, float] | None = None,
        phase: Literal["TRAIN", "TEST"] = "TRAIN",
        name: str | None = None,
    ) -> None:
        if (loss is None) == (compute is None):
            raise NetError("TorchNet needs either a loss, or compute")
        if compute is not None and not loss_weights:
            raise NetError('loss_weights must say which outputs of compute are the loss: {"loss": 1.0}')
        if phase not in ("TRAIN", "TEST"):
            raise NetError(f"phase must be TRAIN or TEST, not {phase!r}")
        if not (hasattr(data, "__iter__") or hasattr(data, "__getitem__")):
            raise NetError(f"data must give batches again and again, as a list or a loader, not {data!r:.60}")
        self.module = module
        self.name = name or type(module).__name__
        self._training = phase == "TRAIN"
        self._compute: Compute = compute if compute is not None else _computed(loss, metrics or {})
        self._weights = dict(loss_weights) if compute is not None and loss_weights else {"loss": 1.0}
        self._data, self._batches = data, iter(())
        self._kept: list[tuple[Any, RandomState]] | None = None
        self._watcher: Watcher | None = None
        self._outputs: tuple[Output, ...] = ()
        self._lr_mult, self._decay_mult = dict(lr_mult or {}), dict(decay_mult or {})
        self._describe()

    def _describe(self) -> None:
        """The blobs of all layers, over the module's tensors as they are."""
        module = self.module
        named = dict(module.named_parameters())  # each once, by its first name
        rates = _by_name(self._lr_mult, named, "lr_mult")
        decays = _by_name(self._decay_mult, named, "decay_mult")
        made: dict[int, Blob] = {}
        self._gradients: list[tuple[torch.nn.Parameter, torch.Tensor]] = []
        layers: list[LayerBlobs] = []
        learnable: list[Blob] = []
        owners = {id(parameter): name for name, parameter in named.items()}
        for path, part in module.named_modules():
            blobs: list[Blob] = []
            own = [*part._parameters.items(), *part._buffers.items()]
            for key, tensor in own:
                if isinstance(tensor, torch.nn.Parameter) and tensor.is_complex():
                    raise NetError(
                        f"parameter {key!r} of {path or self.name!r} is complex: make it of real numbers "
                        "(torch.view_as_real), which optimizers take"
                    )
                if tensor is None or not tensor.is_floating_point():
                    continue
                if id(tensor) not in made:
                    name = owners.get(id(tensor), f"{path}.{key}" if path else key)
                    learns = isinstance(tensor, torch.nn.Parameter) and tensor.requires_grad
                    made[id(tensor)] = blob = self._blob(
                        name, tensor, learns, rates.get(name, 1.0), decays.get(name, 1.0), path, len(blobs)
                    )
                    if learns:
                        learnable.append(blob)
                blobs.append(made[id(tensor)])
            if blobs or not list(part.children()):
                layers.append(LayerBlobs(path or self.name, type(part).__name__, tuple(blobs)))
        self.layers: tuple[LayerBlobs, ...] = tuple(layers)
        self.learnable: tuple[Blob, ...] = tuple(learnable)
        check_names(self.learnable)

    def _blob(
        self,
        name: str,
        tensor: torch.Tensor,
        learns: bool,
        lr_mult: float,
        decay_mult: float,
        layer: str,
        index: int,
    ) -> Blob:
        if not tensor.is_contiguous():
            kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer"
            raise NetError(f"{kind} {name!r} isn't contiguous: x.data = x.data.contiguous() makes it so")
        data = shared(tensor)
        if not learns:
            return Blob(name, data, data, 0.0, 0.0, layer, index)
        if self._training:
            gradient = torch.zeros_like(tensor, memory_format=torch.contiguous_format)
            diff = shared(gradient)
        else:
            gradient, diff = tensor, data  # a net for tests has no gradients
        if self._training and lr_mult:
            assert isinstance(tensor, torch.nn.Parameter)
            tensor.grad = gradient
            self._gradients.append((tensor, gradient))
        elif self._training:
            tensor.requires_grad_(False)  # no backward pass for it, as in Caffe
        return Blob(name, data, diff, lr_mult, decay_mult, layer, index)

    def clear_diffs(self) -> None:
        """Set every gradient to zero."""
        if self._gradients:
            torch._foreach_zero_([gradient for _, gradient in self._gradients])
        for blob in self.learnable:
            if not blob.lr_mult and self._training:
                blob.diff.fill(0)

    def forward(self) -> tuple[Output, ...]:
        """A pass over the next batch, without gradients."""
        with torch.no_grad():
            self._pass(self._batch())
        return self._outputs

    def forward_backward(self) -> float:
        """A pass over the next batch that adds to the gradients. Returns the loss."""
        if not self._training:
            raise NetError(f"{self.name} is a net for tests: make one of phase TRAIN to train it")
        batch = self._batch()
        if self._kept is not None:
            self._kept.append((batch, random_state()))
        return self._both(batch)

    def _both(self, batch: Any) -> float:
        found = self._pass(batch)
        for parameter, gradient in self._gradients:
            if parameter.grad is not gradient:  # set to None, or replaced, by whoever
                parameter.grad = gradient
        terms = [found[name].sum() * weight for name, weight in self._weighted(found)]
        learned = [term for term in terms if term.requires_grad]  # none, where nothing is learned
        if learned:
            torch.autograd.backward(learned)
        return loss_of(self._outputs)

    def keep_batches(self) -> None:
        """Keep the batches of the passes from now on, and the random numbers that they begin with."""
        self._kept = []

    def pass_again(self) -> float:
        """Those passes again, at the parameters as they are now. Returns the sum of their losses.

        Random numbers, buffers (running means) and outputs are afterwards what they were before.
        """
        if not self._kept:
            raise NetError(NOTHING_KEPT.format(name=self.name))
        left, outputs = random_state(), self._outputs
        buffers = [(buffer, buffer.clone()) for buffer in self.module.buffers()]
        loss = 0.0
        try:
            for batch, random in self._kept:
                set_random_state(random)
                loss += self._both(batch)
        finally:
            set_random_state(left)
            for buffer, kept in buffers:
                buffer.copy_(kept)
            self._outputs = outputs
        return loss

    def watch(self, what: Watching | None) -> None:
        """Take note of what layers do in the passes from now on, by hooks on the module's parts."""
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None
        if what is not None:
            parts = dict(self.module.named_modules())
            layers = {layer.name: parts.get(layer.name, self.module) for layer in self.layers}
            self._watcher = Watcher(self.module, layers, what)

    def watched(self) -> tuple[LayerPass, ...]:
        """What was noted in the last pass: of the data, each layer and the loss."""
        return () if self._watcher is None else self._watcher.passes()

    def outputs(self) -> tuple[Output, ...]:
        """What the last pass put out."""
        return self._outputs

    def for_testing(
        self,
        data: Iterable[Any],
        *,
        loss: Loss | None = None,
        metrics: Mapping[str, Loss] | None = None,
        name: str | None = None,
    ) -> TorchNet:
        """A net of the same module for tests: in evaluation mode, with batches of its own."""
        compute = self._compute
        if loss is not None or metrics is not None:
            compute = _computed(loss, metrics or {})
        return TorchNet(
            self.module,
            data=data,
            compute=compute,
            loss_weights=self._weights,
            phase="TEST",
            name=name or self.name,
        )

    def share_with(self, train: Net) -> None:
        """Let this net's module use the parameters and buffers of the train net's, where names agree."""
        other = getattr(train, "module", None)
        if other is self.module or not isinstance(other, torch.nn.Module):
            return
        theirs = {**dict(other.named_parameters()), **dict(other.named_buffers())}
        for name, tensor in (*self.module.named_parameters(), *self.module.named_buffers()):
            if name in theirs:
                check_shared(name, tensor, theirs[name])
                tensor.data = theirs[name].data
        self._describe()

    def position(self) -> Any:
        """Where the data are; None if they can't say."""
        return self._data.position() if hasattr(self._data, "position") else None

    def seek(self, position: Any) -> None:
        """Go back there."""
        if hasattr(self._data, "seek"):
            self._data.seek(position)
            self._batches = iter(())

    def seed(self, seed: int) -> None:
        """Begin torch's random numbers anew, and those of the data if they have a ``seed``."""
        torch.manual_seed(seed)
        if hasattr(self._data, "seed"):
            self._data.seed(seed)

    def rng_state(self) -> Mapping[str, Any]:
        """torch's random numbers, and what the module counts in whole numbers (as batch norms do)."""
        counts = {
            name: buffer.cpu().numpy().copy()
            for name, buffer in self.module.named_buffers()
            if not buffer.is_floating_point() and not buffer.is_complex()
        }
        cpu, cuda = random_state()
        state: dict[str, Any] = {"cpu": cpu.numpy(), "counts": counts}
        if cuda:
            state["cuda"] = [one.numpy() for one in cuda]
        return state

    def set_rng_state(self, state: Mapping[str, Any]) -> None:
        """Go back there."""
        cpu, *cuda = (torch.from_numpy(np.array(one)) for one in (state["cpu"], *state.get("cuda", ())))
        # With other GPUs than it was written with, theirs stay as they are.
        here = torch.cuda.device_count() if torch.cuda.is_available() else 0
        set_random_state((cpu, cuda if len(cuda) == here else []))
        buffers = dict(self.module.named_buffers())
        for name, value in state["counts"].items():
            if name in buffers:
                buffers[name].copy_(torch.from_numpy(np.array(value)))

    def _pass(self, batch: Any) -> Mapping[str, torch.Tensor]:
        if self.module.training != self._training:
            self.module.train(self._training)
        if self._watcher is not None:
            self._watcher.begin(batch)
        found = self._compute(self.module, batch)
        if not isinstance(found, Mapping) or not all(map(_is_real, found.values())):
            raise NetError(
                f"compute of {self.name} must return tensors of real numbers by name, such as "
                f"{{'loss': loss}}, and returned {found!r:.80}"
            )
        if self._watcher is not None:
            self._watcher.end(found)
        self._outputs = tuple(
            Output(name, on_host(value), self._weights.get(name, 0.0)) for name, value in found.items()
        )
        return found

    def _weighted(self, found: Mapping[str, torch.Tensor]) -> list[tuple[str, float]]:
        weighted = [(name, weight) for name, weight in self._weights.items() if weight]
        for name, _ in weighted:
            if name not in found:
                there = ", ".join(found) or "nothing"
                raise NetError(f"loss_weights names {name!r}, but compute returned {there}")
        return weighted

    def _batch(self) -> Any:
        if self._watcher is None:
            return self._next_batch()
        began = time.perf_counter()
        batch = self._next_batch()
        self._watcher.fetched(time.perf_counter() - began)
        return batch

    def _next_batch(self) -> Any:
        for _ in range(2):
            try:
                return next(self._batches)
            except StopIteration:
                self._batches = iter(self._data)
        raise NetError("the net's data have no batches")


def _computed(loss: Loss | None, metrics: Mapping[str, Loss]) -> Compute:
    """What computes loss and metrics from a pair of inputs and targets, on the module's device."""

    def compute(module: torch.nn.Module, batch: Any) -> Mapping[str, torch.Tensor]:
        inputs, targets = batch
        first = next(module.parameters(), None)
        if first is not None and first.device.type != "cpu":
            inputs, targets = inputs.to(first.device), targets.to(first.device)
        made = module(inputs)
        found = {name: metric(made, targets) for name, metric in metrics.items()}
        if loss is not None:
            found["loss"] = loss(made, targets)
        return found

    return compute


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_complex()


def accuracy(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The share of rows whose largest output is that of the target: a metric."""
    return (outputs.argmax(dim=-1) == targets).float().mean()


def _by_name(given: Mapping[str, float], names: Iterable[str], what: str) -> dict[str, float]:
    """Multipliers of parameters by their names."""
    found: dict[str, float] = {}
    names = list(names)
    for pattern, value in given.items():
        fitting = [name for name in names if fnmatchcase(name, pattern)]
        if not fitting:
            raise NetError(f"{what}: {pattern!r} fits none of the parameters {', '.join(names)}")
        found.update(dict.fromkeys(fitting, float(value)))
    return found
