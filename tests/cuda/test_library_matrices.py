"""Factorisations by cuSOLVER and cuBLAS, which SciPy computes on the host's memory."""

import importlib.util
import inspect
import sys

import numpy as np
import pytest

import geon
from geon import linalg
from geon.transformers.pycuda.launches.library_requests import MatrixCall
from geon.transformers.pycuda.products import cusolver
from geon.transformers.pycuda.products.nvmath_bindings import SharedWorkspace
from geon.transformers.pycuda.runtime import gpu, host, host_library
from geon.transformers.pycuda.transformer import PyCudaTransformer

from . import fake_cuda
from .devices import LateDevice, transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
B, I, J, K = (geon.Axis(name) for name in "BIJK")  # noqa: E741
RANDOM = np.random.default_rng(7)


@pytest.fixture
def transformer():
    with transformer_on(LateDevice(), matrices="cusolver") as made:
        yield made


@pytest.fixture
def driver(monkeypatch):
    return fake_cuda.Driver().install(monkeypatch)


@pytest.fixture(scope="module")
def numpy():
    with geon.NumPyTransformer() as made:
        yield made


def operands(dtype):
    return (
        geon.placeholder([B, I, J], dtype, name="a"),
        geon.placeholder([B, I, K], dtype, name="b"),
    )


def squared(found):
    """Values that do not depend on the signs of vectors."""
    return [geon.square(each) for each in found]


SQUARE = {
    "cholesky": lambda a, b: linalg.cholesky(a, [I, J]),
    "solve": lambda a, b: linalg.solve(a, b, [I, J]),
    "solve by the transpose": lambda a, b: linalg.solve(a, b.rename({I: J}), [J, I]),
    "lower triangle": lambda a, b: linalg.triangular_solve(a, b, [I, J]),
    "upper triangle": lambda a, b: linalg.triangular_solve(a, b, [I, J], lower=False),
    "unit triangle": lambda a, b: linalg.triangular_solve(a, b, [I, J], unit=True),
    "exchanged triangle": lambda a, b: linalg.triangular_solve(a, b.rename({I: J}), [J, I]),
    "inv": lambda a, b: linalg.inv(a, [I, J]),
    "slogdet": lambda a, b: list(linalg.slogdet(a, [I, J])),
    "eigvalsh": lambda a, b: linalg.eigvalsh(a, [I, J]),
    "eigh": lambda a, b: squared(linalg.eigh(a, [I, J])),
    "derivative": lambda a, b: geon.deriv(geon.sum(linalg.solve(a, b, [I, J]) ** 2), [a, b]),
}  # fmt: skip
TALL = {
    "qr": lambda a: squared(linalg.qr(a, [I, J])),
    "svd": lambda a: squared(linalg.svd(a, [I, J])),
    "wide svd": lambda a: squared(linalg.svd(a, [J, I], wide=True)),
    "pinv": lambda a: linalg.pinv(a, [I, J]),
}


def matrices(batch, n, sides, dtype):
    """Symmetric matrices with eigenvalues apart, and right-hand sides."""
    x = np.linalg.qr(RANDOM.normal(size=(batch, n, n)))[0]
    a = x * np.linspace(1, 3, n) @ x.swapaxes(1, 2)
    return a.astype(dtype), RANDOM.normal(size=(batch, n, sides)).astype(dtype)


def compare(transformer, numpy, results, leaves, arrays, near):
    results = results if isinstance(results, list) else [results]
    f, g = (each.computation(results, *leaves) for each in (transformer, numpy))
    for given in arrays:
        given = given[: len(leaves)]
        expected = g(*given)
        for _ in range(2):
            for found, value in zip(f(*given), expected, strict=True):
                assert found.dtype == value.dtype
                np.testing.assert_allclose(found, value, rtol=near, atol=near)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices_are_those_of_numpy(transformer, numpy, name, dtype):
    a, b = operands(dtype)
    sizes = [(1, 12, 1), (3, 12, 5), (1, 40, 3), (2, 33, 1), (0, 12, 2), (2, 12, 0), (2, 1, 1)]
    arrays = [matrices(*each, dtype) for each in sizes]
    near = 1e-9 if dtype == "float64" else 2e-3
    compare(transformer, numpy, SQUARE[name](a, b), [a, b], arrays, near)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", TALL)
