"""Effects in steps and branches are refused, with what to do instead; and that does the same."""

import numpy as np
import pytest

import geon

T = geon.Axis("T")
x = geon.placeholder([T], name="x")
v = geon.Variable([], initial_value=1.0, name="v")
CARRY = r"runs the effect assign\(v\(\)\).*let v\(\) be among what the loop begins with"
CHOOSE = r"runs the effect assign\(v\(\)\).*return the new value of v\(\) from each branch"


def assigned(c):
    return geon.sequential([geon.assign(v, v + c), c * v])


REFUSED = [
    (lambda: geon.scan(lambda c, e: (assigned(c), None), 0.0, x), "scan", CARRY),
    (lambda: geon.scan(lambda c, e: (c, assigned(e)), 0.0, x), "scan", CARRY),
    (lambda: geon.scan(lambda c, e: (c, geon.assign(v, c)), 0.0, x), "scan", CARRY),
    (lambda: geon.scan(lambda c, e: (geon.assign(v, c), None), 0.0, x), "scan", CARRY),
    (lambda: geon.while_loop(lambda c: c < 3, assigned, 0.0), "while_loop", CARRY),
    (lambda: geon.while_loop(lambda c: assigned(c) < 3, lambda c: c + 1, 0.0), "while_loop", CARRY),
    (lambda: geon.while_loop(lambda c: geon.assign(v, c), lambda c: c, 0.0), "while_loop", CARRY),
    (lambda: geon.fixed_point(assigned, 0.5), "fixed_point", CARRY),
    (
        lambda: geon.cond(geon.sum(x) > 0, lambda: geon.assign(v, 1.0), lambda: None),
        "cond",
        CHOOSE,
    ),
    (lambda: geon.case_of(geon.constant(0), [lambda: assigned(v)]), "case_of", CHOOSE),
    (
        lambda: geon.scan(lambda c, e: (geon.print(c + e), None), 0.0, x),
        "scan",
        r"runs the effect print\(\).*geon.print what comes out",
    ),
]


@pytest.mark.filterwarnings("ignore:the assignment to:RuntimeWarning")
@pytest.mark.parametrize(("build", "name", "message"), REFUSED)
def test_an_effect_is_refused_with_what_to_do(build, name, message):
    with pytest.raises(geon.ArgumentError, match=rf"^{name} at .*in_bodies.py:\d+: it {message}"):
        build()


def test_what_to_do_does_it(make):
    transformer = make()
    last, seen = geon.scan(lambda c, e: (c + e, c), v, x)
    kept = geon.cond(last > 3, lambda: last, lambda: geon.sum(seen))
    f = transformer.computation([geon.assign(v, kept), seen], x)
    np.testing.assert_array_equal(f([1.0, 2.0])[1], [1.0, 2.0])
    assert transformer.get(v) == 4.0
    f([-2.0, -1.0])
    assert transformer.get(v) == 6.0
