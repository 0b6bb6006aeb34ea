"""Blocks in examples: drawn, run, cut down, written."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from generated import SGD, AdamMini
from solvergen.errors import ReplayError
from solvergen.runtime import lines
from solvergen.runtime.blocks import fits
from solvergen.verify import find_disagreement
from solvergen.verify.agreement import disagreement_on
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.example import Example, Group, Step, Tensor
from solvergen.verify.lines import counts_of_blocks
from solvergen.verify.replaying.data import example_data, example_from
from solvergen.verify.replaying.replay import accepted
from solvergen.verify.replaying.reproducer import reproducer
from solvergen.verify.settings import space_of
from solvergen.verify.shrinking import shrunk


def run_of(shape: tuple[int, ...], blocks: int, **arrays: np.ndarray) -> Example:
    param = np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
    settings = {h.name: h.default for h in AdamMini.definition.hyperparameters}
    tensor = Tensor("w", param, 0, 0, arrays, {}, blocks)
    return Example((Group({}, {}),), (tensor,), (Step((param + 2,), 0, (settings,)),))


@pytest.mark.parametrize("shape", [(), (12,), (4, 6), (2, 3, 4), (1, 5, 1), (0, 3), (2, 0), (130, 2)])
def test_counts_that_are_drawn_fit(shape: tuple[int, ...]) -> None:
    counts = counts_of_blocks(shape)
    assert all(fits(shape, count) for count in counts if count)
    assert (0 in counts) == (shape[:1] == (0,))
    size = int(np.prod(shape))
    every = counts_of_blocks(shape, size)
    assert {n for n in range(1, size + 1) if fits(shape, n)} <= set(every)


@pytest.mark.parametrize("blocks", [1, 2, 4, 12, 24])
@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_runs_agree(backend: str, blocks: int) -> None:
    loaded = {"exp_avg_sq": np.linspace(0, 1, blocks)}
    assert disagreement_on(AdamMini, backend, run_of((4, 6), blocks, **loaded)) is None


def test_a_runtime_that_knows_no_blocks_is_found_and_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks of a tensor of two elements show it."""
    right = lines.matrix_shape
    monkeypatch.setattr(
        "solvergen.runtime.backends.numpy_tensors.matrix_shape",
        lambda view, shape, blocks=1: right(view, shape, max(1, blocks // 2) if view == "blocks" else 1),
    )
    found = find_disagreement(AdamMini, "numpy", examples=60)
    assert found is not None
    sizes = [tensor.param.size for tensor in found.example.tensors]
    assert max(sizes) <= 4, sizes


def test_blocks_are_cut_down_with_their_tensor() -> None:
    """Whatever is tried is a run that the optimizer accepts."""
    tried: list[Example] = []
    arrays = {"exp_avg_sq": np.ones(12), "exp_avg": np.ones((4, 6))}
    example = run_of((4, 6), 12, **arrays)
    found = Disagreement(AdamMini.definition, AdamMini.__module__, "numpy", example, error="E: x")

    def examine(smaller: Example) -> Disagreement | None:
        tried.append(accepted(AdamMini.definition, smaller))
        return replace(found, example=smaller) if smaller.tensors[0].blocks > 1 else None

    end = shrunk(found, examine, space_of(AdamMini.definition)).example.tensors[0]
    assert (end.blocks, end.param.size) == (2, 2)
    assert {tensor.blocks for one in tried for tensor in one.tensors} >= {1, 2, 12}


def test_files_and_code_have_them() -> None:
    example = run_of((4, 6), 12)
    data = json.loads(json.dumps(example_data(example)))
    assert example_from(data).tensors[0].blocks == 12
    found = Disagreement(AdamMini.definition, AdamMini.__module__, "numpy", example, error="E: x")
    assert "blocks=12" in str(reproducer(found))
    assert "tensor w: float64 (4, 6) in 12 blocks" in found.describe()
    one = example_data(run_of((4, 6), 1))
    assert "blocks" not in one["tensors"][0]
    assert example_from(one).tensors[0].blocks == 1


def test_what_no_optimizer_accepts() -> None:
    with pytest.raises(ReplayError, match=r"w of shape \(4, 6\) falls into 5 blocks"):
        accepted(AdamMini.definition, run_of((4, 6), 5))
    with pytest.raises(ReplayError, match=r"w has shape \(4, 6\), its exp_avg_sq \(3,\)"):
        accepted(AdamMini.definition, run_of((4, 6), 2, exp_avg_sq=np.ones(3)))
    settings = {h.name: h.default for h in SGD.definition.hyperparameters}
    options = {o.name: o.default for o in SGD.definition.options}
    example = run_of((4, 6), 2)
    other = replace(
        example, groups=(Group(options, {}),), steps=(replace(example.steps[0], hyperparameters=(settings,)),)
    )
    with pytest.raises(ReplayError, match="falls into 2 blocks"):
        accepted(SGD.definition, other)