def test_tall_matrices_are_those_of_numpy(transformer, numpy, name, dtype):
    """Among them batches that are one call, of square left vectors, and others."""
    a, _ = operands(dtype)
    shapes = [(1, 20, 20), (2, 20, 11), (3, 32, 9), (2, 33, 9), (2, 50, 40), (1, 9, 1)]
    arrays = [(RANDOM.normal(size=shape).astype(dtype),) for shape in shapes]
    near = 1e-9 if dtype == "float64" else 5e-4
    compare(transformer, numpy, TALL[name](a), [a], arrays, near)


def test_batches_are_one_call_if_they_are_small(driver, numpy):
    a, b = operands("float64")
    with transformer_on(gpu.GpuDevice(0), matrices="cusolver") as transformer:
        for names, batch, n in (
            ("dpotrf", 1, 12),
            ("dpotrf_batched", 3, 12),
            ("dpotrf dpotrf", 2, cusolver.MAX_BATCHED_ROWS + 1),
        ):
            driver.called.clear()
            f = transformer.computation(linalg.cholesky(a, [I, J]), a)
            x, _ = matrices(batch, n, 1, "float64")
            np.testing.assert_allclose(f(x), np.linalg.cholesky(x), rtol=1e-9, atol=1e-9)
            assert driver.called == names.split()
        for name, result, leaves, called in (
            ("solve", SQUARE["solve"](a, b), [a, b], "dgetrf_batched dgetrs_batched"),
            ("triangle", SQUARE["lower triangle"](a, b), [a, b], "dtrsm_batched"),
            ("eigh", SQUARE["eigh"](a, b), [a, b], "dsyevj_batched"),
            ("svd", TALL["svd"](a), [a], "dgesvdj_batched"),
            ("qr", TALL["qr"](a), [a], "dgeqrf dgeqrf dorgqr dorgqr"),
        ):
            driver.called.clear()
            compare(transformer, numpy, result, leaves, [matrices(2, 12, 4, "float64")], 1e-9)
            assert driver.called == called.split() * 2, name


@pytest.mark.parametrize("name", SQUARE)
def test_the_bindings_are_asked_for_the_same(driver, numpy, name):
    a, b = operands("float32")
    with transformer_on(gpu.GpuDevice(0), matrices="cusolver") as transformer:
        arrays = [matrices(batch, n, 3, "float32") for batch, n in ((1, 12), (2, 12), (2, 40))]
        compare(transformer, numpy, SQUARE[name](a, b), [a, b], arrays, 2e-3)
    assert driver.captured_graphs == 0 and not driver.wrong


# Failures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [3, 600])
@pytest.mark.parametrize(
    ("name", "words"),
    [("cholesky", "not positive definite"), ("solve", "is singular"), ("eigvalsh", "NaN"),
     ("eigh", "NaN"), ("svd", "NaN")],
)  # fmt: skip
def test_the_matrix_that_failed_is_named_and_variables_stay(transformer, name, words, batch):
    """Whether one call computes the batch or one each; calls behind it change nothing."""
    a, b = operands("float64")
    result = SQUARE[name](a, b) if name in SQUARE else TALL[name](a)
    total = sum(geon.sum(each) for each in (result if isinstance(result, list) else [result]))
    kept = geon.Variable([], "float64", initial_value=1, name="kept")
    other = geon.sum(linalg.inv(a + 1.0, [I, J]))
    f = transformer.computation([total, geon.assign(kept, kept + total + other)], a, b)
    x, sides = matrices(batch, 9, 2, "float64")
    f(x, sides)
    before = transformer.get(kept)
    x[batch - 2] = {"cholesky": -np.eye(9), "solve": np.ones((9, 9))}.get(name, np.nan)
    for _ in range(2):
        with pytest.raises(geon.LinearAlgebraError, match=f"{words}.*B = {batch - 2}"):
            f(x, sides)
        np.testing.assert_array_equal(transformer.get(kept), before)


def test_pivots_behind_one_that_is_zero_do_not_matter(transformer, numpy):
    """A library may leave them undefined; the determinant is 0."""
    a, _ = operands("float64")
    for batch in (1, 2):
        x, _ = matrices(batch, 12, 1, "float64")
        x[:, :, 4] = x[:, :, 2]
        x[:, 4] = x[:, 2]
        f = transformer.computation([linalg.det(a, [I, J]), linalg.slogdet(a, [I, J])[1]], a)
        x[:, :, 7] = 0
        value, logarithm = f(x)
        np.testing.assert_array_equal(value, np.zeros(batch))
        np.testing.assert_array_equal(logarithm, np.full(batch, -np.inf))


