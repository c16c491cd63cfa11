"""What ``scripts/gpu_check.sh`` runs on a device beside the suite.

    python -m tests.cuda.on_gpu PART [--transformer NAME] [--small]

``kernels``: kernels of every kind once, for compute-sanitizer. ``runtime``: calls that are started,
graphs, streams, and arrays of other libraries. ``products``: cuBLASLt beside generated kernels.
``convolutions``: cuDNN beside them. ``matrices`` and ``transforms``: cuSOLVER and cuFFT beside
NumPy. ``figures`` and ``steps``: what ``figures`` measures. ``report
FOLDER``: what all parts left there, as Markdown.
"""

import argparse
import datetime
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np

import geon
from geon.op_graph.axes.lengths import evaluate
from geon.testing.comparison import widest
from geon.transformers.pycuda.kernels import cooperative_threads
from geon.transformers.pycuda.reports import doctor
from tests.cuda import (
    figures,
    test_attention,
    test_library_matrices,
    test_library_transforms,
    test_nothing,
    test_products,
    test_streams,
    test_whole_loops,
)
from tests.cuda.test_lengths import GRAPHS, data, v, x

NEAR = {"float32": 1e-4, "bfloat16": 3e-2, "float16": 4e-3}  # of the largest


def kernels(name, small):
    with geon.make_transformer(name) as transformer:
        for graph_name, graph in GRAPHS.items():
            inputs = [x, v] if graph_name in ("elements", "vector") else [x]
            f = transformer.computation(graph, *inputs)
            for n, c in ((3, 33), (65, 31), (2, cooperative_threads.MAX_WARP_ROW_ELEMENTS + 3))[
                : 1 if small else 3
            ]:
                f(*data(n, c)[: len(inputs)])
        for dtype in ("float32", "bfloat16"):
            inputs = test_attention.operands(dtype)
            f = transformer.computation(test_attention.attended(*inputs, True), *inputs)
            f(*test_attention.numbers(inputs, (1, 130, 70)))
            pair = test_products.operands(dtype, "NC", "CM")
            f = transformer.computation(test_products.made(*pair), *pair)
            for lengths in test_products.LENGTHS[5:11]:
                f(*[test_products.numbers(each, lengths, 0) for each in pair])
        for graph in list(test_whole_loops.results().values())[: 1 if small else 5]:
            f = transformer.computation(graph, *test_whole_loops.INPUTS)
            f(*test_whole_loops.feeds(2, 3, 3))
        for graph in list(test_nothing.graphs().values())[: 2 if small else 15]:
            inputs = test_nothing.inputs_of(graph)
            f = transformer.computation(graph, *inputs)
            for known in test_nothing.lengths_of(inputs, (0, 3), (300,), (4,)):
                f(*test_nothing.arrays(inputs, known))


def runtime(name, small):
    """Calls that are started, in order; results that stay; what is free afterwards."""
    n, c = geon.Axis("N"), geon.Axis("C", 64)
    y = geon.placeholder([n, c], name="y")
    with geon.make_transformer(name) as transformer:
        w = geon.Variable([c], initial_value=0, name="w")
        step = transformer.computation([w + 0, geon.assign(w, w + geon.mean(y, n))], y)
        step(np.ones((3, 64)))
        started = [step.start(np.full((3 + k % 2, 64), k)) for k in range(20)]
        for k, each in enumerate(started):
            expected = 1 + k * (k - 1) / 2
            np.testing.assert_allclose(each.result()[0], np.full(64, expected), rtol=1e-5)
        f = transformer.computation(y * 2, y, on_device=True)
        value = f(np.ones((5, 64)))
        for _ in range(4):
            value = f(value)
        np.testing.assert_array_equal(np.asarray(value), np.full((5, 64), 32))
        exchanged(f, value)
        at = geon.placeholder([geon.Axis("T")], "int64", name="at")
        g = transformer.computation(geon.gather(w, at, c), at)
        g([0])
        wrong = g.start([64])
        try:
            wrong.result()
        except geon.IndexRangeError as error:
            print(f"raised: {error}")
        else:
            raise AssertionError("a position outside was not found")
        room = transformer.device.room()
        f.start(np.ones((1000, 64))).result()
        print(f"{room - transformer.device.room():,} bytes are kept for another length")
    on_streams(name, small)


