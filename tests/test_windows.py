"""Windows, convolution and pooling against NumPy, with first and second derivatives.

What NumPy makes of convolutions is compared with SciPy, and all of it with PyTorch where that is
installed.
"""

import itertools

import numpy as np
import pytest
from scipy.signal import correlate

import geon
from tests import window_cases as cases
from tests.tiers import scaled

N, H, W, C, K = (geon.Axis(name) for name in "NHWCK")
R, S = geon.Axis("R", 3), geon.Axis("S", 2)
SEEDS = {"numpy": 500, "native": 40}
ELSEWHERE = 6  # seeds of transformers that are not named


def check(got, wanted, case):
    for k, (one, other) in enumerate(zip(got, wanted, strict=True)):
        np.testing.assert_allclose(one, other, 1e-9, 1e-10, err_msg=f"result {k} of {case}")


def placeholders(case):
    x = geon.placeholder([case.axis(n) for n in case.x_axes], "float64", name="x")
    w = geon.placeholder([case.axis(n) for n in case.w_axes], "float64", name="w")
    return x, w


@pytest.mark.parametrize("part", range(10))
def test_random_convolutions_and_their_derivatives(part, transformer_name, make):
    """Forward, both slopes, the slopes of these, and the transposed convolution."""
    count = scaled(SEEDS.get(transformer_name, ELSEWHERE)) // 10 or 1
    transformer = make()
    for seed in range(part * count, (part + 1) * count):
        case, random = cases.convolution_case(seed)
        x, w = placeholders(case)
        y = geon.convolution(x, w, case.windows, list(case.over))
        assert y.axes.names == tuple(cases.letters(case)[2])
        g, u, v = (geon.placeholder(op.axes, "float64") for op in (y, x, w))
        dx, dw = geon.deriv(geon.sum(y * g), [x, w])
        dxw, dxg = geon.deriv(geon.sum(dx * u), [w, g])
        dwx, dwg = geon.deriv(geon.sum(dw * v), [x, g])
        made = [n for n in g.axes.names if n in case.w_axes and n not in case.x_axes]
        lengths = {each.name: each.axis.expression for each in case.along}
        back = geon.transposed_convolution(g, w, case.windows, made, lengths=lengths)
        back = geon.reorder(back, [back.axes[n] for n in case.x_axes])
        f = transformer.computation([y, dx, dw, dxw, dxg, dwx, dwg, back], x, w, g, u, v)
        xa, ua = (random.normal(size=case.lengths(case.x_axes)) for _ in range(2))
        wa, va = (random.normal(size=case.lengths(case.w_axes)) for _ in range(2))
        ya = cases.convolved(case, xa, wa)
        ga = random.normal(size=ya.shape)
        wanted = [
            ya,
            cases.slope_of_x(case, ga, wa),
            cases.slope_of_w(case, ga, xa),
            cases.slope_of_w(case, ga, ua),
            cases.convolved(case, ua, wa),
            cases.slope_of_x(case, ga, va),
            cases.convolved(case, xa, va),
            cases.slope_of_x(case, ga, wa),
        ]
        check(f(xa, wa, ga, ua, va), wanted, case)


def naive_pooled(case, x, g, u):
    """The values, the slopes, and how these change along u and with g."""
    seen = cases.shown(case, x, -np.inf)
    inner = tuple(range(x.ndim, seen.ndim))
    flat = seen.reshape(*x.shape[:0], *seen.shape[: x.ndim], -1)
    at = flat.argmax(-1)[..., None]
    first = np.zeros(flat.shape)
    np.put_along_axis(first, at, 1, -1)
    first = first.reshape(seen.shape)
    s, su = cases.shown(case, x), cases.shown(case, u)
    power = np.abs(s) ** 2 * np.sign(s)
    norm = (np.abs(s) ** 3).sum(inner) ** (1 / 3)

    def wide(values):
        return values.reshape(*values.shape, *[1] * len(inner))

    def spread(windows):
        return cases.hidden(case, np.broadcast_to(windows, seen.shape))

    inside, padded = cases.counted(case, False), cases.counted(case, True)
    turned = wide(g * norm**-2) * 2 * np.abs(s) * su
    turned = turned - wide(2 * g * norm**-5 * (power * su).sum(inner)) * power
    zero = np.zeros(x.shape)
    return [
        np.take_along_axis(flat, at, -1)[..., 0],
        s.sum(inner) / inside,
        s.sum(inner) / padded,
        norm,
        spread(first * wide(g)),
        spread(wide(g / inside)),
        spread(wide(g / padded)),
        spread(wide(g * norm**-2) * power),
        zero,
        zero,
        zero,
        spread(turned),
        (first * su).sum(inner),
        su.sum(inner) / inside,
        su.sum(inner) / padded,
        (power * su).sum(inner) * norm**-2,
    ]