def test_an_error_of_the_library_names_the_kernel(driver):
    a, _ = operands("float64")
    with transformer_on(gpu.GpuDevice(0), matrices="cusolver") as transformer:
        f = transformer.computation(linalg.cholesky(a, [I, J]), a)
        driver.fails["dpotrf"] = host_library.HostLibraryError("CUSOLVER_STATUS_EXECUTION_FAILED")
        with pytest.raises(geon.DeviceError, match=r"cuSOLVER factorises.*EXECUTION_FAILED"):
            f(np.eye(9)[None])


def test_no_room_for_the_workspace_is_found_before_anything_is_computed(driver):
    a, _ = operands("float64")
    kept = geon.Variable([], "float64", initial_value=1, name="kept")
    with transformer_on(gpu.GpuDevice(0), matrices="cusolver") as transformer:
        total = geon.sum(linalg.cholesky(a, [I, J]))
        f = transformer.computation([total, geon.assign(kept, kept + total)], a)
        f(np.eye(9)[None])
        room = transformer.device.libraries["matrices"].workspace
        room.allocate = _full
        with pytest.raises(geon.DeviceMemoryError, match="no room"):
            f(np.eye(50)[None])
        np.testing.assert_array_equal(transformer.get(kept), 10)
        np.testing.assert_allclose(f(np.eye(9)[None])[0], 9)


def _full(size):
    raise geon.DeviceMemoryError("no room")


# Loops, branches and memory -----------------------------------------------------------------------


def test_loops_and_branches_call_the_library(transformer, numpy):
    """Each step reads its own slice; a branch that is not taken changes nothing."""
    t, n = geon.Axis("T"), 9
    i, j = geon.Axis("I", n), geon.Axis("J", n)
    a = geon.placeholder([t, i, j], "float64", name="a")
    flag = geon.placeholder([], "bool", name="flag")
    start = geon.constant(np.ones(n), [i])

    def step(state, x):
        found = linalg.solve(x, state, [i, j]).rename({j: i})
        return found, linalg.eigvalsh(x, [i, j]) + geon.sum(found)

    last, stacked = geon.scan(step, start, a, over=t)
    first = a[{t: 0}]
    chosen = geon.cond(
        flag,
        lambda: linalg.solve(first, start, [i, j]),
        lambda: geon.sum(linalg.cholesky(first, [i, j]), i),
    )
    count, many = geon.while_loop(
        lambda state: state[0] < 3,
        lambda state: (state[0] + 1, linalg.solve(first, state[1], [i, j]).rename({j: i})),
        (geon.constant(0, [], "int64"), start),
    )
    results = [last, stacked, chosen, many, geon.deriv(geon.sum(last), a)]
    f, g = (each.computation(results, a, flag) for each in (transformer, numpy))
    x, _ = matrices(4, n, 1, "float64")
    for taken in (True, False):
        for steps in (4, 1):
            for found, value in zip(f(x[:steps], taken), g(x[:steps], taken), strict=True):
                np.testing.assert_allclose(found, value, rtol=1e-8, atol=1e-8)
    x[2] = 0
    with pytest.raises(geon.LinearAlgebraError, match="singular.*at step 2 along T"):
        f(x, True)


def test_a_failure_in_one_branch_alone_is_an_error(transformer):
    n = 9
    i, j = geon.Axis("I", n), geon.Axis("J", n)
    a, flag = geon.placeholder([i, j], "float64"), geon.placeholder([], "bool")
    chosen = geon.cond(flag, lambda: linalg.cholesky(a, [i, j]), lambda: a * 2)
    f = transformer.computation(chosen, a, flag)
    np.testing.assert_array_equal(f(-np.eye(n), False), -2 * np.eye(n))
    with pytest.raises(geon.LinearAlgebraError, match="not positive definite"):
        f(-np.eye(n), True)


def test_the_workspace_grows_and_is_shared(transformer):
    a, _ = operands("float64")
    f = transformer.computation(linalg.cholesky(a, [I, J]), a)
    sizes = []
    for n in (9, 30, 12, 30):
        f(np.eye(n)[None])
        sizes.append(transformer.device.libraries["matrices"].workspace.size)
    assert sizes == [2 * 8 * n for n in (9, 30, 30, 30)]
    assert f.peak_bytes({"B": 1, "I": 30, "J": 30}) >= 8 * 30 * 30


