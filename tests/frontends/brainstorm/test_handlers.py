"""Operations of handlers beside NumPy."""

import numpy as np
import pytest

from geon.errors import GeonError
from geon.frontends.brainstorm.errors import ValidationError
from geon.frontends.brainstorm.handlers import DebugHandler, Handler, NumpyHandler
from geon.frontends.brainstorm.handlers.debug_handler import OPERATIONS


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def softmax(m):
    e = np.exp(m - m.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# name: arguments before `out` (t an array, p one of positive numbers, c a condition, s a number,
# o the value of out before), and what NumPy computes
ELEMENTWISE = {
    "abs_t": ("t", np.abs),
    "sign_t": ("t", np.sign),
    "sqrt_t": ("p", np.sqrt),
    "log_t": ("p", np.log),
    "clip_t": ("tss", lambda t, a, b: np.clip(t, min(a, b), max(a, b))),
    "add_st": ("st", lambda s, t: s + t),
    "mult_st": ("st", lambda s, t: s * t),
    "mult_add_st": ("sto", lambda s, t, o: o + s * t),
    "add_tt": ("tt", np.add),
    "subtract_tt": ("tt", np.subtract),
    "mult_tt": ("tt", np.multiply),
    "mult_add_tt": ("tto", lambda a, b, o: o + a * b),
    "divide_tt": ("tp", np.divide),
    "modulo_tt": ("tp", np.mod),
    "rel": ("t", lambda x: np.maximum(x, 0)),
    "sigmoid": ("t", sigmoid),
    "tanh": ("t", np.tanh),
    "el": ("t", elu),
    "rel_deriv": ("ntt", lambda x, y, dy: dy * (y > 0)),
    "sigmoid_deriv": ("ntt", lambda x, y, dy: dy * y * (1 - y)),
    "tanh_deriv": ("ntt", lambda x, y, dy: dy * (1 - y * y)),
    "el_deriv": ("ntt", lambda x, y, dy: dy * np.where(y > 0, 1, y + 1)),
    "copy_to": ("t", lambda t: t),
}
VECTOR = {
    "add_mv": ("t", np.add),
    "subtract_mv": ("t", np.subtract),
    "mult_mv": ("t", np.multiply),
    "mult_add_mv": ("to", lambda m, v, o: o + m * v),
    "divide_mv": ("p", np.divide),
}


@pytest.fixture
def handler(transformer):
    return Handler("float32", seed=1, transformer=transformer)


def shapes(count, most, seed=0):
    draw = np.random.RandomState(seed)
    return [tuple(draw.randint(1, most, draw.randint(1, 5))) for _ in range(count)]


USUAL = [(5,), (3, 4), (2, 3, 4), (1, 1), (2, 1, 3, 2)]


class Case:
    """Arrays of a handler, drawn from a seed."""

    def __init__(self, handler, seed=0):
        self.handler, self.draw = handler, np.random.RandomState(seed)

    def array(self, *shape, low=-2.0, high=2.0):
        return self.handler.create_from_numpy(self.draw.uniform(low, high, shape))

    def out(self, *shape):
        return self.array(*shape)

    def agrees(self, found, wanted):
        np.testing.assert_allclose(self.handler.get_numpy_copy(found), wanted, rtol=3e-5, atol=3e-6)


def check_elementwise(handler, name, shape, seed=0):
    case = Case(handler, seed)
    kinds, function = ELEMENTWISE[name]
    out = case.out(*shape)
    before, args, values = out.copy(), [], []
    for kind in kinds:
        if kind == "o":
            values.append(before)
        elif kind == "s":
            values.append(float(case.draw.uniform(-1, 1)))
            args.append(values[-1])
        elif kind == "n":
            values.append(None)
            args.append(None)
        else:
            args.append(case.array(*shape, low=0.5) if kind == "p" else case.array(*shape))
            values.append(args[-1].copy())
    if name == "clip_t":
        args[1:] = sorted(args[1:])
    getattr(handler, name)(*args, out)
    case.agrees(out, function(*values))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(handler, name):
    for shape in USUAL:
        check_elementwise(handler, name, shape)


@pytest.mark.slow
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_of_random_shapes(handler, name):
    for seed, shape in enumerate(shapes(50, 9)):
        check_elementwise(handler, name, shape, seed)


def check_matrices(handler, m, n, k, seed=0):
    case = Case(handler, seed)
    for name, (kinds, function) in VECTOR.items():
        for shape in ((1, n), (m, 1)):
            a, v, out = case.array(m, n), case.array(*shape, low=0.5), case.out(m, n)
            before = [out.copy()] if "o" in kinds else []
            getattr(handler, name)(a, v, out)
            case.agrees(out, function(a, v, *before))
    for transa in (False, True):
        for transb in (False, True):
            a = case.array(*((k, m) if transa else (m, k)))
            b = case.array(*((n, k) if transb else (k, n)))
            product = (a.T if transa else a) @ (b.T if transb else b)
            out = case.out(m, n)
            before = out.copy()
            handler.dot_add_mm(a, b, out, transa, transb)
            case.agrees(out, before + product)
            handler.dot_mm(a, b, out, transa=transa, transb=transb)
            case.agrees(out, product)
    a, out = case.array(m, n), case.out(m, n)
    handler.softmax_m(a, out)
    case.agrees(out, softmax(a))
    index = handler.create_from_numpy(case.draw.randint(0, n, (m, 1)))
    handler.binarize_v(index, out)
    case.agrees(out, np.arange(n) == index)
    column = case.out(m, 1)
    handler.index_m_by_v(a, index, column)
    case.agrees(column, np.take_along_axis(a, index.astype(int), 1))


def test_matrices(handler):
    for m, n, k in ((3, 4, 5), (1, 3, 2), (4, 2, 1)):
        check_matrices(handler, m, n, k)


@pytest.mark.slow
def test_matrices_of_random_shapes(handler):
    for seed in range(50):
        check_matrices(handler, *np.random.RandomState(seed).randint(1, 12, 3), seed)


def check_arrays(handler, shape, seed=0):
    case = Case(handler, seed)
    a, cond = case.array(*shape), handler.create_from_numpy(case.draw.randint(0, 2, shape))
    out, before = case.out(*shape), None
    before = out.copy()
    handler.add_into_if(a, out, cond)
    case.agrees(out, before + a * cond)
    handler.copy_to_if(a, out, cond)
    case.agrees(out, np.where(cond, a, before))
    handler.fill_if(out, 7, cond)
    case.agrees(out, np.where(cond, 7, before))
    handler.fill(out, 3)
    case.agrees(out, np.full(shape, 3))
    for axis in range(len(shape)):
        total = case.out(*shape[:axis], 1, *shape[axis + 1 :])
        handler.sum_t(a, axis, total)
        case.agrees(total, a.sum(axis, keepdims=True))
        handler.broadcast_t(total, axis, out)
        case.agrees(out, np.broadcast_to(total, shape))
    whole = case.out()
    handler.sum_t(a, None, whole)
    case.agrees(whole, a.sum())
    b = case.array(*shape[:-1], shape[-1] + 1)
    both = case.out(*shape[:-1], 2 * shape[-1] + 1)
    handler.merge_tt(a, b, both)
    case.agrees(both, np.concatenate([a, b], -1))
    first, second = a.copy(), b.copy()
    handler.split_add_tt(both, first, second)
    case.agrees(first, 2 * a)
    case.agrees(second, 2 * b)
    assert handler.is_fully_finite(a)
    a[...] = np.nan
    assert not handler.is_fully_finite(a)


def test_arrays(handler):
    for shape in USUAL:
        check_arrays(handler, shape)


@pytest.mark.slow
def test_arrays_of_random_shapes(handler):
    for seed, shape in enumerate(shapes(50, 7)):
        check_arrays(handler, shape, seed)


def windows(x, size, padding, stride, fill=0.0):
    """The windows of images, as (N, rows, columns, height, width, channels)."""
    pad = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    x = np.pad(x, pad, constant_values=fill)
    found = np.lib.stride_tricks.sliding_window_view(x, size, (1, 2))
    return np.moveaxis(found[:, :: stride[0], :: stride[1]], 3, -1)


IMAGES = [
    ((2, 5, 6, 3), (2, 3), 4, 0, (1, 1)),
    ((1, 6, 5, 1), (3, 3), 2, 1, (2, 1)),
    ((3, 4, 4, 2), (2, 2), 1, 0, (2, 2)),
]


def check_images(handler, shape, size, filters, padding, stride, seed=0):
    case = Case(handler, seed)
    x = case.array(*shape)
    w, bias = case.array(filters, *size, shape[3]), case.array(filters)
    at = windows(x, size, padding, stride)
    rows, columns = at.shape[1:3]
    y, dy = case.out(shape[0], rows, columns, filters), case.array(shape[0], rows, columns, filters)
    handler.conv2d_forward_batch(x, w, bias, y, padding, stride)
    case.agrees(y, np.einsum("nxyrsc,krsc->nxyk", at, w) + bias)
    dx, dw, db = case.array(*shape), case.array(*w.shape), case.array(filters)
    before = dx.copy(), dw.copy(), db.copy()
    handler.conv2d_backward_batch(x, w, padding, stride, dx, dy, dw, db)
    case.agrees(dw, before[1] + np.einsum("nxyrsc,nxyk->krsc", at, dy))
    case.agrees(db, before[2] + dy.sum((0, 1, 2)))
    # The derivative of a linear function, from its values.
    assert ((dx - before[0]) * x).sum() == pytest.approx(
        ((y - bias) * dy).sum(), rel=1e-3, abs=1e-3
    )
    for kind, reduce in (("avg", np.mean), ("max", np.max)):
        at = windows(x, size, padding, stride, -np.inf if kind == "max" else 0.0)
        y, dy = case.out(*at.shape[:3], shape[3]), case.array(*at.shape[:3], shape[3])
        getattr(handler, f"{kind}pool2d_forward_batch")(x, size, y, padding, stride)
        case.agrees(y, reduce(at, axis=(3, 4)))
        dx = case.array(*shape)
        before = dx.copy()
        extra = (None,) if kind == "max" else ()
        getattr(handler, f"{kind}pool2d_backward_batch")(
            x, size, y, padding, stride, *extra, dx, dy
        )
        found = ((dx - before) * x).sum()
        assert found == pytest.approx((y * dy).sum(), rel=1e-3, abs=1e-3)


def test_images(handler):
    check_images(handler, *IMAGES[1])


@pytest.mark.slow
@pytest.mark.parametrize("case", IMAGES, ids=str)
def test_further_images(handler, case):
    check_images(handler, *case)


@pytest.mark.slow
def test_images_of_random_shapes(handler):
    draw = np.random.RandomState(0)
    windows = [((1, 2), 0, (1, 1)), ((3, 2), 1, (2, 1)), ((2, 3), 1, (3, 2))]  # few to compile
    for seed in range(50):
        n, h, w, c, k = map(int, draw.randint(1, 6, 5))
        size, padding, stride = windows[seed % len(windows)]
        shape = (n, h + size[0] - 1, w + size[1] - 1, c)
        check_images(handler, shape, size, k, padding, stride, seed)


def test_random_numbers():
    handler = NumpyHandler(seed=3)
    out = handler.zeros((200, 200))
    handler.fill_gaussian(2, 0.5, out)
    assert out.mean() == pytest.approx(2, abs=0.02) and out.std() == pytest.approx(0.5, abs=0.02)
    handler.generate_probability_mask(out, 0.3)
    assert set(np.unique(out)) == {0, 1} and out.mean() == pytest.approx(0.3, abs=0.02)


def test_arguments_by_name():
    handler = NumpyHandler()
    a, out = handler.ones((2, 3)), handler.zeros((2, 3))
    handler.mult_add_st(2, t=a, out=out)
    handler.clip_t(out, a_min=0, a_max=1.5, out=out)
    np.testing.assert_array_equal(out, np.full((2, 3), 1.5))
    handler.dot_mm(a, b=a, out=handler.zeros((2, 2)), transb=True)
    assert handler.mult_add_st.__doc__ == "Compute out + s * t into ``out``."


def test_tables_of_activation_functions():
    handler = NumpyHandler("float64")
    x = np.linspace(-2, 2, 9).reshape(3, 3)
    for name in ("linear", "rel", "sigmoid", "tanh", "el"):
        y, dx, dy = np.empty_like(x), np.empty_like(x), np.full_like(x, 2.0)
        handler.act_func[name](x, y)
        handler.act_func_deriv[name](x, y, dy, dx)
        z = x + 1e-6
        handler.act_func[name](z, up := np.empty_like(x))
        inside = x != 0
        np.testing.assert_allclose(dx[inside], 2 * ((up - y) / 1e-6)[inside], atol=1e-4)
        same = x.copy()
        handler.inplace_act_func[name](same)
        np.testing.assert_array_equal(same, y)
        handler.inplace_act_func_deriv[name](y, dy)
        np.testing.assert_array_equal(dy, dx)


def test_wrong_arguments():
    handler = NumpyHandler()
    with pytest.raises(ValidationError, match=r"vector has the shape \(2, 2\).*\(1, 3\).*\(2, 1\)"):
        handler.add_mv(handler.ones((2, 3)), handler.ones((2, 2)), handler.ones((2, 3)))
    with pytest.raises(ValidationError, match=r"the shape \(3,\) and the array \(2,\)"):
        handler.set_from_numpy(handler.ones((2,)), np.ones(3))
    with pytest.raises(ValidationError, match=r"dimension 0 of the shape \(2, 3\)"):
        handler.broadcast_t(handler.ones((2, 3)), 0, handler.ones((2, 3)))
    with pytest.raises(ValidationError, match="dtype=int64; give float32 or float64"):
        NumpyHandler("int64")
    for args, keywords in (((1, 2), {}), ((1, 2, 3), {"out": 4}), ((1, 2), {"to": 3})):
        with pytest.raises(GeonError, match="add_tt takes a, b, out"):
            handler.add_tt(*args, **keywords)
    with pytest.raises(GeonError):
        handler.add_tt(handler.ones((2, 3)), handler.ones((2, 4)), handler.ones((2, 3)))


def test_the_debug_handler_computes_the_same():
    plain, debug = NumpyHandler(), DebugHandler(NumpyHandler())
    for name in ELEMENTWISE:
        check_elementwise(debug, name, (2, 3))
    check_arrays(debug, (2, 3))
    check_images(debug, *IMAGES[1])
    assert set(OPERATIONS) > {*ELEMENTWISE, *VECTOR} and len(OPERATIONS) >= 45
    assert plain.dtype == debug.dtype


def test_the_debug_handler_finds_faults():
    handler = DebugHandler(NumpyHandler())
    a = handler.ones((2, 3))
    with pytest.raises(ValidationError, match="add_tt: b is a ndarray; give an array that this"):
        handler.add_tt(a, np.ones((2, 3)), a)
    with pytest.raises(ValidationError, match="add_st: s is a str; give a number"):
        handler.add_st("2", a, a)
    with pytest.raises(
        ValidationError, match=r"log_t: out of the shape \(2, 3\) is -inf at \(0, 0\)"
    ):
        handler.log_t(handler.zeros((2, 3)), a)
    with pytest.raises(ValidationError, match="add_mv: m has the shape .*give a matrix"):
        handler.add_mv(handler.ones((3,)), a, a)
    with pytest.raises(ValidationError, match=r"mult_tt: .*missing.*it takes \(a"):
        handler.mult_tt(a)
    assert np.isnan(handler.allocate((2,))).all()
