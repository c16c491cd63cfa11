"""Run the programs of a page of the documentation twice: as they are, and written eagerly.

In the second run a placeholder is an array of the data that its first call fed, or of zeros if it
was never fed, and a computation reads the values of its results, which were computed line by line.
Results of calls on these data must be equal. Each message that names a line must be one of the
first run, apart from lengths, which arrays always have, and truth values, which they have too.
Calls on other data, random results, and results that are no arrays (effects, tensors of variables
alone) are those of the first run and are not compared. So are the names of a block that cannot run
eagerly, for one of ``REASONS``.

    python -m tests.eager.pages docs/masks.md     # prints the numbers of equal results and messages
"""

import argparse
import contextlib
import re
import sys
from pathlib import Path

import numpy as np

import geon
from geon import eager
from geon.eager.nodes import local
from geon.op_graph.axes.length_defaults import default_lengths
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.core.source_info import building, current
from geon.transformers.base import Transformer
from tests.document_blocks import blocks, run

UNFED_LENGTH = 8  # of an open axis of a placeholder that is never fed
LENGTHS = re.compile(r"(?<=\w):\d+(?=[,)])|, first made at [\w.]+:\d+")
OURS = frozenset(PRIMITIVES)
REASONS = (
    "no array gives the length of the open axis",  # a length of data that another placeholder has
    "has no value to compute with beside arrays",  # a placeholder of a block that did not run
    "which has no value: give its array in at",  # gradients of a tensor checked by feeding others
)


class SymbolicRun:
    """The page as it is: notes the data of placeholders, and the results of calls."""

    def __init__(self):
        self.leaves, self.data, self.calls, self.computations = [], {}, [], []

    def placeholder(self, make, *args, **keywords):
        self.leaves.append(make(*args, **keywords))
        return self.leaves[-1]

    def computation(self, make, transformer, results, *placeholders, **options):
        self.computations.append(make(transformer, results, *placeholders, **options))
        return NotedComputation(self, self.computations[-1], placeholders)

    def set_lengths(self):
        """Make lengths of open axes that are the same in all data the default."""
        found = {}
        for leaf, value in self.data.items():
            for axis, n in zip(leaf.axes, value.shape, strict=True):
                if axis.open_name is not None:
                    found.setdefault(axis.open_name, (axis, set()))[1].add(n)
        for axis, lengths in found.values():
            if len(lengths) == 1:
                (axis.length,) = lengths


class NotedComputation:
    """A computation whose calls are noted; all else is the computation's."""

    def __init__(self, page, f, placeholders):
        self.page, self.f, self.placeholders = page, f, placeholders

    def __call__(self, *args, **keywords):
        try:
            made = self.f(*args, **keywords)
        except geon.GeonError as error:
            self.page.calls.append(error)
            raise
        for leaf, value in zip(self.placeholders, args, strict=False):
            self.page.data.setdefault(leaf, np.array(value))
        self.page.calls.append(made)
        return made

    def __getattr__(self, name):
        return getattr(self.f, name)


class EagerRun:
    """The page written eagerly, beside its symbolic run.

    ``made``, ``computed`` and ``called`` count placeholders, computations and calls, ``results``
    those that are equal.
    """

    def __init__(self, symbolic):
        self.symbolic, self.results = symbolic, 0
        self.made = self.computed = self.called = 0

    def placeholder(self, make, axes=(), dtype="float32", *, name=None, **notes):
        leaf = self.symbolic.leaves[self.made]
        self.made += 1
        value = self.symbolic.data.get(leaf)
        if value is None:
            known = default_lengths()
            lengths = [known.get(axis.open_name, axis.expression) for axis in leaf.axes]
            lengths = [n if isinstance(n, int) else UNFED_LENGTH for n in lengths]
            value = np.zeros(lengths, leaf.dtype)
        return eager.array(value, leaf.axes, leaf.dtype, name=name)

    def computation(self, make, transformer, results, *placeholders, **options):
        if local.recording:  # the program of arrays that are read
            return make(transformer, results, *placeholders, **options)
        self.computed += 1
        f = self.symbolic.computations[self.computed - 1]
        return ReadComputation(self, f, results, placeholders)


