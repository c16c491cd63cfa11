"""Order and running sums"""

from .begin import *

# %% sort
show(geon.sort(x, B))
show(geon.sort(n, descending=True))
refused(lambda: geon.sort(x, "Z"))

# %% argsort
show(geon.argsort(x, B))
show(geon.argsort(x, B, descending=True))

# %% top_k
values, positions = geon.top_k(x, 2, B)
show(values)
show(positions)
show(geon.top_k(x, 2, B, largest=False)[0])
refused(lambda: geon.top_k(x, 4, B))

# %% cumsum
show(geon.cumsum(x, B))
show(geon.cumsum(n, exclusive=True))
show(geon.cumsum(n, reverse=True))

# %% cumprod
show(geon.cumprod(x, B))

# %% cummax
show(geon.cummax(x, B))
show(geon.cummax(x, B, exclusive=True))

# %% cummin
show(geon.cummin(x, B))
show(geon.cummin(x, B, reverse=True))

# %% argcummax
show(geon.argcummax(x, B))

# %% argcummin
show(geon.argcummin(x, B))

# %% logcumsumexp
show(geon.logcumsumexp(x, B))
show(geon.logcumsumexp(1000 * x, B))

# %% lexsort
first = geon.constant([1, 0, 1], [B], name="first")
show(geon.lexsort([first, n]))

# %% kthvalue
value, position = geon.kthvalue(x, 2, B)
show(value)
show(position)
refused(lambda: geon.kthvalue(x, 0, B))

# %% mode
value, count = geon.mode(geon.constant([2, 7, 7, 2, 5], [geon.Axis("N", 5)]))
show(value)
show(count)

# %% quantile
show(geon.quantile(x, 0.25, B))
show(geon.quantile(x, geon.constant([0.1, 0.5], [geon.Axis("Q", 2)]), B, method="nearest"))
refused(lambda: geon.quantile(x, 25, B))

# %% nanquantile
show(geon.nanquantile(geon.where(x < 0, np.nan, x), 0.5, B))

# %% percentile
show(geon.percentile(x, 25, B))

# %% median
show(geon.median(x, B))
show(geon.median(x))

# %% nanmedian
show(geon.nanmedian(geon.where(x < 0, np.nan, x), B))

# %% searchsorted
edges = geon.constant([0.0, 1.0, 2.0, 4.0], [geon.Axis("E", 4)], name="edges")
show(geon.searchsorted(edges, x))
show(geon.searchsorted(edges, x, side="right"))

# %% bucketize
show(geon.bucketize(x, geon.constant([0.0, 2.0], [geon.Axis("E", 2)])))

# %% interp
points = geon.constant([0.0, 1.0, 4.0], [geon.Axis("E", 3)], name="points")
levels = geon.constant([10.0, 20.0, 50.0], [geon.Axis("E", 3)], name="levels")
show(geon.interp(x, points, levels))

# %% isin
show(geon.isin(n, geon.constant([0, 2], [A])))

# %% unique
labels = geon.constant([7, 2, 7, 7], [geon.Axis("N", 4)], name="labels")
found = transformer.computation(geon.unique(labels))()
print(found.exact())
show(geon.unique(labels, geon.Axis("K", 3), fill=-1).values)
refused(lambda: transformer.computation(geon.unique(labels, geon.Axis("K", 1)))())

# %% unique_consecutive
labels = geon.constant([7, 2, 7, 7], [geon.Axis("N", 4)], name="labels")
print(transformer.computation(geon.unique_consecutive(labels))().exact())
