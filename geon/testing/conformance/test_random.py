"""Random draws: the same bits on every transformer, in every version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import geon
from geon.op_graph.values.dtypes import FLOATS
from geon.testing import assert_agrees
from geon.testing.samples import B, C

Make = Callable[[], geon.Transformer]
K = geon.Axis("K", 4)
GOLDEN_BITS = {
    "uint32": [
        [2592828275, 1153470534, 4228819385, 359042194],
        [204571008, 2160964851, 4054865605, 315363698],
    ],
    "uint64": [
        [4954118223022484339, 1542074485342906809, 8040830180109194479, 8557947964358429346],
        [9281273363055083904, 1354476773310486213, 545496874910713565, 18260206154659131673],
    ],
}
# The bytes of four values each, little-endian.
GOLDEN = {
    ("uniform", "float16"): "a33b003a482f782d",
    ("normal", "float16"): "5ea294bbe1b709ba",
    ("uniform", "bfloat16"): "713f593fca3e643e",
    ("normal", "bfloat16"): "703e94bf7cbf813e",
    ("uniform", "float32"): "ff18333ffcc4313f1418723e7a56683f",
    ("normal", "float32"): "32944fbfc16c9d3fb5a72bbe7ac8e43b",
    ("uniform", "float64"): "ef9bb542adc7e53f58684eccbefcd53fe91766215fa3ef3ffe5e3533b84add3f",
    ("normal", "float64"): "7c2c2c3ca919f03f45ec340be27eeb3fd0c9b5a8b2d9e6bfc9016491b096e13f",
    ("bernoulli", "float32"): "000000000000803f0000803f00000000",
}


def draws(stream: geon.Random) -> dict[tuple[str, str], geon.Tensor]:
    """Return a draw of every kind and dtype."""
    found = {}
    for dtype in FLOATS:
        found["uniform", dtype] = stream.uniform([K], dtype=dtype)
        found["normal", dtype] = stream.normal([K], dtype=dtype)
    found["bernoulli", "float32"] = stream.bernoulli([K], 0.25)
    return found


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_bits_are_golden(transformer: geon.Transformer, dtype: str) -> None:
    bits = geon.Random(2024).bits([K], dtype)
    f = transformer.computation(bits)
    assert [[int(n) for n in f()] for _ in range(2)] == GOLDEN_BITS[dtype]


def test_draws_are_golden(transformer: geon.Transformer) -> None:
    made = draws(geon.Random(7))
    values: Any = transformer.computation(list(made.values()))()
    assert {key: v.tobytes().hex() for key, v in zip(made, values, strict=True)} == GOLDEN


@pytest.mark.parametrize("size", [0, 1, 3, 5, 1023])
def test_any_count_is_that_of_the_interpreter(transformer: geon.Transformer, size: int) -> None:
    n = geon.Axis("N", size)
    stream = geon.Random(2**63 + 5)
    results = [
        stream.bits([n, B], "uint64"),
        stream.uniform([n], -1.0, 1.0, "float64"),
        stream.normal([B, n], dtype="float64"),
        stream.normal([n]),
        stream.bernoulli([n, C], 0.3),
    ]
    assert_agrees(transformer, results, exact=True)


def test_an_open_axis(transformer: geon.Transformer) -> None:
    n = geon.Axis("N")
    x = geon.placeholder([n])
    f = transformer.computation(x + geon.Random(3).normal([n]), x)
    short, stream = f(np.zeros(5)), geon.Random(3)
    twin = transformer.computation(stream.normal([n.with_length(9)]))()
    np.testing.assert_array_equal(short, twin[:5])


def test_calls_differ_and_one_call_sees_one_draw(transformer: geon.Transformer) -> None:
    x = geon.placeholder([K])
    mask = geon.Random(5).bernoulli([K], 0.5)
    y = geon.sum(x * mask)
    f = transformer.computation([mask, geon.deriv(y, x), y], x)
    seen = set()
    for _ in range(30):
        drawn, slope, total = f(np.ones(4))
        np.testing.assert_array_equal(drawn, slope)
        assert float(total) == drawn.sum()
        seen.add(tuple(map(float, drawn)))
    assert len(seen) > 5


def test_a_stream_continues_where_it_was_saved(make: Make, tmp_path: Path) -> None:
    stream = geon.Random(11, name="noise")
    drawn = stream.uniform([K])
    first, second = make(), make()
    f, g = first.computation(drawn), second.computation(drawn)
    f()
    f()
    first.save(tmp_path / "state")
    second.restore(tmp_path / "state")
    np.testing.assert_array_equal(g(), f())
    first.initialize(force=True)
    second.set(stream.counter, 0)
    np.testing.assert_array_equal(f(), g())


def test_moments(transformer: geon.Transformer) -> None:
    n = geon.Axis("N", 100_000)
    stream = geon.Random(1)
    normal, uniform, hits = transformer.computation(
        [stream.normal([n], 2.0, 3.0), stream.uniform([n], -1.0, 3.0), stream.bernoulli([n], 0.2)]
    )()
    assert abs(normal.mean() - 2) < 0.05 and abs(normal.std() - 3) < 0.05
    assert abs(uniform.mean() - 1) < 0.02 and uniform.min() >= -1 and uniform.max() <= 3
    assert abs(hits.mean() - 0.2) < 0.01
