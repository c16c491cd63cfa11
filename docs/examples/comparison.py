"""Comparison, choice and bits"""

from .begin import *

# %% less
show(x < n)
print(geon.less(x, n) is (x < n))
refused(lambda: bool(x < n))

# %% less_equal
show(x <= n)

# %% greater
show(x > n)

# %% greater_equal
show(x >= n)

# %% equal
show(n == 2)
show(geon.equal(x, 4))
refused(lambda: bool(x == n))

# %% not_equal
show(n != 2)

# %% where
show(geon.where(x > 0, x, 0))
show(geon.where(n > 0, 1 / geon.maximum(n, 1), 0.0))
refused(lambda: geon.where(x, 1, 0))

# %% isnan
show(geon.isnan(geon.log(x)))

# %% isinf
show(geon.isinf(1 / n))

# %% isfinite
show(geon.isfinite(1 / n))

# %% logical_and
show(geon.logical_and(x > 0, n > 0))
show(geon.logical_and(x, n))

# %% logical_or
show(geon.logical_or(x > 0, n > 0))

# %% logical_xor
show(geon.logical_xor(x > 0, n > 0))

# %% logical_not
show(geon.logical_not(x > 0))

# %% bitwise_and
show(n & 1)
show((x > 0) & (n > 0))
refused(lambda: x & 1)

# %% bitwise_or
show(n | 1)

# %% bitwise_xor
show(n ^ 1)

# %% bitwise_not
show(~n)
show(~(x > 0))

# %% left_shift
show(n << 4)
refused(lambda: x << 1)

# %% right_shift
show(-n >> 1)
