"""Products that a library computes: which those are, and that they are what kernels compute."""

import importlib.util
import sys

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.launches.launch_ir import Launch, LaunchVariants
from geon.transformers.pycuda.launches.library_requests import Ask
from geon.transformers.pycuda.products import library_dispatch, nvmath_bindings
from geon.transformers.pycuda.runtime import gpu, host
from geon.transformers.pycuda.runtime.pinned_buffers import laid_out
from geon.transformers.pycuda.transformer import PyCudaTransformer

from . import fake_cuda
from .devices import LateDevice, transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
M, K, N, B, G = (geon.Axis(name) for name in "MKNBG")
OTHERS = dict.fromkeys(("convolutions", "matrices", "transforms"), "generated")
LIMIT = 600  # multiplications from which on the library is asked here


@pytest.fixture(autouse=True)
def small_ones_are_large(monkeypatch):
    monkeypatch.setattr(library_dispatch, "MIN_LIBRARY_MULADDS", LIMIT)
    monkeypatch.setattr(library_dispatch, "MAX_FLOAT32_TERMS", 40)


@pytest.fixture
def transformer():
    with transformer_on(LateDevice(), products="cublaslt") as made:
        yield made


@pytest.fixture(scope="module")
def numpy():
    with geon.NumPyTransformer() as made:
        yield made


def matrices(*axes, dtype="float32"):
    return [geon.placeholder(each, dtype, name=f"x{k}") for k, each in enumerate(axes)]


def steps_of(f):
    """All steps of a program, those of choices too."""
    found, waiting = [], list(f.stages().compiled.module.steps)
    while waiting:
        step = waiting.pop(0)
        if isinstance(step, LaunchVariants):
            waiting = [*step.steps, *step.others, *waiting]
        found.append(step)
    return found


def asked(f):
    return [step for step in steps_of(f) if isinstance(step, Ask)]


x, y, bias, other = matrices([M, K], [K, N], [N], [M, N])
turned_x, turned_y = matrices([K, M], [N, K])
batch_x, batch_y = matrices([B, M, K], [B, K, N])
grouped = geon.placeholder([B, G, K], name="grouped")
half_x, half_y = matrices([M, K], [K, N], dtype="float16")
(half_bias,) = matrices([N], dtype="float16")
wide_x, wide_y = matrices([M, K], [K, N], dtype="bfloat16")
double_x, double_y = matrices([M, K], [K, N], dtype="float64")
PLAIN = {
    "plain": (geon.dot(x, y), [x, y]),
    "left turned": (geon.dot(turned_x, y), [turned_x, y]),
    "right turned": (geon.dot(x, turned_y), [x, turned_y]),
    "both turned": (geon.dot(turned_x, turned_y), [turned_x, turned_y]),
    "batched": (geon.dot(batch_x, batch_y, over=K), [batch_x, batch_y]),
    "rows of two axes": (geon.dot(grouped, y), [grouped, y]),
    "bias": (geon.dot(x, y) + bias, [x, y, bias]),
    "float64": (geon.dot(double_x, double_y), [double_x, double_y]),
    "float16": (geon.dot(half_x, half_y), [half_x, half_y]),
    "bfloat16": (geon.dot(wide_x, wide_y), [wide_x, wide_y]),
}
FOLLOWED = {
    "relu": (geon.relu(geon.dot(x, y) + bias), [x, y, bias]),
    "gelu": (geon.gelu(geon.dot(x, y) + bias), [x, y, bias]),
    "another matrix": (geon.dot(x, y) * 0.5 + other, [x, y, other]),
    "relu of halves": (
        geon.relu(geon.dot(half_x, half_y) + half_bias),
        [half_x, half_y, half_bias],
    ),
    "rows": (geon.dot(batch_x, batch_y, over=K) * 2, [batch_x, batch_y]),
}
SIZES = [
    (3, 5, 7),
    (1, 33, 34),
    (8, 9, 9),
    (9, 8, 8),
    (40, 40, 3),
    (7, 41, 9),
    (0, 5, 3),
    (70, 3, 9),
]