@pytest.mark.parametrize("part", range(5))
def test_random_poolings_and_their_derivatives(part, transformer_name, make):
    count = scaled(SEEDS.get(transformer_name, ELSEWHERE)) // 20 or 1
    transformer = make()
    for seed in range(part * count, (part + 1) * count):
        case, random = cases.pooling_case(seed)
        results, leaves = cases.pooling_graph(case)
        assert all(y.axes.names == tuple(case.x_axes) for y in results[:4])
        xa, ga, ua = cases.pooling_arrays(case, random)
        f = transformer.computation(results, *leaves)
        check(f(xa, ga, ua), naive_pooled(case, xa, ga, ua), case)


# SciPy --------------------------------------------------------------------------------------------


def scipy_convolution(case, x, w):
    """The same by SciPy, of padded arrays and filters with zeros between their positions."""
    spatial = "".join(each.name for each in case.along)
    positions = "".join(each.positions for each in case.along)
    groups = [n for n in case.x_axes if n in case.w_axes and n not in case.over]
    batch = [n for n in case.x_axes if n not in [*groups, *case.over, *spatial]]
    filters = [n for n in case.w_axes if n not in [*groups, *case.over, *positions]]

    def arranged(array, names, order):
        return array.transpose([names.index(n) for n in order])

    xs = arranged(x, case.x_axes, [*groups, *batch, *case.over, *spatial])
    ws = arranged(w, case.w_axes, [*groups, *filters, *case.over, *positions])
    for k, each in enumerate(reversed(case.along), 1):
        xs = np.pad(xs, [each.pad if n == xs.ndim - k else (0, 0) for n in range(xs.ndim)])
        shape = list(ws.shape)
        shape[-k] = each.reach
        wide = np.zeros(shape)
        wide[(..., slice(None, None, each.dilation), *[slice(None)] * (k - 1))] = ws
        ws = wide
    inner = len(case.over) + len(spatial)
    found = [
        [
            correlate(xg, filter[(None,) * len(batch)], "valid", "direct")
            for filter in wg.reshape(-1, *wg.shape[len(filters) :])
        ]
        for xg, wg in zip(
            xs.reshape(-1, *xs.shape[len(groups) :]),
            ws.reshape(-1, *ws.shape[len(groups) :]),
            strict=True,
        )
    ]
    made = np.array(found)
    sizes = [*xs.shape[: len(groups)], *ws.shape[len(groups) : ws.ndim - inner]]
    apart = made.shape[2 : 2 + len(batch)]
    made = made.reshape(*sizes, *apart, *made.shape[2 + len(batch) + len(case.over) :])
    made = made[(..., *[slice(None, None, each.stride) for each in case.along])]
    return arranged(made, [*groups, *filters, *batch, *spatial], cases.letters(case)[2])


def test_what_random_convolutions_are_compared_with_is_that_of_scipy():
    """Slopes are compared along directions, in which a convolution is linear in either argument."""
    for seed in range(500):
        case, random = cases.convolution_case(seed)
        x, u = (random.normal(size=case.lengths(case.x_axes)) for _ in range(2))
        w, v = (random.normal(size=case.lengths(case.w_axes)) for _ in range(2))
        y = cases.convolved(case, x, w)
        check([y], [scipy_convolution(case, x, w)], case)
        g = random.normal(size=y.shape)
        slopes = (cases.slope_of_x(case, g, w) * u).sum(), (cases.slope_of_w(case, g, x) * v).sum()
        along = [(cases.convolved(case, *pair) * g).sum() for pair in ((u, w), (x, v))]
        check(slopes, along, case)


# PyTorch ------------------------------------------------------------------------------------------


