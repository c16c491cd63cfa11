"""Primitives without a file of their own: iota, constants, polygamma, print; complex and float8."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.op_graph import Leaf, Tensor
from geon.op_graph.values.dtypes import ALL_DTYPES, COMPLEXES, FLOAT8S, FLOATS, as_dtype
from geon.testing import assert_agrees
from geon.testing.running import compute_samples
from geon.testing.samples import OPERAND_AXES, ROWS, SAMPLES, A, B, Sample, shape_of

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("sample", SAMPLES["other"], ids=str)
def test_values(transformer: geon.Transformer, sample: Sample) -> None:
    compute_samples(transformer, sample)


def test_a_print_shows_each_call(
    transformer: geon.Transformer, capsys: pytest.CaptureFixture[str]
) -> None:
    x = geon.placeholder([A])
    f = transformer.computation(geon.print(x + 1, "above") * 2, x)
    for start in (0, 10):
        np.testing.assert_array_equal(f([start, start + 1]), [2 * start + 2, 2 * start + 4])
        assert "above" in (shown := capsys.readouterr().out) and f"{start + 1}." in shown


def test_a_large_constant_is_no_part_of_the_form(transformer: geon.Transformer) -> None:
    n = geon.Axis("N", 500)
    x = geon.placeholder([n])
    for scale in (1.0, -2.0):
        table = geon.constant(scale * np.arange(500), axes=[n], dtype="float32")
        assert_agrees(transformer, x + table, {x: np.ones(500, np.float32)})


def test_a_result_may_be_an_argument_or_a_constant(transformer: geon.Transformer) -> None:
    x = geon.placeholder([A, B])
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = [x, geon.constant(2.5), geon.reorder(x, [B, A]), x, geon.tensor_size(x)]
    assert_agrees(transformer, results, {x: array})


# Complex numbers ----------------------------------------------------------------------------------


def samples_of(takes: str, dtype: str) -> dict[str, list[Sample]]:
    """Return the samples of primitives that can be built of tensors of ``dtype``, by kind.

    ``takes`` is the attribute that says so of a primitive.
    """
    found: dict[str, list[Sample]] = {}
    for kind, samples in SAMPLES.items():
        for sample in samples:
            if getattr(PRIMITIVES[sample.row], takes):
                with suppress(geon.DTypeError, geon.DerivativeError):
                    sample.results(dtype)
                    found.setdefault(kind, []).append(sample)
    return found


COMPLEX_SAMPLES = samples_of("takes_complex", "complex64")


@pytest.mark.parametrize("kind", COMPLEX_SAMPLES)
def test_complex_samples(transformer: geon.Transformer, kind: str) -> None:
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for number, sample in enumerate(COMPLEX_SAMPLES[kind]):
        built, arrays = sample.results(COMPLEXES[number % 2])
        results += built
        feeds |= arrays
    assert_agrees(transformer, results, feeds)


def test_every_row_of_complex_numbers_has_a_sample() -> None:
    sampled = {sample.row for samples in COMPLEX_SAMPLES.values() for sample in samples}
    assert {"dot", "sum", "cumsum", "gather", "scatter", "fourier"} <= sampled
    assert {row.name for row in PRIMITIVES.values() if row.kind == "movement"} <= sampled


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_elementwise_values(transformer: geon.Transformer, dtype: str) -> None:
    random = np.random.default_rng(2)
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for row in ROWS:
        if not row.takes_complex:
            continue
        operands = []
        for k in range(row.arity):
            truth = row.rule == "select" and k == 0
            leaf = geon.placeholder(OPERAND_AXES[k], "bool" if truth else dtype)
            shape = shape_of(leaf.axes)
            both = random.normal(size=(2, *shape))
            feeds[leaf] = both[0] > 0 if truth else (both[0] + 1j * both[1]).astype(dtype)
            operands.append(leaf)
        results.append(row.apply(*operands))
    assert_agrees(transformer, results, feeds, floor=1.0)


def test_parts_and_bits(transformer: geon.Transformer) -> None:
    x, y = geon.placeholder([A, B]), geon.placeholder([B])
    z = geon.as_complex(x, y)
    results = [z, geon.real(z * z), geon.imag(z * z), geon.conj(z), geon.bitcast(x, "int32")]
    arrays = {x: np.arange(6, dtype=np.float32).reshape(2, 3) - 2, y: np.ones(3, np.float32)}
    assert_agrees(transformer, [*results, geon.bitcast(results[-1] + 1, "float32")], arrays)


# Float8 -------------------------------------------------------------------------------------------

FLOAT8_SAMPLES = samples_of("takes_float8", "float8_e4m3fn")


@pytest.mark.parametrize("kind", FLOAT8_SAMPLES)
def test_float8_samples(transformer: geon.Transformer, kind: str) -> None:
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for number, sample in enumerate(FLOAT8_SAMPLES[kind]):
        built, arrays = sample.results(FLOAT8S[number % 2])
        results += built
        feeds |= arrays
    assert_agrees(transformer, results, feeds, exact=True)


def test_rows_that_move_elements_have_float8_samples() -> None:
    sampled = {sample.row for samples in FLOAT8_SAMPLES.values() for sample in samples}
    assert {"gather", "scatter"} | {
        r.name for r in PRIMITIVES.values() if r.kind == "movement"
    } <= (sampled)


def test_casts_from_float8(transformer: geon.Transformer) -> None:
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for dtype in FLOAT8S:
        x = geon.placeholder([geon.Axis("bits", 256)], dtype)
        feeds[x] = np.arange(256, dtype=np.uint8).view(as_dtype(dtype))
        results += [geon.cast(x, to) for to in ALL_DTYPES if to != dtype]
        results += [geon.bitcast(x, "uint8"), geon.bitcast(geon.bitcast(x, "int8"), dtype)]
    assert_agrees(transformer, results, feeds, exact=True)


def neighbours(dtype: str, source: str) -> Array:
    """Return values of ``source`` at, and next to, each number of a float8 dtype and each tie."""
    numbers = np.arange(256, dtype=np.uint8).view(as_dtype(dtype)).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    beyond = 2 * numbers[-1] - numbers[-2]
    numbers = np.concatenate([[-beyond], numbers, [beyond]])
    with np.errstate(over="ignore"):
        at = np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2]).astype(as_dtype(source))
    if source not in ("bfloat16", "float16"):
        at = np.concatenate([at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)])
        if source == "float64":  # they round to the tie in float32
            at = np.concatenate([at, at * (1 + 2.0**-40), at * (1 - 2.0**-40)])
    rest = [0.0, -0.0, np.inf, -np.inf, np.nan, 6e4, -6e4, 1e-7]
    return np.concatenate([at, np.array(rest, at.dtype)])


@pytest.mark.parametrize("dtype", FLOAT8S)
def test_casts_to_float8_round_once(transformer: geon.Transformer, dtype: str) -> None:
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for source in FLOATS:
        values = neighbours(dtype, source)
        x = geon.placeholder([geon.Axis(source, len(values))], source)
        results.append(geon.cast(x, dtype))
        feeds[x] = values
    for source in ("bool", "int8", "uint8", "int16", "int32", "uint64", "int64"):
        low, high = (0, 2) if source == "bool" else (np.iinfo(source).min, np.iinfo(source).max)
        whole = np.unique(np.clip(np.arange(-600, 600) * 110, low, min(high, 66000)))
        x = geon.placeholder([geon.Axis(source, len(whole))], source)
        results.append(geon.cast(x, dtype))
        feeds[x] = whole.astype(source)
    assert_agrees(transformer, results, feeds, exact=True)


def test_float8_variables(transformer: geon.Transformer) -> None:
    v = geon.Variable([A, B], initial_value=0.5, dtype="float8_e4m3fn")
    w = geon.Variable([A, B], initial_value=0, dtype="float8_e5m2")
    x = geon.placeholder([A, B])
    steps = [geon.assign(v, geon.cast(x, v.dtype)), geon.assign(w[{B: 1}], 3.0), v.cast("float32")]
    array = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
    assert_agrees(transformer, geon.sequential(steps), {x: array}, exact=True)
    assert transformer.get(w).dtype == as_dtype("float8_e5m2")


def test_float8_in_loops_and_branches(transformer: geon.Transformer) -> None:
    x = geon.placeholder([A, B], "float8_e4m3fn")
    total, parts = geon.scan(
        lambda c, part: (geon.cast(c.cast("float32") + part.cast("float32"), x.dtype), c),
        geon.constant(np.zeros(2, as_dtype(x.dtype)), [A]),
        x,
        over=B,
    )
    either = geon.cond(geon.any(x.cast("float32") > 2), lambda: x, lambda: geon.flip(x, B))
    array = np.array([[1, 2.5, 3], [0.1, 0.2, 0.3]]).astype(as_dtype(x.dtype))
    assert_agrees(transformer, [total, parts, either], {x: array}, exact=True)


def test_float8_is_checked(transformer: geon.Transformer) -> None:
    x = geon.placeholder([A])
    for dtype, wrong in (("float8_e4m3fn", 500.0), ("float8_e5m2", 1e5), ("float8_e5m2", np.nan)):
        f = transformer.computation(geon.cast(x, dtype), x, check="nan")
        np.testing.assert_array_equal(f([1.0, 448.0]).astype(np.float32), [1, 448])
        with pytest.raises(geon.NonFiniteError):
            f([1.0, wrong])
