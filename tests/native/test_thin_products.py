"""Products of few rows or columns: long ones, and shallow ones whose rows adjoin, are right.

Sums are of small integers and exact, so that every way of taking them gives the same elements.
"""

import itertools

import numpy as np
import pytest

import geon

SIDES = [1, 2, 3, 5, 8, 9, 20, 25, 48, 49]
DEPTHS = [15, 64, 127, 128, 129, 769, 8193, 16399]
SHALLOW = [1, 2, 5, 16, 63, 64, 65]
NARROW = [1, 2, 3, 7, 8, 15, 16, 17, 33]


def whole(generator, *shape):
    """Small integers."""
    return generator.integers(-4, 5, size=shape).astype(np.float32)


def checked(x, y, a, b, wanted, over):
    """Compare what is computed of operands that lie in memory, and of such that are computed."""
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        plain = geon.dot(x, y, over=over)
        made = geon.dot(geon.minimum(x, 2), y * 2, over=over)
        results = [plain, made, geon.maximum(made, 0) + 1]
        found = [
            one.computation(results, x, y)(a, b),
            two.computation(results, x, y)(a, b),
            two.computation(results, x, y, plan=False)(a, b),
            [two.computation(plain, x, y)(a, b), *two.computation(results[1:], x, y)(a, b)],
        ]
    again = wanted(np.minimum(a, 2), b * 2)
    for values in found:
        np.testing.assert_array_equal(values[0], wanted(a, b))
        np.testing.assert_array_equal(values[1], again)
        np.testing.assert_array_equal(values[2], np.maximum(again, 0) + 1)


@pytest.mark.parametrize("turned", list(itertools.product([False, True], repeat=2)))
def test_few_dot_products_of_long_lines_are_right(turned):
    generator = np.random.default_rng(3)
    dtype = "float32" if turned[0] == turned[1] else "float64"
    for number, depth in enumerate(DEPTHS):
        r, c = SIDES[number % len(SIDES)], SIDES[-1 - 2 * number % len(SIDES)]
        rows, columns = geon.Axis("R", r), geon.Axis("C", c)
        deep = geon.Axis("K", depth)
        x = geon.placeholder([deep, rows] if turned[0] else [rows, deep], dtype=dtype)
        y = geon.placeholder([deep, columns] if turned[1] else [columns, deep], dtype=dtype)
        a, b = whole(generator, *x.axes.lengths), whole(generator, *y.axes.lengths)
        letters = f"{'kr' if turned[0] else 'rk'},{'kc' if turned[1] else 'ck'}->rc"
        checked(x, y, a, b, lambda p, q, of=letters: np.einsum(of, p, q, optimize=True), [deep])


def test_few_rows_over_two_axes_are_right():
    generator = np.random.default_rng(4)
    r, s, k = geon.Axis("R", 7), geon.Axis("S", 5), geon.Axis("K", 2051)
    c = geon.Axis("C", 5)
    for axes in itertools.permutations([r, s, k]):
        x, y = geon.placeholder(axes), geon.placeholder([k, c])
        a, b = whole(generator, *x.axes.lengths), whole(generator, *y.axes.lengths)
        letters = "".join(axis.name.lower() for axis in axes)
        letters = f"{letters},kc->{letters.replace('k', '')}c"
        checked(x, y, a, b, lambda p, q, of=letters: np.einsum(of, p, q), [k])