def torch_convolution(torch, case, x, w):
    """The same by PyTorch, of padded arrays in its own order of axes."""
    spatial = "".join(each.name for each in case.along)
    positions = "".join(each.positions for each in case.along)
    dims = len(case.along)
    batch = [n for n in case.x_axes if n not in case.w_axes and n not in spatial]
    groups = [n for n in case.x_axes if n in case.w_axes and n not in case.over]
    filters = [n for n in case.w_axes if n not in case.x_axes and n not in positions]

    def arranged(array, names, order):
        """Over these groups of axes, each of them flattened into one."""
        known = dict(zip(names, array.shape, strict=True))
        flat = [n for part in order for n in part]
        moved = array.permute([names.index(n) for n in flat])
        return moved.reshape([int(np.prod([known[n] for n in part])) for part in order])

    channels = list(case.over)
    xs = arranged(x, case.x_axes, [batch, [*groups, *channels], *spatial])
    ws = arranged(w, case.w_axes, [[*groups, *filters], channels, *positions])
    pads = [count for each in reversed(case.along) for count in each.pad]
    xs = torch.nn.functional.pad(xs, pads)
    run = getattr(torch.nn.functional, f"conv{dims}d")
    sizes = dict(zip(case.x_axes, x.shape, strict=True)) | dict(
        zip(case.w_axes, w.shape, strict=True)
    )
    count = int(np.prod([sizes[n] for n in groups]))
    stride, dilation = ([getattr(a, of) for a in case.along] for of in ("stride", "dilation"))
    made = run(xs, ws, stride=stride, dilation=dilation, groups=count)
    names = [*batch, *groups, *filters, *spatial]
    made = made.reshape([*(sizes[n] for n in names[: -len(spatial)]), *made.shape[2:]])
    return made.permute([names.index(n) for n in cases.letters(case)[2]])


def test_random_convolutions_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    transformer = geon.NumPyTransformer()
    for seed in range(500):
        case, random = cases.convolution_case(seed)
        x, w = placeholders(case)
        y = geon.convolution(x, w, case.windows, list(case.over))
        g, u = (geon.placeholder(op.axes, "float64") for op in (y, x))
        slopes = geon.deriv(geon.sum(y * g), [x, w])
        second = geon.deriv(geon.sum(slopes[0] * u), [w, g])
        f = transformer.computation([y, *slopes, *second], x, w, g, u)
        xa, ua = (random.normal(size=case.lengths(case.x_axes)) for _ in range(2))
        wa = random.normal(size=case.lengths(case.w_axes))
        xt, wt = (torch.tensor(a, requires_grad=True) for a in (xa, wa))
        yt = torch_convolution(torch, case, xt, wt)
        gt = torch.tensor(random.normal(size=tuple(yt.shape)), requires_grad=True)
        first = torch.autograd.grad((yt * gt).sum(), [xt, wt], create_graph=True)
        again = torch.autograd.grad((first[0] * torch.tensor(ua)).sum(), [wt, gt])
        wanted = [t.detach().numpy() for t in (yt, *first, *again)]
        check(f(xa, wa, gt.detach().numpy(), ua), wanted, case)


