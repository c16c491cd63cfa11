"""Data iterators: their batches, shapes, random changes, and the data that they refuse."""

import numpy as np
import pytest

from geon.frontends.brainstorm.data_iterators import (
    AddGaussianNoise,
    AddSaltNPepper,
    Flip,
    Minibatches,
    MultiHot,
    OneHot,
    Pad,
    RandomCrop,
    Undivided,
    _calculate_lengths_from_mask,
)
from geon.frontends.brainstorm.utils import IteratorValidationError


def images(b=5):
    return np.arange(2.0 * b * 4 * 6 * 3).reshape(2, b, 4, 6, 3)


def seeded(iterator, seed=0):
    iterator.rnd.set_seed(seed)
    return iterator


def test_undivided_yields_all_data_in_a_dictionary_of_its_own():
    data = np.zeros((2, 3, 4))
    iterator = Undivided(default=data)
    (batch,) = iterator(handler=None)
    assert batch["default"] is data and batch is not iterator.data
    assert iterator.length == 1 and iterator.data_shapes == {"default": (2, 3, 4)}


def test_minibatches_are_neighbouring_sequences_in_a_shuffled_order():
    x = np.arange(7.0).reshape(1, 7, 1)
    iterator = seeded(Minibatches(3, default=x, targets=x + 1))
    assert iterator.length == 3
    orders = []
    for _ in range(6):
        batches = list(iterator(None))
        assert all((b["targets"] == b["default"] + 1).all() for b in batches)
        orders.append(tuple(b["default"].ravel().tolist()[0] for b in batches))
        assert sorted(orders[-1]) == [0, 3, 6]
    assert len(set(orders)) > 1
    unshuffled = Minibatches(3, shuffle=False, default=x)
    assert [len(b["default"][0]) for b in unshuffled(None)] == [3, 3, 1]


@pytest.mark.parametrize("how", ["mask", "other", "lengths"])
def test_minibatches_are_cut_to_their_longest_sequence(how):
    lengths = [2, 1, 4, 0]
    mask = (np.arange(5)[:, None] < lengths)[:, :, None].astype(float)
    data = {"default": np.ones((5, 4, 2)), ("other" if how == "other" else "mask"): mask}
    cut = {"mask": "mask", "other": "other", "lengths": lengths}[how]
    batches = list(Minibatches(2, False, cut, **data)(None))
    assert [b["default"].shape for b in batches] == [(2, 2, 2), (4, 2, 2)]
    assert list(_calculate_lengths_from_mask(mask)) == lengths
    whole = Minibatches(4, False, None, **data)
    assert next(whole(None))["default"].shape == (5, 4, 2)
    empty = Minibatches(1, False, cut, **data)
    assert [b["default"].shape[0] for b in empty(None)] == [2, 1, 4, 1]


def test_a_hole_in_a_mask_does_not_shorten_a_sequence():
    mask = np.array([0, 1, 0, 1, 0]).reshape(5, 1, 1)
    assert _calculate_lengths_from_mask(mask) == [4]


def test_noise_has_its_mean_and_deviation_and_leaves_the_data():
    data = np.zeros((50, 20, 10))
    inner = Undivided(default=data, other=data)
    iterator = seeded(AddGaussianNoise(inner, {"default": 0.5}, {"default": 2.0}))
    for _ in range(2):  # a second pass begins with the same data
        (batch,) = iterator(None)
        assert abs(batch["default"].mean() - 2) < 0.02
        assert abs(batch["default"].std() - 0.5) < 0.01
        assert batch["other"] is data and not data.any()


def test_salt_and_pepper_have_their_shares():
    data = np.full((50, 20, 10), 0.5)
    iterator = seeded(AddSaltNPepper(Undivided(default=data), {"default": 0.4}, {"default": 0.25}))
    (batch,) = iterator()
    found = batch["default"]
    assert abs((found == 1).mean() - 0.1) < 0.01 and abs((found == 0).mean() - 0.3) < 0.01
    assert ((found == 0.5) | (found == 0) | (found == 1)).all() and (data == 0.5).all()


def test_flipped_sequences_are_flipped_along_the_width():
    data = images(40)
    before = data.copy()
    (batch,) = seeded(Flip(Undivided(default=data), {"default": 0.25}))()
    flipped = [bool((batch["default"][:, k] == data[:, k, :, ::-1]).all()) for k in range(40)]
    same = [bool((batch["default"][:, k] == data[:, k]).all()) for k in range(40)]
    assert [not f for f in flipped] == same and 2 < sum(flipped) < 20
    assert (data == before).all()
    (never,) = Flip(Undivided(default=data), {"default": 0.0})()
    assert (never["default"] == data).all()