def data(leaves, m, k, n):
    random = np.random.default_rng(m * 100 + n)
    sizes = {"M": m, "K": k, "N": n, "B": 3, "G": m}
    return [
        random.normal(size=[sizes[axis.name] for axis in leaf.axes]).astype(leaf.dtype)
        for leaf in leaves
    ]


@pytest.mark.parametrize("name", [*PLAIN, *FOLLOWED])
def test_products_are_those_of_numpy(transformer, numpy, name):
    result, leaves = {**PLAIN, **FOLLOWED}[name]
    f, g = (each.computation(result, *leaves) for each in (transformer, numpy))
    assert len(asked(f)) == 1
    digits = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
    for m, k, n in SIZES:
        given = data(leaves, m, k, n)
        for _ in range(3):
            found, expected = f(*given), g(*given)
            assert found.dtype == expected.dtype
            near = digits[str(found.dtype)]
            np.testing.assert_allclose(
                found.astype(float), expected.astype(float), rtol=near, atol=near
            )


@pytest.mark.parametrize("name", [*PLAIN, *FOLLOWED])
def test_peak_has_what_the_library_works_in(name):
    device = Counting()
    with transformer_on(device, products="cublaslt") as transformer:
        result, leaves = {**PLAIN, **FOLLOWED}[name]
        f = transformer.computation(result, *leaves)
        given = data(leaves, 9, 9, 9)
        f(*given)
        names = {axis.name for leaf in leaves for axis in leaf.axes}
        sizes = {axis: 3 if axis is B else 9 for axis in (M, K, N, B, G) if axis.name in names}
        peak = f.peak_bytes(sizes)
        _, inputs = laid_out([array.nbytes for array in given])
        assert device.most == peak + inputs
        assert peak > library_dispatch.WORKSPACE_BYTES
        assert f.peak_bytes(dict.fromkeys(sizes, 1)) < library_dispatch.WORKSPACE_BYTES


@pytest.mark.parametrize("name", [*PLAIN, *FOLLOWED])
def test_peak_with_open_lengths_is_an_upper_bound(transformer, name):
    result, leaves = {**PLAIN, **FOLLOWED}[name]
    f = transformer.computation(result, *leaves)
    bound = f.peak_bytes()
    for size in (1, 5, 9, 40, 41, 300):
        names = {axis.name for leaf in leaves for axis in leaf.axes}
        sizes = {axis: size for axis in (M, K, N, B, G) if axis.name in names}
        most = bound.evaluate({axis.name: size for axis in sizes})
        assert f.peak_bytes(sizes) <= most + 8 * 256


class Counting(LateDevice):
    """Notes the most bytes that were taken at a time, and asks nobody to multiply."""

    def __init__(self):
        super().__init__()
        self.taken, self.most, self.multiplied = {}, 0, []

    def allocate(self, size):
        address = super().allocate(size)
        self.taken[address] = size
        self.most = max(self.most, sum(self.taken.values()))
        return address

    def free(self, address, readers=()):
        super().free(address, readers)
        del self.taken[address]

    def call(self, call, addresses, works):
        self.multiplied.append(call)
        super().call(call, addresses, works)


@pytest.mark.parametrize(
    ("k", "asked"), [(5, False), (6, True), (7, True), (40, True), (41, False)]
)
def test_lengths_choose(k, asked):
    """From so many multiplications on, and up to so many float32 terms."""
    device = Counting()
    with transformer_on(device, products="cublaslt") as transformer:
        f = transformer.computation(geon.dot(x, y), x, y)
        f(*data([x, y], 10, k, 10))
        assert bool(device.multiplied) == asked