def test_random_poolings_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    transformer = geon.NumPyTransformer()
    functions = torch.nn.functional
    random = np.random.default_rng(0)
    for _ in range(150):
        size, stride = int(random.integers(1, 5)), int(random.integers(1, 5))
        pad, length = int(random.integers(0, size // 2 + 1)), int(random.integers(1, 10))
        ceil = bool(random.integers(0, 2))
        if length + 2 * pad < size:
            continue
        known = ceil and stride + pad > size
        h = geon.Axis("H", length if known else None)
        x = geon.placeholder([N, C, h], "float64")
        windows = {h: geon.Window(size, stride, 1, pad, ceil)}
        xa = random.normal(size=(2, 3, length))
        xt = torch.tensor(xa, requires_grad=True)
        ys = [geon.max_pool(x, windows)]
        yt = [functions.max_pool1d(xt, size, stride, pad, ceil_mode=ceil)]
        for count in (False, True):
            ys.append(geon.average_pool(x, windows, count_pad=count))
            yt.append(functions.avg_pool1d(xt, size, stride, pad, ceil, count))
        slopes = [geon.deriv(geon.sum(geon.square(y)), x) for y in ys]
        wanted = [torch.autograd.grad((y**2).sum(), xt, retain_graph=True)[0] for y in yt]
        f = transformer.computation([*ys, *slopes], x)
        check(f(xa), [t.detach().numpy() for t in (*yt, *wanted)], windows)


@pytest.mark.parametrize(
    ("mode", "align", "theirs", "corners"),
    [
        ("linear", "centers", "bilinear", False),
        ("linear", "corners", "bilinear", True),
        ("nearest", "centers", "nearest-exact", None),
        ("nearest", "starts", "nearest", None),
    ],
)
def test_resize_is_that_of_pytorch(mode, align, theirs, corners):
    torch = pytest.importorskip("torch")
    transformer = geon.NumPyTransformer()
    x = geon.placeholder([N, C, H, W], "float64")
    for size, new in itertools.product([(1, 1), (4, 5), (7, 2)], [(1, 1), (8, 10), (3, 5)]):
        y = geon.resize(x, {H: new[0], W: new[1]}, mode, align)
        slope = geon.deriv(geon.sum(geon.square(y)), x)
        xa = np.random.default_rng(0).normal(size=(2, 3, *size))
        xt = torch.tensor(xa, requires_grad=True)
        yt = torch.nn.functional.interpolate(xt, new, mode=theirs, align_corners=corners)
        wanted = [yt, torch.autograd.grad((yt**2).sum(), xt)[0]]
        got = transformer.computation([y, slope], x)(xa)
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other.detach().numpy(), 1e-5, 1e-6)


# What there is beside -----------------------------------------------------------------------------


def test_windows_have_the_axes_said(transformer):
    x = geon.placeholder([N, H, C])
    y = geon.window(x, {H: geon.Window(R, stride=2, dilation=2, pad=(1, 3))})
    assert y.axes.names == ("N", "H", "C", "R")
    assert str(y.axes["H"].expression) == "(H + 1)//2"
    assert geon.window(x, {"H": R}).axes["H"].expression == x.axes["H"].expression - 2
    assert geon.window(x, {H: 3}).axes["H window"].length == 3
    f = transformer.computation(geon.window(x, {H: R}, value=7), x)
    np.testing.assert_array_equal(f(np.arange(4).reshape(1, 4, 1))[0, :, 0], [[0, 1, 2], [1, 2, 3]])
    outside = geon.window(x, {H: geon.Window(R, pad=1)}, value=7)
    got = transformer.computation(outside, x)(np.arange(2).reshape(1, 2, 1))
    np.testing.assert_array_equal(got[0, :, 0], [[7, 0, 1], [0, 1, 7]])


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 5, 6])
def test_same_gives_a_window_for_each_stride(length, stride, transformer):
    """Along a known axis and along an open one, and a transposed convolution takes it back."""
    xa, wa = np.ones((1, length)), np.ones(5)
    filters = geon.Axis("R", 5)
    w = geon.placeholder([filters])
    for axis in (geon.Axis("H", length), H):
        x = geon.placeholder([N, axis])
        y = geon.convolution(x, w, {axis: geon.Window(filters, stride, pad="same")})
        back = geon.transposed_convolution(y, w, {"H": geon.Window(filters, stride, pad="same")})
        made, again = transformer.computation([y, back], x, w)(xa, wa)
        assert made.shape == (1, -(-length // stride))
        assert again.shape == (1, -(-length // stride) * stride)
        total = max((made.shape[1] - 1) * stride + 5 - length, 0)
        places = np.arange(made.shape[1])[:, None] * stride + np.arange(5) - total // 2
        np.testing.assert_array_equal(made[0], ((places >= 0) & (places < length)).sum(1))


def test_roll_and_diagonal(transformer):
    x = geon.placeholder([H, W], "float64")
    xa = np.arange(12.0).reshape(3, 4)
    rolled = geon.roll(x, {H: 1, W: -3})
    square = geon.placeholder([H, C.with_length(H.length), N], "float64")
    line = geon.diagonal(square, [C, H], K)
    assert line.axes.names == ("K", "N")
    weights = geon.placeholder(line.axes, "float64")
    slope = geon.deriv(geon.sum(line * weights), square)
    sa = np.arange(18.0).reshape(3, 3, 2)
    ga = np.arange(6.0).reshape(3, 2)
    got = transformer.computation([rolled, geon.deriv(geon.sum(rolled * x), x)], x)(xa)
    np.testing.assert_array_equal(got[0], np.roll(xa, (1, -3), (0, 1)))
    np.testing.assert_array_equal(
        got[1], np.roll(xa, (1, -3), (0, 1)) + np.roll(xa, (-1, 3), (0, 1))
    )
    made, back = transformer.computation([line, slope], square, weights)(sa, ga)
    np.testing.assert_array_equal(made, sa[np.arange(3), np.arange(3)])
    np.testing.assert_array_equal(back, np.eye(3)[:, :, None] * ga[:, None])
    known = geon.constant(xa, [geon.Axis("A", 3), geon.Axis("B", 4)])
    moved = transformer.computation(geon.roll(known, {"A": 7, "B": -9}))()
    np.testing.assert_array_equal(moved, np.roll(xa, (7, -9), (0, 1)))
    with pytest.raises(geon.GuardError):
        transformer.computation(geon.roll(x, {H: 4}), x)(xa)


def test_the_first_of_equal_elements_has_the_derivative_of_max_pool(transformer):
    x = geon.placeholder([H])
    y = geon.max_pool(x, {H: geon.Window(2, stride=2)})
    f = transformer.computation([y, geon.deriv(geon.sum(y), x)], x)
    values, slope = f([3, 3, 1, 2, np.nan, 1])
    np.testing.assert_array_equal(values, [3, 2, np.nan])
    np.testing.assert_array_equal(slope, [1, 0, 0, 1, 1, 0])
    outside = geon.average_pool(x, {H: geon.Window(1, pad=1)})
    np.testing.assert_array_equal(transformer.computation(outside, x)([2]), [np.nan, 2, np.nan])
    whole = geon.placeholder([H], "int8")
    padded = geon.max_pool(whole, {H: geon.Window(3, pad=1)})
    np.testing.assert_array_equal(transformer.computation(padded, whole)([-5, -7]), [-5, -5])


@pytest.mark.parametrize("size", [1, 16, 257])
def test_positions_of_large_windows_are_kept(size, transformer):
    x = geon.placeholder([H])
    y = geon.max_pool(x, {H: size})
    f = transformer.computation(geon.deriv(geon.sum(y), x), x)
    for at in (0, size // 2, size - 1):
        values = np.arange(size) == at
        np.testing.assert_array_equal(f(values), values)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("length", [None, 3, 4, 7])
def test_ceil_adds_one_window_at_most_and_takes_none_away(make, size, stride, length):
    """Where padding is as long as a window, too: then windows lie in it, with ceil or without."""
    transformer = make()
    x = geon.placeholder([geon.Axis("H", length)])
    given = np.arange(length or 5) + 1
    for before, after in ((0, 0), (0, 3), (3, 0), (2, 2), (3, 1), (1, 4)):
        pads = [geon.Window(size, stride, 1, (before, after), ceil) for ceil in (False, True)]
        plain, more = (
            transformer.computation(geon.max_pool(x, {"H": window}), x)(given) for window in pads
        )
        np.testing.assert_array_equal(more[: len(plain)], plain)
        spare = len(given) + before + after - size
        begins = len(plain) * stride
        added = spare % stride != 0 and begins < len(given) + before
        assert len(more) == len(plain) + added


def test_a_window_of_ceil_may_be_longer_than_the_axis(make):
    """As PyTorch has it: a window that begins inside, and no other."""
    transformer = make()
    for axis in (H, geon.Axis("H", 2)):
        x = geon.placeholder([axis])
        lying = {"H": geon.Window(3, stride=2, ceil=True)}
        y = geon.max_pool(x, lying)
        pools = [y, geon.average_pool(x, lying), geon.deriv(geon.sum(y), x)]
        got = transformer.computation(pools, x)([5, 1])
        for one, wanted in zip(got, ([5], [3], [1, 0]), strict=True):
            np.testing.assert_array_equal(one, wanted)
    x = geon.placeholder([H])
    next_to = transformer.computation(geon.max_pool(x, {H: geon.Window(3, ceil=True)}), x)
    with pytest.raises(geon.GuardError, match="no window of"):
        next_to([5, 1])
    with pytest.raises(geon.AxisError, match="no window of"):
        geon.max_pool(geon.placeholder([geon.Axis("H", 2)]), {"H": geon.Window(3, ceil=True)})


def test_norms_of_nothing_have_the_derivative_zero(transformer):
    x = geon.placeholder([H])
    y = geon.lp_pool(x, {H: geon.Window(2, stride=2)})
    got = transformer.computation([y, geon.deriv(geon.sum(y), x)], x)([0, 0, 3, 4])
    np.testing.assert_allclose(got[0], [0, 5], rtol=1e-6)
    np.testing.assert_allclose(got[1], [0, 0, 0.6, 0.8], rtol=1e-6)


FIXED = geon.placeholder([N, geon.Axis("H", 4), geon.Axis("C", 3)], name="x")
FILTERS = geon.placeholder([R, geon.Axis("C", 3), K], name="w")
REFUSED = {
    "no window of R:3": lambda: geon.window(FIXED, {H: geon.Window(R, dilation=2)}),
    "has the axis 'C' already": lambda: geon.window(FIXED, {H: geon.Axis("C", 3)}),
    "stride must be": lambda: geon.Window(R, stride=0),
    "dilation must be": lambda: geon.Window(R, dilation=1.5),
    "pad must be": lambda: geon.Window(R, pad=(1, -1)),
    "at least one position": lambda: geon.Window(0),
    "is no axis; write": lambda: geon.Window(1.5),
    "windows are a dict": lambda: geon.window(FIXED, geon.Window(R)),
    "is no axis of the filters": lambda: geon.convolution(FIXED, FILTERS, {H: geon.Window("S")}),
    "3, the positions": lambda: geon.convolution(FIXED, FILTERS, {H: geon.Window(3)}),
    "length 3 in": lambda: geon.convolution(FIXED, FILTERS, {H: geon.Axis("R", 4)}),
    "only its length can tell": lambda: geon.window(
        geon.placeholder([H]), {H: geon.Window(2, stride=3, pad="same")}
    ),
    "there would be -1 elements": lambda: geon.transposed_convolution(
        FIXED, FILTERS, {H: geon.Window(R, pad=4)}, C, lengths={H: -1}
    ),
    "'H' has length 4": lambda: geon.transposed_convolution(
        FIXED, FILTERS, {H: geon.Window(R)}, C, lengths={H: 9}
    ),
    "of the bool tensor": lambda: geon.max_pool(geon.greater(FIXED, 0), {H: 2}),
    "p must be": lambda: geon.lp_pool(FIXED, {H: 2}, 0),
    "no mode": lambda: geon.resize(FIXED, {H: 2}, "cubic"),
    "cannot have length": lambda: geon.resize(FIXED, {H: 0}),
    "the shift along": lambda: geon.roll(FIXED, {H: 1.5}),
    "give two axes": lambda: geon.diagonal(FIXED, [H]),
    "has the axis 'N' already": lambda: geon.diagonal(
        geon.placeholder([H, C.with_length(H.length), N]), [H, C], N
    ),
    "diagonal at": lambda: geon.diagonal(FIXED, [H, C]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_raises_at_the_line(message):
    with pytest.raises(geon.GeonError) as caught:
        REFUSED[message]()
    assert message in str(caught.value)
    assert "test_windows.py" in str(caught.value)


def test_no_window_along_an_open_axis_raises_before_a_call(transformer):
    x = geon.placeholder([N, H], name="x")
    f = transformer.computation(geon.max_pool(x, {H: geon.Window(R)}), x)
    assert f(np.zeros((2, 3))).shape == (2, 1)
    with pytest.raises(geon.GuardError, match=r"no window of R:3.*along H of x"):
        f(np.zeros((2, 2)))
    assert f(np.zeros((0, 3))).shape == (0, 1)


KERNELS = {
    "plain": geon.Window(R),
    "padded": geon.Window(R, pad=1),
    "strided": geon.Window(R, stride=2, pad=(0, 1)),
    "dilated": geon.Window(R, dilation=2, pad=2),
}


@pytest.mark.parametrize("label", KERNELS)
def test_a_convolution_and_its_slopes_are_one_contraction_each(label):
    """With bias, activation and residual on the store; no windows are in the plan."""
    spec = KERNELS[label]
    second = geon.Window("S", spec.stride, spec.dilation, spec.pad)
    channels, filters, s = geon.Axis("C", 8), geon.Axis("K", 16), geon.Axis("S", 3)
    x = geon.placeholder([N, H, W, channels], name="x")
    w = geon.placeholder([R, s, channels, filters], name="w")
    bias = geon.placeholder([filters], name="b")
    made = geon.convolution(x, w, {H: spec, W: second})
    residual = geon.placeholder(made.axes, name="r")
    y = geon.relu(made + bias) + residual
    native = geon.make_transformer("native", threads=1)
    f = native.computation(y, x, w, bias, residual)
    (line,) = [line for line in f.explain("schedule").splitlines() if line[0].isdigit()]
    assert "[contraction]" in line
    g = geon.placeholder(made.axes, name="g")
    slopes = native.computation(geon.vjp(made, [x, w], g), x, w, g)
    lines = [line for line in slopes.explain("schedule").splitlines() if line[0].isdigit()]
    assert len(lines) == 2 and all("[contraction]" in line for line in lines)
    lengths = {N: 2, H: 9, W: 10}
    results = 4 * (x.axes.size.evaluate({"N": 2, "H": 9, "W": 10}) + w.axes.size)
    assert slopes.peak_bytes(lengths) - results < 1 << 21  # what products work in
