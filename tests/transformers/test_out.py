"""``out=``: results are put into the user's arrays; and what may be fed, by any protocol."""

import array
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

import geon
from geon.errors import ArgumentError, FeedError
from geon.transformers.native.toolchain.compilers import find_toolchain
from tests.places import here

A, B = geon.Axis("A", 3), geon.Axis("B", 2)
N = geon.Axis("N", "N of out")
NATIVE = pytest.param(
    "native",
    marks=pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler"),
)


@pytest.fixture(params=["numpy", NATIVE])
def transformer(request):
    with geon.make_transformer(request.param) as made:
        yield made


@pytest.fixture(params=[0, 3], ids=["first", "later"])
def calls_before(request):
    """How many calls a computation has seen: later ones may go a shorter way."""
    return request.param


def made(transformer, calls_before, results, *placeholders, args=(), **options):
    f = transformer.computation(results, *placeholders, **options)
    for _ in range(calls_before):
        f(*args)
    return f


DATA = np.array([1, 2, 3], np.float32)


# Where results go -------------------------------------------------------------------------------


HELD = np.zeros(9, np.float32)
IN_ONE_PLACE = {
    "one place for all": (
        np.lib.stride_tricks.as_strided(HELD, (3,), (0,)),
        r"lie in one place \(shape \(3,\), strides \(0,\)\)",
    ),
    "places that overlap": (
        np.lib.stride_tricks.as_strided(HELD, (3,), (2,)),
        "lie in one place",
    ),
}


@pytest.mark.parametrize("what", IN_ONE_PLACE)
def test_each_element_of_an_array_has_a_place_of_its_own(transformer, calls_before, what):
    out, message = IN_ONE_PLACE[what]
    x = geon.placeholder([A], name="x")
    f = made(transformer, calls_before, [geon.cumsum(x, A), x * 2], x, args=[DATA])
    before = HELD.copy()
    with pytest.raises(FeedError, match=message):
        f(DATA, out=(out, None))
    np.testing.assert_array_equal(HELD, before)


def test_arrays_between_each_other(transformer, calls_before):
    """Columns of one array, turned ones, and ones without elements have places of their own."""
    x = geon.placeholder([A], name="x")
    f = made(transformer, calls_before, [geon.cumsum(x, A), x * 2], x, args=[DATA])
    held = np.zeros((3, 2), np.float32)
    f(DATA, out=(held[:, 0], held[::-1, 1]))
    np.testing.assert_array_equal(held, [[1, 6], [3, 4], [6, 2]])
    n = geon.placeholder([N])
    g = made(transformer, calls_before, [n + 1, n * 2], n, args=[DATA])
    g(np.zeros(0), out=(HELD[:0], np.lib.stride_tricks.as_strided(HELD, (0,), (0,))))


def test_one_result(transformer, calls_before):
    x = geon.placeholder([A], name="x")
    f = made(transformer, calls_before, x * 2, x, args=[DATA])
    out = np.full(3, 7, np.float32)
    assert f(DATA, out=out) is out
    np.testing.assert_array_equal(out, [2, 4, 6])
    assert f(x=DATA + 1, out=out) is out
    np.testing.assert_array_equal(out, [4, 6, 8])
    np.testing.assert_array_equal(f(DATA, out=None), [2, 4, 6])
    np.testing.assert_array_equal(out, [4, 6, 8])
    assert f([0, 0, 1], out=out) is out
    np.testing.assert_array_equal(out, [0, 0, 2])


@pytest.mark.parametrize("kind", [list, tuple])
def test_several_results_and_effects(transformer, calls_before, kind):
    x, v = geon.placeholder([A]), geon.Variable([A], initial_value=0)
    results = [x + 1, geon.assign(v, v + x), geon.sum(x), x * 2]
    f = made(transformer, calls_before, results, x, args=[DATA], keep=[x - 1])
    first, last = np.zeros(3, np.float32), np.zeros(3, np.float32)
    given = f(DATA, out=kind([first, None, None, last]))
    assert given[0] is first and given[1] is None and given[3] is last
    np.testing.assert_array_equal(first, [2, 3, 4])
    np.testing.assert_array_equal(last, [2, 4, 6])
    assert given[2] == 6
    np.testing.assert_array_equal(f.value(f.keep[0]), [0, 1, 2])
    np.testing.assert_array_equal(transformer.get(v), (calls_before + 1) * DATA)


