"""Movement of axes"""

from .begin import *

# %% broadcast
C = geon.Axis("C", 2)
show(geon.broadcast(n, [C, B]))
refused(lambda: geon.broadcast(x, [B, C]))

# %% expand
show(geon.expand(n, A))
show(geon.expand(n, A, position=1))
refused(lambda: geon.expand(x, A))

# %% reorder
show(geon.reorder(x, [B, A]))
refused(lambda: geon.reorder(x, [B]))

# %% rename
print(geon.rename(x, {"A": "K"}).axes, geon.rename(x, {B: B.prime}).axes)
show(geon.dot(x, x.rename({A: A.prime})))
refused(lambda: geon.rename(x, {"A": "B"}))

# %% cast_axes
P, Q = geon.Axis("P", 2), geon.Axis("Q", 3)
print(geon.cast_axes(x, [P, Q]).axes)
refused(lambda: geon.cast_axes(x, [Q, P]))

# %% flatten
show(geon.flatten(x))
print(geon.flatten(x, [B, A], geon.Axis("C")).axes)
refused(lambda: geon.flatten(x, [A, B], geon.Axis("C", 5)))

# %% unflatten
P, Q = geon.Axis("P", 2), geon.Axis("Q", 3)
long = geon.iota(geon.Axis("L", 6))
show(geon.unflatten(long, "L", [P, Q]))
refused(lambda: geon.unflatten(long, "L", [P, P.prime]))

# %% flip
show(geon.flip(x, B))
refused(lambda: geon.flip(x, "Z"))

# %% concat
show(geon.concat([x, 10 * x[{B: slice(0, 1)}]], B))
refused(lambda: geon.concat([x, n], A))

# %% stack
show(geon.stack([n, -n], geon.Axis("C", 2)))
print(geon.stack([n, -n], geon.Axis("C"), position=1).axes)
refused(lambda: geon.stack([x, n], geon.Axis("C")))

# %% pad
show(geon.pad(n, {B: (1, 2)}))
show(geon.pad(x, {A: 1, B: 1}, mode="reflect"))
refused(lambda: geon.pad(x, {"B": -1}))

# %% roll
show(geon.roll(x, {B: 1}))
refused(lambda: geon.roll(x, {"Z": 1}))

# %% diagonal
show(geon.diagonal(geon.dot(x, x.rename({A: A.prime})), [A, A.prime]))
refused(lambda: geon.diagonal(x, [A]))
