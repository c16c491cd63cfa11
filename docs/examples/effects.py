"""Effects"""

from .begin import *

# %% assign
v = geon.Variable([B], initial_value=0, name="v")
f = transformer.computation([v, geon.assign(v, v + n)])
print(f()[0], f()[0], transformer.get(v))
transformer.computation(geon.assign(v[0], -1.0))()
print(transformer.get(v))
refused(lambda: geon.assign(x, 0.0))
refused(lambda: geon.assign(v, geon.cast(n, "float64")))

# %% doall
v = geon.Variable(initial_value=1, name="v")
w = geon.Variable(initial_value=2, name="w")
swap = geon.doall([geon.assign(v, w), geon.assign(w, v)])
transformer.computation(swap)()
print(transformer.get(v), transformer.get(w))
refused(lambda: geon.doall([v]))

# %% sequential
v = geon.Variable(initial_value=1, name="v")
twice = geon.sequential([geon.assign(v, v + 1), geon.assign(v, v * 10), v])
print(transformer.computation(twice)())
refused(lambda: geon.sequential([]))

# %% print
total = geon.print(geon.sum(x, B), "total")
print(transformer.computation(geon.max(total))())