def test_one_result_in_a_list_and_an_effect_alone(transformer, calls_before):
    x, v = geon.placeholder([A]), geon.Variable([A], initial_value=0)
    f = made(transformer, calls_before, [x + 1], x, args=[DATA])
    out = np.zeros(3, np.float32)
    assert f(DATA, out=[out])[0] is out and out[0] == 2
    act = made(transformer, calls_before, geon.assign(v, x), x, args=[DATA])
    assert act(DATA, out=None) is None
    with pytest.raises(ArgumentError, match="effect.*give None"):
        act(DATA, out=out)
    both = made(transformer, calls_before, [geon.assign(v, x), x + 1], x, args=[DATA])
    with pytest.raises(ArgumentError, match="effect.*give None"):
        both(DATA, out=[out, out])


ODD = {
    "strides": lambda: np.zeros((3, 2), np.float32)[:, 0],
    "backwards": lambda: np.zeros(3, np.float32)[::-1],
    "unaligned": lambda: np.zeros(13, np.uint8)[1:].view(np.float32),
    "subclass": lambda: np.zeros(3, np.float32).view(type("Sub", (np.ndarray,), {})),
}


@pytest.mark.parametrize("name", ODD)
def test_arrays_that_lie_otherwise(transformer, calls_before, name):
    x = geon.placeholder([A])
    f = made(transformer, calls_before, x * 2, x, args=[DATA])
    out = ODD[name]()
    assert f(DATA, out=out) is out
    np.testing.assert_array_equal(out, [2, 4, 6])


def test_fortran_order(transformer, calls_before):
    x = geon.placeholder([A, B])
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    f = made(transformer, calls_before, x * 2, x, args=[data])
    out = np.zeros((3, 2), np.float32, order="F")
    assert f(data, out=out) is out
    np.testing.assert_array_equal(out, data * 2)


def test_an_array_that_is_fed(transformer, calls_before):
    """The result is that of the values before the call, however the arrays overlap."""
    x, y = geon.placeholder([N]), geon.placeholder([N])
    data = np.arange(100, dtype=np.float32)
    f = made(transformer, calls_before, geon.cumsum(x, N) + y, x, y, args=[data, data])
    expected = np.cumsum(data) + data
    own = data.copy()
    assert f(own, own, out=own) is own
    np.testing.assert_array_equal(own, expected)
    memory = np.zeros(150, np.float32)
    memory[:100] = data
    f(memory[:100], data, out=memory[7:107])
    np.testing.assert_array_equal(memory[7:107], expected)
    memory[50:] = data
    f(data, memory[50:], out=memory[49:149])
    np.testing.assert_array_equal(memory[49:149], expected)


def test_arrays_that_overlap_each_other(transformer, calls_before):
    x = geon.placeholder([A])
    f = made(transformer, calls_before, [x + 1, x * 2], x, args=[DATA])
    memory = np.zeros(5, np.float32)
    first, second = f(DATA, out=[memory[:3], memory[2:]])
    np.testing.assert_array_equal(memory, [2, 3, 2, 4, 6])  # one after another
    assert np.shares_memory(first, memory) and np.shares_memory(second, memory)


def test_an_open_axis_and_no_elements(transformer, calls_before):
    x = geon.placeholder([N])
    f = made(transformer, calls_before, x + 1, x, args=[DATA])
    for n in (3, 0, 5, 0, 3):
        out = np.zeros(n, np.float32)
        assert f(np.arange(n, dtype=np.float32), out=out) is out
        np.testing.assert_array_equal(out, np.arange(n) + 1)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "uint64", "bool"])
def test_dtypes(transformer, calls_before, dtype):
    x = geon.placeholder([A], dtype=dtype)
    held = np.array([1, 0, 1]).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    f = made(transformer, calls_before, geon.where(x == x, x, x), x, args=[held])
    out = np.zeros_like(held)
    assert f(held, out=out) is out
    np.testing.assert_array_equal(out, held)


def test_a_scalar(transformer, calls_before):
    x = geon.placeholder()
    f = made(transformer, calls_before, x + 1, x, args=[2.0])
    out = np.zeros((), np.float32)
    assert f(2.0, out=out) is out and out == 3