def test_hot_vectors():
    x = np.array([[[0], [2]], [[1], [2]]])
    one = OneHot(Undivided(default=x, other=x), {"default": 3})
    (batch,) = one()
    assert batch["default"].argmax(2).tolist() == x[:, :, 0].tolist()
    assert (batch["default"].sum(2) == 1).all() and batch["other"] is x
    assert one.data_shapes == {"default": (2, 2, 3), "other": (2, 2, 1)}
    many = MultiHot(Undivided(default=np.array([[[0.0, 2.0], [1.0, 1.0]]])), {"default": 4})
    (batch,) = many()
    assert batch["default"].astype(int).tolist() == [[[1, 0, 1, 0], [0, 1, 0, 0]]]
    assert many.data_shapes == {"default": (1, 2, 4)}


@pytest.mark.parametrize("size", [0, 1, 2])
def test_borders(size):
    data = images().astype(np.float32)
    iterator = Pad(Undivided(default=data), {"default": size}, {"default": -1.0})
    (batch,) = iterator()
    found = batch["default"]
    assert found.shape == iterator.data_shapes["default"] == (2, 5, 4 + 2 * size, 6 + 2 * size, 3)
    assert (found[:, :, size : 4 + size, size : 6 + size] == data).all()
    assert (found == -1).sum() == found.size - data.size and found.dtype == np.float32


def test_cropped_windows_are_windows_of_their_images():
    data = images(30)
    iterator = seeded(RandomCrop(Undivided(default=data), {"default": (3, 2)}))
    (batch,) = iterator()
    found = batch["default"]
    assert found.shape == iterator.data_shapes["default"] == (2, 30, 3, 2, 3)
    places = set()
    for k in range(30):
        at = [(r, c) for r in range(2) for c in range(5)
              if (data[:, k, r : r + 3, c : c + 2] == found[:, k]).all()]  # fmt: skip
        assert len(at) == 1
        places |= set(at)
    assert len(places) > 5


def test_changes_nest():
    inner = Minibatches(2, default=images(), targets=np.zeros((2, 5, 1), int))
    nested = RandomCrop(Pad(Flip(inner), {"default": 1}), {"default": (4, 6)})
    nested = OneHot(nested, {"targets": 3})
    assert nested.data_shapes == {"default": (2, 5, 4, 6, 3), "targets": (2, 5, 3)}
    assert nested.length == 3 and sum(b["default"].shape[1] for b in nested()) == 5


X = np.zeros((2, 3, 4))
INNER = Undivided(default=X, images=np.zeros((2, 3, 4, 4, 1)), one=X[:, :, :1])
WRONG = {
    "no data": (lambda: Undivided(), "no data"),
    "a list": (lambda: Undivided(a=[1]), "'a' is a list"),
    "two axes": (lambda: Undivided(a=X[0]), r"'a' has the shape \(3, 4\)"),
    "steps": (lambda: Undivided(a=X, b=X[1:]), "'a' has 2 time steps and 'b' has 1"),
    "sequences": (lambda: Minibatches(2, a=X, b=X[:, 1:]), "'a' has 3 sequences and 'b' has 2"),
    "batch size": (lambda: Minibatches(0, a=X), "batch_size=0"),
    "mask": (lambda: Minibatches(1, cut_according_to="b", a=X), "no data called 'b'.*'a'"),
    "mask shape": (lambda: Minibatches(1, cut_according_to="a", a=X), r"\(2, 3, 4\)"),
    "lengths": (lambda: Minibatches(1, cut_according_to=[1, 2], a=X), r"\(2,\).*3 sequences"),
    "name": (lambda: AddGaussianNoise(INNER, {"b": 1.0}), "AddGaussianNoise.*'b'.*'default'"),
    "means": (lambda: AddGaussianNoise(INNER, {"default": 1.0}, {}), "std_dict.*mean_dict"),
    "ratios": (lambda: AddSaltNPepper(INNER, {"default": 1.0}, {}), "prob_dict.*ratio_dict"),
    "flip rank": (lambda: Flip(INNER), r"Flip: 'default' has the shape \(2, 3, 4\).*5 axes"),
    "probability": (lambda: Flip(INNER, {"images": 1.5}), "1.5 for 'images'.*from 0 to 1"),
    "one-hot": (lambda: OneHot(INNER, {"default": 3}), "last length of 1"),
    "vocabulary": (lambda: OneHot(INNER, {"one": 2.5}), "2.5 for 'one'"),
    "multi-hot rank": (lambda: MultiHot(INNER, {"images": 3}), "3 axes"),
    "pad": (lambda: Pad(INNER, {"images": -1}), "-1 for 'images'"),
    "pad values": (lambda: Pad(INNER, {"images": 1}, {"a": 1}), "size_dict.*value_dict"),
    "crop": (lambda: RandomCrop(INNER, {"images": (5, 2)}), "height up to 4"),
    "indices": (lambda: next(OneHot(Undivided(a=X[..., :1] + 3), {"a": 3})()), "from 3.0 to 3.0"),
    "fractions": (lambda: next(OneHot(Undivided(a=X[..., :1] + 0.5), {"a": 3})()), "integers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case):
    make, message = WRONG[case]
    with pytest.raises(IteratorValidationError, match=message):
        make()
