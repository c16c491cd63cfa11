"""The order of a result's axes: what ``help(geon)`` and the page of the documents say."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import geon

A, B, C, D = (geon.Axis(name, n) for name, n in zip("ABCD", (2, 3, 4, 5), strict=True))
E = geon.Axis("E", 2)
PAGE = Path(__file__).parents[2] / "docs" / "axes.md"


def over(*axes, dtype="float32"):
    return geon.placeholder(axes, dtype)


def names(op):
    return "".join(op.axes.names)


def test_it_is_written_once_and_shown_twice():
    """The table of the page and the list of the docstring are the same rows."""
    section = PAGE.read_text().partition("## The order of axes")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)[1:]
    listed = re.findall(r"(?ms)^- (.*?)(?=^- |\Z)", geon.__doc__)
    assert [" ".join(item.split()) for item in listed] == [f"{op}: {order}" for op, order in table]
    assert len(table) > 10


ORDERED = {
    "operators": [
        (lambda: over(A, B) + over(B, A), "AB"),
        (lambda: over(B) * over(A, B, C), "BAC"),
        (lambda: geon.where(over(C, dtype="bool"), over(A, C), over(C, B)), "CAB"),
        (lambda: geon.outer(geon.multiply, over(B), over(A)), "BA"),
    ],
    "dot": [
        (lambda: geon.dot(over(A, B), over(C, B)), "AC"),
        (lambda: geon.dot(over(C, B), over(A, B)), "CA"),
        (lambda: geon.dot(over(B, A), over(C, A, B), B), "AC"),
        (lambda: over(D, B) @ over(B, A), "DA"),
    ],
    "contract": [
        (lambda: geon.contract([over(A, B), over(B, C), over(C, D)], over=[B, C]), "AD"),
        (lambda: geon.contract([over(C, D), over(A, B), over(B, C)], over=[B, C]), "DA"),
        (lambda: geon.contract([over(A, B), over(B, C)], [C, A]), "CA"),
    ],
    "reductions": [
        (lambda: geon.sum(over(C, A, B), A), "CB"),
        (lambda: geon.sum(over(C, A, B), out_axes=[B, C]), "BC"),
        (lambda: geon.mean(over(C, A, B), out_axes=[B, C]), "BC"),
        (lambda: geon.variance(over(C, A, B), out_axes=[B, C]), "BC"),
        (lambda: geon.logsumexp(over(C, A, B), out_axes=[B, C]), "BC"),
        (lambda: geon.argmax(over(C, A, B), out_axes=[B, C]), "BC"),
        (lambda: geon.cross_entropy_multi(over(C, A), over(A, C), out_axes=[C]), "C"),
    ],
    "indexing": [
        (lambda: over(C, A, B)[{A: 0}], "CB"),
        (lambda: over(C, A, B)[1:, 0], "CB"),
        (lambda: geon.gather(over(C, A, B), over(D, dtype="int64"), A), "CDB"),
        (lambda: geon.gather(over(C, A, B), over(B, D, dtype="int64"), A), "CDB"),
    ],
    "as asked": [
        (lambda: geon.reorder(over(A, B, C), [C, A, B]), "CAB"),
        (lambda: geon.broadcast(over(A), [B, A]), "BA"),
        (lambda: geon.flatten(over(A, B, C), [C, A], geon.Axis("M")), "MB"),
        (lambda: geon.flatten(over(A, B, C), [C, B], geon.Axis("M")), "AM"),
        (lambda: geon.unflatten(over(A, C), C, [geon.Axis("P", 2), geon.Axis("Q", 2)]), "APQ"),
    ],
    "loops and windows": [
        (lambda: geon.scan(lambda c, p: (c, p), over(C, A), over(A, B, D), over=B)[0], "CA"),
        (lambda: geon.scan(lambda c, p: (c, p), over(C, A), over(A, B, D), over=B)[1], "BAD"),
        (lambda: geon.window(over(A, D, C), {D: geon.Window(B)}), "ADCB"),
        (lambda: geon.convolution(over(A, D, C), over(E, B, C), {D: geon.Window(B)}), "ADE"),
        (lambda: geon.convolution(over(C, D), over(B, C, E), {D: geon.Window(B)}), "DE"),
        (lambda: geon.max_pool(over(A, D, C), {D: 2}), "ADC"),
    ],
    "as it was": [
        (lambda: geon.pad(over(B, A), {A: 1}), "BA"),
        (lambda: geon.flip(over(B, A), A), "BA"),
        (lambda: geon.concat([over(B, A), over(A, B)], A), "BA"),
        (lambda: geon.update(over(B, A), over(A), {B: 0}), "BA"),
        (lambda: geon.scatter(over(B, A), over(D, dtype="int64"), over(D), A), "BA"),
        (lambda: geon.sort(over(B, A), A), "BA"),
        (lambda: geon.cumsum(over(B, A), A), "BA"),
        (lambda: geon.softmax(over(B, A), B), "BA"),
        (lambda: geon.log_softmax(over(B, A), B), "BA"),
        (lambda: geon.top_k(over(B, A), 1, B)[0], "BA"),
    ],
    "new": [
        (lambda: geon.expand(over(A, B), C), "CAB"),
        (lambda: geon.expand(over(A, B), C, 1), "ACB"),
        (lambda: geon.stack([over(A, B), over(B, A)], geon.Axis("S")), "SAB"),
        (lambda: geon.stack([over(A, B)] * 2, geon.Axis("S"), position=2), "ABS"),
        (lambda: geon.onehot(over(A, dtype="int64"), B), "AB"),
    ],
    "segments, bins and selections": [
        (lambda: geon.segment_sum(over(C, A, B), over(A, dtype="int64"), D), "CDB"),
        (lambda: geon.segment_mean(over(C, A, B), over(C, A, dtype="int64"), D, A), "CDB"),
        (lambda: geon.bincount(over(C, A, B, dtype="int64"), D, [A]), "CBD"),
        (lambda: geon.histogram(over(C, A, B), D, 0, 1, [A]), "CBD"),
        (lambda: geon.quantile(over(C, A, B), over(D), [A]), "CBD"),
        (lambda: geon.quantile(over(C, A, B), over(D), out_axes=[B, C]), "BCD"),
        (lambda: geon.compress(over(C, A, B), over(A) > 0, D).values, "DCB"),
        (lambda: geon.nonzero(over(C, A, B), D, over=[C, A]).positions["A"], "BD"),
        (lambda: geon.gather(over(C, A, B), {A: over(D, dtype="int64"), B: 0}), "CD"),
        (lambda: geon.scatter(over(C, A, B), {C: 0, B: 1}, over(A)), "CAB"),
        (lambda: geon.searchsorted(over(A, D), over(B, A), D), "BA"),
        (lambda: geon.interp(over(B), over(D), over(C, D)), "BC"),
    ],
}


@pytest.mark.parametrize(
    ("build", "order"),
    [
        pytest.param(*pair, id=f"{name}-{k}")
        for name, pairs in ORDERED.items()
        for k, pair in enumerate(pairs)
    ],
)
def test_the_order_is_the_one_that_is_written(build, order):
    assert names(build()) == order


def test_derivatives_have_what_is_derived_first():
    x, w = over(A, B), over(B, C)
    y = geon.tanh(geon.dot(x, w))
    assert geon.jacobian(y, w).axes.names == ("A", "C", "B", "C'")
    assert geon.deriv(geon.sum(y, C), w, per=A).axes.names == ("A", "B", "C")
    assert geon.deriv(y, w, seed=over(A, D, C)).axes.names == ("D", "B", "C")
    assert geon.jvp(y, w, over(D, B, C)).axes.names == ("A", "C", "D")
    assert geon.deriv(geon.sum(y), w).axes.names == ("B", "C")


def test_contract_never_depends_on_its_pairing():
    """Lengths decide which pair goes first; the order of axes does not follow."""
    random = np.random.default_rng(0)
    for lengths in itertools.permutations((1, 2, 7, 30)):
        a, b, c, d = (geon.Axis(n, size) for n, size in zip("ABCD", lengths, strict=True))
        for order in itertools.permutations([(a, b), (b, c), (c, d), (d, b)]):
            operands = [geon.placeholder(axes, "float64") for axes in order]
            made = geon.contract(operands, over=[b, c])
            seen = dict.fromkeys(name for axes in order for name in geon.Axes(axes).names)
            assert made.axes.names == tuple(name for name in seen if name not in "BC")
    arrays = [random.normal(size=x.shape) for x in operands]
    f = geon.NumPyTransformer().computation(made, *operands)
    text = ",".join("".join(x.axes.names) for x in operands)
    expected = np.einsum(f"{text}->{''.join(made.axes.names)}", *arrays)
    np.testing.assert_allclose(f(*arrays), expected)