def test_a_program_is_recalled_from_the_disk(numpy):
    a, b = operands("float64")
    with transformer_on(LateDevice(), matrices="cusolver") as first:
        with transformer_on(LateDevice(), matrices="cusolver") as second:
            second.target = first.target
            for transformer in (first, second):
                arrays = [matrices(2, 12, 3, "float64")]
                compare(transformer, numpy, SQUARE["solve"](a, b), [a, b], arrays, 1e-9)
            f = second.computation(SQUARE["solve"](a, b), a, b)
            f(*arrays[0])
            assert f.stages().compiled.record.module.steps


# The bindings -------------------------------------------------------------------------------------

CALLS = [
    ("potrf", 3, ()), ("getrf", 4, ()), ("getrs", 6, (1,)), ("trsm", 4, (1, 0, 0)),
    ("geqrf", 3, ()), ("orgqr", 3, ()), ("syevd", 3, (1,)), ("gesvdj", 5, ()),
]  # fmt: skip


class Counted:
    """A binding that notes the arguments of each call, and computes nothing."""

    def __init__(self):
        self.called = {}

    def __getattr__(self, name):
        def call(*given):
            assert all(isinstance(each, int) for each in given), name
            self.called[name] = given
            return 1

        return call


def test_the_bindings_have_what_is_called():
    """With the numbers and names of arguments; it needs nvmath-python, and no GPU."""
    pytest.importorskip("nvmath.bindings", reason="nvmath-python is not installed")
    from nvmath.bindings import cublas
    from nvmath.bindings import cusolverDn as solver

    found = Counted(), Counted()
    library = cusolver.CuSolver(*found, (ValueError,), SharedWorkspace(lambda size: 256, print))
    for dtype in ("float32", "float64"):
        for name, count, flags in CALLS:
            for batch in (1, 3):
                call = MatrixCall(name, batch, 16, 16, (0,) * count, flags, dtype)
                assert library.takes(call)
                library.call(call, (256,) * count, 0, 0)
    assert cusolver.ROUTINES.keys() == {name for name, _, _ in CALLS}
    emulated = host_library.HostSolver(), host_library.HostBlas()
    for binding, called, ours in zip((solver, cublas), found, emulated, strict=True):
        assert len(called.called) > 4
        for name, given in called.called.items():
            known = list(inspect.signature(getattr(binding, name)).parameters)
            assert len(given) == len(known), name
            assert list(inspect.signature(getattr(ours, name)).parameters) == known, name
    known = cusolver.CONSTANTS
    assert (cublas.FillMode.LOWER, cublas.FillMode.UPPER) == (known["LOWER"], known["UPPER"])
    assert (cublas.Operation.N, cublas.Operation.T) == (0, 1)
    assert cublas.SideMode.RIGHT == known["RIGHT"] and cublas.DiagType.UNIT == 1


@pytest.fixture
def first(driver, monkeypatch):
    """The fake device is the first of the machine."""
    monkeypatch.setattr(gpu, "device", gpu.GpuDevice)
    monkeypatch.setattr(gpu, "missing", lambda: None)
    return driver


OTHERS = dict.fromkeys(("products", "convolutions", "transforms"), "generated")


def test_it_is_asked_where_it_is_installed(first):
    """And can be told not to be; it rounds nothing to tf32."""
    for options, found in (
        ({}, {"matrices"}),
        ({"tf32": True}, {"matrices"}),
        ({"matrices": "generated"}, set()),
    ):
        with PyCudaTransformer(0, **OTHERS, **options) as made:
            assert made.libraries == found


def test_without_the_binding_or_the_library(first, monkeypatch):
    a, _ = operands("float64")

    def get_version():
        raise RuntimeError("Failed to dlopen libcusolver.so.12")

    monkeypatch.setattr(sys.modules["nvmath.bindings.cusolver"], "get_version", get_version)
    with PyCudaTransformer(0, **OTHERS) as made:
        assert made.libraries == set()
        f = made.computation(linalg.cholesky(a, [I, J]), a)
        with pytest.raises(geon.UnavailableError, match=r"pip install 'geon\[cusolver\]'.*native"):
            f(np.eye(9)[None])
    with pytest.raises(geon.DeviceError, match=r"cuSOLVER does not start \(Failed to dlopen"):
        PyCudaTransformer(0, matrices="cusolver")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "nvmath" else find(name)
    )
    with pytest.raises(geon.DeviceError, match=r"nvmath-python.*pip install 'geon\[cusolver\]'"):
        PyCudaTransformer(0, matrices="cusolver")
