"""Gradients that are given by rows."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from generated import LAMB, SAM, SGD, Adagrad, Adam
from solvergen import RowSparse, Wrappers
from solvergen.errors import ArrayError, NonfiniteGradient, OptimizerError
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS

F = np.float32
every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)


def table(rows=50, columns=7, dtype=F):
    return np.random.default_rng(1).normal(size=(rows, columns)).astype(dtype)


def dense(like, given):
    """The same gradient for all rows, duplicates summed one after the other."""
    real = np.float64 if like.dtype == np.float64 else F
    whole = np.zeros(like.shape, real)
    for index, row in zip(given.indices.tolist(), given.rows, strict=True):
        whole[index] = whole[index] + row.astype(real)
    return whole


@every_backend
class TestRows:
    @pytest.mark.parametrize("dtype", [F, np.float64, ml_dtypes.bfloat16, np.float16])
    def test_is_the_dense_step_where_zeros_change_nothing(self, backend, dtype):
        rng = np.random.default_rng(2)
        ours = {"emb": table(dtype=dtype), "w": table(3, 4, dtype)}
        theirs = {name: array.copy() for name, array in ours.items()}
        one, other = (Adagrad(of, lr=0.1, backend=backend) for of in (ours, theirs))
        for _ in range(3):
            given = RowSparse(rng.integers(0, 50, 30), rng.normal(size=(30, 7)).astype(dtype))
            plain = rng.normal(size=(3, 4)).astype(dtype)
            assert one.step({"emb": given, "w": plain}) is True
            other.step({"emb": dense(ours["emb"], given), "w": plain})
        for name in ours:
            assert_same_bits(ours[name], theirs[name])
            assert_same_bits(one.state["state_sum"][name], other.state["state_sum"][name])
        assert dict(one.steps) == {"emb": 3, "w": 3}

    def test_other_rows_and_their_states_stay(self, backend):
        """Of a rule that moves without a gradient: as if the rows were a tensor of their own."""
        ours = table()
        before, rows = ours.copy(), np.array([4, 30, 31])
        alone = ours[rows].copy()
        one = Adam([ours], backend=backend, wrappers=Wrappers(weight_decay=0.1))
        other = Adam([alone], backend=backend, wrappers=Wrappers(weight_decay=0.1))
        rng = np.random.default_rng(3)
        for _ in range(3):
            gradient = rng.normal(size=(3, 7)).astype(F)
            one.step([RowSparse(rows[::-1], gradient[::-1].copy())])
            other.step([gradient])
        assert_same_bits(ours[rows], alone)
        rest = np.delete(np.arange(50), rows)
        assert_same_bits(ours[rest], before[rest])
        assert_same_bits(one.state["exp_avg"][0][rows], other.state["exp_avg"][0])
        assert not one.state["exp_avg"][0][rest].any()

    def test_counts_are_of_the_tensor(self, backend):
        ours = table()
        opt = Adam([ours], backend=backend)
        opt.step([RowSparse(np.array([1]), np.ones((1, 7), F))])
        opt.step([RowSparse(np.zeros(0, int), np.ones((0, 7), F))])
        opt.step([np.ones((50, 7), F)])
        assert opt.t == 3

    def test_policies_look_at_sums(self, backend):
        bad = RowSparse(np.array([1, 2]), np.full((2, 7), np.inf, F))
        ours = table()
        before = ours.copy()
        opt = Adam([ours], backend=backend, nonfinite="skip")
        assert opt.step([bad]) is False
        opt.nonfinite = "raise"
        with pytest.raises(NonfiniteGradient, match="'0'"):
            opt.step([bad])
        assert_same_bits(ours, before)
        assert opt.t == 0


def test_as_sparse_adam():
    torch = pytest.importorskip("torch")
    ours = table()
    theirs = torch.nn.Parameter(torch.tensor(ours))
    one = Adam([ours], lr=0.1, backend="numpy")
    other = torch.optim.SparseAdam([theirs], lr=0.1)
    rng = np.random.default_rng(4)
    for _ in range(5):
        indices, rows = rng.integers(0, 50, 20), rng.normal(size=(20, 7)).astype(F)
        one.step([RowSparse(indices, rows)])
        theirs.grad = torch.sparse_coo_tensor(indices[None], rows, (50, 7), check_invariants=True)
        other.step()
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-4, atol=1e-6)


ROW = np.ones((1, 7), F)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (RowSparse([1], ROW), "indices that are a list"),
        (RowSparse(np.array([1.0]), ROW), "indices of dtype float64"),
        (RowSparse(np.array([[1]]), ROW), r"shape \(1, 1\)"),
        (RowSparse(np.array([50]), ROW), "indices from 50 to 50; the parameter's rows are 0 to 49"),
        (RowSparse(np.array([-1]), ROW), "indices from -1"),
        (RowSparse(np.array([1, 2]), ROW), r"rows of shape \(1, 7\); for these indices it must be \(2, 7\)"),
        (RowSparse(np.array([1]), ROW.astype(np.float64)), "rows of dtype float64; for a float32 parameter"),
    ],
)
def test_what_is_refused(given, message):
    ours = table()
    before = ours.copy()
    opt = SGD([ours, np.ones(3, F)], lr=1.0, backend="numpy")
    with pytest.raises(ArrayError, match=message):
        opt.step([given, np.ones(3, F)])
    with pytest.raises(ArrayError, match="shape"):
        opt.step([RowSparse(np.array([1]), ROW), np.ones(4, F)])
    assert_same_bits(ours, before)
    assert opt.t == 0


@every_backend
@pytest.mark.parametrize("axes", [33, 64])
def test_rows_of_many_axes(backend, axes):
    """NumPy's add.at crashes where there are more than 32."""
    shape = (3, *[1] * (axes - 2), 2)
    ours = np.ones(shape, F)
    given = np.arange(1, 7, dtype=F).reshape(shape)
    SGD([ours], lr=1.0, backend=backend).step([RowSparse(np.array([2, 0, 2]), given)])
    np.testing.assert_array_equal(ours.reshape(3, 2), [[-2, -3], [1, 1], [-5, -7]])


