"""The algebra of lengths, against Python integers and SymPy."""

import itertools
import pickle
import sys
import weakref

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from geon.op_graph.axes import lengths
from geon.op_graph.axes.lengths import (
    KEY_DIVISION,
    FloorDiv,
    Length,
    _key_of,
    as_text,
    evaluate,
    floor_divide,
    is_multiple,
    least_unless_zero,
    names_of,
    product,
    to_sympy,
)
from geon.op_graph.axes.lengths import substitute_names as bound

NAMES = ("N", "C", "T")
N, C, T = map(Length.of, NAMES)
BINDINGS = st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES})
ATOMS = st.one_of(st.integers(-7, 7), st.sampled_from([N, C, T]))


def operations(children):
    return st.one_of(
        st.tuples(st.sampled_from("+-*"), children, children),
        st.tuples(st.just("//"), children, st.integers(1, 6)),
        st.tuples(st.just("//"), children, st.integers(-4, -1)),
    )


TREES = st.recursive(ATOMS, operations, max_leaves=8)


def calculate(tree, lengths=None):
    """The value of a tree of operations: a length, or a Python integer under ``lengths``."""
    if not isinstance(tree, tuple):
        return tree if lengths is None else evaluate(tree, lengths)
    operator, left, right = tree
    x, y = calculate(left, lengths), calculate(right, lengths)
    results = {
        "+": lambda: x + y,
        "-": lambda: x - y,
        "*": lambda: x * y,
        "//": lambda: x // y,
    }
    return results[operator]()


@given(TREES, BINDINGS)
def test_every_expression_is_what_python_computes(tree, lengths):
    assert evaluate(calculate(tree), lengths) == calculate(tree, lengths)


@given(TREES, BINDINGS)
def test_text_is_python_source(tree, lengths):
    assert eval(as_text(calculate(tree)), dict(lengths)) == calculate(tree, lengths)


