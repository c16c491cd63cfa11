"""Loops and branches"""

from .begin import *


# %% scan
def step(total, row):
    """Add a row to a running total, and give its square."""
    return total + row, geon.square(row)


last, squares = geon.scan(step, geon.constant(0.0), geon.cast(n, "float32"), over=B)
show(last)
show(squares)
refused(lambda: geon.scan(step, geon.constant(0.0), x, over="Z"))

# %% case_of
branches = [lambda: geon.cast(n, "float32"), lambda: geon.cast(n, "float32") * 10]
show(geon.case_of(1, branches))
show(geon.case_of(7, branches, default=lambda: geon.constant(0.0, [B])))
refused(lambda: geon.case_of(0, [branches[0], lambda: geon.constant(1)]))

# %% cond
total = geon.cast(geon.sum(n), "float32")
show(geon.cond(total > 2.0, lambda: total / 2, lambda: total))
refused(lambda: geon.cond(n > 1, lambda: n, lambda: -n))

# %% associative_scan


def then(first, second):
    """One map x -> scale * x + shift after another."""
    return first[0] * second[0], second[0] * first[1] + second[1]


scale, shift = geon.associative_scan(then, (x, x * 10), over=B)
show(shift)
refused(lambda: geon.associative_scan(lambda a, b: geon.sum(a * b), x, over=B))

# %% while_loop
root = geon.while_loop(lambda r: abs(r * r - 2) > 1e-6, lambda r: (r + 2 / r) / 2, 1.0)
show(root)
kept = geon.while_loop(lambda c: c > 1, lambda c: c // 2, geon.sum(n) + 35, count=True)
show(kept[0])
show(kept[1])
refused(lambda: geon.while_loop(lambda c: c > 1, lambda c: c / 2, 9))

# %% fixed_point
k = geon.cast(n, "float32") / 10
angle = geon.fixed_point(lambda e: k * geon.sin(e) + 0.5, geon.broadcast(0.0, [B]))
show(angle)
show(geon.deriv(geon.sum(angle), k))
refused(lambda: geon.fixed_point(lambda e: e + 1, n))