class ReadComputation:
    """Reads the values of results in the place of a computation, which has all else."""

    def __init__(self, page, f, results, placeholders):
        self.page, self.f, self.results, self.placeholders = page, f, results, placeholders

    def __getattr__(self, name):
        return getattr(self.f, name)

    def __call__(self, *args, **keywords):
        want = self.page.symbolic.calls[self.page.called]
        self.page.called += 1
        if self.on_known_data(args):
            self.compare(want)
        if isinstance(want, geon.GeonError):
            raise want
        return want

    def on_known_data(self, args):
        """Return whether the arguments are the data of the arrays."""
        return len(args) == len(self.placeholders) and all(
            isinstance(array, eager.EagerArray) and np.array_equal(array, value)
            for array, value in zip(self.placeholders, args, strict=True)
        )

    def compare(self, want):
        single = isinstance(self.results, geon.Tensor)
        results = [self.results] if single else self.results
        random = any(leaf.dtype == np.uint64 for leaf in self.f.pure.updates)  # counts its calls
        if random or not isinstance(results, (list, tuple)):
            return
        arrays = [isinstance(result, eager.EagerArray) for result in results]
        if isinstance(want, geon.GeonError):
            if all(arrays):
                with np.testing.assert_raises(type(want)):
                    for result in results:
                        np.asarray(result)
                self.page.results += 1
            return
        for result, value, is_array in zip(
            results, [want] if single else want, arrays, strict=True
        ):
            if is_array:
                np.testing.assert_allclose(result, value, rtol=1e-4, atol=1e-6)
                self.page.results += 1


@contextlib.contextmanager
def patched(page):
    """Context in which placeholders and computations are the page's."""
    make, compute = geon.placeholder, Transformer.computation

    def placeholder(*args, **keywords):
        frame = sys._getframe(1)
        with building():
            current.site = (frame.f_code, frame.f_lasti, "")
            return page.placeholder(make, *args, **keywords)

    geon.placeholder = placeholder
    Transformer.computation = lambda *args, **options: page.computation(compute, *args, **options)
    try:
        yield
    finally:
        geon.placeholder, Transformer.computation = make, compute


def messages(text, name):
    """Return the lines of a text that name a line of the page, without lengths."""
    lines = [line for line in text.splitlines() if f" at {name}:" in line]
    lines = [line for line in lines if "has no truth value" not in line]
    return {LENGTHS.sub("", line).replace("placeholder(", "array(") for line in lines}


def forget_rows():
    """Remove the primitives that a page made."""
    for made in [name for name in PRIMITIVES if name not in OURS]:
        del PRIMITIVES[made]


def compare(path):
    """Return the numbers of equal results and messages, and the blocks that do not run eagerly."""
    found = [block for block in blocks(path.read_text()) if block.language == "python"]
    symbolic, namespace, before = SymbolicRun(), {"__name__": "__main__"}, []
    with patched(symbolic):
        for block in found:
            counts = [len(symbolic.leaves), len(symbolic.computations), len(symbolic.calls)]
            before.append((counts, run(block, path.name, namespace), {**namespace}))
    forget_rows()
    symbolic.set_lengths()
    page, namespace, equal, others = EagerRun(symbolic), {"__name__": "__main__"}, 0, []
    with patched(page), eager.use("numpy"):
        for block, (counts, text, names) in zip(found, before, strict=True):
            page.made, page.computed, page.called = counts
            own = {**namespace}
            try:
                printed = run(block, path.name, own)
            except geon.GeonError as error:
                if not any(reason in str(error) for reason in REASONS):
                    raise
                others.append(f"{path.name}:{block.line}: {error}")
                namespace = {**names, **namespace}
                continue
            namespace = own
            got, want = messages(printed, path.name), messages(text, path.name)
            if not got <= want:
                raise AssertionError(f"{path.name}:{block.line}: {got - want} is not in {want}")
            equal += len(got)
    return page.results, equal, others


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.eager.pages")
    parser.add_argument("file", type=Path)
    results, equal, others = compare(parser.parse_args(argv).file)
    print(f"{results} results and {equal} messages are equal", *others, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
