"""The figures of the NumPy transformer, measured beside what was asked: `make bench-numpy`.

Medians, and ratios between contenders interleaved in one run; a table, and JSON beside it.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import perceptron

import geon
from geon.transformers.cache import programs

Row = tuple[str, str, str, bool]
clock = time.perf_counter


def timed(work: Callable[[], Any]) -> float:
    """Seconds that one call takes."""
    start = clock()
    work()
    return clock() - start


def import_time() -> list[Row]:
    """`import geon` after `import numpy`, in fresh processes that may use compiled bytecode."""
    code = "import time, numpy; s = time.perf_counter(); import geon"
    code += "; print(time.perf_counter() - s)"
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    runs = [
        float(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True).stdout)
        for _ in range(12)
    ]
    ms = statistics.median(runs[1:]) * 1e3
    return [("import geon over import numpy", "50 ms", f"{ms:.1f} ms", ms <= 50)]


def building() -> list[Row]:
    """New elementwise ops, and the same ones built again while they are alive."""
    x = geon.placeholder(axes=geon.Axis("N"))

    def chain(count: int) -> list[Any]:
        y, made = x, []
        for _ in range(count):
            y = y * x
            made.append(y)
        return made

    new, again = [], []
    for _ in range(5):
        start = clock()
        kept = chain(50_000)
        new.append(50_000 / (clock() - start))
        again.append(50_000 / timed(lambda: chain(50_000)))
        del kept
    fresh, hits = statistics.median(new), statistics.median(again)
    return [
        ("new elementwise ops", "120,000 /s", f"{fresh:,.0f} /s", fresh >= 120_000),
        ("interned hits", "1,000,000 /s", f"{hits:,.0f} /s", hits >= 1_000_000),
    ]


def derive_and_compile(count: int) -> float:
    """Seconds to derive, compile and run once a graph of ``count`` ops before its derivative."""
    axis = geon.Axis("N")
    x, w = geon.placeholder(axes=axis), geon.Variable(axes=axis, initial_value=1.0)
    steps = (geon.tanh, geon.sin, lambda v: v * w, lambda v: v + x, geon.sigmoid)
    y: Any = x
    for k in range(count):
        y = steps[k % 5](y)
    loss, ones = geon.sum(y), np.ones(4, np.float32)
    if programs._programs is not None:
        programs._programs.clear()
    gc.collect()

    def work() -> None:
        with geon.NumPyTransformer() as transformer:
            transformer.computation([loss, geon.deriv(loss, w)], x)(ones)

    return timed(work)


def compiling() -> list[Row]:
    """Derive + compile, with no program cached, and how it grows."""
    derive_and_compile(100)
    seconds = statistics.median(derive_and_compile(3000) for _ in range(5))
    counts = [1000, 3000, 10_000, 30_000, 100_000]
    taken = [statistics.median(derive_and_compile(n) for _ in range(3 if n < 20_000 else 1))
             for n in counts]  # fmt: skip
    slope = float(np.polyfit(np.log(counts), np.log(taken), 1)[0])
    return [
        ("derive + compile, 3,000 ops (9,600 with the derivative)", "0.6 s", f"{seconds:.2f} s",
         seconds <= 0.6),
        ("log-log slope from 1,000 to 100,000 ops", "1.15", f"{slope:.3f}", slope <= 1.15),
    ]  # fmt: skip


def calling() -> list[Row]:
    """x + 1 on a scalar."""
    x = geon.placeholder(axes=geon.Axes())
    plus_one = geon.NumPyTransformer().computation(x + 1, x)
    plus_one(1)

    def many() -> None:
        for _ in range(10_000):
            plus_one(3)

    us = statistics.median(timed(many) for _ in range(15)) / 10_000 * 1e6
    return [("x + 1 on a scalar, per call", "3 µs", f"{us:.2f} µs", us <= 3)]


def training() -> list[Row]:
    """The perceptron's step against the same by hand, interleaved, and memory."""
    x, y = perceptron.data()
    hand = perceptron.ByHand()
    transformer, step, parameters = perceptron.in_geon()
    for _ in range(10):
        expected, got = hand.step(x, y), step(x, y)[0]
    assert abs(expected - got) < 1e-4, "the contenders do not compute the same"
    ours, theirs = [], []
    for k in range(400):
        pair = [(theirs, lambda: hand.step(x, y)), (ours, lambda: step(x, y))]
        for taken, work in pair if k % 2 else pair[::-1]:
            taken.append(timed(work))
    ratio = statistics.median(ours) / statistics.median(theirs)
    state = sum(a.nbytes for a in hand.state)
    lengths = {geon.Axis("N"): perceptron.BATCH}
    mine = step.peak_bytes(lengths)
    memory = (state + mine) / (state + hand.scratch_bytes)
    ms = f"{statistics.median(ours) * 1e3:.2f} against {statistics.median(theirs) * 1e3:.2f} ms"
    return [
        ("perceptron step, time over hand-written", "1.00", f"{ratio:.3f} ({ms})", ratio <= 1.0),
        ("the same, peak memory", "1.02", f"{memory:.3f} ({mine:,} beside {hand.scratch_bytes:,} "
         "bytes of scratch)", memory <= 1.02),
        *binding(step, x, y),
        *arenas(step, lengths),
    ]  # fmt: skip


def binding(step: Any, x: Any, y: Any) -> list[Row]:
    """What the first call with a new batch length takes over later ones."""
    extra = []
    for batch in range(40, 60):
        part = (x[:batch], y[:batch])
        first, *later = [timed(partial(step, *part)) for _ in range(8)]
        extra.append(first - statistics.median(later))
    ms = statistics.median(extra) * 1e3
    return [("a new batch length, once", "2 ms", f"{ms:.2f} ms", ms <= 2)]


def arenas(step: Any, lengths: Any) -> list[Row]:
    """The planned arena against a buffer for each value."""
    rows = []
    for name, f, known in (("perceptron step", step, lengths), ("50-layer chain", *chain50())):
        planned = f.peak_bytes(known)
        transformer = f.transformer
        alone = transformer.computation(list(f.results), *f.placeholders, plan=False)
        each = alone.peak_bytes(known)
        rows.append(
            (f"{name}, arena and results over one buffer each", "-",
             f"{planned / each:.3f} ({planned:,} of {each:,} bytes)", True)
        )  # fmt: skip
    return rows


def chain50() -> tuple[Any, Any]:
    """Fifty layers of tanh(w h), forward, batch 128, 256 wide."""
    batch, width = geon.Axis("N"), geon.Axis("H", 256)
    x = geon.placeholder([width, batch])
    h: Any = x
    for _ in range(50):
        w = geon.Variable([width.prime, width], initial_value=0.05)
        h = geon.cast_axes(geon.tanh(geon.dot(w, h)), [width, batch])
    return geon.NumPyTransformer().computation(geon.sum(h), x), {batch: 128}


def main() -> None:
    """Measure everything, print the table, write the JSON."""
    rows: list[Row] = []
    for part in (import_time, building, compiling, calling, training):
        rows += part()
    width = max(len(row[0]) for row in rows)
    print(f"{'figure':{width}}  {'asked':>12}  reached")
    for name, asked, reached, held in rows:
        print(f"{name:{width}}  {asked:>12}  {reached}{'' if held else '   NOT REACHED'}")
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {versions}"
    print(machine)
    keys = ("figure", "asked", "reached", "held")
    report = {"machine": machine, "rows": [dict(zip(keys, row, strict=True)) for row in rows]}
    Path(__file__).with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