def test_open_lengths_are_as_known_ones():
    generator = np.random.default_rng(5)
    rows, columns, deep = (geon.Axis(name) for name in "RCK")
    x, y = geon.placeholder([deep, rows]), geon.placeholder([columns, deep])
    product = geon.dot(geon.minimum(x, 2), geon.maximum(y, -2))
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation([product, product * 0.5], x, y)
        for r, c, k in [(2, 1, 20000), (20, 20, 500), (21, 20, 500), (48, 8, 9000), (5, 3, 127)]:
            a, b = whole(generator, k, r), whole(generator, c, k)
            wanted = np.minimum(a, 2).T @ np.maximum(b, -2).T
            found = f(a, b)
            np.testing.assert_array_equal(found[0], wanted)
            np.testing.assert_array_equal(found[1], wanted * 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("depth", SHALLOW)
def test_narrow_products_of_shallow_rows_are_right(depth):
    generator = np.random.default_rng(depth)
    deep = geon.Axis("K", depth)
    for columns in NARROW[SHALLOW.index(depth) % 3 :: 3]:
        rows, narrow = geon.Axis("R", 1003), geon.Axis("C", columns)
        for axes in ([rows, deep], [deep, rows]):
            x, y = geon.placeholder(axes), geon.placeholder([deep, narrow])
            a, b = whole(generator, *x.axes.lengths), whole(generator, depth, columns)
            letters = "rk,kc->rc" if axes[0] is rows else "kr,kc->rc"
            checked(x, y, a, b, lambda p, q, of=letters: np.einsum(of, p, q), [deep])


@pytest.mark.parametrize("rows", [1, 5, 70])
def test_an_operand_of_its_own_indices_is_no_run(rows):
    """What is computed of indices, as of a unit matrix, changes with each of them."""
    batch, summed, column = geon.Axis("N"), geon.Axis("B", 3), geon.Axis("C", 4)
    x = geon.placeholder([batch, summed])
    same = geon.onehot(geon.iota(summed), summed.prime)
    other = geon.onehot(geon.iota(column), column.prime)
    y = geon.dot(x, geon.outer(geon.multiply, same, other), over=summed)
    data = np.random.default_rng(rows).normal(size=(rows, 3)).astype("float32")
    found = geon.make_transformer("native").computation(y, x)(data)
    want = np.einsum("nb,bc,hk->nchk", data, np.eye(3), np.eye(4))
    order = [y.axes.names.index(n) for n in ("N", "B'", "C", "C'")]
    np.testing.assert_allclose(found.transpose(order), want, rtol=1e-6)


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("depth", [3, 63, 64, 8193])
def test_axes_of_one_element_make_no_vector_a_matrix(depth, computed):
    """Two vectors, and short rows with a vector, are sums of a nest whatever axes of one there are;
    rows of 64 and more are a product's where they lie in memory.
    """
    one, other = geon.Axis("F", 1), geon.Axis("G", 1)
    n, k = geon.Axis("N", 9), geon.Axis("K", depth)
    generator = np.random.default_rng(depth)
    rows = "contraction" if depth > 63 and not computed else "nest"
    for axes, kinds in (([one, k], "nest"), ([n, one, k], rows)):
        x, y = geon.placeholder(axes), geon.placeholder([k, other])
        left, right = (geon.maximum(x, 0), y * 2) if computed else (x, y)
        made = geon.dot(left, right)
        a = whole(generator, *(axis.length for axis in axes))
        b = whole(generator, depth, 1)
        with geon.NativeTransformer(threads=2) as transformer:
            f = transformer.computation(made, x, y)
            wanted = (np.maximum(a, 0) @ (b * 2)) if computed else a @ b
            np.testing.assert_array_equal(f(a, b), wanted)
            schedule = f.explain("schedule")
        assert kinds in schedule.splitlines()[0], schedule


@pytest.mark.parametrize("order", ["BKR", "KBR", "BRK", "RBK"])
@pytest.mark.parametrize("sizes", [(3, 5, 7), (8, 8, 100), (4, 64, 64), (2, 1024, 1024)])
def test_many_matrices_and_vectors_side_by_side(order, sizes):
    """Each a sum of a nest, with an axis of one element or none, but for long matrices."""
    axes = [geon.Axis(name, length) for name, length in zip("BRK", sizes, strict=True)]
    by_name, one = {axis.name: axis for axis in axes}, geon.Axis("T", 1)
    kind = "contraction" if sizes[1] * sizes[2] >= 1 << 20 else "nest"
    generator = np.random.default_rng(len(order))
    matrix = geon.placeholder([by_name[name] for name in order])
    data = whole(generator, *(by_name[name].length for name in order))
    predicted = []
    for more in ([], [one]):
        vector = geon.placeholder([*more, by_name["B"], by_name["K"]])
        given = whole(generator, *(axis.length for axis in vector.axes))
        made = geon.dot(vector, matrix, by_name["K"])
        with geon.NativeTransformer(threads=2) as transformer:
            f = transformer.computation(made, vector, matrix)
            wanted = np.einsum(f"...BK,{order}->...BR", given, data)
            np.testing.assert_array_equal(f(given, data), wanted)
            first, *_, last = f.explain("schedule").splitlines()
            assert kind in first
            predicted.append(float(last.split()[1]))
    # Loops go along the matrix, whatever axes of one element the vector has.
    assert predicted[1] < 1.1 * predicted[0] + 0.02


def test_windows_of_each_channel_are_no_matrices():
    """Of depth enough, and many: packed, each element would be there as often as it is shown."""
    image, row, column = geon.Axis("N", 4), geon.Axis("H", 56), geon.Axis("W", 56)
    channel = geon.Axis("C", 16)
    x = geon.placeholder([image, row, column, channel])
    w = geon.placeholder([geon.Axis("R", 11), geon.Axis("S", 11), channel])
    windows = {name: geon.Window(w.axes[of], pad=(5, 5)) for name, of in (("H", "R"), ("W", "S"))}
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(geon.convolution(x, w, windows, []), x, w)
        assert "nest by" in f.explain("schedule").splitlines()[0]


def test_a_row_that_is_computed_stays_one_of_a_product():
    """A reduction would compute it again for each column; a computed matrix is read where it is."""
    t, head, key, place = (
        geon.Axis("T", 1),
        geon.Axis("H", 4),
        geon.Axis("K", 64),
        geon.Axis("P", 99),
    )
    query = geon.placeholder([t, head, key])
    keys = geon.placeholder([place, head, key])
    count = geon.placeholder([], "int64")
    turned = geon.concat([query[..., 32:], query[..., :32]], key)
    kept = geon.where(geon.less(geon.iota(place), count), keys, 0.0)
    with geon.NativeTransformer(threads=1) as transformer:
        for left, right, over, kind in (
            (turned, keys, key, "contraction"),
            (query, keys, key, "nest"),
            (query, kept, key, "nest"),
        ):
            f = transformer.computation(geon.dot(left, right, over), query, keys, count)
            lines = [line for line in f.explain("schedule").splitlines() if "dot(" in line[:9]]
            assert kind in lines[0], lines


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_attention_hands_on_values_of_width_1(masked, scaled):
    """Its softmax is the matrix of a product with a vector, and is never stored whole."""
    head, row, key = geon.Axis("H", 2), geon.Axis("T", 512), geon.Axis("S", 500)
    deep, one = geon.Axis("D", 16), geon.Axis("W", 1)
    q, k = geon.placeholder([head, row, deep]), geon.placeholder([head, key, deep])
    v, seen = geon.placeholder([head, key, one]), geon.placeholder([row, key], "bool")
    scores = geon.dot(q, k, deep)
    shares = geon.softmax(geon.where(seen, scores, -np.inf) if masked else scores, key)
    result = geon.reorder(geon.dot(shares * 2 if scaled else shares, v, key), [head, row, one])
    generator = np.random.default_rng(3)
    a, b, c = (generator.normal(size=x.axes.lengths).astype(np.float32) for x in (q, k, v))
    mask = generator.random((512, 500)) < 0.7
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(result, q, k, v, seen)
        found = f(a, b, c, mask)
        assert f.peak_bytes() < 2 * 512 * 500 * 4
    wanted = np.einsum("htd,hsd->hts", a.astype(float), b)
    wanted = np.exp(np.where(mask, wanted, -np.inf) if masked else wanted)
    wanted = wanted / wanted.sum(-1, keepdims=True) @ c * (2 if scaled else 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
