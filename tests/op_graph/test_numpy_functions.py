"""NumPy's functions given tensors: they build geon's ops where axes are named, else name geon's."""

import numpy as np
import pytest

import geon
from geon.op_graph.functions.numpy_api import BUILDS

A, B = geon.Axis("A", 2), geon.Axis("B", 3)
x = geon.placeholder([A, B], name="x")
v = geon.placeholder([A], name="v")

BUILT = {
    "sum": [(lambda: np.sum(x, axis=A), lambda: geon.sum(x, A)), (lambda: np.sum(x), x.sum)],
    "prod": [(lambda: np.prod(x, axis="B"), lambda: geon.prod(x, B))],
    "max": [(lambda: np.max(x, A), lambda: geon.max(x, A))],
    "min": [(lambda: np.min(x, axis=(A, B)), lambda: geon.min(x))],
    "amax": [(lambda: np.amax(x, A), lambda: geon.max(x, A))],
    "amin": [(lambda: np.amin(x, A), lambda: geon.min(x, A))],
    "any": [(lambda: np.any(x > 0, axis=A), lambda: geon.any(x > 0, A))],
    "all": [(lambda: np.all(x > 0, axis=A), lambda: geon.all(x > 0, A))],
    "argmax": [(lambda: np.argmax(x, axis=B), lambda: geon.argmax(x, B))],
    "argmin": [(lambda: np.argmin(x, axis=B), lambda: geon.argmin(x, B))],
    "mean": [(lambda: np.mean(x, axis=[A]), lambda: geon.mean(x, A))],
    "std": [(lambda: np.std(x, axis=A), lambda: geon.std(x, A))],
    "var": [
        (lambda: np.var(x, axis=A, correction=1), lambda: geon.variance(x, A, correction=1)),
    ],
    "median": [(lambda: np.median(x, axis=A), lambda: geon.median(x, A))],
    "nanmedian": [(lambda: np.nanmedian(x, axis=A), lambda: geon.nanmedian(x, A))],
    "quantile": [(lambda: np.quantile(x, 0.2, axis=A, method="nearest"),
                  lambda: geon.quantile(x, 0.2, A, method="nearest"))],
    "nanquantile": [(lambda: np.nanquantile(x, 0.2, axis=A), lambda: geon.nanquantile(x, 0.2, A))],
    "percentile": [(lambda: np.percentile(x, 20, axis=A), lambda: geon.percentile(x, 20, A))],
    "nansum": [(lambda: np.nansum(x, axis=A), lambda: geon.nansum(x, A))],
    "nanmean": [(lambda: np.nanmean(x, axis=A), lambda: geon.nanmean(x, A))],
    "count_nonzero": [(lambda: np.count_nonzero(x, axis=A), lambda: geon.count_nonzero(x, A))],
    "cumsum": [(lambda: np.cumsum(x, axis=A), lambda: geon.cumsum(x, A))],
    "cumprod": [(lambda: np.cumprod(x, axis=A), lambda: geon.cumprod(x, A))],
    "real": [(lambda: np.real(x * 1j), lambda: geon.real(x * 1j))],
    "imag": [(lambda: np.imag(x * 1j), lambda: geon.imag(x * 1j))],
    "angle": [(lambda: np.angle(x), lambda: geon.angle(x))],
    "fft.fft": [(lambda: np.fft.fft(x, axis=A), lambda: geon.fft.fft(x, A))],
    "fft.ifft": [(lambda: np.fft.ifft(x, axis=A), lambda: geon.fft.ifft(x, A))],
    "fft.rfft": [(lambda: np.fft.rfft(x, axis=A), lambda: geon.fft.rfft(x, A))],
    "sort": [(lambda: np.sort(x, axis=B), lambda: geon.sort(x, B)), (lambda: np.sort(v),
             lambda: geon.sort(v))],
    "argsort": [(lambda: np.argsort(x, axis=B), lambda: geon.argsort(x, B))],
    "flip": [(lambda: np.flip(x, axis=B), lambda: geon.flip(x, B)),
             (lambda: np.flip(x), lambda: geon.flip(x, [A, B]))],
    "concatenate": [(lambda: np.concatenate([x, x], axis=A), lambda: geon.concat([x, x], A))],
    "stack": [
        (lambda: np.stack([v, v], axis=geon.Axis("S")), lambda: geon.stack([v, v], geon.Axis("S"))),
    ],
    "where": [(lambda: np.where(x > 0, x, 0.0), lambda: geon.where(x > 0, x, 0.0))],
    "clip": [(lambda: np.clip(x, 0.0, 1.0), lambda: geon.clip(x, 0.0, 1.0)),
             (lambda: np.clip(x, None, 1.0), lambda: geon.clip(x, None, 1.0))],
    "dot": [(lambda: np.dot(x, v), lambda: x @ v)],
    "matmul": [(lambda: np.matmul(x, v), lambda: x @ v)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        pytest.param(*pair, id=f"{name}-{k}")
        for name, pairs in BUILT.items()
        for k, pair in enumerate(pairs)
    ],
)
def test_numpy_functions_build_what_geons_build(theirs, ours):
    assert theirs() is ours()


def test_every_function_that_is_taken_is_tested():
    assert BUILDS.keys() - {"shape", "ndim"} <= BUILT.keys()
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: np.sum(x, axis=0),
        lambda: np.mean(x, axis=(0, A)),
        lambda: np.argmax(x, axis=-1),
        lambda: np.cumsum(x, axis=1),
        lambda: np.flip(x, 0),
        lambda: np.concatenate([x, x]),
        lambda: np.stack([x, x]),
    ],
)
def test_a_position_is_refused(call):
    with pytest.raises(geon.AxisError, match=r"test_numpy_functions.*go by name.*write geon\.\w+"):
        call()


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (lambda: np.sum(x, axis=A, keepdims=True), "with keepdims=; write geon.sum"),
        (lambda: np.sum(x, axis=A, dtype="float64"), "with dtype=; write geon.sum"),
        (lambda: np.transpose(x), "write geon.reorder"),
        (lambda: np.reshape(x, (3, 2)), "write geon.flatten"),
        (lambda: np.einsum("ab->a", x), "write geon.contract"),
        (lambda: np.linalg.norm(x), r"np.linalg.norm at .*write geon.L2_norm"),
        (lambda: np.linalg.inv(x), r"np.linalg.inv at .*write geon.linalg.inv"),
        (lambda: np.linalg.eig(x), "geon has no function for it"),
        (lambda: np.expand_dims(x, 0), "write geon.expand"),
        (lambda: np.where(x > 0), "write geon.where"),
        (lambda: np.dot(x, v, out=np.zeros(3)), "with out="),
        (lambda: np.clip(x, 0, 1, dtype="float64"), "with dtype="),
    ],
)
def test_other_functions_name_geons(call, cure):
    with pytest.raises(geon.SymbolicError, match=cure):
        call()


def test_an_array_beside_a_tensor_is_a_constant_with_its_axes():
    ones = np.ones(2, np.float32)
    assert (ones @ v) is geon.dot(geon.constant(ones, [A]), v)
    assert np.dot(ones, v) is geon.dot(geon.constant(ones, [A]), v)
