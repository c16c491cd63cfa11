"""Affine index expressions: one value for equal sums, and divisions that are undone."""

from geon.op_graph.axes.affine import (
    AffineIndex,
    Quotient,
    Remainder,
    divide,
    ravel,
    strides,
    unravel,
    variable,
)
from geon.op_graph.axes.lengths import Length

X, Y, Z = (variable(name) for name in "xyz")
N = Length.of("N")


def test_equal_sums_are_equal_in_whatever_order_they_were_made():
    assert X * 3 + Y + 2 == Y + X + (X * 2 + 2)
    assert hash(X * N + Y) == hash(Y + X * N)
    assert X + Y != X + Z
    assert (X - X) == AffineIndex()


def test_steps_and_constants():
    index = X * 4 + Y * N + (N - 1)
    assert (index.step("x"), index.step("y"), index.step("z")) == (4, N, 0)
    assert (index * 2).constant == 2 * N - 2
    assert index * 0 == AffineIndex() and index * 1 is index


def test_a_split_index_is_put_together_again():
    lengths = (4, N, 3)
    parts = unravel(X, lengths)
    assert ravel(parts, lengths) == X
    rows = [part * step for part, step in zip(parts, strides(lengths), strict=True)]
    assert rows[2] + rows[0] + rows[1] == X  # in any order


def test_parts_of_other_divisions_stay():
    (_, rest), (first, _) = unravel(X, (4, 3)), unravel(X, (3, 4))
    assert first * 3 + rest == variable(Quotient(X, 4)) * 3 + variable(Remainder(X, 3))


def test_a_length_of_one_has_one_index():
    assert unravel(X, (5, 1)) == [X, AffineIndex()]


def test_indices_say_what_they_are():
    assert str(X * 3 + variable(Remainder(Y, 4)) + 2) == "3 * x + (y % 4) + 2"


def test_an_index_that_steps_over_whole_multiples_is_divided_at_once():
    assert divide(X * 6 + Y * 3 + 7, 3) == (X * 2 + Y + 2, AffineIndex((), 1))
    assert divide(X * 2 - 3, 2) == (X - 2, AffineIndex((), 1))
    for index, by in [(X * 2 + Y, 2), (X * N, 2), (X * 2 + N, 2), (X * 4, N)]:
        assert divide(index, by) == (
            variable(Quotient(index, by)),
            variable(Remainder(index, by)),
        )