@every_backend
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (table(3)[::-1], r"its array of rows is not C-contiguous .*pass np.ascontiguousarray\(rows\)"),
        (np.asfortranarray(table(3)), r"its array of rows is not C-contiguous"),
        (np.zeros(85, np.uint8)[1:].view(F).reshape(3, 7), r"its array of rows is misaligned.*rows.copy\(\)"),
        (np.zeros((3, 7), "V0"), r"rows of dtype \|V0"),
        (table(3).astype(">f4"), "rows of dtype >f4"),
        (table(3).view(np.recarray), "rows that are a numpy.*recarray"),
    ],
    ids=["reversed", "columns first", "misaligned", "of nothing", "swapped", "records"],
)
def test_rows_lie_as_gradients_must(backend, rows, message):
    """Kernels are told where rows begin, and read on from there."""
    ours = table()
    before = ours.copy()
    opt = SGD([ours], lr=1.0, backend=backend)
    with pytest.raises(ArrayError, match=message):
        opt.step([RowSparse(np.arange(3), rows)])
    assert_same_bits(ours, before)
    assert opt.t == 0
    opt.step([RowSparse(np.arange(3)[::-1], table(3))])  # the indices lie as they like
    assert opt.t == 1


@pytest.mark.parametrize(
    ("make", "wraps", "message"),
    [
        (LAMB, None, "LAMB, as it was made, looks at all elements"),
        (Adam, Wrappers(clip_grad_norm=1), "Adam, as it was made, looks at all elements"),
        (Adam, Wrappers(accumulate=2), "don't go with the wrappers' accumulate"),
        (Adam, Wrappers(write_update=True), "don't go with the wrappers' write_update"),
        (SAM, None, "SAM evaluates the gradient again"),
    ],
)
def test_rules_that_take_none(make, wraps, message):
    opt = make([table()], backend="numpy", wrappers=wraps)
    given = [RowSparse(np.array([1]), ROW)]
    with pytest.raises(OptimizerError, match=message):
        opt.step((lambda: (0.0, given)) if make is SAM else given)


def test_a_number_has_no_rows():
    with pytest.raises(ArrayError, match="single number"):
        SGD([np.ones((), F)], lr=1.0, backend="numpy").step([RowSparse(np.array([0]), np.ones(1, F))])