@given(TREES, BINDINGS)
def test_c_text_needs_only_a_floor_division(tree, lengths):
    length = calculate(tree)
    if isinstance(length, Length):
        names = {**lengths, "floor_div": lambda a, b: a // b}
        assert eval(length.c_text(), names) == calculate(tree, lengths)


@given(TREES, BINDINGS)
def test_sympy_agrees(tree, lengths):
    expression = to_sympy(calculate(tree))
    symbols = {sympy.Symbol(n, integer=True, nonnegative=True): v for n, v in lengths.items()}
    assert expression.subs(symbols) == calculate(tree, lengths)


@given(TREES, TREES, TREES)
def test_normal_form(a, b, c):
    x, y, z = calculate(a), calculate(b), calculate(c)
    assert x + y == y + x and x * y == y * x
    assert (x + y) + z == x + (y + z) and (x * y) * z == x * (y * z)
    assert x * (y + z) == x * y + x * z
    assert x - x == 0 and x + 0 == x and x * 1 == x and x * 0 == 0
    assert hash(x + y) == hash(y + x)


@given(TREES, BINDINGS)
def test_the_names_it_reads_suffice(tree, lengths):
    length = calculate(tree)
    assert names_of(length) <= set(NAMES)
    read = {name: lengths[name] for name in names_of(length)}
    assert evaluate(length, read) == calculate(tree, lengths)


@given(TREES)
def test_pickling_gives_an_equal_length(tree):
    length = calculate(tree)
    assert pickle.loads(pickle.dumps(length)) == length


@given(TREES, st.integers(1, 6))
def test_an_exact_multiple_divides_exactly(tree, divisor):
    length = calculate(tree)
    assert floor_divide(length * divisor, divisor) == length


@given(TREES, st.integers(1, 12), BINDINGS)
def test_known_multiples_are_multiples(tree, number, lengths):
    length = calculate(tree)
    if is_multiple(length, number):
        assert evaluate(length, lengths) % number == 0
    assert is_multiple(length * number, number)


def test_a_sum_is_a_multiple_where_all_terms_are():
    assert is_multiple(8 * N + 16 * C * T, 8)
    assert not is_multiple(8 * N + 4, 8)
    assert not is_multiple(N * C, 2)


@given(st.integers(1, 9), st.integers(0, 2), BINDINGS)
def test_what_a_product_is_at_least(factor, power, lengths):
    length = factor * N * product([C] * power)
    assert least_unless_zero(length) == factor
    value = evaluate(length, lengths)
    assert value == 0 or value >= factor


def test_sums_may_be_anything():
    assert least_unless_zero(7) == 7
    assert least_unless_zero(8 * N + 1) == 0


def test_what_divides_exactly_leaves_the_division():
    assert (4 * N + 5) // 2 == 2 * N + 2
    assert (4 * N + 5) // -2 == -2 * N - 3
    assert N // 1 == N and (N + 3) // 2 != N // 2 + 1
    assert (N + 4) // 2 == N // 2 + 2
    assert isinstance((6 * N) // 4, Length)


def test_divisions_by_lengths():
    length = (N * C) // C
    assert evaluate(length, {"N": 3, "C": 4}) == 3
    assert evaluate(7 // N, {"N": 2}) == 3
    with pytest.raises(ZeroDivisionError):
        evaluate(7 // N, {"N": 0})
    with pytest.raises(ZeroDivisionError):
        N // 0


KNOWN = {"N": 7, "C": 5}


def test_how_it_is_written():
    assert str(N * C + N + 1) == "C*N + N + 1"
    assert str(2 * N - 3) == "2*N - 3"
    assert str(-N) == "-N"
    assert str(N // 2) == "N//2"
    assert (N // 2).c_text() == "(floor_div(N, 2))"
    assert str(N // 2 // 2 * 2) == "2*(N//2//2)" and str(C - N // 2) == "C - N//2"
    assert str((N + 1) // 2) == "(N + 1)//2" and str(2 * N // 3) == "2*N//3"
    assert str(-(N // 2)) == "-(N//2)" and str(N // (2 * C)) == "N//(2*C)"
    shapes = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a // b, lambda a, b: a - 2 * b]
    pairs = itertools.product([N, C, 2 * N, N + 1, -N, N // 2, 3], [N, C + 2, -3, 2 * C, C // 2])
    wrong = []
    for (a, b), f, g in itertools.product(pairs, shapes, shapes):
        length = g(f(a, b), b)
        if isinstance(length, Length) and length.evaluate(KNOWN) != eval(str(length), {}, KNOWN):
            wrong.append(length)
    assert wrong == []
    assert str(N * N) == "N*N"


def test_equality_and_constants():
    assert Length.of("N") == N and Length.of("N") is N and 2 * N - N is N
    assert (N == 3) is False and N != C
    assert N - N == 0 and type(N - N) is int and type(N + 1 - N) is int
    assert product([N, 2, C]) == 2 * N * C and product([]) == 1
    assert 3 - N == -(N - 3)


def nested(depth, more=0):
    """((N // 2 + N) // 2 + N) ..., and what it is for N = 7."""
    length, value = N + more, 7 + more
    for _ in range(depth):
        length, value = length // 2 + N, value // 2 + 7
    return length, value


def test_divisions_within_divisions_of_any_depth():
    depth = 2 * sys.getrecursionlimit()
    length, value = nested(depth)
    assert names_of(length) == {"N"}
    assert evaluate(length, {"N": 7}) == bound(length, {"N": 7}) == value
    assert bound(length, {"C": 7}) is length
    assert as_text(length).count("//") == length.c_text().count("floor_div") == depth
    assert nested(depth)[0] is length and nested(depth, 1)[0] != length
    alive = weakref.ref(length)
    del length
    assert alive() is None


def test_long_ones_are_sorted_alike_in_every_process():
    """By a key that stays short, and that tells two of one beginning apart."""
    lengths = [nested(100, more)[0] for more in (0, 1, 2)]
    keys = [_key_of(length) for length in lengths]
    assert len(set(keys)) == 3 and max(map(len, keys)) < 1000
    unsorted = (N * C + 1) // C // T // C
    assert _key_of(unsorted) == as_text(unsorted, KEY_DIVISION)
    one, two, three = (length // C for length in lengths)
    assert one + two + three is three + two + one


def test_two_that_threads_made_at_once_are_equal(monkeypatch):
    first = (N + 1) // 2 + C
    monkeypatch.setattr(lengths, "_KNOWN", weakref.WeakValueDictionary())
    second = (Length.of("N") + 1) // 2 + Length.of("C")
    assert first is not second and first == second and hash(first) == hash(second)
    assert first - second == 0 and first != second + 1


def test_a_missing_name_is_named():
    with pytest.raises(KeyError, match="C"):
        (N * C).evaluate({"N": 1})


def test_lengths_are_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        N.terms = ()
    assert FloorDiv(N, 2) == FloorDiv(Length.of("N"), 2)