def on_streams(name, small):
    """Random programs on three streams, and the time of chains of small kernels on them."""
    made = [geon.make_transformer(name, stream=f"stream {k}") for k in range(3)]
    programs = test_streams.Programs(made)
    for seed in range(2 if small else 100):
        test_streams.random_program(programs, seed)
    print("random programs on three streams computed what NumPy does")
    rows = geon.placeholder([geon.Axis("R", 8), geon.Axis("L", 1 << (8 if small else 16))])
    last = geon.scan(lambda c, _: (geon.sin(c) + rows, c), rows, over=geon.Axis("step", 64))[0]
    chains = [each.computation(last, rows, on_device=True) for each in made]
    given = [f(np.ones(rows.axes.lengths, np.float32)) for f in chains]
    seconds = {}
    for what, used in (("one stream", chains[:1] * 3), ("three streams", chains)) * 2:
        for _ in range(3):
            start = time.perf_counter()
            started = [f.start(value) for f, value in zip(used, given, strict=True)]
            for each in started:
                each.result()
            seconds[what] = min(seconds.get(what, 1e9), time.perf_counter() - start)
    ratio = seconds["three streams"] / seconds["one stream"]
    print(f"three chains take {ratio:.2f} times as long on three streams as on one")


def exchanged(f, value):
    """Give a result to PyTorch and CuPy, and take it back, where they are."""
    for package in ("torch", "cupy"):
        try:
            library = __import__(package)
        except ImportError:
            print(f"{package} is not installed: DLPack was not tried with it")
            continue
        if package == "torch" and not library.cuda.is_available():
            print("torch knows no GPU: DLPack was not tried with it")
            continue
        theirs = library.from_dlpack(value)
        twice = f(theirs * 2)
        np.testing.assert_array_equal(np.asarray(twice), 4 * np.asarray(value))
        print(f"{package} took a result, and its own was taken")


def products(name, small):
    """Products of the library and of kernels agree; nothing is said where there is no library."""
    m, k, n = (geon.Axis(each) for each in "MKN")
    sizes = [(33, 40, 50)] if small else [(257, 400, 300), (1024, 512, 640), (2048, 2048, 2048)]
    made = [geon.make_transformer(name, products=each) for each in ("generated", "cublaslt")]
    for dtype, near in NEAR.items():
        left, right = geon.placeholder([m, k], dtype), geon.placeholder([k, n], dtype)
        for rows, deep, columns in sizes:
            sizes_of = {"M": rows, "K": deep, "N": columns}
            compare(made, geon.relu(geon.dot(left, right)), [left, right], sizes_of, near)
    for each in made:
        each.close()


def convolutions(name, small):
    """Convolutions and their slopes by the library and by kernels agree."""
    n, c, k, h, w = (geon.Axis(each) for each in "NCKHW")
    r, s = geon.Axis("R", 3), geon.Axis("S", 3)
    sizes = {"N": 2, "C": 3, "K": 4, "H": 8, "W": 9}
    if not small:
        sizes = {"N": 16, "C": 64, "K": 128, "H": 28, "W": 30}
    made = [geon.make_transformer(name, convolutions=each) for each in ("generated", "cudnn")]
    for dtype, near in NEAR.items():
        for image, stride in (([n, h, w, c], 1), ([n, h, w, c], 2), ([n, c, h, w], 1)):
            x, kernel = geon.placeholder(image, dtype), geon.placeholder([k, r, s, c], dtype)
            windows = {h: geon.Window(r, stride, pad=1), w: geon.Window(s, stride, pad=1)}
            y = geon.convolution(x, kernel, windows, c)
            up = geon.placeholder(y.axes, dtype)
            for by in (None, x, kernel):
                result = y if by is None else geon.deriv(geon.sum(y * up), by)
                compare(made, result, [x, kernel, up], sizes, near)
    for each in made:
        each.close()


def matrices(name, small):
    """Each routine of cuSOLVER and cuBLAS, for one matrix and for batches, beside NumPy."""
    of, sizes = test_library_matrices, [(1, 12), (3, 12), (2, 40)]
    if not small:
        sizes += [(1, 700), (2, 520), (1000, 16), (100, 100)]
    own = geon.make_transformer(name, matrices="cusolver")
    with own, geon.NumPyTransformer() as numpy:
        for dtype, near in (("float64", 1e-8), ("float32", 1e-2)):
            leaves = list(of.operands(dtype))
            for batch, n in sizes:
                square = of.matrices(batch, n, 3, dtype)
                for graph_name, graph in of.SQUARE.items():
                    both(own, numpy, graph_name, graph(*leaves), leaves, square, near)
                tall = np.concatenate([square[0], square[0][:, :4]], 1)
                for graph_name, graph in of.TALL.items():
                    both(own, numpy, graph_name, graph(leaves[0]), leaves[:1], [tall], near)
        f = own.computation(of.SQUARE["cholesky"](*leaves), *leaves)
        square[0][-1, 5, 5] = -1
        try:
            f(*square)
        except geon.LinearAlgebraError as error:
            print(f"raised: {error}")
        else:
            raise AssertionError("an indefinite matrix was not found")


