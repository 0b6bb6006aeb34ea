"""Identical bits on the card, and its bandwidth: one run of less than five minutes, one table.

    python benchmarks/gpu.py [--no-tests] [--json FILE]

Needs the runtime, ``generated/``, NumPy, ml_dtypes, CuPy, NVRTC, hypothesis and pytest; torch's fused
optimizers are measured beside ours where torch is installed.

First ``pytest -m gpu tests/gpu`` runs: every optimizer, pair of types and setting of the options against
NumPy, bit by bit. Then steps are timed: 64M elements in one tensor, and 300 tensors of 3,333. Bytes are
those that the update must read and write; they are set against a device-to-device copy on the same card,
whose bytes are read once and written once. The time is the card's, between two events around a number of
steps; for the small tensors the host's time a step stands beside it, since it is what a user waits for.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import generated  # noqa: E402
from solvergen.runtime.cuda import device as devices  # noqa: E402
from solvergen.runtime.dtypes import STORAGE_TYPES, numpy_dtype  # noqa: E402

LARGE = 64 << 20
SMALL = (300, 3333)

SUBJECTS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("Adam", "float32", "float32", {}),
    ("Adam", "float32", "bfloat16", {}),
    ("Adam", "bfloat16", "bfloat16", {}),
    ("Adam", "float16", "float16", {}),
    ("Adam", "float64", "float64", {}),
    ("Adam", "float32", "float32", {"amsgrad": True}),
    ("SGD", "float32", "float32", {}),
    ("SGD", "float32", "float32", {"momentum": 0.9}),
    ("Lion", "float32", "float32", {}),
    ("Lion", "bfloat16", "bfloat16", {}),
    ("CaffeAdaDelta", "float32", "float32", {}),
    ("CaffeNesterov", "float32", "float32", {}),
    ("CaffeRMSProp", "float32", "float32", {}),
)
"""Class, parameter type, gradient type, settings."""


@dataclass(frozen=True)
class Row:
    """One line of the table. ``card_ms`` and ``host_ms`` are medians a step; ``rate`` is in GB/s."""

    what: str
    types: str
    tensors: str
    card_ms: float
    host_ms: float
    rate: float


class Card:
    """Arrays and time on one GPU, without a kernel of CuPy's."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.device = devices.device(0)
        self.rng = np.random.default_rng(0)
        # One stretch of random numbers serves for all arrays: timing on zeros would flatter.
        self.noise = (1e-2 * self.rng.standard_normal(1 << 22)).astype(np.float32)

    @property
    def name(self) -> str:
        """The card's name."""
        name: bytes = self.cupy.cuda.runtime.getDeviceProperties(0)["name"]
        return name.decode()

    def random(self, size: int, dtype: str) -> Any:
        """Random elements; repeated after four million."""
        kind = numpy_dtype(dtype)
        host = self.noise[: min(size, len(self.noise))].astype(kind)
        array = self.cupy.ndarray((size,), kind, memptr=self.device.allocate(max(1, size * kind.itemsize)))
        if size:
            self.device.upload(array.data.ptr, host.view(np.uint8))
            self.device.synchronize()
        done = host.nbytes
        while done < array.nbytes:
            step = min(done, array.nbytes - done)
            self.device.copy(array.data.ptr + done, array.data.ptr, step)
            done += step
        return array

    def time(self, step: Callable[[], object], *, steps: int, rounds: int = 15) -> tuple[float, float]:
        """Milliseconds a step on the card and on the host: medians over rounds, after a warm-up."""
        for _ in range(3):
            step()
        self.device.synchronize()
        on_card, on_host = [], []
        for _ in range(rounds):
            begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            begin.record()
            started = time.perf_counter()
            for _ in range(steps):
                step()
            on_host.append((time.perf_counter() - started) * 1e3 / steps)
            end.record()
            end.synchronize()
            on_card.append(self.cupy.cuda.get_elapsed_time(begin, end) / steps)
        return statistics.median(on_card), statistics.median(on_host)

    def copy_rate(self) -> float:
        """GB/s of a device-to-device copy of 64M float32, bytes read plus bytes written."""
        source, target = self.random(LARGE, "float32"), self.random(LARGE, "float32")
        milliseconds, _ = self.time(
            lambda: self.device.copy(target.data.ptr, source.data.ptr, target.nbytes), steps=10
        )
        return 2 * source.nbytes / milliseconds / 1e6


