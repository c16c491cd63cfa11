"""Batches of labelled data, tables, masked arrays and lists; what is none is refused."""

import functools

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from tests.places import placed

N, T = ax.N, ax.T
xr, pd = pytest.importorskip("xarray"), pytest.importorskip("pandas")
VALUES = np.arange(24.0).reshape(6, 4)  # six examples


def sums(transformer, inputs, target):
    """A model that adds up along T, whose cost is 0 where the target is the sums."""
    x, t = geon.placeholder(inputs, name="x"), geon.placeholder(target, name="t")
    layer = neon.Activation(lambda v: geon.cumsum(v, T))
    return neon.Model(layer, x, t, neon.costs.squared_error, transformer=transformer)


def turned(values):
    """The same as labelled data whose examples are not along the first dimension."""
    return xr.DataArray(values.T.copy(), dims=("T", "N"))


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_examples_of_labelled_data_lie_along_their_name(transformer, seed):
    made = sums(transformer, [N, T], [N, T])
    right = VALUES.cumsum(1)
    for x in (VALUES, turned(VALUES)):
        for t in (right, turned(right)):
            data = neon.Batches(x, t, size=4, seed=seed)
            assert len(data) == 2 and made.evaluate(data) == {"cost": 0.0}
    bare = neon.Batches(VALUES, size=4, seed=seed, shard=(0, 2))
    named = neon.Batches(turned(VALUES), size=4, seed=seed, shard=(0, 2))
    for (one,), (other,) in zip(bare.epoch(1), named.epoch(1), strict=True):
        np.testing.assert_array_equal(one, other.values.T)


@pytest.mark.parametrize("size", [1, 2, 4, 6, 7])
def test_predict_takes_labelled_data_and_lists_in_batches(transformer, size):
    made = sums(transformer, [N, T], [N, T])
    table = pd.DataFrame(VALUES.T).rename_axis(index="T")  # its columns have no name, so are N
    for given in (VALUES, turned(VALUES), VALUES.tolist(), table):
        np.testing.assert_allclose(made.predict(given), VALUES.cumsum(1))
        np.testing.assert_allclose(made.predict(given, size=size), VALUES.cumsum(1))


@pytest.mark.parametrize("seed", [None, 0])
def test_tables_go_by_position(seed):
    index = [6, 5, 4, 3, 2, 1, 0]
    series = pd.Series(np.arange(7.0), index=index)
    frame = pd.DataFrame({"a": np.arange(7.0), "b": 0.0}, index=list("gfedcba"))
    for x, y, z in neon.Batches(series, frame, np.arange(7.0), size=3, seed=seed).epoch(0):
        np.testing.assert_array_equal(x, z)
        np.testing.assert_array_equal(y["a"], z)


@pytest.mark.parametrize("seed", [None, 0])
def test_columns_of_sequences_go_by_position(seed):
    texts = [np.full(length, float(length)) for length in (3, 1, 2, 4)]
    column = pd.Series(texts, index=[3, 2, 1, 0])
    for x, mask, t in neon.Buckets(column, texts, size=2, seed=seed).epoch(0):
        np.testing.assert_array_equal(x, t)
        assert (x[:, 0] == mask.sum(1)).all()


@pytest.mark.parametrize("seed", [None, 0])
def test_masked_elements_are_refused_in_every_order(transformer, seed):
    gaps = np.ma.masked_equal(VALUES, 5.0)
    made = sums(transformer, [N, T], [N, T])
    with pytest.raises(geon.FeedError, match="masked elements, 1 of them"):
        made.evaluate(neon.Batches(gaps, VALUES, size=6, seed=seed))
    with pytest.raises(geon.FeedError, match="column 0 .* masked elements, 1 of them"):
        neon.Buckets([gaps[0], gaps[1]], size=1, seed=seed)
    with pytest.raises(geon.FeedError, match="part 0 of a batch .* masked elements, 1 of them"):
        changed = neon.Augmented([(gaps,)], [neon.augment.Flip(1)], seed=0)
        list(changed.epoch(0))
    with pytest.raises(geon.FeedError, match="list of masked arrays"):
        neon.Batches([gaps[0], gaps[1]], size=1)


@pytest.mark.parametrize("seed", [None, 0])
def test_a_change_in_place_leaves_the_data_as_they_are(seed):
    images = np.ones((4, 2, 2, 1))

    def brighter(random, array):
        array *= 2
        return array

    for given in (neon.Batches(images, size=4, seed=seed), [(images,)]):
        data = neon.Augmented(given, [brighter], seed=0)
        for _ in range(3):
            ((batch,),) = data.epoch(0)
            assert (batch == 2).all() and (images == 1).all()


def test_batches_in_order_are_views_that_nobody_writes_into():
    rows = np.zeros((4, 2))
    (first, _) = neon.Batches(rows, size=2).epoch(0)
    assert np.shares_memory(first[0], rows)
    with pytest.raises(ValueError, match="read-only"):
        first[0][0] = 1
    rows[0] = 1  # it is theirs


