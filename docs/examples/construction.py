"""Matrices, ranges and repetition"""

from .begin import *

# %% eye
show(geon.eye(A, B))
show(geon.eye(A, A.prime, "int64"))

# %% tril
show(geon.tril(x, A, B))
show(geon.tril(x, A, B, 1))

# %% triu
show(geon.triu(x, A, B))
refused(lambda: geon.triu(x, A, A))

# %% diag_embed
show(geon.diag_embed(n, B, geon.Axis("C")))

# %% trace
show(geon.trace(x[:, 1:], A, B))

# %% vander
show(geon.vander(n, geon.Axis("P", 4)))

# %% kron
show(geon.kron(geon.constant([1, 10], [A]), geon.constant([[1, 2], [3, 4]], [A, geon.Axis("C")])))

# %% cross
show(geon.cross(x, n, B))
refused(lambda: geon.cross(x, x, A))

# %% linspace
show(geon.linspace(0, 1, geon.Axis("T", 5)))
show(geon.linspace(x[{B: 0}], 0, geon.Axis("T", 3)))

# %% logspace
show(geon.logspace(0, 2, geon.Axis("T", 3)))

# %% repeat
show(geon.repeat(n, {B: 2}))

# %% tile
show(geon.tile(n, {B: 2}))

# %% diff
show(geon.diff(n, B))
show(geon.diff(n, B, 2))

# %% trapezoid
show(geon.trapezoid(x, B, dx=0.5))

# %% cumulative_trapezoid
show(geon.cumulative_trapezoid(x, B))

# %% cov
show(geon.cov(x, A, B))

# %% corrcoef
show(geon.corrcoef(x, A, B))

# %% cdist
show(geon.cdist(x, geon.rename(x, {A: "C"}), B))
show(geon.cdist(x, geon.rename(x, {A: "C"}), B, 1))