def bytes_per_element(optimizer: Any, param: str, grad: str) -> int:
    """What an update reads and writes for one element: all buffers read, all but the gradient written."""
    p, g = STORAGE_TYPES[param], STORAGE_TYPES[grad]
    states = sum(1 for name in optimizer.definition.array_states if name in optimizer.state)
    return 2 * p.itemsize + g.itemsize + 2 * states * STORAGE_TYPES[p.compute].itemsize


def ours(
    card: Card, name: str, param: str, grad: str, settings: dict[str, Any], tensors: int, size: int
) -> Row:
    """Time one of the generated optimizers."""
    params = [card.random(size, param) for _ in range(tensors)]
    grads = [card.random(size, grad) for _ in range(tensors)]
    optimizer = getattr(generated, name)(params, lr=1e-4, backend="cuda", **settings)
    on_card, on_host = card.time(lambda: optimizer.step(grads), steps=5 if tensors == 1 else 50)
    moved = bytes_per_element(optimizer, param, grad) * tensors * size
    options = "".join(f", {key}={value}" for key, value in settings.items())
    types = param if param == grad else f"{param}, gradient {grad}"
    return Row(f"{name}{options}", types, _shape(tensors, size), on_card, on_host, moved / on_card / 1e6)


def torch_fused(card: Card, name: str, tensors: int, size: int, bytes_each: int) -> Row | None:
    """Time torch's fused optimizer of this name in float32, if there is one."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    params = [torch.randn(size, device="cuda").mul_(1e-2) for _ in range(tensors)]
    for param in params:
        param.grad = torch.randn_like(param).mul_(1e-2)
    optimizer = getattr(torch.optim, name)(params, lr=1e-4, fused=True)
    # torch's default stream is the same legacy stream that CuPy's events are recorded in.
    on_card, on_host = card.time(optimizer.step, steps=5 if tensors == 1 else 50)
    rate = bytes_each * tensors * size / on_card / 1e6
    return Row(f"torch.optim.{name}, fused", "float32", _shape(tensors, size), on_card, on_host, rate)


def _shape(tensors: int, size: int) -> str:
    return f"{size >> 20}M" if tensors == 1 else f"{tensors} x {size:,}"


def measure(card: Card) -> tuple[float, list[Row]]:
    """The copy's rate, and all rows."""
    copy_rate = card.copy_rate()
    rows: list[Row] = []
    for subject in SUBJECTS:
        rows.append(ours(card, *subject, 1, LARGE))
        card.cupy.get_default_memory_pool().free_all_blocks()
    rows += [ours(card, *subject, *SMALL) for subject in SUBJECTS[:3]]
    for tensors, size in ((1, LARGE), SMALL):
        row = torch_fused(card, "Adam", tensors, size, 28)
        rows += [row] if row else []
    return copy_rate, rows


def table(name: str, copy_rate: float, rows: list[Row]) -> str:
    """The results in Markdown."""
    lines = [
        f"{name}; a device-to-device copy moves {copy_rate:,.0f} GB/s (read and written).",
        "",
        "| optimizer | types | elements | card, ms | host, ms | GB/s | of the copy |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r.what} | {r.types} | {r.tensors} | {r.card_ms:.4f} | {r.host_ms:.4f} | {r.rate:,.0f} | "
        f"{r.rate / copy_rate:.2f} |"
        for r in rows
    ]
    return "\n".join(lines)


def tests() -> int:
    """Run the tests that need the card. Returns pytest's exit code."""
    import pytest

    arguments = [
        "-q",
        "-m",
        "gpu",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(ROOT),
        str(ROOT / "tests" / "gpu"),
    ]
    return int(pytest.main(arguments))


def main() -> int:
    """Exit code 0: bits agree and everything was measured. 1: bits differ. 2: there is no GPU."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--no-tests", action="store_true", help="only measure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there too")
    arguments = parser.parse_args()
    problem = devices.unavailable()
    if problem is not None:
        print(f"nothing to measure: {problem}", file=sys.stderr)
        return 2
    failed = 0 if arguments.no_tests else tests()
    card = Card()
    copy_rate, rows = measure(card)
    print()
    print(table(card.name, copy_rate, rows))
    if arguments.json:
        content = {"card": card.name, "copy_rate": copy_rate, "rows": [asdict(row) for row in rows]}
        arguments.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