def test_results_that_are_variables_or_inputs(transformer, calls_before):
    v, x = geon.Variable([A], initial_value=[1, 2, 3]), geon.placeholder([A])
    f = made(transformer, calls_before, [v, x, v], x, args=[DATA])
    outs = [np.zeros(3, np.float32) for _ in range(3)]
    given = f(DATA, out=outs)
    assert all(a is b for a, b in zip(given, outs, strict=True))
    outs[0][:] = 9
    np.testing.assert_array_equal(transformer.get(v), [1, 2, 3])
    np.testing.assert_array_equal(outs[1:], [DATA, DATA])


def test_overridden_values(transformer):
    x = geon.placeholder([A])
    y = x + 1
    f = transformer.computation(y * 2, x, keep=[y])
    f.override(y, [0, 0, 5])
    out = np.zeros(3, np.float32)
    for _ in range(4):
        assert f(DATA, out=out) is out
        np.testing.assert_array_equal(out, [0, 0, 10])


def test_no_memory_is_taken_for_the_result():
    if find_toolchain() is None:
        pytest.skip("there is no C compiler: NumPy's results are copied into the arrays")
    with geon.make_transformer("native") as transformer:
        x, v = geon.placeholder([N]), geon.Variable(initial_value=1)
        data = np.zeros(1_000_000, np.float32)
        for result in (x + 1, x + v):
            f = transformer.computation([result, geon.sum(x)], x)
            out = np.ones_like(data)
            f(data)
            tracemalloc.start()
            for _ in range(4):
                f(data, out=[out, None])
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < data.nbytes // 10 and out[0] == 1


# What does not fit ------------------------------------------------------------------------------

WRONG = {
    "shape": (np.zeros(4, np.float32), FeedError, r"\(4,\) for .*y.*\(3,\)"),
    "dimensions": (np.zeros((3, 1), np.float32), FeedError, r"\(3, 1\) for .*y.*\(3,\)"),
    "dtype": (np.zeros(3), FeedError, "float64 for .*y.*float32"),
    "order of bytes": (np.zeros(3, ">f4"), FeedError, ">f4 for .*y.*float32"),
    "read-only": (np.broadcast_to(np.float32(0), (3,)), FeedError, "read-only array for .*y"),
    "list": ([0.0, 0.0, 0.0], ArgumentError, "list for .*y.*give a NumPy array"),
    "number": (1.0, ArgumentError, "float for .*y.*give a NumPy array"),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_that_does_not_fit(transformer, calls_before, name):
    out, error, text = WRONG[name]
    x, v = geon.placeholder([A], name="x"), geon.Variable(initial_value=0)
    y, place = geon.add(x, 1, name="y"), here()
    f = made(transformer, calls_before, [y, geon.assign(v, v + 1)], x, args=[DATA])
    before = np.array(out)
    with pytest.raises(error, match=text) as caught:
        f(DATA, out=[out, None])
    assert place in str(caught.value)
    np.testing.assert_array_equal(out, before)
    assert transformer.get(v) == calls_before  # nothing was computed
    assert f(DATA)[0][0] == 2


@pytest.mark.parametrize("out", [[], [None], [None] * 3, np.zeros(3, np.float32), 1], ids=str)
def test_wrong_counts(transformer, calls_before, out):
    x = geon.placeholder([A])
    f = made(transformer, calls_before, [x + 1, x * 2], x, args=[DATA])
    with pytest.raises(ArgumentError, match="for 2 results.*give"):
        f(DATA, out=out)


def test_a_length_that_differs(transformer, calls_before):
    x = geon.placeholder([N])
    f = made(transformer, calls_before, x + 1, x, args=[DATA])
    with pytest.raises(FeedError, match=r"\(3,\) for .*\(4,\) in this call"):
        f(np.zeros(4, np.float32), out=np.zeros(3, np.float32))


def test_a_call_that_raises_before_it_computes_leaves_the_arrays(transformer, calls_before):
    x = geon.placeholder([A], name="x")
    f = made(transformer, calls_before, x + 1, x, args=[DATA])
    out = np.full(3, 7, np.float32)
    for attempt in (
        lambda: f("text", out=out),
        lambda: f(np.zeros(4, np.float32), out=out),
        lambda: f(DATA, DATA, out=out),
        lambda: f(y=DATA, out=out),
        lambda: f(out=out),
    ):
        with pytest.raises((ArgumentError, FeedError)):
            attempt()
    transformer.close()
    with pytest.raises(geon.ClosedError):
        f(DATA, out=out)
    np.testing.assert_array_equal(out, [7, 7, 7])


def test_a_placeholder_named_out_keeps_its_keyword(transformer, calls_before):
    x = geon.placeholder([A], name="out")
    f = made(transformer, calls_before, x + 1, x, args=[DATA])
    np.testing.assert_array_equal(f(out=DATA), DATA + 1)
    with pytest.raises(ArgumentError, match="'out' was given twice"):
        f(DATA, out=DATA)


# What may be fed --------------------------------------------------------------------------------


class ByDLPack:
    """Shows an array by ``__dlpack__`` alone."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


class ByInterface:
    """Shows an array by NumPy's array interface alone."""

    def __init__(self, data):
        self.data = data

    @property
    def __array_interface__(self):
        return self.data.__array_interface__


class ByMethod:
    """Shows an array by ``__array__`` alone."""

    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        return self.data


PROTOCOLS = {
    "itself": lambda data: data,
    "dlpack": ByDLPack,
    "interface": ByInterface,
    "method": ByMethod,
    "memoryview": memoryview,
    "array.array": lambda data: array.array("f", data.tobytes()),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_shows_an_array_is_fed(transformer, calls_before, name):
    x = geon.placeholder([N], name="x")
    f = made(transformer, calls_before, x + 1, x, args=[DATA])
    shown = PROTOCOLS[name](DATA)
    np.testing.assert_array_equal(f(shown), DATA + 1)
    y = geon.placeholder([N], dtype="float64")
    np.testing.assert_array_equal(transformer.computation(y + 1, y)(shown), DATA + 1)


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name != "array.array"])
def test_what_shows_an_array_is_read_in_place(transformer, name):
    x = geon.placeholder([N])
    f = transformer.computation(geon.max(x), x)
    data = np.zeros(1_000_000, np.float32)
    data[7] = 5
    shown = PROTOCOLS[name](data)
    assert f(data) == 5
    (fed,) = f._calls[()].fed([shown])
    assert fed.__array_interface__["data"][0] == data.__array_interface__["data"][0]
    tracemalloc.start()
    for _ in range(4):
        assert f(shown) == 5
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < data.nbytes // 10


