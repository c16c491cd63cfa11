"""Order and running sums"""

from .begin import *

# %% sort
show(geon.sort(x, B))
show(geon.sort(n, descending=True))
refused(lambda: geon.sort(x, "Z"))

# %% argsort
show(geon.argsort(x, B))

# %% top_k
values, positions = geon.top_k(x, 2, B)
show(values)
show(positions)
refused(lambda: geon.top_k(x, 4, B))

# %% cumsum
show(geon.cumsum(x, B))
show(geon.cumsum(n, exclusive=True))
show(geon.cumsum(n, reverse=True))

# %% cumprod
show(geon.cumprod(x, B))
