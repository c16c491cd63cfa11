"""Arithmetic and elementary functions"""

from .begin import *

# %% add
show(x + n)
v = geon.constant([1.0, 2.0], [A], name="v")
show(geon.add(v, x))
refused(lambda: v + n)

# %% subtract
show(x - 1)
show(1 - x)
refused(lambda: x - "1")

# %% multiply
show(x * n)
print(geon.multiply(x, n) is x * n)
refused(lambda: geon.multiply(x))

# %% divide
show(x / 2)
show(n / 2)
refused(lambda: geon.divide(x, "2"))

# %% floordivide
show(n // 2)
show(-n // 0)
show(x // 0.75)

# %% mod
show(-n % 2)
show(x % 2.5)

# %% power
show(x**2)
show(2.0**n)
show(n**-1)

# %% negative
show(-x)
refused(lambda: -geon.isnan(x))

# %% absolute
show(abs(x))
print(abs(x) is geon.absolute(x))

# %% sign
show(geon.sign(x))

# %% reciprocal
show(geon.reciprocal(x))

# %% square
show(geon.square(x))

# %% sqrt
show(geon.sqrt(geon.absolute(x)))
show(geon.sqrt(n))
show(geon.sqrt(-1.0))

# %% rsqrt
show(geon.rsqrt(geon.absolute(x)))

# %% exp
show(geon.exp(x))
show(geon.exp(n))

# %% expm1
show(geon.expm1(1e-8))
show(geon.exp(geon.constant(1e-8)) - 1)

# %% log
show(geon.log(geon.absolute(x)))
show(geon.log(n))

# %% log1p
show(geon.log1p(1e-8))

# %% maximum
show(geon.maximum(x, 0))
show(geon.maximum(n, x))

# %% minimum
show(geon.minimum(x, n))

# %% clip
show(geon.clip(x, -1, 1))
show(geon.clip(x, low=0))

# %% floor
show(geon.floor(x))

# %% ceil
show(geon.ceil(x))

# %% round
show(geon.round(geon.constant([0.5, 1.5, -2.5], [B])))

# %% trunc
show(geon.trunc(x / 2))

# %% cast
show(geon.cast(x, "int32"))
show(x.cast("float16"))
show(geon.cast(geon.constant([1e9, -1e9, np.nan], [B]), "int8"))
refused(lambda: geon.cast(x, "complex64"))

# %% interpolation
show(geon.interpolation(x, 0.0, 0.25))
weight = geon.constant([0.0, 1.0], [A], name="weight")
show(geon.interpolation(x, -x, weight))

# %% sin
show(geon.sin(x))

# %% cos
show(geon.cos(x))

# %% tan
show(geon.tan(x))

# %% asin
show(geon.asin(x / 6))

# %% acos
show(geon.acos(x / 6))

# %% atan
show(geon.atan(x))

# %% atan2
show(geon.atan2(x, n))

# %% sinh
show(geon.sinh(x))

# %% cosh
show(geon.cosh(x))

# %% tanh
show(geon.tanh(x))

# %% asinh
show(geon.asinh(x))

# %% acosh
show(geon.acosh(geon.absolute(x) + 1))

# %% atanh
show(geon.atanh(x / 6))

# %% outer
y = geon.constant([10.0, 20.0], [geon.Axis("C", 2)], name="y")
show(geon.outer(geon.multiply, n, y))
show(geon.outer(geon.greater, y, 5 * n))
refused(lambda: geon.outer(geon.softmax, n, y))
