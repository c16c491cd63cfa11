"""One program, checked: with sanitizers and without, on one, two and three threads, in float64.

All bits are equal on any number of threads, also where results are stored past the caches; values
are as far from those in float64 as ``bounds`` allows; and the NumPy transformer computes the
program in float64 within a thousandth of that.
"""

import numpy as np

import geon
from geon.op_graph.op_graph import post_order, storage_leaves
from geon.op_graph.values.dtypes import kind
from geon.transformers.binding.open_lengths import open_names
from geon.transformers.native.machine.caches import past_bytes
from geon.transformers.numpy.pairwise_sums import MAX_FLOAT32_TERMS

from ..native.ways import store_past
from .raised import raised

THREADS = (1, 2, 3)
# With sanitizers nothing is vectorised, so what is meant for the lanes of a vector is one sum: as
# many times the rounding as the widest vector has float32.
UNVECTORISED = 16.0
# A BLAS adds the terms of a short product one after another: LONG_PRODUCT of them at most.
SHORT_PRODUCTS = MAX_FLOAT32_TERMS / 128


class WrongError(AssertionError):
    """Where and how a program is wrong, and in which of its calls."""

    def __init__(self, text, call=0):
        super().__init__(text)
        self.call = call


def check(program, sanitize, stage=lambda text: None):
    """Raise ``WrongError`` for a wrong value; ``stage`` is told what runs before it does."""
    stage("numpy, float64")
    check_raised(program)
    stage("numpy")
    with geon.NumPyTransformer() as transformer:
        times = SHORT_PRODUCTS if has_products(program) else 1.0
        compare(program, computed(program, transformer), "numpy", times)
    options = [{"sanitize": True}, {}] if sanitize else [{}]
    for chosen in options:
        first = None
        for threads in THREADS:
            name = f"native, {'sanitized, ' if chosen else ''}{threads} threads"
            stage(name)
            least = 1 if threads == THREADS[-1] else past_bytes()
            with geon.make_transformer("native", threads=threads, **chosen) as transformer:
                found = computed(program, transformer, least)
            if first is None:
                compare(program, found, name, UNVECTORISED if chosen else 1.0)
                first = found
            same(program, first, found, name)


def has_products(program):
    """Whether a program contracts float32, which NumPy gives to a BLAS where sums are short."""
    roots = [*program.results, *(value for _, value, _ in program.updates)]
    return any(
        op.primitive.name == "dot" and op.dtype.name != "float64" for op in post_order(roots)
    )


def effects(program):
    """The results and the assignments of a program."""
    assigns = [geon.assign(leaf, value) for leaf, value, _ in program.updates]
    return [*program.results, *assigns]


def computed(program, transformer, least=None):
    """Of each call the results, and the variables that it assigned.

    Native code stores what has ``least`` bytes past the caches, where that is given.
    """
    options = {"check": program.check} if program.check else {}
    f = transformer.computation(effects(program), *program.placeholders, **options)
    if least is not None:
        store_past(f, least)
    calls = []
    for feeds in program.feeds:
        for leaf, array in program.variables:
            transformer.set(leaf, array)
        before = [array.copy() for array in feeds]
        values = list(f(*feeds))[: len(program.results)]
        for leaf, own, kept in zip(program.placeholders, feeds, before, strict=True):
            if own.tobytes() != kept.tobytes():
                raise WrongError(f"the input {leaf} was written to")
        calls.append([*values, *(transformer.get(leaf) for leaf, _, _ in program.updates)])
    return calls


def expected(program, call):
    """Ops and what is known of them in a call, results first."""
    known = list(zip(program.results, program.known[call], strict=True))
    return known + [(value, found[call]) for _, value, found in program.updates]


def compare(program, found, name, times=1.0):
    """Hold the values of each call to those in float64."""
    for call, values in enumerate(found):
        for (op, known), value in zip(expected(program, call), values, strict=True):
            fault = difference(op, known, value, times)
            if fault:
                raise WrongError(f"{name}, call {call + 1}: {label(op)} {fault}", call)


def difference(op, known, value, times=1.0):
    """How a value differs from what is known of it; None where it does not."""
    if value.shape != known.value.shape:
        return f"has the shape {value.shape}, expected {known.value.shape}"
    if kind(op.dtype) != "f":
        wrong = np.asarray(value != known.value)
        allowed = np.zeros(())
    else:
        allowed = np.zeros(()) if known.exact else known.error * times
        with np.errstate(all="ignore"):
            off = np.abs(value.astype(np.float64) - known.value)
            wrong = ~(off <= allowed)
    if not wrong.any():
        return None
    worst = np.unravel_index(int(np.argmax(np.where(wrong, 1, 0))), wrong.shape)
    if kind(op.dtype) == "f":
        ratio = np.where(wrong, off / (allowed + 1e-300), 0)
        worst = np.unravel_index(int(np.argmax(np.nan_to_num(ratio, nan=np.inf))), wrong.shape)
    at = tuple(int(k) for k in worst)
    bound = float(np.broadcast_to(allowed, wrong.shape)[worst])
    return (
        f"is {value[worst]!r} at {at}, expected {known.value[worst]!r} within {bound:.3g}; "
        f"{int(wrong.sum())} of {wrong.size} elements are wrong"
    )


def label(op):
    """An op for a report."""
    return f"{op.primitive.name}{op.axes} {op.dtype.name}"


def same(program, first, other, name):
    """Raise where bits differ from those on one thread."""
    for call, (left, right) in enumerate(zip(first, other, strict=True)):
        for (op, _), a, b in zip(expected(program, call), left, right, strict=True):
            if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
                count = int((np.asarray(a) != np.asarray(b)).sum())
                raise WrongError(
                    f"{name}, call {call + 1}: {label(op)} differs in {count} elements from one "
                    "thread's",
                    call,
                )


def check_raised(program):
    """The NumPy transformer computes the program in float64."""
    values = [value for _, value, _ in program.updates]
    ops, leaves = raised([*program.results, *values])
    for leaf in program.placeholders:
        leaves.setdefault(leaf, leaf)
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation(ops, *[leaves[leaf] for leaf in program.placeholders])
        for call, feeds in enumerate(program.feeds):
            for leaf, array in program.variables:
                if leaf in leaves:
                    transformer.set(leaves[leaf], array.astype(leaves[leaf].dtype))
            arrays = [
                array.astype(leaves[leaf].dtype)
                for leaf, array in zip(program.placeholders, feeds, strict=True)
            ]
            found = f(*arrays)
            for (op, known), value in zip(expected(program, call), found, strict=True):
                fault = difference(op, known, value, tightness(op))
                if fault:
                    raise WrongError(
                        f"numpy in float64, call {call + 1}: {label(op)} {fault}", call
                    )


def tightness(op):
    """What part of the bound in an op's own dtype there is in float64."""
    return 1.0 if op.dtype.name == "float64" else 1e-3


def dumped(program, call=0):
    """The program with the data of a call, for ``python -m geon replay``."""
    known = dict(zip(program.placeholders, program.feeds[call], strict=True))
    known |= dict(program.variables)
    ops = effects(program)
    used = set(storage_leaves(*ops))
    feeds = {leaf: array for leaf, array in known.items() if leaf in used}
    names = open_names(post_order(ops))
    lengths = {n: size for n, size in program.bindings[call].items() if n in names}
    return geon.dumps(ops, feeds=feeds, lengths=lengths)