def test_a_batch_of_empty_sequences_has_the_axes_of_the_others():
    rows = [np.ones((length, 3)) for length in (2, 0, 3)]
    shapes = [x.shape for x, _ in neon.Buckets(rows, size=1).epoch(0)]
    assert shapes == [(1, 2, 3), (1, 0, 3), (1, 3, 3)]
    ((x, mask),) = neon.Buckets([np.ones((0, 3)), []], size=2).epoch(0)
    assert x.shape == (2, 0, 3) and mask.shape == (2, 0)


class OfOwn:
    """Data with an ``epoch`` of their own."""

    def __init__(self, size):
        self.size = size

    def epoch(self, number, start=0):
        for k in range(start, 3):
            yield VALUES[k : k + self.size], VALUES[k : k + self.size].cumsum(1)


class Short(OfOwn):
    def epoch(self, number):
        return super().epoch(number)


def test_data_of_ones_own(transformer):
    assert sums(transformer, [N, T], [N, T]).evaluate(OfOwn(2)) == {"cost": 0.0}
    held = Short(2)
    held.__dict__["epoch"] = OfOwn(2).epoch  # an attribute of the object itself counts
    assert neon.Prefetch(held).data is held


class OfItsClass:
    """Data whose ``epoch`` knows no object."""

    @staticmethod
    def epoch(number, start=0):
        return OfOwn(2).epoch(number, start)


class NeedsMore:
    @staticmethod
    def epoch(number, start, more):
        raise AssertionError("it is not called")


class Called:
    """Data whose ``epoch`` is an object that is called."""

    epoch = staticmethod(functools.partial(OfOwn.epoch, OfOwn(2)))


def test_an_epoch_is_anything_that_can_be_called(transformer):
    for made in (OfItsClass(), OfItsClass, Called()):
        for _ in range(2):  # the second is told what the first was
            assert sums(transformer, [N, T], [N, T]).evaluate(made) == {"cost": 0.0}
    for _ in range(2):
        with pytest.raises(geon.ArgumentError, match=r"epoch\(self, number, start=0\)"):
            neon.Prefetch(NeedsMore())


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda made: made.evaluate(Short(2)), r"epoch\(self, number, start=0\)"),
        (lambda made: made.evaluate([None]), r"a batch is NoneType .* x\(N, T\), t\(N, T\), in th"),
        (lambda made: made.evaluate([VALUES]), "a batch is ndarray and no tuple of arrays"),
        (lambda made: made.evaluate([{"x": VALUES}]), "a batch is dict and no tuple"),
        (lambda made: neon.Stream([(VALUES, VALUES)]), "make is list and no function of the n"),
        (lambda made: list(neon.Stream(lambda n: None).epoch(4)), r"make\(4\) gave NoneType; give"),
        (lambda made: neon.Batches([[1, 2], [3]], size=1), "no array together .* neon.Buckets"),
        (
            lambda made: neon.Batches(VALUES, VALUES[:5], size=1),
            r"arrays of lengths \[5, 6\]; give",
        ),
        (lambda made: neon.Batches(size=1), r"arrays of lengths \[\]; give at least one"),
        (lambda made: made.predict(VALUES, VALUES, size=2), r"1 value is needed \(x\), and 2"),
        (lambda made: made.predict(size=2), "1 value is needed|no value"),
        (lambda made: made.predict(VALUES, size=0), "predict: size=0; give"),
        (lambda made: neon.Buckets(3, size=1), "Buckets: column 0 is 3; give a list with a seq"),
        (lambda made: neon.Buckets([[1]], size=1, edges=5), "Buckets: edges=5; give a list"),
        (lambda made: neon.augment.Flip(1.0), "Flip: dimension 1.0; give an integer"),
        (lambda made: neon.augment.Crop([1]), r"Crop: sizes=\[1\] is no mapping"),
        (lambda made: neon.augment.Crop({1: 2.5}), r"Crop: sizes\[1\]=2.5; give an integer"),
        (lambda made: neon.augment.Pad([1]), r"Pad: widths=\[1\] is no mapping"),
        (lambda made: neon.augment.Pad({1: 1}, "a"), "Pad: value='a'; give a number"),
    ],
)
def test_what_is_refused(call, what):
    made = sums(geon.make_transformer("numpy"), [N, T], [N, T])
    with pytest.raises(geon.GeonError, match=placed(what)):
        call(made)


def test_a_shard_may_be_a_list_of_numbers_of_numpy():
    rows = np.arange(10)
    one = list(neon.Batches(rows, size=5, shard=(1, 2)).epoch(0))
    for shard in ([1, 2], (np.int64(1), np.int32(2))):
        (other,) = neon.Batches(rows, size=5, shard=shard).epoch(0)
        np.testing.assert_array_equal(one[0][0], other[0])