def test_known_lengths_choose_when_it_is_compiled(transformer):
    f = transformer.computation(geon.dot(x, y), x, y, specialize={M: 2, K: 3, N: 4})
    assert not asked(f)
    f = transformer.computation(geon.dot(x, y), x, y, specialize={M: 20, K: 30, N: 40})
    assert asked(f)
    given = data([x, y], 20, 30, 40)
    np.testing.assert_allclose(f(*given), given[0] @ given[1], rtol=1e-5, atol=1e-5)


def test_steps_of_training_are_products_too(transformer, numpy):
    """The new value of a matrix is made of sums that are put apart: it is read and written."""
    results = []
    for each in (transformer, numpy):
        w = geon.Variable([K, N], initial_value=0.5, name="w")
        loss = geon.mean(geon.square(geon.tanh(geon.dot(x, w)) - other))
        step = geon.assign(w, w - 0.1 * geon.deriv(loss, w))
        f = each.computation([loss, step], x, other, lengths={K: 12, N: 9})
        losses = [f(*data([x, other], m, 12, 9))[0] for m in (9, 9, 9, 2, 30, 9)]
        results.append((losses, each.get(w)))
        if each is transformer:
            assert [step.work.apart for step in asked(f)] == [False, True]
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_result_in_the_place_of_what_is_read(transformer, numpy):
    """The library would write over what is added afterwards."""
    totals = geon.cumsum(other, N)
    result = geon.sort(geon.dot(x, y) * 2 + totals, N)
    f, g = (each.computation(result, x, y, other) for each in (transformer, numpy))
    assert not asked(f)
    for m in (9, 30, 9):
        given = data([x, y, other], m, 9, 9)
        np.testing.assert_allclose(f(*given), g(*given), rtol=1e-5, atol=1e-5)


NOT = {
    "computed factors": (geon.dot(x * 2, y), [x, y]),
    "a vector": (geon.dot(x, geon.placeholder([K], name="v")), None),
    "steps": (geon.dot(x[:, ::2], y[::2]), [x, y]),
    "integers": (geon.dot(*matrices([M, K], [K, N], dtype="int32")), None),
    "a square of itself": (geon.dot(x, x), [x]),
}


@pytest.mark.parametrize("name", NOT)
def test_what_is_none_is_generated(transformer, name):
    result, leaves = NOT[name]
    if leaves is None:
        leaves = sorted(geon.op_graph.op_graph.storage_leaves(result), key=str)
    f = transformer.computation(result, *leaves)
    assert not asked(f)
    assert any(isinstance(step, Launch) for step in steps_of(f))


def test_programs_that_can_fail_have_none(transformer):
    at = geon.placeholder([geon.Axis("T")], "int64", name="at")
    f = transformer.computation(geon.dot(geon.gather(x, at, M), y), x, y, at)
    assert not asked(f)


