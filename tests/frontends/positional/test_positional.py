"""Positions over named axes: alignment, reshaping, slices, and arithmetic on lengths."""

import numpy as np
import pytest

import geon
from geon.frontends.positional import fourier, functions, picking
from geon.frontends.positional.elementwise import elementwise, expand
from geon.frontends.positional.indexing import (
    gather,
    gather_elements,
    scatter_elements,
    select,
)
from geon.frontends.positional.movement import Part, concat, flip, pad, slices, split, tile
from geon.frontends.positional.picking import gather_at, scatter_at
from geon.frontends.positional.products import matmul
from geon.frontends.positional.reductions import along, along_axis, reduce
from geon.frontends.positional.reshaping import reshape, squeeze, transpose, unsqueeze
from geon.frontends.positional.values import (
    UnknownValueError,
    full_tensor,
    host,
    input_array,
    known,
    known_list,
)

N, T = geon.Axis("N"), geon.Axis("T")
VALUES = np.random.default_rng(0)


def leaf(*axes, name="x"):
    return geon.placeholder(list(axes), name=name)


def computed(value, feeds):
    """The value of a positional array, from a dictionary of leaves to arrays."""
    f = geon.NumPyTransformer().computation(full_tensor(value), *feeds)
    return f(*feeds.values())


def numbers(*shape):
    return VALUES.normal(size=shape).astype("float32")


SHAPES = [(2, 3, 4), (3, 4), (4,), (1, 4), (3, 1), (2, 1, 1), (1, 1, 1), ()]


def test_broadcasting_is_that_of_numpy():
    for left in SHAPES:
        for right in SHAPES:
            x = leaf(*[geon.Axis(f"a{k}", n) for k, n in enumerate(left)])
            y = leaf(*[geon.Axis(f"a{k}", n) for k, n in enumerate(right)], name="y")
            feeds = {x: numbers(*left), y: numbers(*right)}
            found = computed(elementwise(geon.subtract, input_array(x), input_array(y)), feeds)
            np.testing.assert_array_equal(found, feeds[x] - feeds[y])
            chosen = elementwise(
                geon.where, input_array(x > 0), input_array(y), host(1.0, "float32")
            )
            expected = np.where(feeds[x] > 0, feeds[y], np.float32(1))
            np.testing.assert_array_equal(computed(chosen, feeds), expected)


def test_names_come_from_the_first_operand_and_are_unique():
    x, y = leaf(N, T), leaf(T, geon.Axis("K", 1), N, name="y")
    result = elementwise(geon.add, input_array(x), input_array(y))
    assert [str(dim) for dim in result.dims] == ["T_2:T", "N", "T"]


def test_lengths_that_differ_are_refused_with_both():
    x, y = leaf(N, geon.Axis("C", 3)), leaf(geon.Axis("D", 4), name="y")
    with pytest.raises(geon.AxisError, match=r"dimension 1 is 3 in one operand and 4 in another"):
        elementwise(geon.add, input_array(x), input_array(y))


