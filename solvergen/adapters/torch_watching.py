"""What the layers of a module do in a pass, seen by hooks: magnitudes or times.

Gradients are seen where tensors are, not by hooks of whole modules, which refuse layers that work in place.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from solvergen.solver.net.protocol import LayerPass, Watching

DATA, LOSS = "data", "loss"


@dataclass(eq=False)
class _Note:
    """A layer's pass while it is under way. Magnitudes are tensors until somebody asks."""

    layer: str
    tops: dict[str, torch.Tensor] = field(default_factory=dict)
    bottoms: dict[str, torch.Tensor] = field(default_factory=dict)
    began: float = 0.0
    forward: float = 0.0
    back_began: float | None = None
    back_ended: float = 0.0

    def finished(self) -> LayerPass:
        backward = 0.0 if self.back_began is None else max(self.back_ended - self.back_began, 0.0)
        return LayerPass(self.layer, _floats(self.tops), _floats(self.bottoms), self.forward, backward)


class Watcher:
    """Hooks on the layers of a module, until ``close``. Layers: ``(path, module)`` of each."""

    def __init__(
        self, module: torch.nn.Module, layers: Mapping[str, torch.nn.Module], what: Watching
    ) -> None:
        self._times = what == "seconds"
        self._notes: list[_Note] = []
        self._open: list[_Note] = []
        self._names: dict[int, str] = {}
        self._alive: list[Any] = []  # tensors whose ids are in _names
        self._owners: dict[int, _Note] = {}
        self._end: list[tuple[str, torch.Tensor]] = []
        self._made_at = self._fetched_in = 0.0
        self._on_gpu = any(p.device.type == "cuda" for p in module.parameters())
        self._handles: list[Any] = []
        for name, layer in layers.items():
            self._handles += [
                layer.register_forward_pre_hook(self._before(name), with_kwargs=True),
                layer.register_forward_hook(self._after()),
            ]
            if self._times:
                self._handles += [
                    parameter.register_post_accumulate_grad_hook(self._learned)
                    for parameter in layer.parameters(recurse=False)
                    if parameter.requires_grad
                ]
        # Behind the layers' own hooks: what the whole module makes is what the loss is given.
        self._handles.append(module.register_forward_hook(self._last))

    def close(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()

    def fetched(self, seconds: float) -> None:
        """The batch of the next pass took so long to come."""
        self._fetched_in = seconds

    def begin(self, batch: Any) -> None:
        """A pass over this batch begins."""
        self._notes, self._open, self._end = [], [], []
        self._names, self._alive, self._owners = {}, [], {}
        note = _Note(DATA, forward=self._fetched_in)
        self._fetched_in, self._made_at = 0.0, self._now()
        for name, tensor in _batch(batch):
            self._name(tensor, name)
            if not self._times:
                note.tops[name] = _magnitude(tensor)
        self._notes.append(note)

    def end(self, outputs: Mapping[str, torch.Tensor]) -> None:
        """The pass forward is done, with these outputs."""
        note = _Note(LOSS)
        if not self._times:
            note.tops = {name: _magnitude(value) for name, value in outputs.items()}
        for name, tensor in self._end:
            self._see(tensor, note, name)
        now = self._now()
        note.forward, note.back_began = now - self._made_at, now
        self._notes.append(note)

    def passes(self) -> tuple[LayerPass, ...]:
        """What was noted in the last pass."""
        return tuple(note.finished() for note in self._notes)

    def _before(self, layer: str) -> Any:
        def hook(_: torch.nn.Module, given: Any, named: Any) -> None:
            note = _Note(layer)
            self._notes.append(note)
            self._open.append(note)
            for place, tensor in enumerate(_tensors((given, named))):
                name = self._names.get(id(tensor), f"{layer}.input{place or ''}")
                self._see(tensor, note, name)
            note.began = self._now()

        return hook

    def _after(self) -> Any:
        def hook(module: torch.nn.Module, _: Any, made: Any) -> None:
            now = self._now()
            note = self._open.pop()
            note.forward = now - note.began
            for place, tensor in enumerate(_tensors(made)):
                name = f"{note.layer}.{place}" if place else note.layer
                self._name(tensor, name)
                if not self._times:
                    note.tops[name] = _magnitude(tensor)
                elif tensor.requires_grad:
                    tensor.register_hook(self._begins(note))
            for parameter in module.parameters(recurse=False):
                # Of several layers that share one the first to go forward is the last to be given gradients.
                self._owners.setdefault(id(parameter), note)

        return hook

    def _last(self, module: torch.nn.Module, given: Any, made: Any) -> None:
        self._made_at = self._now()
        self._end = [(self._names.get(id(t), "output"), t) for t in _tensors(made)]

    def _see(self, tensor: torch.Tensor, note: _Note, name: str) -> None:
        """Note the tensor's gradient when it comes."""
        if not tensor.requires_grad:
            return

        def hook(gradient: torch.Tensor) -> None:
            if self._times:
                note.back_ended = max(note.back_ended, self._now())
            else:
                note.bottoms[name] = _magnitude(gradient)

        tensor.register_hook(hook)

    def _begins(self, note: _Note) -> Any:
        def hook(_: torch.Tensor) -> None:
            if note.back_began is None:
                note.back_began = self._now()

        return hook

    def _learned(self, parameter: torch.Tensor) -> None:
        note = self._owners.get(id(parameter))
        if note is not None:
            note.back_ended = max(note.back_ended, self._now())

    def _name(self, tensor: torch.Tensor, name: str) -> None:
        self._names[id(tensor)] = name
        self._alive.append(tensor)

    def _now(self) -> float:
        if self._times and self._on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()


def _batch(batch: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a batch under names: those of a mapping, else Caffe's data and label."""
    if isinstance(batch, Mapping):
        named = list(batch.items())
    else:
        parts = list(batch) if isinstance(batch, list | tuple) else [batch]
        usual = (DATA, "label")
        named = [(usual[i] if i < len(usual) else f"{DATA}{i}", part) for i, part in enumerate(parts)]
    for name, value in named:
        if isinstance(value, torch.Tensor):
            yield str(name), value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in tuples, lists and mappings, in their order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)


def _magnitude(tensor: torch.Tensor) -> torch.Tensor:
    """The mean of the magnitudes, where the tensor is: nobody waits for a GPU yet."""
    values = tensor.detach()
    if not values.numel():
        return torch.zeros(())
    return (values if values.is_complex() else values.double()).abs().mean()


def _floats(values: Mapping[str, torch.Tensor]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}
