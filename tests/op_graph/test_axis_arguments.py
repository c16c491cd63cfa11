"""What is given as an axis, a length, a name or tags, and is none."""

import numpy as np
import pytest

import geon
from tests.places import here

A, K = geon.Axis("A"), geon.Axis("K", 2)
LONGER = geon.Axis("K", 3)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, k: geon.sum(x, k),
        lambda x, k: geon.sum(x, out_axes=k),
        lambda x, k: geon.softmax(x, k),
        lambda x, k: geon.sort(x, k),
        lambda x, k: geon.flip(x, k),
        lambda x, k: geon.reorder(x, [k, A]),
        lambda x, k: geon.dot(x, x, over=k),
        lambda x, k: x[{k: 0}],
    ],
)
def test_an_axis_given_names_one_whatever_its_length(build):
    x = geon.placeholder([A, K], name="x")
    assert build(x, LONGER) is build(x, K)


def test_a_new_axis_of_another_length_is_refused():
    x, place = geon.placeholder([A, K], name="x"), here()
    with pytest.raises(geon.AxisError) as caught:
        geon.rename(x, {K: LONGER.named("Q")})
    for part in ("2", "3", place):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: geon.sort(x, {}),
        lambda x: geon.cumsum(x, geon.Axes(A)),
        lambda x: geon.concat([x, x], None),
        lambda x: geon.pad(x, 1),
        lambda x: geon.pad(x, {A: 1.5}),
        lambda x: geon.rename(x, "Q"),
        lambda x: geon.rename(x, {A: 1}),
        lambda x: geon.top_k(x, 1, 1),
    ],
)
def test_what_is_no_axis(build):
    with pytest.raises((geon.AxisError, geon.ArgumentError)):
        build(geon.placeholder([A, K]))


@pytest.mark.parametrize("length", ["N*", "", "-3", "N/2"])
def test_a_length_that_is_no_name(length):
    with pytest.raises(geon.AxisError, match=r'such as 2 \* geon.Axis\("N"\).length'):
        geon.Axis("A", length)


@pytest.mark.parametrize("notes", [{"name": 5}, {"tags": 5}, {"tags": [1]}])
def test_names_and_tags_that_are_no_strings(notes):
    with pytest.raises(geon.ArgumentError, match="string"):
        geon.exp(geon.placeholder(A), **notes)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, of: geon.roll(x, {K: of(1)}),
        lambda x, of: geon.pad(x, {K: of(1)}),
        lambda x, of: geon.pad(x, {K: (of(0), of(2))}),
        lambda x, of: geon.resize(x, {K: of(5)}),
        lambda x, of: geon.window(x, {K: geon.Window(of(2), of(2), of(1), of(1))}),
        lambda x, of: geon.max_pool(x, {K: of(2)}),
        lambda x, of: geon.polygamma(of(2), x),
        lambda x, of: geon.top_k(x, of(1), K)[0],
        lambda x, of: x[{K: of(1)}],
    ],
)
def test_integers_of_numpy_are_integers(build):
    x = geon.placeholder([A, K])
    assert build(x, np.int64) is build(x, int)