def test_what_shows_nothing_is_refused(transformer):
    class Broken:
        def __dlpack__(self, **options):
            raise BufferError("it is on another device")

        def __dlpack_device__(self):
            return (2, 0)

    x = geon.placeholder([A], name="x")
    f = transformer.computation(x + 1, x)
    with pytest.raises(FeedError, match="x.*was given Broken, which is no array"):
        f(Broken())
    with pytest.raises(FeedError, match="complex"):
        f(ByDLPack(np.zeros(3, np.complex64)))


def test_tensors_of_torch(transformer):
    torch = pytest.importorskip("torch")
    x = geon.placeholder([A])
    f = transformer.computation(x + 1, x)
    for _ in range(4):
        np.testing.assert_array_equal(f(torch.tensor([1.0, 2.0, 3.0])), [2, 3, 4])
    with pytest.raises(FeedError, match="requires grad"):
        f(torch.tensor([1.0, 2.0, 3.0], requires_grad=True))
    tensor = torch.zeros(3)
    f(DATA, out=np.asarray(tensor))
    assert tensor.tolist() == [2, 3, 4]


def test_a_result_over_another_that_is_still_read(transformer, calls_before):
    """Arrays that share memory get the results one after the other, whole."""
    x = geon.placeholder([A], name="x")
    y = geon.sort(x, A)
    f = made(transformer, calls_before, [y, y * 2], x, args=[DATA])
    block = np.zeros(4, np.float32)
    f(DATA, out=[block[:3], block[1:]])
    expected = np.sort(DATA)
    np.testing.assert_array_equal(block, [expected[0], *(2 * expected)])
    block[:] = 0
    f(DATA, out=[block[1:], block[:3]])
    np.testing.assert_array_equal(block, [*(2 * expected), expected[2]])
