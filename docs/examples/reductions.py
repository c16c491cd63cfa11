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

# %% nansum
show(geon.nansum(geon.where(x < 0, np.nan, x), B))

# %% nanmean
show(geon.nanmean(geon.where(x < 0, np.nan, x), B))

# %% count_nonzero
show(geon.count_nonzero(n))

# %% aminmax
least, largest = geon.aminmax(x, B)
show(least)
show(largest)

# %% renorm
show(geon.renorm(x, B, 5))

# %% segment_sum
groups, S = geon.constant([1, 0, 1], [B], name="groups"), geon.Axis("S", 3)
show(geon.segment_sum(x, groups, S))
refused(lambda: transformer.computation(geon.segment_sum(x, groups + 2, S))())

# %% segment_prod
groups, S = geon.constant([1, 0, 1], [B], name="groups"), geon.Axis("S", 3)
show(geon.segment_prod(x, groups, S))

# %% segment_max
groups, S = geon.constant([1, 0, 1], [B], name="groups"), geon.Axis("S", 3)
show(geon.segment_max(x, groups, S))

# %% segment_min
groups, S = geon.constant([1, 0, 1], [B], name="groups"), geon.Axis("S", 3)
show(geon.segment_min(x, groups, S))

# %% segment_mean
groups, S = geon.constant([1, 0, 1], [B], name="groups"), geon.Axis("S", 3)
show(geon.segment_mean(x, groups, S))

# %% bincount
show(geon.bincount(n, geon.Axis("K", 5)))
show(geon.bincount(n, geon.Axis("K", 5), weights=geon.constant([0.5, 1.0, 2.0], [B])))

# %% histogram
show(geon.histogram(x, geon.Axis("K", 4), -4, 4))
show(geon.histogram(x, geon.Axis("K", 4), -4, 4, B))
refused(lambda: geon.histogram(x, geon.Axis("K", 4), 4, -4))