def transforms(name, small):
    """Transforms of cuFFT of all forms, beside NumPy."""
    n, b, c = (geon.Axis(each) for each in "NBC")
    sizes = [(2, 8, 3), (3, 9, 2), (1, 1, 1)]
    if not small:
        sizes += [(1000, 1024, 1), (30, 1000, 7), (7, 1009, 30), (1, 1 << 20, 1)]
    own = geon.make_transformer(name, transforms="cufft")
    with own, geon.NumPyTransformer() as numpy:
        for dtype, near in (("complex128", 1e-10), ("complex64", 1e-4)):
            z = geon.placeholder([b, n, c], dtype, name="z")
            results = [geon.fft.fft(z, n), geon.fft.ifft(z, n), geon.fft.rfft(geon.real(z), n)]
            for batch, length, inner in sizes:
                value = test_library_transforms.draw(batch, length, inner, dtype=dtype)
                both(own, numpy, "transforms", results, [z], [value], near)
                half = n.with_length(length // 2 + 1)
                spectrum = geon.placeholder([b, half, c], dtype, name="spectrum")
                real = geon.fft.irfft(spectrum, half, length)
                value = value[:, : length // 2 + 1]
                both(own, numpy, "real values", real, [spectrum], [value], near)


def both(own, numpy, what, results, leaves, given, near):
    """Print how far apart two transformers are of the largest element, which is not so much."""
    results = results if isinstance(results, list) else [results]
    found, expected = (
        [widest(value) for value in each.computation(results, *leaves)(*given)]
        for each in (own, numpy)
    )
    scales = [np.max(np.abs(value), initial=1e-30) for value in expected]
    pairs = zip(found, expected, scales, strict=True)
    apart = max(np.max(np.abs(a - b), initial=0) / scale for a, b, scale in pairs)
    print(f"{what} {leaves[0].dtype} {given[0].shape}: {apart:.1e} of the largest apart")
    assert apart < near


def compare(transformers, result, leaves, sizes, near):
    """Compare a result of two transformers for random operands of some lengths."""
    random = np.random.default_rng(0)
    shapes = [[evaluate(length, sizes) for length in leaf.axes.lengths] for leaf in leaves]
    given = [
        random.normal(size=shape).astype(leaf.dtype)
        for shape, leaf in zip(shapes, leaves, strict=True)
    ]
    both(*transformers[::-1], str(result), result, leaves, given, near)


def report(folder):
    """What a device's parts left in a folder, as the text of ``benchmarks/RESULTS-gpu.md``."""
    lines = ["# geon on a GPU", ""]
    lines += [f"Written by `scripts/gpu_check.sh` on {datetime.date.today()}, geon"]
    lines[-1] += f" {geon.__version__}, Python {platform.python_version()}:"
    lines += ["", *(f"- {row.name}: {row.status}" for row in doctor.findings())]
    summary = folder / "summary.txt"
    parts = summary.read_text().splitlines() if summary.exists() else ["nothing has run"]
    lines += ["", "## Parts", "", *(f"- {line}" for line in parts)]
    for name, title in (
        ("bench", "Figures"),
        ("steps", "Training steps"),
        ("runtime", "Calls"),
        ("products", "Products"),
        ("convolutions", "Convolutions"),
        ("matrices", "Matrices"),
        ("transforms", "Transforms"),
    ):
        found = folder / f"{name}.txt"
        text = found.read_text().strip() if found.exists() else "did not run"
        lines += ["", f"## {title}", "", "```text", text, "```"]
    suite = folder / "suite.txt"
    if suite.exists():
        last = [line for line in suite.read_text().splitlines() if " in " in line][-1:]
        lines += ["", "## Suite", "", *(last or ["it did not end"])]
    return "\n".join(lines) + "\n"


PARTS = {
    "kernels": kernels, "runtime": runtime, "products": products, "convolutions": convolutions,
    "matrices": matrices, "transforms": transforms, "figures": figures.measure,
    "steps": figures.beside_peers,
}  # fmt: skip


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=[*PARTS, "report"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--transformer", default="pycuda")
    parser.add_argument("--small", action="store_true", help="sizes for a trial on a CPU")
    options = parser.parse_args(argv)
    if options.part == "report":
        print(report(options.folder or Path(".")), end="")
        return
    start = time.perf_counter()
    PARTS[options.part](options.transformer, options.small)
    print(f"{options.part} took {time.perf_counter() - start:.1f} s in process {os.getpid()}")


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