def test_matmul_is_that_of_numpy():
    pairs = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 1), (1, 4)),
             ((5, 2, 3), (3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((1, 1, 3), (7, 3, 1)),
             ((4, 4), (4, 4)), ((4, 4, 4), (4, 4, 4))]  # fmt: skip
    for left, right in pairs:
        x = leaf(*[geon.Axis(f"a{k}", n) for k, n in enumerate(left)])
        y = leaf(*[geon.Axis(f"a{k}", n) for k, n in enumerate(right)], name="y")
        feeds = {x: numbers(*left), y: numbers(*right)}
        found = computed(matmul(input_array(x), input_array(y)), feeds)
        np.testing.assert_allclose(found, feeds[x] @ feeds[y], rtol=1e-5, atol=1e-6)


def test_reshape_keeps_open_lengths():
    x = leaf(N, T, geon.Axis("C", 12))
    value = input_array(x)
    cases = [((N.length, T.length, 3, 4), "(N, T, C_1:3, C_2:4)"), ((-1, 12), "(N_T:N*T, C:12)"),
             ((N.length, -1), "(N, T_C:12*T)"), ((N.length, 1, T.length, -1), None),
             ((2, -1), None), ((N.length, -1, 2, 6, 1), None)]  # fmt: skip
    array = numbers(2, 5, 12)
    for shape, axes in cases:
        result = reshape(value, shape)
        if axes is not None:
            assert str(full_tensor(result).axes) == axes
        plain = [n if isinstance(n, int) else n.evaluate({"N": 2, "T": 5}) for n in shape]
        np.testing.assert_array_equal(computed(result, {x: array}), array.reshape(plain))
    back = reshape(reshape(value, (N.length, T.length, 3, 4)), (N.length, T.length, -1))
    assert str(full_tensor(back).axes) == "(N, T, C:12)"
    with pytest.raises(geon.AxisError, match=r"one length may be -1, not 2"):
        reshape(value, (-1, -1))


def test_reshape_of_fixed_lengths_is_that_of_numpy():
    for shape in [(4, 6), (2, 12), (24,), (3, 2, 4), (1, 24, 1), (2, 2, 3, 2), (6, -1)]:
        x = leaf(geon.Axis("A", 2), geon.Axis("B", 3), geon.Axis("C", 4))
        array = numbers(2, 3, 4)
        found = computed(reshape(input_array(x), shape), {x: array})
        np.testing.assert_array_equal(found, array.reshape(shape))


def test_transpose_and_unit_positions_build_no_op():
    x = leaf(N, T)
    value = transpose(unsqueeze(input_array(x), [0, 2]), [3, 2, 1, 0])
    assert value.tensor is x
    assert squeeze(value, [1]).tensor is x
    array = numbers(2, 3)
    np.testing.assert_array_equal(computed(value, {x: array}), array[None, :, None].T)


def test_slices_are_those_of_python():
    array = numbers(7, 3)
    bounds = (None, 0, 2, 5, 9, -1, -3, -9)
    for start in bounds:
        for stop in bounds:
            for step in (1, 2, -1, -3):
                x = leaf(geon.Axis("A", 7), geon.Axis("B", 3))
                found = slices(input_array(x), {0: Part(start, stop, step)})
                expected = array[start:stop:step]
                assert found.shape[0] == len(expected)
                if len(expected):
                    np.testing.assert_array_equal(computed(found, {x: array}), expected)


def test_slices_of_open_lengths():
    x = leaf(N, T)
    array = numbers(6, 3)
    cases = [(Part(1), slice(1, None)), (Part(0, -1), slice(0, -1)), (Part(-2), slice(-2, None)),
             (Part(2, 4), slice(2, 4)), (Part(step=-1), slice(None, None, -1)),
             (Part(0, 2**40), slice(None)), (Part(0, N.length), slice(None)),
             (Part(-1, -(2**63), -1), slice(None, None, -1)), (Part(2**40, 2**63, 1), slice(0, 0)),
             (Part(-2, -(2**31), -2), slice(-2, None, -2)), (Part(-1, 2**40, -1), slice(0, 0)),
             (Part(-(2**40), -(2**63), -1), slice(0, 0))]  # fmt: skip
    for part, at in cases:
        found = slices(input_array(x), {0: part})
        np.testing.assert_array_equal(computed(found, {x: array}), array[at])


def test_movement_is_that_of_numpy():
    x = leaf(N, geon.Axis("U", 1), T)
    y = leaf(geon.Axis("M"), geon.Axis("V", 1), geon.Axis("S"), name="y")
    feeds = {x: numbers(2, 1, 3), y: numbers(4, 1, 3)}
    value = input_array(x)
    joined = concat([value, input_array(y)], 0)
    np.testing.assert_array_equal(computed(joined, feeds), np.concatenate(list(feeds.values())))
    feeds.pop(y)
    array = feeds[x]
    np.testing.assert_array_equal(
        computed(concat([value, value], 1), feeds), np.concatenate([array, array], 1)
    )
    np.testing.assert_array_equal(
        computed(tile(value, [2, 3, 1]), feeds), np.tile(array, [2, 3, 1])
    )
    bordered = pad(value, [(0, 0), (1, 2), (1, 0)], "constant", 5)
    expected = np.pad(array, [(0, 0), (1, 2), (1, 0)], constant_values=5)
    np.testing.assert_array_equal(computed(bordered, feeds), expected)
    first, second = split(value, 2, [1, 2])
    np.testing.assert_array_equal(computed(first, feeds), array[..., :1])
    np.testing.assert_array_equal(computed(second, feeds), array[..., 1:])
    wide = expand(value, [4, 1, 5, 1])
    assert wide.shape == (4, N.length, 5, T.length)
    np.testing.assert_array_equal(computed(wide, feeds), np.broadcast_to(array, (4, 2, 5, 3)))


def test_gather_and_reduce():
    x, i = leaf(N, geon.Axis("C", 4)), geon.placeholder([T, N], "int64", name="i")
    array, index = numbers(3, 4), np.array([[0, -1], [2, 1], [1, 1]])
    found = computed(gather(input_array(x), input_array(i), 1), {x: array[:2], i: index})
    np.testing.assert_array_equal(found, np.take(array[:2], index, 1))
    kept = reduce(geon.sum, input_array(x), [1])
    np.testing.assert_allclose(computed(kept, {x: array}), array.sum(1, keepdims=True), rtol=1e-6)
    gone = reduce(geon.max, input_array(x), [0], keep=False)
    np.testing.assert_array_equal(computed(gone, {x: array}), array.max(0))
    with pytest.raises(geon.IndexRangeError, match="index 4 is out of range"):
        gather(input_array(x), host(4), 1)


def test_arithmetic_on_lengths_stays_known():
    lengths = host(np.array([N.length, 12, T.length], object))
    doubled = elementwise(geon.multiply, lengths, host(2))
    assert known_list(doubled) == [2 * N.length, 24, 2 * T.length]
    is_open = elementwise(geon.equal, lengths, host(-1))
    assert known_list(is_open) == [False, False, False]
    x = leaf(N, T)
    asked = elementwise(geon.equal, lengths, host(3))
    np.testing.assert_array_equal(
        computed(
            elementwise(geon.where, asked, input_array(x), host(-1.0, "float32")),
            {x: np.zeros((2, 3), "float32")},
        ),
        [[-1, -1, 0], [-1, -1, 0]],
    )


def test_a_value_that_depends_on_inputs_names_them():
    x = leaf(N, name="sizes")
    with pytest.raises(
        UnknownValueError, match=r"the shape must be known .* depends on sizes"
    ) as e:
        known(elementwise(geon.exp, input_array(x)), "the shape")
    assert e.value.inputs == ("sizes",)
    assert known(elementwise(geon.exp, host([0.0], "float32")), "the shape") == [1.0]


# Functions of a value (2, 3) and a position, with the shape of their result at each position.
PLACES = host(np.zeros((2, 3), np.int64))
OF_POSITION = {
    "along": lambda x, k: along(geon.softmax, x, [k]),
    "along_axis": lambda x, k: along_axis(geon.cumsum, x, k),
    "argument": lambda x, k: functions.argument(geon.argmax, x, k, False),
    "concat": lambda x, k: concat([x, x], k),
    "extreme": lambda x, k: functions.extreme(geon.max, x, [k], False),
    "flip": lambda x, k: flip(x, [k]),
    "fourier": lambda x, k: fourier.transform(x, k),
    "gather": lambda x, k: gather(x, host(np.zeros(4, np.int64)), k),
    "gather_at": lambda x, k: gather_at(x, {k: host(np.zeros(4, np.int64))}),
    "gather_elements": lambda x, k: gather_elements(x, PLACES, k),
    "half_transform": lambda x, k: fourier.half_transform(x, k),
    "normalized": lambda x, k: functions.normalized(x, [k], 1e-3)[0],
    "numbers": lambda x, k: picking.numbers(5, 2, k),
    "order_along": lambda x, k: functions.order_along(x, k),
    "real_transform": lambda x, k: fourier.real_transform(x, k, 2 + 2 * (k % 2)),
    "reduce": lambda x, k: reduce(geon.sum, x, [k], keep=False),
    "running": lambda x, k: functions.running(geon.cumsum, x, k),
    "scatter_at": lambda x, k: scatter_at(x, {k: host([0])}, host(np.float32(1)), "set"),
    "scatter_elements": lambda x, k: scatter_elements(x, PLACES, x, k),
    "select": lambda x, k: select(x, k, 1),
    "slices": lambda x, k: slices(x, {k: Part(1, 2)}),
    "split": lambda x, k: split(x, k, [1, 1 + k % 2])[0],
    "squeeze": lambda x, k: squeeze(slices(x, {k: Part(0, 1)}), [k]),
    "take_along": lambda x, k: functions.take_along(x, PLACES, k),
    "top_k": lambda x, k: functions.top_k(x, 1, k)[0],
    "transpose": lambda x, k: transpose(x, [k, 1 - k % 2]),
    "unsqueeze": lambda x, k: unsqueeze(x, [k]),
}


@pytest.mark.parametrize("name", OF_POSITION)
def test_positions_count_from_the_end_if_negative_and_must_be_in_range(name):
    f, x = OF_POSITION[name], input_array(leaf(geon.Axis("A", 2), geon.Axis("B", 3)))
    rank = 3 if name == "unsqueeze" else 2
    for k in range(rank):
        one, other = f(x, k), f(x, k - rank)
        assert one.shape == other.shape
        assert getattr(one, "tensor", None) is getattr(other, "tensor", None)
    for k in (rank, -rank - 1):
        with pytest.raises(geon.AxisError, match=rf"position {k} is out of range for {rank} dim"):
            f(x, k)
    if name in ("flip", "gather", "select", "slices", "squeeze", "transpose", "unsqueeze"):
        known_value = host(np.zeros((2, 3)))
        for k in (rank, -rank - 1):
            with pytest.raises(geon.AxisError, match=f"position {k} is out of range"):
                f(known_value, k)


def test_a_position_that_is_given_twice_is_refused():
    x = input_array(leaf(geon.Axis("A", 2), geon.Axis("B", 3)))
    for f in (
        lambda: reduce(geon.sum, x, [0, -2]),
        lambda: transpose(x, [1, -1]),
        lambda: unsqueeze(x, [0, -4]),
        lambda: squeeze(x, [1, 1]),
    ):
        with pytest.raises(geon.AxisError, match="is there twice"):
            f()
