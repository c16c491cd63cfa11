"""``python -m geon onnx``: reports a model's operators, memory and predicted time; measures it."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, GeonError
from ...op_graph.op_graph import Leaf
from ...transformers.base import make_transformer
from ..positional.imported_model import ImportedModel
from .comparing import compare
from .model import load
from .reading import Source, graphs_in, read

MAX_LENGTH = 1 << 32  # of an open axis on the command line


def main(options: argparse.Namespace) -> int:
    """Print the report of a model; return 0, or 1 after an error that geon raised."""
    try:
        for line in report(options):
            print(line, flush=True)
    except GeonError as error:
        print(error)
        return 1
    return 0


def report(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the report."""
    source = read(options.file)
    model = load(options.file)
    keywords = {} if options.threads is None else {"threads": options.threads}
    f = model.computation(make_transformer(options.transformer, **keywords))
    lengths = given_lengths(options.lengths, model)
    opsets = [f"{domain or 'ai.onnx'} {version}" for domain, version in source.opsets.items()]
    yield f"{source.name}: {', '.join(opsets)}"
    for what, values in (("input", model.inputs), ("output", model.outputs)):
        for name, tensor in values.items():
            for each in tensor if isinstance(tensor, list) else [tensor]:
                yield f"{what:10} {name} {each.axes} {each.dtype}"
    counts = operators(source).most_common()
    yield f"operators  {', '.join(f'{name} {count}' for name, count in counts)}"
    yield f"parameters {parameters(model)}"
    shown = ", ".join(f"{name}={length}" for name, length in lengths.items())
    at = f" with {shown}" if shown else ""
    peak = f.peak_bytes(lengths)
    yield f"peak       {peak:,} bytes beside inputs and parameters{at}"
    arrays = inputs(model, lengths)
    if options.transformer == "native":
        seconds = f.profile(*arrays, repeats=1).predicted
        yield f"predicted  {1e3 * seconds:.3f} ms a call{at}"
    if options.bench:
        yield from compare(options, arrays)


def operators(source: Source) -> Counter[str]:
    """Return how often the model and its sub-graphs have each operator."""
    found: Counter[str] = Counter()
    waiting = [source.model.graph]
    while waiting:
        for node in waiting.pop().node:
            found[node.op_type] += 1
            waiting += graphs_in(node)
    return found


def parameters(model: ImportedModel) -> str:
    """Return the numbers of elements and bytes of the variables."""
    sizes = {leaf: math.prod(map(int, leaf.axes.lengths)) for leaf in model.variables.values()}
    trained = sum(size for leaf, size in sizes.items() if getattr(leaf, "trainable", True))
    total = sum(size * leaf.dtype.itemsize for leaf, size in sizes.items())
    return (
        f"{sum(sizes.values()):,} in {len(sizes)} variables, {trained:,} trainable, {total:,} bytes"
    )


def given_lengths(given: Sequence[str], model: ImportedModel) -> dict[str, int]:
    """Return the length of each open axis of the inputs: as given, else 1."""
    opened = dict.fromkeys(
        axis.open_name for leaf in model.inputs.values() for axis in leaf.axes if axis.open_name
    )
    found = {str(name): 1 for name in opened}
    for number, text in enumerate(given):
        name, _, length = text.partition("=")
        if name in [each.partition("=")[0] for each in given[:number]]:
            raise ArgumentError(f"--lengths {' '.join(given)}: {name} is there twice; give it once")
        if name not in found or not length.isdecimal():
            names = ", ".join(found) or "none"
            raise ArgumentError(f"--lengths {text}: give NAME=LENGTH; the open axes are {names}")
        if int(length) > MAX_LENGTH:
            raise ArgumentError(f"--lengths {text}: give at most {MAX_LENGTH:,}")
        found[name] = int(length)
    return found


def inputs(model: ImportedModel, lengths: dict[str, int]) -> list[np.ndarray[Any, Any]]:
    """Return random inputs: normal floats, integers that are 0 or 1, and truth values."""
    random = np.random.default_rng(0)
    return [example(leaf, lengths, random) for leaf in model.inputs.values()]


def example(
    leaf: Leaf, lengths: dict[str, int], random: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Return a random array for a placeholder."""
    shape = [lengths[a.open_name] if a.open_name else int(a.length) for a in leaf.axes]
    if leaf.dtype.kind == "f" or leaf.dtype.name == "bfloat16":
        return random.standard_normal(shape).astype(leaf.dtype)
    return random.integers(0, 2, shape).astype(leaf.dtype)
