"""The dense net: gradients against differences, sharing, where its data are."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.solver.net.dense import DenseNet, InnerProduct, Param, Sliced
from solvergen.solver.net.error import NetError
from solvergen.solver.net.protocol import Net, Seekable, Sharing, loss_of

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((6, 5)), RNG.standard_normal((6, 2))
LABELS = np.array([0, 1, 2, 0, 1, 2])

NETS = {
    "euclidean": lambda: DenseNet(
        X, Y, [InnerProduct("a", 4, "tanh"), InnerProduct("b", 2)], batch_size=6, dtype=np.float64
    ),
    "softmax": lambda: DenseNet(
        X,
        LABELS,
        [InnerProduct("a", 4, "relu"), InnerProduct("b", 3, bias=None)],
        loss="softmax",
        batch_size=6,
        dtype=np.float64,
    ),
    "tied": lambda: DenseNet(
        X,
        X,
        [InnerProduct("a", 5, "tanh", weights=Param("w")), InnerProduct("b", 5, weights=Param("w"))],
        batch_size=6,
        dtype=np.float64,
    ),
    "sliced behind another": lambda: DenseNet(
        X,
        Y,
        [
            InnerProduct("a", 4, "tanh"),
            Sliced(
                "s", tuple(InnerProduct(n, 2, weights=Param("w"), bias=Param("c")) for n in ("p", "q", "r"))
            ),
        ],
        batch_size=6,
        dtype=np.float64,
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_gradients_are_those_of_differences(name):
    net = NETS[name]()
    net.clear_diffs()
    net.forward_backward()
    step = 1e-6
    for blob in net.learnable:
        for place in np.ndindex(blob.data.shape):
            kept = blob.data[place]
            values = []
            for moved in (kept + step, kept - step):
                blob.data[place] = moved
                values.append(loss_of(net.forward()))
            blob.data[place] = kept
            np.testing.assert_allclose(
                blob.diff[place], (values[0] - values[1]) / (2 * step), rtol=1e-5, atol=1e-7
            )


def test_gradients_accumulate():
    net = NETS["euclidean"]()
    net.clear_diffs()
    net.forward_backward()
    once = [blob.diff.copy() for blob in net.learnable]
    net.forward_backward()
    for blob, first in zip(net.learnable, once, strict=True):
        np.testing.assert_allclose(blob.diff, 2 * first)


def test_it_is_what_the_protocols_say():
    net = NETS["tied"]()
    assert isinstance(net, Net)
    assert isinstance(net, Seekable)
    assert isinstance(net, Sharing)
    assert [blob.name for blob in net.learnable] == ["w", "a.bias", "b.bias"]
    assert net.layers[1].blobs[0].data is net.layers[0].blobs[0].data


def test_a_parameter_with_two_multipliers_is_refused():
    with pytest.raises(NetError, match="say lr_mult 1 and 2"):
        DenseNet(
            X,
            X,
            [
                InnerProduct("a", 5, weights=Param("w")),
                InnerProduct("b", 5, weights=Param("w", lr_mult=2)),
            ],
            batch_size=2,
        )


def test_a_parameter_of_two_shapes_is_refused():
    with pytest.raises(NetError, match="shares parameter 'w'"):
        DenseNet(
            X,
            Y,
            [InnerProduct("a", 4, weights=Param("w")), InnerProduct("b", 2, weights=Param("w"))],
            batch_size=2,
        )


def test_a_test_net_sees_what_the_train_net_learns():
    train, test = NETS["tied"](), NETS["tied"]()
    test.share_with(train)
    train.learnable[0].data.fill(0.5)
    assert test.learnable[0].data is train.learnable[0].data
    assert test.layers[1].blobs[0].data is train.learnable[0].data
    np.testing.assert_array_equal(test.forward()[0].values, train.forward()[0].values)


def test_the_data_can_be_sought():
    net = DenseNet(X, Y, [InnerProduct("a", 2)], batch_size=4)
    first = [net.forward()[0].values.item() for _ in range(3)]
    assert net.position() == {"row": 0}
    net.seek({"row": 4})
    assert net.forward()[0].values.item() == first[1]
    assert len(set(first)) == 3


def test_a_rate_of_zero_takes_no_gradient():
    net = DenseNet(X, Y, [InnerProduct("a", 2, bias=Param(lr_mult=0))], batch_size=4)
    net.clear_diffs()
    net.forward_backward()
    assert not net.learnable[1].diff.any()


def test_blobs_are_changed_in_place_alone():
    blob = NETS["tied"]().learnable[0]
    blob.data *= 2
    with pytest.raises(NetError, match="in place"):
        blob.data = np.zeros(3)


def softmax(inputs, labels):
    return DenseNet(inputs, labels, [InnerProduct("a", 3)], loss="softmax", batch_size=6, accuracy=True)


LAYOUTS = {
    "reversed": lambda a: a[::-1].copy()[::-1],
    "columns first": np.asfortranarray,
    "swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "misaligned": lambda a: np.frombuffer(b"-" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    "lists": lambda a: a.tolist(),
    "one axis more": lambda a: a.reshape(len(a), 1, -1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_data_of_any_layout(layout):
    """Labels in a column, too: they once were taken for a label each of every row."""
    lay = LAYOUTS[layout]
    for plain, other in (
        (softmax(X, LABELS), softmax(lay(X), lay(LABELS))),
        tuple(DenseNet(x, y, [InnerProduct("a", 2)], batch_size=6) for x, y in ((X, Y), (lay(X), lay(Y)))),
    ):
        for net in (plain, other):
            net.clear_diffs()
            net.forward_backward()
        for one, two in zip(plain.outputs(), other.outputs(), strict=True):
            np.testing.assert_array_equal(one.values, two.values)
        for one, two in zip(plain.learnable, other.learnable, strict=True):
            np.testing.assert_array_equal(one.diff, two.diff)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: softmax(X, LABELS.astype(float)), "one whole number a row, not of dtype float64"),
        (lambda: softmax(X, np.stack([LABELS, LABELS], axis=1)), "one whole number a row"),
        (lambda: softmax(X, LABELS - 1), "targets go from -1 to 1, .* they must be from 0 to 2"),
        (lambda: softmax(X, LABELS + 1), "targets go from 1 to 3"),
        (lambda: softmax(X, LABELS[:-1]), "rows of inputs, but"),
        (lambda: softmax(X, 1), "rows of inputs, but 1 of targets"),
        (lambda: softmax(X, None), "targets must be real numbers, not of dtype object"),
        (lambda: softmax(X[:0], LABELS[:0]), "there must be rows of numbers"),
        (lambda: softmax(X[:, :0], LABELS), "there must be rows of numbers"),
        (lambda: softmax(1.0, LABELS), "there must be rows of numbers"),
        (lambda: softmax(X + 1j, LABELS), "inputs must be real numbers, not of dtype complex"),
        (lambda: softmax(np.ma.masked_array(X), LABELS), "inputs are a masked array"),
        (lambda: softmax([[1.0], [1.0, 2.0]], LABELS), "inputs can't be made an array"),
        (lambda: DenseNet(X, Y, [InnerProduct("a", 3)], batch_size=2), "last layer puts out 3 numbers"),
    ],
)
def test_data_that_cannot_be(make, said):
    with pytest.raises(NetError, match=said):
        make()