def test_inside_of_loops_they_are_generated(transformer, numpy):
    """What stands outside is the library's, in the same program."""
    t = geon.Axis("T", 4)

    def body(c, _):
        return geon.tanh(geon.rename(geon.dot(c, y), {N: K})), None

    results, leaves = [geon.scan(body, x, geon.iota(t), over=t)[0], geon.dot(x, y)], [x, y]
    f, g = (each.computation(results, *leaves) for each in (transformer, numpy))
    given = data(leaves, 9, 9, 9)
    for found, expected in zip(f(*given), g(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert f.source.count("by a library") == 1


def test_the_text_says_so(transformer):
    f = transformer.computation(geon.dot(x, y) + bias, x, y, bias)
    assert "result 0 = x0(M, K) times x1(K, N) + x2(N), by a library" in f.source


def test_the_option_is_one_of_two():
    with pytest.raises(geon.ArgumentError, match="products='cublas' is none of generated, cubl"):
        geon.make_transformer("cuda-on-host", products="cublas")
    with geon.make_transformer("cuda-on-host") as made:
        assert not asked(made.computation(geon.dot(x, y), x, y))


# cuBLASLt -----------------------------------------------------------------------------------------


@pytest.fixture
def driver(monkeypatch):
    return fake_cuda.Driver().install(monkeypatch)


@pytest.mark.parametrize("name", [*PLAIN, *FOLLOWED])
def test_cublaslt_is_asked_for_the_same(driver, numpy, name):
    result, leaves = {**PLAIN, **FOLLOWED}[name]
    with transformer_on(gpu.GpuDevice(0), products="cublaslt") as transformer:
        f, g = (each.computation(result, *leaves) for each in (transformer, numpy))
        for m, k, n in SIZES:
            given = data(leaves, m, k, n)
            for _ in range(3):
                np.testing.assert_allclose(
                    f(*given).astype(float), g(*given).astype(float), rtol=2e-2, atol=2e-2
                )
    assert driver.multiplied > 0


def test_descriptions_are_kept_and_bounded(driver, monkeypatch):
    monkeypatch.setattr(nvmath_bindings, "MAX_CACHED_PLANS", 2)
    with transformer_on(gpu.GpuDevice(0), products="cublaslt") as transformer:
        f = transformer.computation(geon.dot(x, y), x, y)
        for m in (9, 10, 11, 9, 9):
            f(*data([x, y], m, 9, 9))
        assert len(transformer.device.libraries["products"].known.plans) == 2
        assert driver.descriptions == 2 * 4  # a product and three matrices


@pytest.mark.parametrize("answer", [0, "not supported"])
def test_what_the_library_has_no_algorithm_for_is_generated(driver, numpy, answer):
    g = numpy.computation(geon.dot(x, y), x, y)
    with transformer_on(gpu.GpuDevice(0), products="cublaslt") as transformer:
        f = transformer.computation(geon.dot(x, y), x, y)
        driver.fails["matmul_algo_get_heuristic"] = answer
        given = data([x, y], 9, 9, 9)
        for _ in range(3):
            np.testing.assert_allclose(f(*given), g(*given), rtol=1e-4, atol=1e-5)
        assert driver.multiplied == driver.descriptions == 0
        f(*data([x, y], 10, 9, 9))
        assert driver.multiplied > 0
        library = transformer.device.load_library("products")
        (lacking, *_) = [key for key, found in library.known.plans.items() if found is None]
        with pytest.raises(geon.DeviceError, match="no algorithm for a float32 product of 9 by 9"):
            library.call(lacking, (1, 2, 3, 0), 4, 0)


@pytest.fixture
def first(driver, monkeypatch):
    """The fake device is the first of the machine."""
    monkeypatch.setattr(gpu, "device", gpu.GpuDevice)
    monkeypatch.setattr(gpu, "missing", lambda: None)
    return driver


def test_it_is_asked_where_it_is_installed(first):
    """And can be told not to be."""
    for options, found in (({}, {"products"}), ({"products": "generated"}, set())):
        with PyCudaTransformer(0, **OTHERS, **options) as made:
            assert made.libraries == found
    with PyCudaTransformer(0, **OTHERS, tf32=True) as made:
        assert made.libraries == set()


def test_without_the_binding_or_the_library(first, monkeypatch):
    def create():
        raise RuntimeError("Failed to dlopen libcublasLt.so.13")

    monkeypatch.setattr(sys.modules["nvmath.bindings.cublasLt"], "create", create)
    with PyCudaTransformer(0, **OTHERS) as made:
        assert made.libraries == set()
    with pytest.raises(geon.DeviceError, match=r"cuBLASLt does not start \(Failed to dlopen"):
        PyCudaTransformer(0, products="cublaslt")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "nvmath" else find(name)
    )
    with PyCudaTransformer(0, **OTHERS) as made:
        assert made.libraries == set()
    with pytest.raises(geon.DeviceError, match=r"nvmath-python.*pip install 'geon\[cublaslt\]'"):
        PyCudaTransformer(0, products="cublaslt")


def test_the_library_does_not_round_to_tf32():
    with pytest.raises(geon.ArgumentError, match="multiplies float32 as it is: leave out that, or"):
        geon.make_transformer("cuda-on-host", products="cublaslt", tf32=True)
