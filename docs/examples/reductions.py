"""Reductions and statistics"""

from .begin import *

# %% sum
show(geon.sum(x, B))
show(geon.sum(x, out_axes="B"))
show(x.sum())
refused(lambda: geon.sum(x, "Z"))

# %% prod
show(geon.prod(x, "B"))
refused(lambda: geon.prod(x, "Z"))

# %% max
show(geon.max(x, B))
refused(lambda: geon.max(geon.constant(np.ones((2, 0)), [A, geon.Axis("E", 0)]), "E"))

# %% min
show(geon.min(x, [A, B]))

# %% any
show(geon.any(x > 3, B))

# %% all
show(geon.all(x < 4, B))

# %% argmax
show(geon.argmax(x, B))
show(geon.argmax(x))

# %% argmin
show(geon.argmin(x, "A"))

# %% mean
show(geon.mean(x, B))
show(geon.mean(n))
refused(lambda: geon.mean(x, "Z"))

# %% variance
show(geon.variance(x, B))
show(geon.variance(x, B, correction=1))

# %% std
show(geon.std(x, B))

# %% squared_L2
show(geon.squared_L2(x, B))

# %% L2_norm
show(geon.L2_norm(x, B))

# %% logsumexp
show(geon.logsumexp(x, B))
show(geon.logsumexp(1000 * x, B))
